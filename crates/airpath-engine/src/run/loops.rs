// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The threads that carry the packets of a run: its links, dealt out over loops.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use airpath_live::engine_loop::{Circling, EngineLoop, FinishedLink, Handle, LiveLink, LoopReport};
use airpath_live::scheduling;
use airpath_live::tuning::{Affinity, Told, Tuning};
use airpath_live::wake_latency::WakeLatency;
use airpath_log::Clock;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::RunRequest;
use crate::error::{Failure, Result};

/// The thread of a loop.
type Thread = JoinHandle<io::Result<(Vec<FinishedLink>, LoopReport)>>;

/// The loops of a run.
pub struct Loops {
    handles: Vec<Handle>,
    threads: Vec<Thread>,
    /// Number of links.
    links: usize,
    /// Readable once a thread has ended, or every link is lost.
    stopped: OwnedFd,
    lost: Arc<Lost>,
    /// Let go when the loops have ended.
    _wake_latency: Option<WakeLatency>,
}

/// A link as other threads reach it.
#[derive(Clone)]
pub struct Reach {
    /// Its loop.
    pub handle: Handle,
    /// Its number in the loop.
    pub index: usize,
}

fn no_thread(error: &io::Error) -> Failure {
    Failure::new(format!("cannot start the engine's thread: {error}"))
}

/// Tells of the end of a thread.
struct Running(OwnedFd);

impl Running {
    fn of(running: &OwnedFd) -> Result<Running> {
        running.try_clone().map(Running).map_err(|error| no_thread(&error))
    }

    fn tell(&self) {
        let _ = nix::unistd::write(&self.0, &[0]);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tell();
    }
}

/// The links that were lost in the midst of the run.
struct Lost {
    /// Their numbers, as far as nobody has taken them; and the number of those that are left.
    links: Mutex<(Vec<usize>, usize)>,
    /// Readable while there are some.
    notifier: EventFd,
}

impl Lost {
    /// Notes `link`; true if it was the last one.
    fn note(&self, link: usize) -> bool {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.0.push(link);
        links.1 -= 1;
        let _ = self.notifier.write(1);
        links.1 == 0
    }

    fn take(&self) -> Vec<usize> {
        let _ = self.notifier.read();
        std::mem::take(&mut self.links.lock().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Number of loops for so many links: half of the processors, so that commands have the others.
pub fn count(run: &RunRequest, links: usize) -> usize {
    // One processor is all that a guest has.
    if run.clock == Clock::Warp {
        return 1;
    }
    let processors = scheduling::allowed_processors().map_or(1, |processors| processors.len());
    run.loops.map_or(processors / 2, NonZeroUsize::get).clamp(1, links.max(1))
}

impl Loops {
    /// Starts the loops of `links`, and returns what came of the wishes of `run` for their threads.
    ///
    /// # Errors
    /// When descriptors or threads run out.
    pub fn start(run: &RunRequest, links: Vec<LiveLink>) -> Result<(Loops, Vec<Told>)> {
        let tuning = &run.tuning;
        let (number, count) = (links.len(), count(run, links.len()));
        let mut dealt: Vec<Vec<LiveLink>> = (0..count).map(|_| Vec::new()).collect();
        for (link, live) in links.into_iter().enumerate() {
            dealt[link % count].push(live);
        }
        let pipe = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC);
        let (stopped, running) = pipe.map_err(|errno| Failure::new(format!("cannot make a pipe: {errno}")))?;
        let mut timing = tuning.prepare_process();
        let (held, wake_latency) = tuning.hold();
        timing.extend(held);
        let notifier = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|errno| Failure::new(format!("cannot make an event descriptor: {errno}")))?;
        let lost = Arc::new(Lost { links: Mutex::new((Vec::new(), number)), notifier });
        let mut loops = Loops {
            handles: Vec::new(),
            threads: Vec::new(),
            links: number,
            stopped,
            lost,
            _wake_latency: wake_latency,
        };
        for (number, links) in dealt.into_iter().enumerate() {
            let (engine, handle) = EngineLoop::new(links, tuning.spin)
                .map_err(|error| Failure::new(format!("cannot set up the engine's loop: {error}")))?;
            let engine = engine.with_economy(tuning.economy);
            let (lost, all_lost) = (Arc::clone(&loops.lost), Running::of(&running)?);
            let engine = engine.outliving_links(move |index| {
                if lost.note(index * count + number) {
                    all_lost.tell();
                }
            });
            let engine = if run.clock == Clock::Warp { engine.with_frozen_clock() } else { engine };
            let told = loops.run(engine, handle, &of_loop(tuning, number), &running)?;
            // What differs between loops is the processor alone.
            timing.extend(told.into_iter().filter(|told| !timing.contains(told)).collect::<Vec<_>>());
        }
        Ok((loops, timing))
    }

    fn run(&mut self, engine: EngineLoop, handle: Handle, tuning: &Tuning, running: &OwnedFd) -> Result<Vec<Told>> {
        let (tuning, running) = (tuning.clone(), Running::of(running)?);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("airpath-loop".into())
            .spawn(move || {
                let _running = running;
                let _ = tell.send(tuning.prepare_thread());
                engine.run()
            })
            .map_err(|error| no_thread(&error))?;
        self.handles.push(handle);
        self.threads.push(thread);
        Ok(told.recv().unwrap_or_default())
    }

    /// Number of loops.
    pub fn count(&self) -> usize {
        self.handles.len()
    }

    /// Begins the run with t = 0 at `epoch_ns` of CLOCK_MONOTONIC.
    pub fn begin(&self, epoch_ns: u64) {
        self.handles.iter().for_each(|handle| handle.begin(epoch_ns));
    }

    /// Readable once a loop has ended, or every link is lost.
    pub fn stopped(&self) -> BorrowedFd<'_> {
        self.stopped.as_fd()
    }

    /// Readable while there are lost links that nobody has taken.
    pub fn lost(&self) -> BorrowedFd<'_> {
        self.lost.notifier.as_fd()
    }

    /// The links that were lost since the last call, by number.
    pub fn take_lost(&self) -> Vec<usize> {
        self.lost.take()
    }

    /// The links, by number.
    pub fn reach(&self) -> Vec<Reach> {
        let count = self.count();
        let of = |link: usize| Reach { handle: self.handles[link % count].clone(), index: link / count };
        (0..self.links).map(of).collect()
    }

    /// Ends the loops, and returns the links by number.
    ///
    /// # Errors
    /// When a loop failed.
    pub fn stop(self) -> Result<Vec<(FinishedLink, LoopReport)>> {
        self.handles.iter().for_each(|handle| handle.stop());
        let joined: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        let mut dealt = Vec::with_capacity(joined.len());
        for ended in joined {
            let (links, report) = ended
                .map_err(|_| Failure::new("the engine's loop failed; please report this with the scenario"))?
                .map_err(|error| Failure::new(format!("the engine's loop cannot go on: {error}")))?;
            dealt.push((links.into_iter(), report));
        }
        let count = dealt.len();
        let next = |link: usize| {
            let (links, report) = &mut dealt[link % count];
            links.next().map(|link| (link, report.clone()))
        };
        let links: Option<Vec<_>> = (0..self.links).map(next).collect();
        links.ok_or_else(|| Failure::new("the engine's loop lost its link"))
    }
}

/// Reason for the loss of a link by `error`; `gone` says why a port may have gone away, if that is known.
pub fn why_lost(error: &io::Error, gone: &str) -> Failure {
    let why = if gone.is_empty() { "Did a command take the interface down?" } else { gone };
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Circling>()) {
        Some(circling) => Failure::new(circling.to_string()),
        None => Failure::new(format!("a port of the link disappeared during the run: {error}\n  {why}")),
    }
}

/// The tuning of a loop of this number: where the first is tied to a processor, the others are tied to those before it.
fn of_loop(tuning: &Tuning, number: usize) -> Tuning {
    let affinity = match tuning.affinity {
        Affinity::Processor(first) if number > 0 => {
            let processors = scheduling::allowed_processors().unwrap_or_default();
            let place = processors.iter().position(|processor| *processor == first);
            let other = place
                .filter(|_| number < processors.len())
                .map(|place| processors[(place + processors.len() - number) % processors.len()]);
            other.map_or(Affinity::Any, Affinity::Processor)
        }
        affinity => affinity,
    };
    Tuning { affinity, ..tuning.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_has_a_processor_of_its_own() {
        let processors = scheduling::allowed_processors().unwrap();
        let last = *processors.last().unwrap();
        let tuning = Tuning { affinity: Affinity::Processor(last), ..Tuning::with_frozen_clock() };
        let used: Vec<Affinity> = (0..processors.len()).map(|number| of_loop(&tuning, number).affinity).collect();
        for (number, affinity) in used.iter().enumerate() {
            assert!(matches!(affinity, Affinity::Processor(_)), "{affinity:?}");
            assert!(!used[..number].contains(affinity), "{used:?}");
        }
        assert_eq!(of_loop(&tuning, processors.len()).affinity, Affinity::Any);
    }
}
