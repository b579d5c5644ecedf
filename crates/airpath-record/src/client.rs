// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The end of a recording that asks: connects, compares clocks, drives the phases.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use airpath_clocks::Estimate;
use airpath_clocks::client::{Plan as ClockPlan, measure};
use airpath_clocks::simulated::Error;
use airpath_load::client::reach;
use airpath_load::error::{LoadError, Result};
use airpath_load::protocol::Opening;
use airpath_load::sockets::{tcp_endpoints, tcp_sample};

use crate::phase::hello::{say_hello_behind, say_hello_while_waiting};
use crate::phase::receive::{Role, Stamped, receive};
use crate::phase::send::{header_bytes, send};
use crate::phase::shared::Shared;
use crate::phase::socket::PathSocket;
use crate::plan::{Load, MOST_PACKETS, Phase};
use crate::records::Packets;
use crate::server::clock_set;
use crate::wire::VERSION;
use crate::wire::alive::ask_behind;
use crate::wire::datagram::Datagram;
use crate::wire::message::{Arrival, ENTRIES, Ending, Message, unexpected};

/// Longest wait for the server's first word.
const FIRST_WORD: Duration = Duration::from_secs(60);
/// Time for a phase beyond its duration: queues that drain, results that arrive.
const BEYOND: Duration = Duration::from_secs(120);
/// Number of hellos, and their distance.
const HELLOS: u32 = 20;
const HELLO_EVERY: Duration = Duration::from_millis(250);
/// Distance of looks at a phase that is under way.
const LOOK: Duration = Duration::from_millis(100);

/// Progress of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Packets that this end has sent.
    pub sent: u32,
    /// Packets that have arrived at this end.
    pub arrived: u32,
}

/// A phase that is over.
#[derive(Debug)]
pub struct Outcome {
    /// Packets from the client to the server, if the client sent and the server has told.
    pub uplink: Option<Packets>,
    /// Packets from the server to the client, if the server sent.
    pub downlink: Option<Packets>,
    /// Packets for which the sockets of the two receivers had no room: the server's and the client's.
    pub overflowed: [u64; 2],
    /// True if a clock was set meanwhile: the server's and the client's.
    pub clock_set: [bool; 2],
    /// Failure that ended the phase early, if any.
    pub failure: Option<LoadError>,
}

/// A recording with a server.
#[derive(Debug)]
pub struct Recorder {
    connection: TcpStream,
    socket: PathSocket,
    peer: SocketAddr,
    clock_port: u16,
    error: Error,
    header_bytes: u32,
    phases: u8,
}

impl Recorder {
    /// Connects to `airpath recv` at `port` of `host`. The clock of this host is taken with `error`, for tests.
    ///
    /// # Errors
    /// When nobody answers, the server is too old or refuses, or no datagram gets through.
    pub fn connect(host: &str, port: u16, error: Error) -> Result<Recorder> {
        let connection = reach(host, port)?;
        let ends = tcp_endpoints(&connection).map_err(|error| LoadError::midway(host, 0, &error))?;
        let midway = |error: io::Error| LoadError::midway(ends.remote, 0, &error);
        (&connection).write_all(&Opening::recording(VERSION)).map_err(midway)?;
        connection.set_read_timeout(Some(FIRST_WORD)).map_err(midway)?;
        ask_behind(&connection, Duration::ZERO).map_err(midway)?;
        let (datagram_port, clock_port, token) = match Message::read(&mut &connection) {
            Ok(Message::Ready { datagram_port, clock_port, token }) => (datagram_port, clock_port, token),
            Ok(other) => return Err(midway(unexpected(&other))),
            Err(error) => return Err(no_recordings(ends.remote, &error)),
        };
        let to = SocketAddr::new(ends.remote.ip(), datagram_port);
        let socket = PathSocket::new(ends.local.ip(), ends.remote.ip(), Some(to), token, error)
            .map_err(|error| LoadError::new(format!("cannot open a socket for datagrams: {error}")))?;
        let header_bytes = header_bytes(ends.remote.ip());
        let recorder = Recorder { connection, socket, peer: ends.remote, clock_port, error, header_bytes, phases: 0 };
        recorder.greet(to)?;
        Ok(recorder)
    }

    /// Address and port of the server.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Largest packet that the path carries as TCP knows it, in bytes; 0 where it does not know.
    pub fn path_mtu_bytes(&self) -> u32 {
        tcp_sample(&self.connection).map_or(0, |sample| u32::try_from(sample.path_mtu_bytes).unwrap_or(0))
    }

    /// CLOCK_REALTIME of this host, in ns since 1970.
    pub fn now_ns(&self) -> u64 {
        self.socket.now_ns()
    }

    /// Says where this end is until the server has heard it.
    fn greet(&self, to: SocketAddr) -> Result<()> {
        for _ in 0..HELLOS {
            let told = self.socket.send(0, Datagram::Hello, 0);
            let until = Instant::now() + HELLO_EVERY;
            while told.is_ok() && Instant::now() < until {
                if matches!(self.socket.receive(), Ok(Some(came)) if came.datagram == Datagram::Welcome) {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Err(LoadError::new(format!(
            "{} accepts TCP, but no datagram comes back from UDP port {}\n  Open the UDP ports from 32768 on of that \
             host to this one, or try again: the path may lose nearly everything.",
            self.peer,
            to.port()
        )))
    }

    /// Compares the clocks of both hosts for so long.
    ///
    /// # Errors
    /// Those of [`measure`].
    pub fn compare_clocks(
        &self,
        duration: Duration,
        interval: Duration,
    ) -> std::result::Result<Estimate, airpath_clocks::ClockError> {
        let plan = ClockPlan { duration, interval, error: self.error };
        measure(&self.peer.ip().to_string(), self.clock_port, &plan, |_| {})
    }

    /// Carries out `phase`. A `stop` ends sending early; `observe` is called ten times a second.
    ///
    /// # Errors
    /// When the phase could not begin.
    pub fn run(&mut self, phase: &Phase, stop: &AtomicBool, observe: &(dyn Fn(Progress) + Sync)) -> Result<Outcome> {
        let midway = |error: io::Error| LoadError::midway(self.peer, 0, &error);
        if let Some(problem) = phase.problem() {
            return Err(LoadError::request(problem));
        }
        self.connection.set_read_timeout(Some(phase.duration + BEYOND)).map_err(midway)?;
        ask_behind(&self.connection, phase.duration).map_err(midway)?;
        let socket = &self.socket;
        let begun = std::thread::scope(|scope| {
            let (_waiting, answered) = channel();
            scope.spawn(move || say_hello_while_waiting(socket, &answered));
            Message::Begin(*phase).write(&mut &self.connection)?;
            Message::read(&mut &self.connection)
        });
        match begun.map_err(midway)? {
            Message::Begun => {}
            other => return Err(midway(unexpected(&other))),
        }
        self.phases = self.phases.wrapping_add(1).max(1);
        let shared = Shared::new(self.phases, phase, phase.uplink, self.socket.now_ns());
        let role =
            Role { receives: phase.downlink, feedback: phase.load == Load::Saturating, says_hello: !phase.uplink };
        let (before_ns, overflowed) = (self.socket.ahead_ns(), self.socket.overflowed());
        let writing = Mutex::new(());
        let tell = |message: Message| {
            let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
            message.write(&mut &self.connection)
        };
        let (told, sent, log) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&self.socket, &shared, role));
            let sender = scope.spawn(|| match phase.uplink {
                false => Ok(Vec::new()),
                true => {
                    let sent = send(&self.socket, &shared, phase, self.header_bytes);
                    shared.has_sent();
                    match &sent {
                        Ok(sent) => tell(Message::SentAll(sent.len() as u32))?,
                        Err(_) => shared.abandon(),
                    }
                    sent
                }
            });
            scope.spawn(|| watch(&shared, stop, observe, || drop(tell(Message::Stop))));
            let told = {
                let (_waiting, over) = channel();
                let (socket, load) = (&self.socket, &shared);
                scope.spawn(move || say_hello_behind(socket, &over, phase.duration, load));
                self.listen(&shared)
            };
            if told.failure.is_some() {
                shared.abandon();
            }
            let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender failed")));
            let log = receiver.join().unwrap_or_else(|_| Err(io::Error::other("the receiver failed")));
            shared.finish();
            (told, sent, log)
        });
        let own = |error: io::Error| match error.raw_os_error() {
            Some(libc::EMSGSIZE) => LoadError::new(format!(
                "packets of {} bytes are too long for the path\n  Use a smaller --length.",
                phase.length_bytes
            )),
            _ => LoadError::new(format!("cannot send or receive: {error}")),
        };
        let mut failure = told.failure.map(midway);
        let sent = sent.map_err(|error| failure.get_or_insert(own(error)).clone()).unwrap_or_default();
        let log = log.map_err(|error| failure.get_or_insert(own(error)).clone()).unwrap_or_default();
        let uplink =
            (phase.uplink && told.done.is_some()).then(|| Packets::of(phase.length_bytes, &sent, &told.arrivals));
        let downlink = phase.downlink.then(|| downlink(phase.length_bytes, &told.sent_ns, told.done.is_some(), &log));
        let ending = told.done.unwrap_or_default();
        Ok(Outcome {
            uplink,
            downlink,
            overflowed: [ending.overflowed, self.socket.overflowed().saturating_sub(overflowed)],
            clock_set: [ending.clock_set, clock_set(before_ns, self.socket.ahead_ns())],
            failure,
        })
    }

    /// Takes the server's messages until the phase is over.
    fn listen(&self, shared: &Shared) -> Told {
        let mut told = Told::default();
        while told.done.is_none() && told.failure.is_none() {
            if told.sent_ns.len().max(told.arrivals.len() / 2) > MOST_PACKETS as usize + ENTRIES {
                told.failure =
                    Some(io::Error::new(io::ErrorKind::InvalidData, "tells of more packets than a phase has"));
                break;
            }
            match Message::read(&mut &self.connection) {
                Ok(Message::Sent(times)) => told.sent_ns.extend(times),
                Ok(Message::SentAll(packets)) => shared.expect(packets),
                Ok(Message::Arrived(arrivals)) => told.arrivals.extend(arrivals),
                Ok(Message::Done(ending)) => told.done = Some(ending),
                Ok(other) => told.failure = Some(unexpected(&other)),
                Err(error) => told.failure = Some(error),
            }
        }
        told
    }
}

/// Messages of the server about a phase, put together.
#[derive(Debug, Default)]
struct Told {
    sent_ns: Vec<u64>,
    arrivals: Vec<Arrival>,
    done: Option<Ending>,
    failure: Option<io::Error>,
}

/// The packets of the downlink. Where the server has gone, times of sending are those that packets tell, and the
/// packets that did not arrive have the time of the one before.
fn downlink(length_bytes: u32, sent_ns: &[u64], complete: bool, log: &[Stamped]) -> Packets {
    let arrivals: Vec<Arrival> = log.iter().map(|stamped| stamped.arrival).collect();
    if complete {
        return Packets::of(length_bytes, sent_ns, &arrivals);
    }
    let count = arrivals.iter().map(|arrival| arrival.number as usize + 1).max().unwrap_or(0);
    let mut known = vec![0; count];
    log.iter().for_each(|stamped| known[stamped.arrival.number as usize] = stamped.sent_ns);
    let mut last = known.iter().copied().find(|time| *time != 0).unwrap_or(0);
    for time in &mut known {
        if *time == 0 {
            *time = last;
        }
        last = *time;
    }
    Packets::of(length_bytes, &known, &arrivals)
}

/// Reports on a phase, and ends it where `stop` says so.
fn watch(shared: &Shared, stop: &AtomicBool, observe: &(dyn Fn(Progress) + Sync), tell_stop: impl Fn()) {
    let began = Instant::now();
    let mut stopped = false;
    while !shared.over() {
        if stop.load(Ordering::Relaxed) && !stopped {
            stopped = true;
            shared.stop();
            tell_stop();
        }
        observe(Progress {
            elapsed: began.elapsed(),
            sent: shared.sent.load(Ordering::Relaxed),
            arrived: shared.arrived.load(Ordering::Relaxed),
        });
        std::thread::sleep(LOOK);
    }
}

/// Error for a server that does not answer the request for a recording.
fn no_recordings(peer: SocketAddr, error: &io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LoadError::new(format!(
            "{peer} accepts connections, and says nothing for {} s\n  Check whether the program at that end is \
             `airpath recv`, and whether it was stopped.",
            FIRST_WORD.as_secs()
        )),
        _ => LoadError::new(format!(
            "{peer} does not serve recordings: the `airpath recv` there is older than `airpath record`, or another \
             program listens at that port\n  Use the same airpath at both ends."
        )),
    }
}
