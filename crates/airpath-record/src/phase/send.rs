// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sending of a phase.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use airpath_load::clock::{monotonic_ns, sleep_until, wake_exactly};

use super::backlog::{STANDING_NS, Step};
use super::shared::Shared;
use super::socket::PathSocket;
use crate::plan::{Load, Phase};
use crate::wire::datagram::{Datagram, PROBE_BYTES};

/// Longest sleep of a sender, in ns: a stop is noticed that soon.
const NAP_NS: u64 = 100_000_000;
/// A sender that was kept from sending makes up for this much, in ns.
const MADE_UP_NS: u64 = 5_000_000;
/// Pause of a sender whose own host has no room for a packet, in ns.
const NO_ROOM_NS: u64 = 500_000;

/// Bytes of the IP and UDP headers.
pub fn header_bytes(address: IpAddr) -> u32 {
    if address.to_canonical().is_ipv4() { 28 } else { 48 }
}

/// A sender of one phase.
struct Sender<'a> {
    socket: &'a PathSocket,
    shared: &'a Shared,
    payload_bytes: usize,
    most_packets: usize,
    sent_ns: Vec<u64>,
}

impl Sender<'_> {
    fn send(&mut self) -> io::Result<()> {
        loop {
            let number = self.sent_ns.len() as u32;
            let sent_ns = self.socket.now_ns();
            match self.socket.send(self.shared.number, Datagram::Probe { number, sent_ns }, self.payload_bytes) {
                Ok(()) => {
                    self.sent_ns.push(sent_ns);
                    self.shared.sent.store(number + 1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) if is_passing(&error) && !self.shared.stopped() => sleep_until(monotonic_ns() + NO_ROOM_NS)?,
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn full(&self) -> bool {
        self.sent_ns.len() >= self.most_packets
    }

    /// Sleeps until `due_ns`; false if sending is to end before.
    fn sleep(&self, due_ns: u64) -> io::Result<bool> {
        loop {
            if self.shared.stopped() {
                return Ok(false);
            }
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                return Ok(true);
            }
            sleep_until(due_ns.min(now_ns + NAP_NS))?;
        }
    }
}

/// True for errors after which the next datagram may get through: no room in the host's queue, or the word of an
/// earlier datagram that nobody listens yet.
fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ECONNREFUSED | libc::EINTR))
}

/// Sends `phase` with packets whose IP and UDP headers have `header_bytes`; returns the times of sending in ns
/// since 1970.
///
/// # Errors
/// The socket's; `EMSGSIZE` for packets that the path does not carry.
pub fn send(socket: &PathSocket, shared: &Shared, phase: &Phase, header_bytes: u32) -> io::Result<Vec<u64>> {
    wake_exactly();
    let payload_bytes = (phase.length_bytes.saturating_sub(header_bytes) as usize).max(PROBE_BYTES);
    let most_packets = phase.most_packets() as usize;
    let mut sender = Sender { socket, shared, payload_bytes, most_packets, sent_ns: Vec::new() };
    let outcome = match phase.load {
        Load::Saturating => saturate(&mut sender, phase),
        Load::Light { interval, train } => trains(&mut sender, phase.duration, interval, train),
    };
    shared.has_sent();
    outcome.map(|()| sender.sent_ns)
}

/// Sends trains until the end of `duration`, which cuts a train short. A train whose time is over when the sender wakes
/// is left out: several at once would wait for each other, and exceed the limit of the rate.
fn trains(sender: &mut Sender<'_>, duration: Duration, interval: Duration, train: u32) -> io::Result<()> {
    let began_ns = monotonic_ns();
    let end_ns = began_ns + duration.as_nanos() as u64;
    let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
    let mut due_ns = began_ns;
    while due_ns < end_ns && sender.sleep(due_ns)? {
        for _ in 0..train {
            if sender.full() || monotonic_ns() >= end_ns {
                return Ok(());
            }
            sender.send()?;
        }
        let missed = monotonic_ns().saturating_sub(due_ns) / interval_ns;
        due_ns = due_ns.saturating_add(interval_ns.saturating_mul(1 + missed));
    }
    Ok(())
}

fn saturate(sender: &mut Sender<'_>, phase: &Phase) -> io::Result<()> {
    let began_ns = monotonic_ns();
    let end_ns = began_ns + phase.duration.as_nanos() as u64;
    let deep_ns = began_ns + phase.duration.as_nanos() as u64 / 3 * 2;
    let mut due_ns = began_ns;
    let mut deepened = phase.deepest.as_nanos() as u64 <= STANDING_NS;
    while due_ns < end_ns && !sender.full() && sender.sleep(due_ns)? {
        let now_ns = monotonic_ns();
        if now_ns >= end_ns {
            break;
        }
        let step = {
            let mut backlog = sender.shared.backlog();
            if !deepened && now_ns >= deep_ns {
                deepened = true;
                backlog.deepen(phase.deepest.as_nanos() as u64);
            }
            backlog.step(sender.socket.now_ns())
        };
        match step {
            Step::Send(gap_ns) => {
                sender.send()?;
                due_ns = due_ns.max(now_ns.saturating_sub(MADE_UP_NS)) + gap_ns;
            }
            Step::Wait => {
                sender.shared.wait(Duration::from_millis(10));
                due_ns = monotonic_ns();
            }
        }
    }
    Ok(())
}
