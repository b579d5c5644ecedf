// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol between the two ends: a header at the head of the connection, and records of a few bytes. Numbers
//! are LEB128, so that a plain transfer's header is nine bytes or so.
//!
//! ```text
//! header: 'a' 'p' VERSION KIND LENGTH numbers… [name of the congestion control]
//! record: KIND LENGTH payload
//! ```

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::plan::{Arrivals, Datagrams, Extent, MOST_REQUESTS, Transport, Work};
use crate::report::{Received, Sent};

const MAGIC: [u8; 2] = *b"ap";
const VERSION: u8 = 1;
/// Bytes of the header before its numbers.
const FIXED_BYTES: usize = 5;

const BULK_BYTES: u8 = 0;
const BULK_TIME: u8 = 1;
const REQUESTS: u8 = 2;
const DATAGRAM_BYTES: u8 = 3;
const DATAGRAM_TIME: u8 = 4;
const REVERSE: u8 = 0x10;
const NO_DELAY: u8 = 0x20;
const UDP_LITE: u8 = 0x40;
const POISSON: u8 = 0x80;

/// Header of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Work of this connection.
    pub work: Work,
    /// True if the server sends.
    pub reverse: bool,
    /// True if both ends set TCP_NODELAY.
    pub no_delay: bool,
    /// Number of connections that belong together.
    pub parallel: u32,
    /// Index of this connection among them.
    pub index: u32,
    /// The client's port for datagrams; 0 without.
    pub client_port: u16,
    /// The congestion control for a sending server.
    pub congestion_control: Option<String>,
}

/// A short message about the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The server is ready; its port for datagrams, or 0.
    Accepted(u16),
    /// The server cannot do it, and why.
    Refused(String),
    /// Report of the sender.
    Sent(Sent),
    /// Report of the receiver.
    Received(Received),
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_all(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| put(bytes, *number));
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "does not use the protocol of `airpath send` and `airpath recv`")
}

fn take(bytes: &mut &[u8]) -> io::Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(malformed())
}

fn take_as<T: TryFrom<u64>>(bytes: &mut &[u8]) -> io::Result<T> {
    T::try_from(take(bytes)?).map_err(|_| malformed())
}

fn text(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed())
}

fn extent_number(extent: Extent) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Time(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
    }
}

impl Header {
    /// The header as it goes over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        put(&mut numbers, u64::from(self.parallel));
        if self.parallel > 1 {
            put(&mut numbers, u64::from(self.index));
        }
        let mut kind = match self.work {
            Work::Bulk(extent) => {
                put(&mut numbers, extent_number(extent));
                if matches!(extent, Extent::Bytes(_)) { BULK_BYTES } else { BULK_TIME }
            }
            Work::Requests { request_bytes, response_bytes, count } => {
                put_all(&mut numbers, &[request_bytes, response_bytes, count]);
                REQUESTS
            }
            Work::Datagrams(plan) => {
                let length = u64::from(plan.length_bytes);
                let port = u64::from(self.client_port);
                put_all(&mut numbers, &[extent_number(plan.extent), plan.rate_bits_per_second, length, port]);
                let mut kind = if matches!(plan.extent, Extent::Bytes(_)) { DATAGRAM_BYTES } else { DATAGRAM_TIME };
                if let Transport::UdpLite { coverage_bytes } = plan.transport {
                    put(&mut numbers, u64::from(coverage_bytes));
                    kind |= UDP_LITE;
                }
                if let Arrivals::Poisson { seed } = plan.arrivals {
                    put(&mut numbers, seed);
                    kind |= POISSON;
                }
                kind
            }
        };
        kind |= if self.reverse { REVERSE } else { 0 } | if self.no_delay { NO_DELAY } else { 0 };
        // Names of the kernel's congestion controls have at most 15 characters.
        numbers.extend(self.congestion_control.iter().flat_map(|name| name.bytes().take(64)));
        let mut header = vec![MAGIC[0], MAGIC[1], VERSION, kind, numbers.len() as u8];
        header.extend(numbers);
        header
    }

    /// Reads a header; also how many bytes it took.
    ///
    /// # Errors
    /// The connection's, and [`io::ErrorKind::InvalidData`] for anything but a header.
    pub fn read(from: &mut impl Read) -> io::Result<(Header, usize)> {
        let mut fixed = [0; FIXED_BYTES];
        from.read_exact(&mut fixed)?;
        let [first, second, version, kind, length] = fixed;
        if [first, second] != MAGIC {
            return Err(malformed());
        }
        if version != VERSION {
            let message =
                format!("uses version {version} of the protocol, not {VERSION}; use the same airpath at both ends");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut numbers = vec![0; usize::from(length)];
        from.read_exact(&mut numbers)?;
        let rest = &mut numbers.as_slice();
        let parallel = take_as(rest)?;
        let index = if parallel > 1 { take_as(rest)? } else { 0 };
        let mut client_port = 0;
        let extent = |number, timed| match timed {
            true => Extent::Time(Duration::from_nanos(number)),
            false => Extent::Bytes(number),
        };
        let work = match kind & 0xf {
            what @ (BULK_BYTES | BULK_TIME) => Work::Bulk(extent(take(rest)?, what == BULK_TIME)),
            REQUESTS => {
                let (request_bytes, response_bytes, count) = (take(rest)?, take(rest)?, take(rest)?);
                let sane = request_bytes > 0 && response_bytes > 0 && (1..=MOST_REQUESTS).contains(&count);
                if !sane {
                    return Err(malformed());
                }
                Work::Requests { request_bytes, response_bytes, count }
            }
            what @ (DATAGRAM_BYTES | DATAGRAM_TIME) => {
                let extent = extent(take(rest)?, what == DATAGRAM_TIME);
                let rate_bits_per_second = take(rest)?;
                let length_bytes = take_as(rest)?;
                client_port = take_as(rest)?;
                let transport = match kind & UDP_LITE {
                    0 => Transport::Udp,
                    _ => Transport::UdpLite { coverage_bytes: take_as(rest)? },
                };
                let arrivals = match kind & POISSON {
                    0 => Arrivals::Constant,
                    _ => Arrivals::Poisson { seed: take(rest)? },
                };
                let sane = (Datagrams::LEAST_LENGTH_BYTES..=65_507).contains(&length_bytes) && rate_bits_per_second > 0;
                if !sane {
                    return Err(malformed());
                }
                Work::Datagrams(Datagrams { transport, extent, rate_bits_per_second, length_bytes, arrivals })
            }
            _ => return Err(malformed()),
        };
        let congestion_control = if rest.is_empty() { None } else { Some(text(rest)?) };
        let (reverse, no_delay) = (kind & REVERSE != 0, kind & NO_DELAY != 0);
        let header = Header { work, reverse, no_delay, parallel, index, client_port, congestion_control };
        Ok((header, FIXED_BYTES + usize::from(length)))
    }
}

impl Record {
    /// The record as it goes over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let kind = match self {
            Record::Accepted(port) => {
                if *port != 0 {
                    put(&mut payload, u64::from(*port));
                }
                b'A'
            }
            Record::Refused(reason) => {
                payload.extend(reason.bytes().take(255));
                b'E'
            }
            Record::Sent(sent) => {
                let numbers = [
                    sent.bytes,
                    sent.elapsed_ns,
                    sent.packets,
                    sent.retransmits,
                    sent.max_congestion_window_bytes,
                    sent.max_send_window_bytes,
                    sent.max_rtt_us,
                    sent.min_rtt_us,
                    sent.mean_rtt_us,
                ];
                put_all(&mut payload, &numbers);
                payload.extend(sent.congestion_control.bytes().take(64));
                b'S'
            }
            Record::Received(received) => {
                put_all(&mut payload, &[received.bytes, received.elapsed_ns]);
                // Only datagrams have the rest.
                if received.packets != 0 || received.lost != 0 {
                    let numbers = [
                        received.packets,
                        received.lost,
                        received.out_of_order,
                        received.duplicates,
                        received.jitter_ns,
                    ];
                    put_all(&mut payload, &numbers);
                }
                b'R'
            }
        };
        let mut record = vec![kind, payload.len() as u8];
        record.extend(payload);
        record
    }

    /// Writes it.
    ///
    /// # Errors
    /// The connection's.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode())
    }

    /// Reads one; also how many bytes it took.
    ///
    /// # Errors
    /// The connection's, and [`io::ErrorKind::InvalidData`] for anything but a record.
    pub fn read(from: &mut impl Read) -> io::Result<(Record, usize)> {
        let mut fixed = [0; 2];
        from.read_exact(&mut fixed)?;
        let [kind, length] = fixed;
        let mut payload = vec![0; usize::from(length)];
        from.read_exact(&mut payload)?;
        let rest = &mut payload.as_slice();
        let record = match kind {
            b'A' => Record::Accepted(if rest.is_empty() { 0 } else { take_as(rest)? }),
            b'E' => Record::Refused(text(rest)?),
            b'S' => Record::Sent(Sent {
                bytes: take(rest)?,
                elapsed_ns: take(rest)?,
                packets: take(rest)?,
                retransmits: take(rest)?,
                max_congestion_window_bytes: take(rest)?,
                max_send_window_bytes: take(rest)?,
                max_rtt_us: take(rest)?,
                min_rtt_us: take(rest)?,
                mean_rtt_us: take(rest)?,
                congestion_control: text(rest)?,
            }),
            b'R' => {
                let (bytes, elapsed_ns) = (take(rest)?, take(rest)?);
                let mut received = Received { bytes, elapsed_ns, ..Received::default() };
                if !rest.is_empty() {
                    received.packets = take(rest)?;
                    received.lost = take(rest)?;
                    received.out_of_order = take(rest)?;
                    received.duplicates = take(rest)?;
                    received.jitter_ns = take(rest)?;
                }
                Record::Received(received)
            }
            _ => return Err(malformed()),
        };
        Ok((record, fixed.len() + payload.len()))
    }
}

/// The error for a record that makes no sense at its place, or that says why the peer refused.
pub fn unexpected(record: Record) -> io::Error {
    match record {
        Record::Refused(reason) => io::Error::new(io::ErrorKind::InvalidData, format!("refused: {reason}")),
        _ => malformed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(work: Work) -> Header {
        let (parallel, index, client_port) = (1, 0, 0);
        Header { work, reverse: false, no_delay: false, parallel, index, client_port, congestion_control: None }
    }

    #[test]
    fn a_plain_transfer_has_a_header_of_nine_bytes() {
        let header = plain(Work::Bulk(Extent::Bytes(100_000)));
        // 100000 = 0b110_0001101_0100000: three groups of seven bits, the lowest first.
        assert_eq!(header.encode(), [b'a', b'p', 1, 0, 4, 1, 0xa0, 0x8d, 0x06]);
    }

    #[test]
    fn headers_survive_the_wire() {
        let stream = Datagrams {
            transport: Transport::UdpLite { coverage_bytes: 28 },
            extent: Extent::Time(Duration::from_millis(1_500)),
            rate_bits_per_second: 9_600,
            length_bytes: 65_507,
            arrivals: Arrivals::Poisson { seed: u64::MAX },
        };
        let headers = [
            plain(Work::Bulk(Extent::Bytes(u64::MAX))),
            plain(Work::Bulk(Extent::Time(Duration::from_secs(10)))),
            Header { reverse: true, congestion_control: Some("cubic".into()), ..plain(Work::Bulk(Extent::Bytes(7))) },
            Header {
                no_delay: true,
                parallel: 300,
                index: 299,
                ..plain(Work::Requests { request_bytes: 1, response_bytes: 128, count: 16_384 })
            },
            Header { client_port: 65_535, ..plain(Work::Datagrams(stream)) },
        ];
        for header in headers {
            let bytes = header.encode();
            let mut with_data = bytes.clone();
            with_data.extend(b"load");
            assert_eq!(Header::read(&mut with_data.as_slice()).unwrap(), (header, bytes.len()));
        }
    }

    #[test]
    fn records_survive_the_wire() {
        let sent = Sent { bytes: 1, retransmits: 300, congestion_control: "reno".into(), ..Sent::default() };
        let received = Received { bytes: 5, elapsed_ns: u64::MAX, lost: 2, jitter_ns: 77, ..Received::default() };
        for record in [
            Record::Accepted(0),
            Record::Accepted(5201),
            Record::Refused("no such congestion control".into()),
            Record::Sent(sent),
            Record::Received(received),
            Record::Received(Received { bytes: 5, elapsed_ns: 6, ..Received::default() }),
        ] {
            let bytes = record.encode();
            assert_eq!(Record::read(&mut bytes.as_slice()).unwrap(), (record, bytes.len()));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"ap\x02\x00\x00", b"ap\x01\x0f\x01\x01", b"ap\x01\x00\x01\x80"] {
            let error = Header::read(&mut &*bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        assert_eq!(Header::read(&mut &b"ap"[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(Record::read(&mut &b"Z\x00"[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
