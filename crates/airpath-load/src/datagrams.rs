// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Datagrams: sent at their times, counted where they arrive. Each begins with its number and the
//! time of sending (CLOCK_MONOTONIC of the sender, ns), eight bytes each, big-endian.

use std::collections::HashMap;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use crate::clock::{self, Alarm, monotonic_ns, wait_for};
use crate::pacing::Pacer;
use crate::plan::{Datagrams, Extent};
use crate::progress::Progress;
use crate::protocol::{Record, unexpected};
use crate::report::{Received, Sent};
use crate::sockets;

/// Silence after the sender's announcement that it has sent everything, after which missing datagrams count as
/// lost. The word goes through the same queues as the datagrams.
const GRACE_NS: u64 = 1_000_000_000;
/// Maximum silence of a sender that has not ended.
const IDLE_NS: u64 = sockets::IDLE.as_nanos() as u64;

/// Interval of a sender's checks that anybody still receives.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// Sends the stream numbered `index` of several alike.
///
/// # Errors
/// The socket's; refused if the receiver's socket is gone, and at its end if its connection is.
pub fn send(
    socket: &UdpSocket,
    control: &TcpStream,
    plan: &Datagrams,
    index: u32,
    progress: &Progress,
) -> io::Result<Sent> {
    clock::wake_exactly();
    let length = u64::from(plan.length_bytes);
    let mut datagram = payload(plan.length_bytes as usize);
    let mut pacer = Pacer::new(plan, index);
    let began_ns = monotonic_ns();
    let mut sent = Sent::default();
    let mut look_ns = began_ns.saturating_add(LOOK_EVERY_NS);
    loop {
        let over = match plan.extent {
            Extent::Bytes(bytes) => sent.bytes >= bytes,
            Extent::Time(time) => u128::from(pacer.next_ns()) >= time.as_nanos(),
        };
        if over {
            return Ok(sent);
        }
        let due_ns = began_ns.saturating_add(pacer.next_ns());
        while look_ns <= due_ns {
            clock::sleep_until(look_ns)?;
            still_there(control)?;
            look_ns = monotonic_ns().saturating_add(LOOK_EVERY_NS);
        }
        clock::sleep_until(due_ns)?;
        let now_ns = monotonic_ns();
        datagram[..8].copy_from_slice(&sent.packets.to_be_bytes());
        datagram[8..16].copy_from_slice(&now_ns.to_be_bytes());
        socket.send(&datagram)?;
        sent.packets += 1;
        sent.bytes += length;
        sent.elapsed_ns = now_ns - began_ns;
        progress.count(|counts| {
            counts.packets += 1;
            counts.bytes += length;
        });
        pacer.advance();
    }
}

/// Payload of every datagram behind its number and time: bits without a pattern, as a checksum does not see
/// that words of one are inverted.
fn payload(length: usize) -> Vec<u8> {
    let key = DrawKey::new(Seed(0), &DrawScope { hop: "", direction: Direction::Uplink, role: "payload", instance: 0 });
    (0..).flat_map(|step| key.bits(step, 0).to_be_bytes()).take(length).collect()
}

/// Fails if the receiver's connection has ended, over which it has nothing to say yet.
fn still_there(control: &TcpStream) -> io::Result<()> {
    match recv(control.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => Err(unexpected(Record::read(&mut &*control)?.0)),
    }
}

/// Receives until the sender has said on `control` that it is done, and everything has come or
/// nothing more comes. Returns both sides.
///
/// # Errors
/// The sockets'.
pub fn receive(
    socket: &UdpSocket,
    control: &TcpStream,
    plan: &Datagrams,
    progress: &Progress,
) -> io::Result<(Received, Sent)> {
    let mut count = Count::of(plan);
    let mut said: Option<Sent> = None;
    let alarm = Alarm::new()?;
    let mut heard_ns = monotonic_ns();
    alarm.set(heard_ns + IDLE_NS)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        // Once the sender is done, its connection is not looked at any more.
        let [datagrams, word, late] = match said {
            None => wait_for([socket.as_fd(), control.as_fd(), alarm.as_fd()])?,
            Some(_) => {
                let [datagrams, late] = wait_for([socket.as_fd(), alarm.as_fd()])?;
                [datagrams, false, late]
            }
        };
        if said.is_none() {
            if datagrams {
                heard_ns = monotonic_ns();
            } else if late {
                // The alarm is set anew only here, not with every datagram.
                if monotonic_ns() >= heard_ns + IDLE_NS {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                alarm.set(heard_ns + IDLE_NS)?;
            }
        }
        if datagrams {
            while take(socket, &mut buffer, &mut count)? {
                progress.count(|counts| {
                    counts.bytes = count.received.bytes;
                    counts.packets = count.received.packets;
                    counts.lost = count.missing();
                    counts.out_of_order = count.received.out_of_order;
                    counts.jitter_ns = count.received.jitter_ns;
                });
            }
        }
        if word {
            match Record::read(&mut &*control)?.0 {
                Record::Sent(sent) => said = Some(sent),
                other => return Err(unexpected(other)),
            }
        }
        if let Some(sent) = &said {
            if count.received.packets >= sent.packets || (late && !datagrams) {
                count.received.lost = sent.packets.saturating_sub(count.received.packets);
                return Ok((count.received, sent.clone()));
            }
            alarm.set(monotonic_ns() + GRACE_NS)?;
        }
    }
}

/// Takes one datagram that is there; whether one was.
fn take(socket: &UdpSocket, buffer: &mut [u8], count: &mut Count) -> io::Result<bool> {
    match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
        Ok(length) => {
            count.take(&buffer[..length], monotonic_ns());
            Ok(true)
        }
        Err(Errno::EAGAIN) => Ok(false),
        Err(Errno::EINTR) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Counts what arrives.
#[derive(Default)]
struct Count {
    received: Received,
    /// One bit for each number that has arrived, in words; only words with any are there, so that memory goes
    /// by what has come and not by what it says of itself.
    arrived: HashMap<u64, u64>,
    /// Numbers from this on are none of the stream's.
    end: u64,
    /// One more than the largest number that has arrived.
    expected: u64,
    first_ns: Option<u64>,
    last_transit_ns: Option<i128>,
    jitter_ns: f64,
}

/// More words than this are not kept: a thousand million datagrams in order, or that much memory for others.
const MOST_WORDS: usize = 1 << 24;

impl Count {
    /// Counts the datagrams of `plan`.
    fn of(plan: &Datagrams) -> Count {
        Count { end: plan.most(), ..Count::default() }
    }

    fn take(&mut self, datagram: &[u8], now_ns: u64) {
        let Some((head, _)) = datagram.split_first_chunk::<16>() else { return };
        let number = u64::from_be_bytes(head[..8].try_into().unwrap_or_default());
        let sent_ns = u64::from_be_bytes(head[8..].try_into().unwrap_or_default());
        let (word, bit) = (number / 64, 1 << (number % 64));
        if number >= self.end || (self.arrived.len() >= MOST_WORDS && !self.arrived.contains_key(&word)) {
            return;
        }
        let arrived = self.arrived.entry(word).or_default();
        if *arrived & bit != 0 {
            self.received.duplicates += 1;
            return;
        }
        *arrived |= bit;
        self.received.packets += 1;
        self.received.bytes += datagram.len() as u64;
        if number < self.expected {
            self.received.out_of_order += 1;
        }
        self.expected = self.expected.max(number + 1);
        self.received.elapsed_ns = now_ns - *self.first_ns.get_or_insert(now_ns);
        // The two clocks may differ by anything that does not change.
        let transit_ns = i128::from(now_ns) - i128::from(sent_ns);
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            self.jitter_ns += ((transit_ns - last).unsigned_abs() as f64 - self.jitter_ns) / 16.0;
            self.received.jitter_ns = self.jitter_ns.round() as u64;
        }
    }

    /// Numbers before the latest that have not arrived.
    fn missing(&self) -> u64 {
        self.expected - self.received.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u64, sent_ns: u64) -> Vec<u8> {
        [number.to_be_bytes(), sent_ns.to_be_bytes()].concat()
    }

    #[test]
    fn loss_order_and_duplicates() {
        let mut count = Count { end: 1000, ..Count::default() };
        for (number, now_ns) in [(0, 100), (3, 200), (1, 300), (1, 400), (70, 500)] {
            count.take(&datagram(number, 0), now_ns);
        }
        count.take(b"stray", 600);
        count.take(&datagram(u64::MAX, 0), 600);
        let received = count.received;
        assert_eq!((received.packets, received.bytes, received.elapsed_ns), (4, 64, 400));
        assert_eq!((received.out_of_order, received.duplicates, count.missing()), (1, 1, 67));
    }

    #[test]
    fn a_number_costs_no_memory_and_one_beyond_the_plan_is_not_counted() {
        let plan = |extent, arrivals| Datagrams {
            transport: crate::plan::Transport::Udp,
            extent,
            rate_bits_per_second: 1_000_000,
            length_bytes: 100,
            arrivals,
        };
        let steady = crate::plan::Arrivals::Constant;
        let second = Extent::Time(std::time::Duration::from_secs(1));
        assert_eq!(plan(Extent::Bytes(1001), steady).most(), 12);
        assert!((1250..1260).contains(&plan(second, steady).most()));
        assert!(plan(second, crate::plan::Arrivals::Poisson { seed: 1 }).most() > 2500);
        let endless = plan(Extent::Time(std::time::Duration::from_nanos(u64::MAX)), steady);
        assert!(endless.most() > 1 << 44);
        let mut count = Count::of(&endless);
        for number in [endless.most() - 1, 1 << 34, 3, endless.most(), u64::MAX] {
            count.take(&datagram(number, 0), 100);
        }
        assert_eq!((count.received.packets, count.arrived.len()), (3, 3));
        let mut count = Count::of(&plan(Extent::Bytes(1000), steady));
        count.take(&datagram((1 << 34) - 1, 0), 100);
        assert_eq!(count.received.packets, 0);
    }

    #[test]
    fn jitter_as_in_rfc_3550() {
        let mut count = Count { end: 1000, ..Count::default() };
        // Transit times of 10, 26 and 18: differences of 16 and 8, so 16/16 = 1, then 1 + 7/16.
        for (number, sent_ns, now_ns) in [(0, 0, 10), (1, 100, 126), (2, 200, 218)] {
            count.take(&datagram(number, sent_ns), now_ns);
        }
        assert!((count.jitter_ns - 1.4375).abs() < 1e-12, "{}", count.jitter_ns);
        assert_eq!(count.received.jitter_ns, 1);
    }
}
