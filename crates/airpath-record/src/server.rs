// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The end of a recording at `airpath recv`.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use airpath_clocks::server::Server as ClockServer;
use airpath_clocks::simulated::Error;
use airpath_load::error::{LoadError, Result};
use airpath_load::sockets::tcp_endpoints;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::phase::receive::{Role, Stamped, answer, receive};
use crate::phase::send::{header_bytes, send};
use crate::phase::shared::Shared;
use crate::phase::socket::PathSocket;
use crate::plan::{Load, Phase};
use crate::wire::VERSION;
use crate::wire::alive::ask_behind;
use crate::wire::message::{Ending, Message};

/// Greatest change of CLOCK_REALTIME less CLOCK_MONOTONIC that is no step of the clock, in ns.
const SAME_NS: u64 = 50_000;

/// True if the clock was set between two readings of CLOCK_REALTIME less CLOCK_MONOTONIC.
pub fn clock_set(before_ns: i64, after_ns: i64) -> bool {
    before_ns.abs_diff(after_ns) > SAME_NS
}

/// A number that nobody can guess.
fn token() -> u32 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() as u32
}

/// Serves the recording that a client has asked for on `connection`, in this `version` of the protocol. The clock
/// of this host is taken with `error`, for tests.
///
/// # Errors
/// The sockets', and what the client does against the protocol.
pub fn serve(connection: &TcpStream, version: u64, error: Error) -> Result<()> {
    let ends = tcp_endpoints(connection).map_err(|error| LoadError::midway("the client", 0, &error))?;
    let midway = |error: io::Error| LoadError::midway(ends.remote, 0, &error);
    let refuse = |reason: String| {
        // The client learns of it if it still listens; this end says it anyway.
        let _ = Message::Refused(reason.clone()).write(&mut &*connection);
        Err(LoadError::new(reason))
    };
    if version != VERSION {
        return refuse(format!(
            "`airpath record` speaks version {version} of the protocol, `airpath recv` version {VERSION}; use the \
             same airpath at both ends"
        ));
    }
    ask_behind(connection, Duration::ZERO).map_err(midway)?;
    let opened = PathSocket::new(ends.local.ip(), ends.remote.ip(), None, token(), error);
    let socket = match opened {
        Ok(socket) => socket,
        Err(error) => return refuse(format!("the server has no socket for datagrams: {error}")),
    };
    let clocks = match ClockServer::bind(Some(ends.local.ip()), 0, error) {
        Ok(clocks) => clocks,
        Err(error) => return refuse(error.to_string()),
    };
    let clock_port = clocks.local_addr().map_err(midway)?.port();
    let datagram_port = socket.port().map_err(midway)?;
    let end = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(|errno| midway(errno.into()))?;
    let session = Session {
        connection,
        writing: Mutex::new(()),
        socket,
        header_bytes: header_bytes(ends.remote.ip()),
        phases: Mutex::new((0, None)),
    };
    std::thread::scope(|scope| {
        let answering = std::thread::Builder::new()
            .spawn_scoped(scope, || clocks.serve_until(Some(end.as_fd()), |_| {}))
            .map_err(midway)?;
        let ready = Message::Ready { datagram_port, clock_port, token: session.socket.token() };
        let outcome = session.tell(&ready).and_then(|()| session.run(scope));
        session.leave();
        let _ = end.write(1);
        let _ = answering.join();
        outcome.map_err(midway)
    })
}

/// One client's recording.
struct Session<'a> {
    connection: &'a TcpStream,
    writing: Mutex<()>,
    socket: PathSocket,
    header_bytes: u32,
    /// Number of phases so far, and the last one.
    phases: Mutex<(u8, Option<Arc<Shared>>)>,
}

impl Session<'_> {
    fn tell(&self, message: &Message) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        message.write(&mut &*self.connection)
    }

    fn current(&self) -> Option<Arc<Shared>> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Ends the phase that is under way, if any.
    fn leave(&self) {
        if let Some(shared) = self.current() {
            shared.abandon();
        }
    }

    /// Takes messages until the client closes the connection.
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        // The client says where it is before the first phase, and hears that it was heard.
        let hello = Arc::new(Shared::new(0, &Phase::hello(), false, 0));
        self.phases.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(Arc::clone(&hello));
        let answering = std::thread::Builder::new().spawn_scoped(scope, move || {
            // A socket that fails is noticed by the first phase.
            let _ = answer(&self.socket, || hello.abandoned());
        })?;
        let mut reading = Some(answering);
        loop {
            match Message::read(&mut &*self.connection) {
                Ok(Message::Begin(phase)) => {
                    // Two threads must not read one socket.
                    self.leave();
                    reading.take().map(ScopedJoinHandle::join);
                    reading = self.begin(scope, phase)?;
                }
                Ok(Message::SentAll(packets)) => self.current().iter().for_each(|shared| shared.expect(packets)),
                Ok(Message::Stop) => self.current().iter().for_each(|shared| shared.stop()),
                Ok(other) => return Err(crate::wire::message::unexpected(&other)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let under_way = self.current().is_some_and(|shared| !shared.over() && shared.number != 0);
                    return if under_way { Err(error) } else { Ok(()) };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins `phase` in a thread, which answers hellos once that is over; none where the phase is refused.
    fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        phase: Phase,
    ) -> io::Result<Option<ScopedJoinHandle<'scope, ()>>> {
        let reason = match phase.problem() {
            Some(problem) => Some(problem),
            None if !self.socket.knows_peer() => Some("no datagram of the client has arrived"),
            None => None,
        };
        if let Some(reason) = reason {
            return self.tell(&Message::Refused(reason.into())).map(|()| None);
        }
        let shared = {
            let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
            let number = phases.0.wrapping_add(1).max(1);
            let shared = Arc::new(Shared::new(number, &phase, phase.downlink, self.socket.now_ns()));
            *phases = (number, Some(Arc::clone(&shared)));
            shared
        };
        ask_behind(self.connection, phase.duration)?;
        self.tell(&Message::Begun)?;
        let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
            if let Err(error) = self.phase(&phase, &shared) {
                let _ = self.tell(&Message::Refused(format!("the server cannot go on: {error}")));
                let _ = self.connection.shutdown(Shutdown::Both);
            }
            shared.finish();
            let _ = answer(&self.socket, || shared.abandoned());
        })?;
        Ok(Some(thread))
    }

    /// Sends what a phase sends, and tells what was sent and what arrived; the arrivals, none if the phase was abandoned.
    fn results(
        &self,
        phase: &Phase,
        shared: &Shared,
        log: &Receiver<io::Result<Vec<Stamped>>>,
    ) -> io::Result<Option<Vec<Stamped>>> {
        if phase.downlink {
            let sent = send(&self.socket, shared, phase, self.header_bytes);
            // The receiver waits for the sender.
            shared.has_sent();
            let sent = sent.inspect_err(|_| shared.abandon())?;
            Message::all_sent(&sent).try_for_each(|part| self.tell(&part))?;
            self.tell(&Message::SentAll(sent.len() as u32))?;
        }
        let log = log.recv().map_err(|_| io::Error::other("its receiver failed"))??;
        if shared.abandoned() {
            return Ok(None);
        }
        if phase.uplink {
            Message::all_arrived(&log, |stamped| stamped.arrival).try_for_each(|part| self.tell(&part))?;
        }
        Ok(Some(log))
    }

    /// One phase from its beginning to its end.
    fn phase(&self, phase: &Phase, shared: &Shared) -> io::Result<()> {
        let role = Role { receives: phase.uplink, feedback: phase.load == Load::Saturating, says_hello: false };
        let (before_ns, overflowed) = (self.socket.ahead_ns(), self.socket.overflowed());
        let told = AtomicBool::new(false);
        let log = std::thread::scope(|scope| {
            let (received, log) = channel();
            std::thread::Builder::new().spawn_scoped(scope, || {
                let _ = received.send(receive(&self.socket, shared, role));
                // Results take their time over TCP: the client's hellos are answered meanwhile.
                let _ = answer(&self.socket, || shared.abandoned() || told.load(Ordering::Relaxed));
                drop(received);
            })?;
            let outcome = self.results(phase, shared, &log);
            told.store(true, Ordering::Relaxed);
            outcome
        })?;
        let Some(log) = log else { return Ok(()) };
        let overflowed = self.socket.overflowed().saturating_sub(overflowed);
        let clock_set = clock_set(before_ns, self.socket.ahead_ns());
        shared.arrived.fetch_max(log.len() as u32, Ordering::Relaxed);
        self.tell(&Message::Done(Ending { overflowed, clock_set }))
    }
}
