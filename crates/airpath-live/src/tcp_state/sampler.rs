//! The thread that asks and writes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use airpath_core::{End, Span};
use airpath_log::manifest::TcpStateRun;
use airpath_log::tcp_state::{Row, TcpStateLog};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use super::connections::Connections;
use super::probe::Probe;
use crate::clock::{monotonic_ns, thread_processor_ns};
use crate::error::{Attempting, LiveError, Result};
use crate::netlink::{ClosedSockets, TcpDiag};
use crate::session::Endpoint;

/// How long rows may wait in memory, and how many.
const WRITE_AFTER_NS: u64 = 200_000_000;
const WRITE_ROWS: usize = 8_192;

/// What is recorded, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long from one sample to the next.
    pub interval: Span,
    /// Whether the tracepoint is read as well.
    pub probe: bool,
    /// Whether a kernel that tells nothing of TCP is an error, or noted only.
    pub required: bool,
    /// The folder of the run.
    pub folder: PathBuf,
}

/// Records the state of TCP until it is finished, or dropped with its run.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<EventFd>,
    begin: mpsc::Sender<u64>,
    thread: Option<JoinHandle<TcpStateRun>>,
}

/// One end, and who tells of its sockets.
struct Watched {
    end: End,
    asked: TcpDiag,
    told: Option<ClosedSockets>,
}

impl Sampler {
    /// Gets ready: opens everything that may be refused. None where the kernel
    /// tells nothing of TCP, with the reason, unless that is required.
    ///
    /// # Errors
    /// When the file, a socket or the thread cannot be had, or the tracepoint
    /// is wanted and not allowed.
    pub fn start(options: &Options, client: &Endpoint, server: &Endpoint) -> Result<(Option<Self>, TcpStateRun)> {
        let mut run =
            TcpStateRun { interval_ns: options.interval.nanos(), probe: options.probe, ..TcpStateRun::default() };
        let probe = if options.probe { Some(Probe::open()?) } else { None };
        let mut ends = Vec::new();
        for endpoint in [client, server] {
            match watch(endpoint, &mut run) {
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
        let (begin, begun) = mpsc::channel();
        let work = Work {
            interval_ns: options.interval.nanos(),
            connections: Connections::new([client.addresses().to_vec(), server.addresses().to_vec()]),
            ends,
            probe,
            log,
            run: run.clone(),
            waiting: Vec::new(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("airpath-tcp".into())
            .spawn(move || work.run(&begun))
            .attempting(|| "start the thread that records the state of TCP".into())?;
        Ok((Some(Self { stop, begin, thread: Some(thread) }), run))
    }

    /// Begins to record; the run's time 0 is at `start_ns` of CLOCK_MONOTONIC.
    pub fn begin(&self, start_ns: u64) {
        // A thread that is gone tells so at the end.
        let _ = self.begin.send(start_ns);
    }

    /// Takes a last sample, ends the file, and tells what was recorded.
    pub fn finish(mut self) -> TcpStateRun {
        self.join().unwrap_or_else(|| TcpStateRun {
            incomplete: vec!["the thread that records the state of TCP failed; what it had written is readable".into()],
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

fn watch(endpoint: &Endpoint, run: &mut TcpStateRun) -> Result<Watched> {
    let end = endpoint.end();
    let (asked, told) = endpoint.network().run(|| (TcpDiag::open(), ClosedSockets::open()))?;
    let mut asked = asked.attempting(|| "open a socket diagnosis socket".into())?;
    asked.sockets().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => LiveError::Request(
            "the state of TCP cannot be recorded: this kernel was built without INET_DIAG (CONFIG_INET_TCP_DIAG), or \
             its module inet_diag is not loaded; load it, or use --tcp-state off"
                .into(),
        ),
        _ => LiveError::system(format!("ask for the TCP sockets of the {end}'s end"), error),
    })?;
    let told = told
        .inspect_err(|error| {
            run.refused.push(format!(
                "messages of closed sockets at the {end}'s end ({error}): the last values of a connection are those of \
                 the last sample, and one that is shorter than a sample is not seen"
            ));
        })
        .ok();
    Ok(Watched { end, asked, told })
}

/// All that the thread has.
struct Work {
    interval_ns: u64,
    connections: Connections,
    ends: Vec<Watched>,
    probe: Option<Probe>,
    log: TcpStateLog,
    run: TcpStateRun,
    /// Rows that are in order and not yet written.
    waiting: Vec<Row>,
    stop: Arc<EventFd>,
}

impl Work {
    fn run(mut self, begun: &mpsc::Receiver<u64>) -> TcpStateRun {
        if let Ok(start_ns) = begun.recv()
            && let Err(error) = self.record(start_ns)
        {
            self.run.incomplete.push(format!("the state of TCP could no longer be asked for: {error}"));
        }
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
        loop {
            let stopped = self.wait_until(start_ns + next_ns)?;
            self.hear(start_ns, Connections::closed)?;
            let now_ns = monotonic_ns().saturating_sub(start_ns);
            if now_ns < next_ns && !stopped {
                continue;
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
                self.log.write(&std::mem::take(&mut self.waiting));
                return Ok(());
            }
            if self.waiting.len() >= WRITE_ROWS || now_ns >= written_ns + WRITE_AFTER_NS {
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
        for watched in &mut self.ends {
            let sockets = watched.asked.sockets()?;
            let time_ns = monotonic_ns().saturating_sub(start_ns);
            self.connections.sampled(time_ns, watched.end, sockets);
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

    /// Waits until `deadline_ns` of CLOCK_MONOTONIC, or until a socket was
    /// closed; returns whether the end has come.
    fn wait_until(&self, deadline_ns: u64) -> io::Result<bool> {
        let left_ns = deadline_ns.saturating_sub(monotonic_ns());
        let timeout = TimeSpec::new((left_ns / 1_000_000_000) as i64, (left_ns % 1_000_000_000) as i64);
        let told = self.ends.iter().filter_map(|watched| watched.told.as_ref()).map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(self.stop.as_fd()).chain(told).collect();
        let mut ends: Vec<PollFd<'_>> =
            descriptors.into_iter().map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        match ppoll(&mut ends, Some(timeout), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(ends[0].any().unwrap_or(false)),
            Err(errno) => Err(errno.into()),
        }
    }
}
