//! Datagrams: sent at their times, counted where they arrive. Each begins with its number and the
//! time of sending (CLOCK_MONOTONIC of the sender, ns), eight bytes each, big-endian.

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

/// How long nothing must have come, after the sender's word that it has sent everything, until what
/// is missing counts as lost. The word goes through the same queues as the datagrams.
const GRACE_NS: u64 = 1_000_000_000;

/// Sends the stream numbered `index` of several alike.
///
/// # Errors
/// The socket's; refused if the receiver's socket is gone.
pub fn send(socket: &UdpSocket, plan: &Datagrams, index: u32, progress: &Progress) -> io::Result<Sent> {
    clock::wake_exactly();
    let length = u64::from(plan.length_bytes);
    let mut datagram = payload(plan.length_bytes as usize);
    let mut pacer = Pacer::new(plan, index);
    let began_ns = monotonic_ns();
    let mut sent = Sent::default();
    loop {
        let over = match plan.extent {
            Extent::Bytes(bytes) => sent.bytes >= bytes,
            Extent::Time(time) => u128::from(pacer.next_ns()) >= time.as_nanos(),
        };
        if over {
            return Ok(sent);
        }
        clock::sleep_until(began_ns + pacer.next_ns())?;
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

/// What every datagram carries behind its number and time: bits without a pattern, as a checksum does not see
/// that words of one are inverted.
fn payload(length: usize) -> Vec<u8> {
    let key = DrawKey::new(Seed(0), &DrawScope { hop: "", direction: Direction::Uplink, role: "payload", instance: 0 });
    (0..).flat_map(|step| key.bits(step, 0).to_be_bytes()).take(length).collect()
}

/// Receives until the sender has said on `control` that it is done, and everything has come or
/// nothing more comes. Returns both sides.
///
/// # Errors
/// The sockets'.
pub fn receive(socket: &UdpSocket, control: &TcpStream, progress: &Progress) -> io::Result<(Received, Sent)> {
    let mut count = Count::default();
    let mut said: Option<Sent> = None;
    let alarm = Alarm::new()?;
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
    /// One bit for each number that has arrived.
    arrived: Vec<u64>,
    /// One more than the largest number that has arrived.
    expected: u64,
    first_ns: Option<u64>,
    last_transit_ns: Option<i128>,
    jitter_ns: f64,
}

/// Numbers above this are not believed: they would make the table of arrivals larger than memory.
const MAX_NUMBER: u64 = 1 << 34;

impl Count {
    fn take(&mut self, datagram: &[u8], now_ns: u64) {
        let Some((head, _)) = datagram.split_first_chunk::<16>() else { return };
        let number = u64::from_be_bytes(head[..8].try_into().unwrap_or_default());
        let sent_ns = u64::from_be_bytes(head[8..].try_into().unwrap_or_default());
        if number >= MAX_NUMBER {
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.arrived.len() <= word {
            self.arrived.resize(word + 1, 0);
        }
        if self.arrived[word] & bit != 0 {
            self.received.duplicates += 1;
            return;
        }
        self.arrived[word] |= bit;
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
        let mut count = Count::default();
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
    fn jitter_as_in_rfc_3550() {
        let mut count = Count::default();
        // Transit times of 10, 26 and 18: differences of 16 and 8, so 16/16 = 1, then 1 + 7/16.
        for (number, sent_ns, now_ns) in [(0, 0, 10), (1, 100, 126), (2, 200, 218)] {
            count.take(&datagram(number, sent_ns), now_ns);
        }
        assert!((count.jitter_ns - 1.4375).abs() < 1e-12, "{}", count.jitter_ns);
        assert_eq!(count.received.jitter_ns, 1);
    }
}
