// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The host that asks.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::ClockError;
use super::estimate::{Counts, Estimate, Host};
use super::exchange::Exchange;
use super::identity::{host_name, identity, written};
use super::message::{Kind, LENGTH, Message, NoMessage, VERSION};
use super::simulated::{Error, HostClock};
use super::socket::StampedSocket;

/// Silence of this length ends a measurement.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The most requests of a measurement.
pub const MOST_REQUESTS: u64 = 500_000;
/// A departure that the kernel reports lies no farther than this behind the program's own stamp, in ns.
const SENDING_NS: u64 = 1_000_000_000;

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Duration of the measurement.
    pub duration: Duration,
    /// Interval between two requests.
    pub interval: Duration,
    /// A known error in place of this host's own clock; for tests.
    pub error: Error,
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Requests sent.
    pub sent: u64,
    /// Requests answered.
    pub answered: u64,
}

/// Compares this host's clock with that of `host`; `progress` is called after each request.
///
/// # Errors
/// When the name is not known, nothing or something else answers, or too few answers come.
pub fn measure(host: &str, port: u16, plan: &Plan, mut progress: impl FnMut(Progress)) -> Result<Estimate, ClockError> {
    let unknown = |source| ClockError::Name { host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    let mut outcome = Err(unknown(io::Error::other("it has no address")));
    for address in addresses {
        outcome = Session::open(address, plan).and_then(|session| session.run(plan, &mut progress));
        // A name may stand for addresses of which only one is served.
        if !matches!(&outcome, Err(ClockError::Refused { .. } | ClockError::Network { .. })) {
            break;
        }
    }
    let (exchanges, counts, remote_identity, silent) = outcome?;
    let mut estimate = Estimate::of(&exchanges)?;
    estimate.exchanges = Counts { used: estimate.exchanges.used, ..counts };
    estimate.local = Host { name: host_name(), identity: written(identity()) };
    estimate.remote = Host { name: host.to_owned(), identity: written(remote_identity) };
    estimate.warnings.extend(silent);
    Ok(estimate)
}

/// One exchange that is not over.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    exchange: Exchange,
    answered: bool,
    /// True for each stamp of the kernel: T1, T2, T3, T4.
    kernel: [bool; 4],
}

/// Exchanges, counts, the remote identity, and that the answers stopped, if so.
type Exchanged = (Vec<Exchange>, Counts, u64, Option<String>);

struct Session {
    socket: StampedSocket,
    target: SocketAddr,
    clock: HostClock,
    number: u64,
    identity: u64,
    remote_identity: u64,
    exchanges: Vec<Pending>,
    /// The exchange of each datagram, in the order in which datagrams were sent.
    departing: Vec<u32>,
    answered: u64,
    duplicates: u64,
    foreign: u64,
    last_answer: Instant,
}

impl Session {
    fn open(target: SocketAddr, plan: &Plan) -> Result<Session, ClockError> {
        let failed = |source| ClockError::Network { action: "reach", target: target.to_string(), source };
        let any: SocketAddr = if target.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).map_err(failed)?;
        socket.connect(target).map_err(failed)?;
        let clock = HostClock::new(plan.error);
        Ok(Session {
            socket: StampedSocket::new(socket).map_err(failed)?,
            target,
            clock,
            number: clock.now_ns().rotate_left(32) ^ u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            identity: identity(),
            remote_identity: 0,
            exchanges: Vec::new(),
            departing: Vec::new(),
            answered: 0,
            duplicates: 0,
            foreign: 0,
            last_answer: Instant::now(),
        })
    }

    fn run(mut self, plan: &Plan, progress: &mut impl FnMut(Progress)) -> Result<Exchanged, ClockError> {
        let began = Instant::now();
        let requests = (plan.duration.as_nanos() / plan.interval.as_nanos().max(1)) as u64 + 1;
        let mut silent = None;
        for request in 0..requests.min(MOST_REQUESTS) {
            let due = began + plan.interval * request as u32;
            self.receive_until(due, false)?;
            if self.last_answer.elapsed() > PATIENCE {
                silent = Some(began.elapsed());
                break;
            }
            self.ask()?;
            progress(Progress { elapsed: began.elapsed(), sent: self.exchanges.len() as u64, answered: self.answered });
        }
        // What is still under way.
        if silent.is_none() {
            self.receive_until(Instant::now() + PATIENCE.min(self.patience_at_end()), true)?;
        }
        if self.answered == 0 {
            return Err(self.unanswered(began.elapsed()));
        }
        let used: Vec<&Pending> = self.exchanges.iter().filter(|one| one.answered).collect();
        let mut kernel_stamps = [0; 4];
        for one in &used {
            kernel_stamps.iter_mut().zip(one.kernel).for_each(|(count, kernel)| *count += u64::from(kernel));
        }
        let counts = Counts {
            sent: self.exchanges.len() as u64,
            answered: self.answered,
            duplicates: self.duplicates,
            used: 0,
            kernel_stamps,
        };
        let silent = silent.map(|after| {
            format!(
                "the answers stopped: none came in the last {} s of {:.1} s; the estimate holds for the time before",
                PATIENCE.as_secs(),
                after.as_secs_f64()
            )
        });
        Ok((used.iter().map(|one| one.exchange).collect(), counts, self.remote_identity, silent))
    }

    /// Time to wait for the last answers: twice the longest round trip, and a second.
    fn patience_at_end(&self) -> Duration {
        if self.answered == 0 {
            return PATIENCE;
        }
        let longest = self.exchanges.iter().filter(|one| one.answered).map(|one| one.exchange.round_trip_ns()).max();
        Duration::from_secs(1) + Duration::from_nanos(2 * longest.unwrap_or(0).clamp(0, 1 << 40) as u64)
    }

    fn unanswered(&self, waited: Duration) -> ClockError {
        let target = self.target.to_string();
        if self.foreign > 0 {
            return ClockError::Foreign { target, datagrams: self.foreign };
        }
        ClockError::Silence { target, sent: self.exchanges.len() as u64, waited_s: waited.as_secs() }
    }

    fn ask(&mut self) -> Result<(), ClockError> {
        let number = self.exchanges.len() as u32;
        let origin_ahead_ns = self.clock.ahead_ns();
        let origin_ns = self.clock.now_ns();
        self.exchanges.push(Pending {
            exchange: Exchange { origin_ns, origin_ahead_ns, ..Exchange::default() },
            ..Pending::default()
        });
        let request = Message::request(self.number, number, origin_ns, self.identity).encode();
        match self.socket.send(&request, None, None) {
            Ok(()) => {
                self.departing.push(number);
                Ok(())
            }
            // The error is that of an earlier request; or the network is full.
            Err(error) => self.endure(error),
        }
    }

    /// Returns an error if `source` ends the measurement.
    fn endure(&self, source: io::Error) -> Result<(), ClockError> {
        let target = self.target.to_string();
        match source.kind() {
            io::ErrorKind::ConnectionRefused if self.answered == 0 => Err(ClockError::Refused { target }),
            // A server that ended, or a gap in the network: a long silence ends the measurement.
            io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            _ if source.raw_os_error() == Some(libc::ENOBUFS) || self.answered > 0 => Ok(()),
            _ => Err(ClockError::Network { action: "send to", target, source }),
        }
    }

    /// Takes answers until `until`, or, with `all`, until there is none to come.
    fn receive_until(&mut self, until: Instant, all: bool) -> Result<(), ClockError> {
        loop {
            self.take_departures();
            while self.receive()? {}
            if all && self.answered == self.exchanges.len() as u64 {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            let milliseconds = left.as_micros().div_ceil(1_000).min(1_000) as u16;
            match poll(&mut fds, PollTimeout::from(milliseconds)) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => {
                    let target = self.target.to_string();
                    return Err(ClockError::Network { action: "wait for", target, source: errno.into() });
                }
            }
        }
    }

    /// The kernel's T1 in place of the program's.
    fn take_departures(&mut self) {
        for (number, at_ns) in self.socket.departures() {
            let at_ns = self.clock.shown_at_ns(at_ns);
            if let Some(exchange) = self.departing.get(number as usize)
                && let Some(pending) = self.exchanges.get_mut(*exchange as usize)
                && !pending.kernel[0]
                && (pending.exchange.origin_ns..pending.exchange.origin_ns + SENDING_NS).contains(&at_ns)
            {
                pending.exchange.origin_ns = at_ns;
                pending.kernel[0] = true;
            }
        }
    }

    /// Takes one datagram; whether there was one.
    fn receive(&mut self) -> Result<bool, ClockError> {
        let mut buffer = [0; LENGTH + 1];
        let arrival = match self.socket.receive(&mut buffer) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return Ok(false),
            Err(error) => return self.endure(error).map(|()| false),
        };
        let came_ns = self.clock.now_ns();
        let answer = match Message::decode(&buffer[..arrival.length.min(buffer.len())]) {
            Ok(answer) if answer.kind == Kind::Answer && answer.session == self.number => answer,
            Err(NoMessage::Version(theirs)) => {
                return Err(ClockError::Version { target: self.target.to_string(), theirs, ours: VERSION });
            }
            _ => {
                self.foreign += 1;
                return Ok(true);
            }
        };
        let destination_ahead_ns = self.clock.ahead_ns();
        if let Some(earlier) = self.exchanges.get_mut(answer.earlier_number as usize)
            && earlier.answered
            && (earlier.exchange.transmit_ns..earlier.exchange.transmit_ns + SENDING_NS)
                .contains(&answer.earlier_transmit_ns)
        {
            earlier.exchange.transmit_ns = answer.earlier_transmit_ns;
            earlier.kernel[2] = true;
        }
        let Some(pending) = self.exchanges.get_mut(answer.number as usize) else {
            self.foreign += 1;
            return Ok(true);
        };
        if pending.answered {
            self.duplicates += 1;
            return Ok(true);
        }
        let exchange = &mut pending.exchange;
        exchange.receive_ns = answer.receive_ns;
        exchange.transmit_ns = answer.transmit_ns.max(answer.receive_ns);
        exchange.destination_ns = arrival.kernel_ns.map_or(came_ns, |stamp| self.clock.shown_at_ns(stamp));
        exchange.destination_ahead_ns = destination_ahead_ns;
        exchange.remote_ahead_ns = answer.ahead_ns;
        pending.answered = true;
        pending.kernel[1] = answer.kernel_receive;
        pending.kernel[3] = arrival.kernel_ns.is_some();
        self.answered += 1;
        self.remote_identity = answer.identity;
        self.last_answer = Instant::now();
        Ok(true)
    }
}
