// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The thread that asks and writes.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use airpath_core::{End, Span};
use airpath_log::manifest::TcpStateRun;
use airpath_log::tcp_state::{Row, TcpStateLog};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use super::connections::Connections;
use super::probe::Probe;
use crate::clock::{monotonic_ns, thread_processor_ns};
use crate::engine_loop::TrafficNotifier;
use crate::error::{Attempting, LiveError, Result};
use crate::netlink::{ClosedSockets, TcpDiag};
use crate::session::SessionEnd;

/// Maximum time of rows in memory, and their maximum number.
const WRITE_AFTER_NS: u64 = 200_000_000;
const WRITE_ROWS: usize = 8_192;

/// Time without changes after which nobody is asked any more until the next packet.
const IDLE_AFTER_NS: u64 = 1_000_000_000;

/// Maximum time that the end of a run waits for the last sample.
const LAST_SAMPLE_PATIENCE: Duration = Duration::from_millis(100);

/// Options of the recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// Interval between samples.
    pub interval: Span,
    /// True if the tracepoint is read as well.
    pub probe: bool,
    /// True if a kernel without information on TCP is an error; otherwise it is only noted.
    pub required: bool,
    /// True if work takes no time, as in virtual time: TCP has done with a packet when it is asked, and is
    /// asked only after packets.
    pub frozen_clock: bool,
    /// The folder of the run.
    pub folder: PathBuf,
}

/// Records the state of TCP until it is finished, or dropped with its run.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<EventFd>,
    begin: mpsc::Sender<u64>,
    /// Closed once the last sample was taken.
    sampled: mpsc::Receiver<()>,
    traffic: Arc<TrafficNotifier>,
    thread: Option<JoinHandle<TcpStateRun>>,
}

/// One end, and who tells of its sockets.
struct Watched {
    end: End,
    asked: TcpDiag,
    told: Option<ClosedSockets>,
}

impl Sampler {
    /// Gets ready to ask at `namespaces`, at least one at each end: opens everything that may be refused. None where the kernel
    /// tells nothing of TCP, with the reason, unless that is required.
    /// `addresses` are those of all clients, and those of all servers.
    ///
    /// # Errors
    /// When the file, a socket or the thread cannot be had, or the tracepoint
    /// is wanted and not allowed.
    pub fn start(
        options: &Options,
        namespaces: &[&SessionEnd],
        addresses: [Vec<IpAddr>; 2],
    ) -> Result<(Option<Self>, TcpStateRun)> {
        let mut run =
            TcpStateRun { interval_ns: options.interval.nanos(), probe: options.probe, ..TcpStateRun::default() };
        let probe = if options.probe { Some(Probe::open()?) } else { None };
        let mut ends = Vec::new();
        for endpoint in namespaces {
            match watch(endpoint, options.frozen_clock, &mut run) {
                Ok(watched) => ends.push(watched),
                Err(error) if options.required => return Err(error),
                Err(error) => {
                    run.refused.push(error.to_string());
                    return Ok((None, run));
                }
            }
        }
        let log = TcpStateLog::create(&options.folder).map_err(|error| LiveError::Request(error.to_string()))?;
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).attempting(|| "make an event descriptor".into())?;
        let stop = Arc::new(stop);
        let traffic = TrafficNotifier::new(Span::from_nanos(options.interval.nanos() / 2))
            .attempting(|| "make an event descriptor".into())?;
        let traffic = Arc::new(traffic);
        let (begin, begun) = mpsc::channel();
        let (sampling, sampled) = mpsc::channel();
        let work = Work {
            interval_ns: options.interval.nanos(),
            frozen_clock: options.frozen_clock,
            connections: Connections::new(addresses),
            ends,
            probe,
            log,
            run: run.clone(),
            waiting: Vec::new(),
            stop: stop.clone(),
            traffic: traffic.clone(),
            sampling: Some(sampling),
        };
        let thread = std::thread::Builder::new()
            .name("airpath-tcp".into())
            .spawn(move || work.run(&begun))
            .attempting(|| "start the thread that records the state of TCP".into())?;
        Ok((Some(Self { stop, begin, sampled, traffic, thread: Some(thread) }), run))
    }

    /// Begins to record; the run's time 0 is at `start_ns` of CLOCK_MONOTONIC.
    pub fn begin(&self, start_ns: u64) {
        // A thread that is gone tells so at the end.
        let _ = self.begin.send(start_ns);
    }

    /// Bell that must ring when packets pass.
    pub fn traffic_notifier(&self) -> Arc<TrafficNotifier> {
        self.traffic.clone()
    }

    /// Takes the last sample. Returns once it is taken, or soon after if that
    /// takes long: no disk holds up the end of a run.
    pub fn stop(&mut self) {
        let _ = self.stop.write(1);
        // One that has not begun waits for this end to go.
        drop(std::mem::replace(&mut self.begin, mpsc::channel().0));
        let _ = self.sampled.recv_timeout(LAST_SAMPLE_PATIENCE);
    }

    /// Stops, ends the file, and tells what was recorded.
    pub fn finish(mut self) -> TcpStateRun {
        self.join().unwrap_or_else(|| TcpStateRun {
            incomplete: vec![
                "the thread that records the TCP state failed; the data written before that is \
                readable"
                    .into(),
            ],
            ..TcpStateRun::default()
        })
    }

    fn join(&mut self) -> Option<TcpStateRun> {
        let _ = self.stop.write(1);
        // One that has not begun waits for this end to go.
        drop(std::mem::replace(&mut self.begin, mpsc::channel().0));
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

fn watch(endpoint: &SessionEnd, frozen_clock: bool, run: &mut TcpStateRun) -> Result<Watched> {
    let end = endpoint.end();
    let (asked, told) = endpoint.network().run(|| (TcpDiag::open(), ClosedSockets::open()))?;
    let mut asked = asked.attempting(|| "open a socket diagnosis socket".into())?;
    if frozen_clock {
        asked = asked.in_series();
    }
    asked.sockets().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => LiveError::Missing(
            "the TCP state cannot be recorded: this kernel was built without INET_DIAG (CONFIG_INET_TCP_DIAG), or \
             its module inet_diag is not loaded; load it, or use --tcp-state off"
                .into(),
        ),
        _ => LiveError::system(format!("ask for the TCP sockets of the {end}'s end"), error),
    })?;
    let told = told
        .inspect_err(|error| {
            run.refused.push(format!(
                "close notifications of sockets at the {end}'s end ({error}): final values are those of the last \
                 sample, and connections shorter than a sample are missed"
            ));
        })
        .ok();
    Ok(Watched { end, asked, told })
}

/// All that the thread has.
struct Work {
    interval_ns: u64,
    frozen_clock: bool,
    connections: Connections,
    ends: Vec<Watched>,
    probe: Option<Probe>,
    log: TcpStateLog,
    run: TcpStateRun,
    /// Rows that are in order and not yet written.
    waiting: Vec<Row>,
    stop: Arc<EventFd>,
    traffic: Arc<TrafficNotifier>,
    /// Dropped after the last sample.
    sampling: Option<mpsc::Sender<()>>,
}

impl Work {
    fn run(mut self, begun: &mpsc::Receiver<u64>) -> TcpStateRun {
        if let Ok(start_ns) = begun.recv()
            && let Err(error) = self.record(start_ns)
        {
            self.run.incomplete.push(format!("the TCP state could no longer be read: {error}"));
        }
        self.sampling = None;
        let file = self.log.finish();
        self.run.rows = file.rows;
        self.run.incomplete.extend(file.incomplete);
        self.run.refused.extend(file.note);
        self.run.sockets = self.connections.sockets();
        self.run.lost += self.connections.lost();
        self.run.processor_ns = thread_processor_ns();
        self.run
    }

    fn record(&mut self, start_ns: u64) -> io::Result<()> {
        // What came before the run began is no part of it.
        self.hear(start_ns, |_, _, _, _| {})?;
        if let Some(probe) = &mut self.probe {
            probe.read(start_ns, |_| {});
        }
        let (mut last_ns, mut before_ns, mut written_ns) = (0, 0, 0);
        let mut next_ns = 0;
        let mut idle = Idle::default();
        loop {
            let slept = idle == Idle::Asleep;
            let deadline_ns = if slept { None } else { Some(start_ns + next_ns) };
            let Woken { stopped, told } = self.wait_until(deadline_ns)?;
            if told || stopped {
                self.hear(start_ns, Connections::closed)?;
            }
            let now_ns = monotonic_ns().saturating_sub(start_ns);
            if slept {
                self.traffic.leave();
                idle = Idle::since(now_ns);
                // Samples keep their instants, as if none had been left out.
                next_ns = now_ns.next_multiple_of(self.interval_ns);
                // Nothing was to be seen meanwhile, which is no gap.
                last_ns = now_ns;
            }
            if now_ns < next_ns && !stopped {
                continue;
            }
            let rows_before = self.connections.rows_so_far();
            if self.frozen_clock {
                // The notifier tells of whatever comes after this sample.
                self.traffic.await_next();
            }
            self.sample(start_ns)?;
            self.run.longest_gap_ns = self.run.longest_gap_ns.max(now_ns - last_ns);
            // Rows of this round may still be preceded by others of it.
            let ready = self.connections.take(now_ns, before_ns);
            self.waiting.extend(ready);
            (before_ns, last_ns) = (now_ns, now_ns);
            if stopped {
                let rest = self.connections.finish(now_ns);
                self.waiting.extend(rest);
                self.sampling = None;
                self.log.write(&std::mem::take(&mut self.waiting));
                return Ok(());
            }
            let changed = self.connections.rows_so_far() != rows_before || !self.connections.is_settled();
            let was = idle;
            idle = if self.frozen_clock && self.connections.is_settled() {
                Idle::Asleep
            } else {
                was.next(now_ns, changed || self.probe.is_some())
            };
            match idle {
                // One more sample sees what came before this, and the notifier tells of what comes after.
                Idle::Watching => self.traffic.await_next(),
                Idle::Awake { .. } if was == Idle::Watching => self.traffic.leave(),
                Idle::Awake { .. } => {}
                Idle::Asleep => written_ns = 0,
            }
            // Who would look at the file meanwhile has no time to.
            let is_due = now_ns >= written_ns + WRITE_AFTER_NS && !self.frozen_clock;
            if self.waiting.len() >= WRITE_ROWS || is_due {
                self.log.write(&self.waiting);
                self.waiting.clear();
                written_ns = now_ns;
            }
            // What was missed is not made up for.
            next_ns = (now_ns / self.interval_ns + 1) * self.interval_ns;
        }
    }

    /// Asks at both ends, and reads what the tracepoint has told since.
    fn sample(&mut self, start_ns: u64) -> io::Result<()> {
        for (namespace, watched) in self.ends.iter_mut().enumerate() {
            let sockets = watched.asked.sockets()?;
            let time_ns = monotonic_ns().saturating_sub(start_ns);
            self.connections.sampled(time_ns, (watched.end, namespace), sockets);
        }
        if let Some(probe) = &mut self.probe {
            let connections = &mut self.connections;
            self.run.lost += probe.read(start_ns, |record| connections.probed(record));
        }
        self.run.samples += 1;
        Ok(())
    }

    /// Hands the sockets that were closed since the last call to `take`.
    fn hear(
        &mut self,
        start_ns: u64,
        take: impl Fn(&mut Connections, u64, End, &crate::netlink::TcpSocket),
    ) -> io::Result<()> {
        for watched in &mut self.ends {
            let Some(told) = &mut watched.told else { continue };
            let connections = &mut self.connections;
            let mut now_ns = None;
            let lost = told.read(|socket| {
                let now_ns = *now_ns.get_or_insert_with(|| monotonic_ns().saturating_sub(start_ns));
                take(connections, now_ns, watched.end, &socket);
            })?;
            self.run.lost += u64::from(lost);
        }
        Ok(())
    }

    /// Waits until `deadline_ns` of CLOCK_MONOTONIC, or without one until a
    /// packet passes, or until a socket was closed.
    fn wait_until(&self, deadline_ns: Option<u64>) -> io::Result<Woken> {
        let timeout = deadline_ns.map(|deadline_ns| {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            TimeSpec::from(Duration::from_nanos(left_ns))
        });
        let notifier = timeout.is_none().then(|| self.traffic.as_fd());
        let told = self.ends.iter().filter_map(|watched| watched.told.as_ref()).map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(self.stop.as_fd()).chain(told).chain(notifier).collect();
        let mut ends: Vec<PollFd<'_>> =
            descriptors.into_iter().map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        match ppoll(&mut ends, timeout, None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {
                let is_ready = |end: &PollFd<'_>| end.any().unwrap_or(false);
                let told = self.ends.iter().filter(|watched| watched.told.is_some()).count();
                Ok(Woken { stopped: is_ready(&ends[0]), told: ends[1..=told].iter().any(is_ready) })
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Cause of a wake-up.
struct Woken {
    /// The end has come.
    stopped: bool,
    /// A socket was closed.
    told: bool,
}

/// Decision on sampling: an end's TCP changes when packets pass, or while it has something under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// Something changed at this time, or might have.
    Awake { since_ns: u64 },
    /// Nothing has for a while: the next sample decides.
    Watching,
    /// Nobody is asked before the next packet.
    Asleep,
}

impl Default for Idle {
    fn default() -> Self {
        Self::since(0)
    }
}

impl Idle {
    fn since(since_ns: u64) -> Self {
        Self::Awake { since_ns }
    }

    /// After a sample at `now_ns`, which found a change or not.
    fn next(self, now_ns: u64, changed: bool) -> Self {
        match self {
            _ if changed => Self::since(now_ns),
            Self::Awake { since_ns } if now_ns < since_ns + IDLE_AFTER_NS => self,
            Self::Awake { .. } => Self::Watching,
            Self::Watching | Self::Asleep => Self::Asleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_after_a_second_without_change_and_one_more_look() {
        const MS: u64 = 1_000_000;
        let mut idle = Idle::default();
        for now_ms in (10..1_000).step_by(10) {
            idle = idle.next(now_ms * MS, false);
            assert_eq!(idle, Idle::since(0));
        }
        assert_eq!(idle.next(1_000 * MS, true), Idle::since(1_000 * MS));
        idle = idle.next(1_000 * MS, false);
        assert_eq!(idle, Idle::Watching);
        assert_eq!(idle.next(1_010 * MS, true), Idle::since(1_010 * MS));
        assert_eq!(idle.next(1_010 * MS, false), Idle::Asleep);
    }
}
