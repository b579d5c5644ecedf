// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The host that answers.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::ClockError;
use super::identity::identity;
use super::message::{Kind, LENGTH, Message, NoMessage};
use super::simulated::{Error, HostClock};
use super::socket::{Arrival, StampedSocket, plain};

/// So many answers a second at most, over all who ask: a port that is open to everybody must not
/// become a means against others.
const ANSWERS_PER_SECOND: u32 = 5_000;
/// Sessions of which the last departure is remembered.
const MOST_SESSIONS: usize = 64;
/// Answers whose departure the kernel has not reported yet.
const MOST_UNTOLD: usize = 1_024;

/// Answers `airpath timing sync`.
#[derive(Debug)]
pub struct Server {
    socket: StampedSocket,
    clock: HostClock,
    answered: AtomicU64,
}

/// Event that the server reports while it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A client begins to measure.
    Session(SocketAddr),
    /// A datagram that is none of this protocol; reported once.
    Foreign(SocketAddr),
    /// More was asked than is answered in a second; reported once.
    TooMany(SocketAddr),
}

impl Server {
    /// Listens at `address`, or at every address of this host, and answers with the host's clock, or
    /// one of known `error`.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn bind(address: Option<IpAddr>, port: u16, error: Error) -> Result<Server, ClockError> {
        let everywhere = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
        let tried = |address: IpAddr| {
            let address = SocketAddr::new(address, port);
            let bound = UdpSocket::bind(address).and_then(StampedSocket::new);
            bound.map_err(|source| (source.raw_os_error(), refused(address, source)))
        };
        let socket = match address {
            Some(address) => tried(address).map_err(|(_, error)| error)?,
            None => match tried(everywhere[0]) {
                // A host without IPv6.
                Err((Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL), _)) => {
                    tried(everywhere[1]).map_err(|(_, error)| error)?
                }
                other => other.map_err(|(_, error)| error)?,
            },
        };
        Ok(Server { socket, clock: HostClock::new(error), answered: AtomicU64::new(0) })
    }

    /// Returns the address at which the server listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Number of requests answered.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Answers until something fails.
    ///
    /// # Errors
    /// When the socket cannot be used any more.
    pub fn serve(&self, mut notice: impl FnMut(Notice)) -> Result<std::convert::Infallible, ClockError> {
        loop {
            self.serve_until(None, &mut notice)?;
        }
    }

    /// Answers until `end` can be read; without `end`, until something fails.
    ///
    /// # Errors
    /// When the socket cannot be used any more.
    pub fn serve_until(&self, end: Option<BorrowedFd<'_>>, mut notice: impl FnMut(Notice)) -> Result<(), ClockError> {
        let identity = identity();
        let failed = |source| ClockError::Network { action: "listen at", target: "the port".into(), source };
        let mut departures = Departures::default();
        let mut allowance = Allowance::new();
        let (mut told_foreign, mut told_many) = (false, false);
        loop {
            let mut fds: Vec<PollFd<'_>> = [Some(self.socket.as_fd()), end]
                .into_iter()
                .flatten()
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
                .collect();
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            if fds.get(1).and_then(PollFd::any) == Some(true) {
                return Ok(());
            }
            for (index, at_ns) in self.socket.departures() {
                departures.left(index, self.clock.shown_at_ns(at_ns));
            }
            let mut buffer = [0; LENGTH + 1];
            let arrival = match self.socket.receive(&mut buffer) {
                Ok(Some(arrival)) => arrival,
                // What went wrong with an answer is no reason to stop answering others.
                Ok(None) | Err(_) => continue,
            };
            let came_ns = self.clock.now_ns();
            let request = match Message::decode(&buffer[..arrival.length.min(buffer.len())]) {
                Ok(request) if request.kind == Kind::Request => request,
                Err(NoMessage::Version(_)) if arrival.length >= LENGTH && allowance.take() => {
                    let mut answer = Message::request(0, 0, 0, identity);
                    answer.kind = Kind::OtherVersion;
                    self.answer(&answer, &arrival, &mut departures);
                    continue;
                }
                _ => {
                    if !std::mem::replace(&mut told_foreign, true) {
                        notice(Notice::Foreign(plain(arrival.from)));
                    }
                    continue;
                }
            };
            if !allowance.take() {
                if !std::mem::replace(&mut told_many, true) {
                    notice(Notice::TooMany(plain(arrival.from)));
                }
                continue;
            }
            let (earlier, new) = departures.earlier(request.session);
            if new {
                notice(Notice::Session(plain(arrival.from)));
            }
            let answer = Message {
                kind: Kind::Answer,
                kernel_receive: arrival.kernel_ns.is_some(),
                earlier_number: earlier.map_or(0, |(number, _)| number),
                earlier_transmit_ns: earlier.map_or(0, |(_, at_ns)| at_ns),
                receive_ns: arrival.kernel_ns.map_or(came_ns, |stamp| self.clock.shown_at_ns(stamp)),
                ahead_ns: self.clock.ahead_ns(),
                identity,
                transmit_ns: self.clock.now_ns(),
                ..request
            };
            self.answer(&answer, &arrival, &mut departures);
        }
    }

    fn answer(&self, answer: &Message, arrival: &Arrival, departures: &mut Departures) {
        // Counted first: who has the answer may end the server at once, and ask for the number.
        self.answered.fetch_add(1, Ordering::Relaxed);
        if self.socket.send(&answer.encode(), Some(arrival.from), Some(arrival)).is_ok() {
            departures.sent(answer.session, answer.number);
        } else {
            self.answered.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn refused(address: SocketAddr, source: io::Error) -> ClockError {
    let hint = match source.kind() {
        io::ErrorKind::AddrInUse => "the port is taken: name another with --listen ADDRESS:PORT",
        io::ErrorKind::AddrNotAvailable => "it is no address of this host: name one, or leave --listen out for all",
        io::ErrorKind::PermissionDenied => "ports below 1024 are root's: name another with --listen ADDRESS:PORT",
        _ => "name another with --listen ADDRESS:PORT",
    };
    ClockError::Listen { address: address.to_string(), source, hint }
}

/// Departure times of answers, which the kernel reports afterwards.
#[derive(Debug, Default)]
struct Departures {
    sent: u32,
    untold: VecDeque<(u32, u64, u32)>,
    /// Time of the last request (in answers), and the last departure known, by session.
    sessions: HashMap<u64, (u32, Option<(u32, u64)>)>,
}

impl Departures {
    fn sent(&mut self, session: u64, number: u32) {
        self.untold.push_back((self.sent, session, number));
        self.sent = self.sent.wrapping_add(1);
        if self.untold.len() > MOST_UNTOLD {
            self.untold.pop_front();
        }
    }

    fn left(&mut self, index: u32, at_ns: u64) {
        if let Some(place) = self.untold.iter().position(|(sent, ..)| *sent == index) {
            let (_, session, number) = self.untold.remove(place).expect("it was just found");
            if let Some((_, last)) = self.sessions.get_mut(&session) {
                *last = Some((number, at_ns));
            }
        }
    }

    /// The number and departure of the last answer of `session`, if known, and whether the session is new.
    fn earlier(&mut self, session: u64) -> (Option<(u32, u64)>, bool) {
        let now = self.sent;
        if let Some((asked, last)) = self.sessions.get_mut(&session) {
            *asked = now;
            return (last.take(), false);
        }
        if self.sessions.len() >= MOST_SESSIONS {
            let oldest = self.sessions.iter().max_by_key(|(_, (asked, _))| now.wrapping_sub(*asked));
            if let Some(oldest) = oldest.map(|(session, _)| *session) {
                self.sessions.remove(&oldest);
            }
        }
        self.sessions.insert(session, (now, None));
        (None, true)
    }
}

/// Number of answers left in this second.
#[derive(Debug)]
struct Allowance {
    second: Instant,
    left: u32,
}

impl Allowance {
    fn new() -> Allowance {
        Allowance { second: Instant::now(), left: ANSWERS_PER_SECOND }
    }

    fn take(&mut self) -> bool {
        if self.second.elapsed() >= Duration::from_secs(1) {
            *self = Allowance::new();
        }
        let any = self.left > 0;
        self.left -= u32::from(any);
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_departure_is_told_with_the_next_answer_of_its_session() {
        let mut departures = Departures::default();
        assert_eq!(departures.earlier(7), (None, true));
        departures.sent(7, 0);
        assert_eq!(departures.earlier(8), (None, true));
        departures.sent(8, 0);
        departures.left(0, 111);
        assert_eq!(departures.earlier(7), (Some((0, 111)), false));
        assert_eq!(departures.earlier(7), (None, false));
        for session in 100..200 {
            departures.earlier(session);
        }
        assert_eq!(departures.sessions.len(), MOST_SESSIONS);
    }

    #[test]
    fn no_more_is_answered_in_a_second_than_is_allowed() {
        let mut allowance = Allowance::new();
        let answered = (0..20_000).filter(|_| allowance.take()).count();
        assert!(answered >= ANSWERS_PER_SECOND as usize);
        allowance = Allowance { second: Instant::now(), left: 1 };
        assert!(allowance.take());
    }
}
