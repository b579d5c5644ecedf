// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages over TCP: a kind, the length of the payload in LEB128, and the payload. Numbers are LEB128;
//! differences are folded, so that small ones of either sign are short.

use std::io::{self, Read, Write};
use std::time::Duration;

use airpath_load::protocol::numbers::{malformed, put, put_all, take, take_as, text};

use crate::plan::{Load, Phase};

/// The longest payload in bytes.
pub const MOST_PAYLOAD_BYTES: usize = 1 << 16;
/// Entries of a log in one message: each takes 20 bytes at most.
pub const ENTRIES: usize = 3_000;

/// An arrival at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the packet.
    pub number: u32,
    /// Time of the arrival in ns since 1970, by the receiver's clock.
    pub arrived_ns: u64,
}

/// End of a direction at its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Packets that the receiver's own socket had no room for.
    pub overflowed: u64,
    /// True if the clock of the server was set during the phase.
    pub clock_set: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Server: ready for phases.
    Ready {
        /// UDP port of the probes.
        datagram_port: u16,
        /// UDP port at which clocks are compared.
        clock_port: u16,
        /// Token of all datagrams of the session.
        token: u32,
    },
    /// Server: it cannot be done, and why.
    Refused(String),
    /// Client: a phase begins.
    Begin(Phase),
    /// Server: it receives.
    Begun,
    /// Client: no more is to be sent.
    Stop,
    /// Either: times of sending in ns since 1970, continued.
    Sent(Vec<u64>),
    /// Either: everything has been sent, so many packets in all.
    SentAll(u32),
    /// Server: arrivals in their order, continued.
    Arrived(Vec<Arrival>),
    /// Server: the phase is over.
    Done(Ending),
}

fn fold(difference: i64) -> u64 {
    (difference.wrapping_shl(1) ^ (difference >> 63)).cast_unsigned()
}

fn unfold(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Message {
    /// Times of sending, in as many messages as they need.
    pub fn all_sent(times_ns: &[u64]) -> impl Iterator<Item = Message> {
        times_ns.chunks(ENTRIES).map(|part| Message::Sent(part.to_vec()))
    }

    /// The arrivals of a log, in as many messages as they need.
    pub fn all_arrived<T>(log: &[T], arrival: impl Fn(&T) -> Arrival) -> impl Iterator<Item = Message> {
        log.chunks(ENTRIES).map(move |part| Message::Arrived(part.iter().map(&arrival).collect()))
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let kind = match self {
            Message::Ready { datagram_port, clock_port, token } => {
                put_all(&mut payload, &[u64::from(*datagram_port), u64::from(*clock_port), u64::from(*token)]);
                b'R'
            }
            Message::Refused(reason) => {
                payload.extend(reason.chars().take(250).collect::<String>().bytes());
                b'E'
            }
            Message::Begin(phase) => {
                put_phase(&mut payload, phase);
                b'B'
            }
            Message::Begun => b'G',
            Message::Stop => b'X',
            Message::Sent(times) => {
                let mut last = 0;
                for time in times {
                    put(&mut payload, fold(time.wrapping_sub(last).cast_signed()));
                    last = *time;
                }
                b'S'
            }
            Message::SentAll(count) => {
                put(&mut payload, u64::from(*count));
                b'T'
            }
            Message::Arrived(arrivals) => {
                let mut last = Arrival { number: 0, arrived_ns: 0 };
                for arrival in arrivals {
                    put(&mut payload, fold(i64::from(arrival.number) - i64::from(last.number)));
                    put(&mut payload, fold(arrival.arrived_ns.wrapping_sub(last.arrived_ns).cast_signed()));
                    last = *arrival;
                }
                b'A'
            }
            Message::Done(ending) => {
                put_all(&mut payload, &[ending.overflowed, u64::from(ending.clock_set)]);
                b'D'
            }
        };
        let mut bytes = vec![kind];
        put(&mut bytes, payload.len() as u64);
        bytes.extend(payload);
        bytes
    }

    /// Writes it.
    ///
    /// # Errors
    /// The connection's.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode())
    }

    /// Reads one.
    ///
    /// # Errors
    /// The connection's, and [`io::ErrorKind::InvalidData`] for anything but a message.
    pub fn read(from: &mut impl Read) -> io::Result<Message> {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        let kind = byte[0];
        let mut length = Vec::new();
        loop {
            from.read_exact(&mut byte)?;
            length.push(byte[0]);
            if byte[0] < 0x80 {
                break;
            }
            if length.len() >= 5 {
                return Err(malformed());
            }
        }
        let length: usize = take_as(&mut length.as_slice())?;
        if length > MOST_PAYLOAD_BYTES {
            return Err(malformed());
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload)?;
        let rest = &mut payload.as_slice();
        Ok(match kind {
            b'R' => Message::Ready { datagram_port: take_as(rest)?, clock_port: take_as(rest)?, token: take_as(rest)? },
            b'E' => Message::Refused(text(rest)?),
            b'B' => Message::Begin(take_phase(rest)?),
            b'G' => Message::Begun,
            b'X' => Message::Stop,
            b'S' => {
                let (mut times, mut last) = (Vec::new(), 0u64);
                while !rest.is_empty() {
                    last = last.wrapping_add(unfold(take(rest)?).cast_unsigned());
                    times.push(last);
                }
                Message::Sent(times)
            }
            b'T' => Message::SentAll(take_as(rest)?),
            b'A' => {
                let (mut arrivals, mut number, mut arrived_ns) = (Vec::new(), 0i64, 0u64);
                while !rest.is_empty() {
                    number = number.wrapping_add(unfold(take(rest)?));
                    arrived_ns = arrived_ns.wrapping_add(unfold(take(rest)?).cast_unsigned());
                    let number = u32::try_from(number).map_err(|_| malformed())?;
                    arrivals.push(Arrival { number, arrived_ns });
                }
                Message::Arrived(arrivals)
            }
            b'D' => Message::Done(Ending { overflowed: take(rest)?, clock_set: take(rest)? != 0 }),
            _ => return Err(malformed()),
        })
    }
}

fn put_phase(payload: &mut Vec<u8>, phase: &Phase) {
    let (interval, train) = match phase.load {
        Load::Saturating => (Duration::ZERO, 0),
        Load::Light { interval, train } => (interval, train),
    };
    let numbers = [
        u64::from(phase.uplink) | u64::from(phase.downlink) << 1,
        nanos(phase.duration),
        u64::from(phase.length_bytes),
        phase.most_bytes,
        phase.most_rate_bits_per_second,
        nanos(phase.deepest),
        u64::from(train),
        nanos(interval),
    ];
    put_all(payload, &numbers);
}

fn take_phase(rest: &mut &[u8]) -> io::Result<Phase> {
    let directions = take(rest)?;
    let mut phase = Phase {
        load: Load::Saturating,
        uplink: directions & 1 != 0,
        downlink: directions & 2 != 0,
        duration: Duration::from_nanos(take(rest)?),
        length_bytes: take_as(rest)?,
        most_bytes: take(rest)?,
        most_rate_bits_per_second: take(rest)?,
        deepest: Duration::from_nanos(take(rest)?),
    };
    let (train, interval) = (take_as(rest)?, Duration::from_nanos(take(rest)?));
    if train != 0 {
        phase.load = Load::Light { interval, train };
    }
    Ok(phase)
}

/// Error for a message that makes no sense at its place, or that says why the other end refused.
pub fn unexpected(message: &Message) -> io::Error {
    match message {
        Message::Refused(reason) => io::Error::new(io::ErrorKind::InvalidData, format!("refused: {reason}")),
        _ => malformed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let phase = Phase {
            load: Load::Light { interval: Duration::from_millis(20), train: 3 },
            uplink: true,
            downlink: false,
            duration: Duration::from_secs(10),
            length_bytes: 1_500,
            most_bytes: u64::MAX,
            most_rate_bits_per_second: 5,
            deepest: Duration::from_secs(2),
        };
        let at = |number, arrived_ns| Arrival { number, arrived_ns };
        let messages = [
            Message::Ready { datagram_port: 65_535, clock_port: 1, token: u32::MAX },
            Message::Refused("no socket".into()),
            Message::Begin(phase),
            Message::Begin(Phase { load: Load::Saturating, uplink: false, downlink: true, ..phase }),
            Message::Begun,
            Message::Stop,
            Message::Sent(vec![1_700_000_000_000_000_000, 1_700_000_000_000_000_500, 3, u64::MAX]),
            Message::SentAll(7),
            Message::Arrived(vec![at(5, 1_700_000_000_000_000_000), at(4, 9), at(u32::MAX, u64::MAX), at(0, 0)]),
            Message::Done(Ending { overflowed: 300, clock_set: true }),
        ];
        for message in messages {
            let bytes = message.encode();
            assert_eq!(Message::read(&mut bytes.as_slice()).unwrap(), message);
            for length in 0..bytes.len() {
                assert!(Message::read(&mut &bytes[..length]).is_err(), "{message:?} cut at {length}");
            }
        }
    }

    #[test]
    fn results_of_more_than_a_megabyte_come_whole() {
        let times: Vec<u64> = (0..300_000).map(|number| 1_700_000_000_000_000_000 + 12_345_678 * number).collect();
        let at = |(number, time): (usize, &u64)| Arrival { number: number as u32 ^ 1, arrived_ns: time ^ 0xfff };
        let log: Vec<Arrival> = times.iter().enumerate().map(at).collect();
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        Message::all_sent(&times).for_each(|message| message.write(&mut sent).unwrap());
        Message::all_arrived(&log, |arrival| *arrival).for_each(|message| message.write(&mut arrived).unwrap());
        assert!(sent.len().min(arrived.len()) > 1 << 20, "{} and {} bytes", sent.len(), arrived.len());
        let mut line = &[sent, arrived].concat()[..];
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        while !line.is_empty() {
            match Message::read(&mut line).unwrap() {
                Message::Sent(part) => sent.extend(part),
                Message::Arrived(part) => arrived.extend(part),
                message => panic!("{message:?}"),
            }
        }
        assert!(sent == times && arrived == log);
    }

    #[test]
    fn a_full_log_fits_and_more_is_refused() {
        let far = vec![Arrival { number: u32::MAX, arrived_ns: u64::MAX / 2 }, Arrival { number: 0, arrived_ns: 0 }];
        let arrivals: Vec<Arrival> = far.into_iter().cycle().take(ENTRIES).collect();
        let bytes = Message::Arrived(arrivals.clone()).encode();
        assert!(bytes.len() <= MOST_PAYLOAD_BYTES);
        assert_eq!(Message::read(&mut bytes.as_slice()).unwrap(), Message::Arrived(arrivals));
        // 65,537 bytes, and a length without an end.
        for bytes in [&b"S\x81\x80\x04"[..], b"S\xff\xff\xff\xff\xff\x01", b"Z\x00", b"A\x02\x01\x00"] {
            assert_eq!(Message::read(&mut &*bytes).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
