// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Header at the head of a connection.

use std::io::{self, Read};
use std::time::Duration;

use super::numbers::{malformed, put, put_all, take, take_as, text};
use crate::plan::{Arrivals, Datagrams, Extent, MOST_REQUESTS, Transport, Work};

const MAGIC: [u8; 2] = *b"ap";
const VERSION: u8 = 1;
/// Bytes of the header before its numbers.
const FIXED_BYTES: usize = 5;

const BULK_BYTES: u8 = 0;
const BULK_TIME: u8 = 1;
const REQUESTS: u8 = 2;
const DATAGRAM_BYTES: u8 = 3;
const DATAGRAM_TIME: u8 = 4;
const RECORDING: u8 = 5;
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

fn extent_number(extent: Extent) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Time(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// First bytes of a connection: what the client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A load, and the length of its header in bytes.
    Load(Header, usize),
    /// A recording of the path, by the protocol of recordings of this version.
    Recording(u64),
}

impl Opening {
    /// The bytes that ask for a recording, by the protocol of recordings of this version.
    pub fn recording(version: u64) -> Vec<u8> {
        let mut numbers = Vec::new();
        put(&mut numbers, version);
        let mut bytes = vec![MAGIC[0], MAGIC[1], VERSION, RECORDING, numbers.len() as u8];
        bytes.extend(numbers);
        bytes
    }

    /// Reads an opening.
    ///
    /// # Errors
    /// The connection's, and [`io::ErrorKind::InvalidData`] for anything else.
    pub fn read(from: &mut impl Read) -> io::Result<Opening> {
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
        if kind != RECORDING {
            return Header::read_numbers(from, kind, length).map(|(header, bytes)| Opening::Load(header, bytes));
        }
        let mut numbers = vec![0; usize::from(length)];
        from.read_exact(&mut numbers)?;
        // A later version may say more.
        Ok(Opening::Recording(take(&mut numbers.as_slice())?))
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
        match Opening::read(from)? {
            Opening::Load(header, bytes) => Ok((header, bytes)),
            Opening::Recording(_) => Err(malformed()),
        }
    }

    /// The header of this kind, whose numbers have this length; also how many bytes it took.
    fn read_numbers(from: &mut impl Read, kind: u8, length: u8) -> io::Result<(Header, usize)> {
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
