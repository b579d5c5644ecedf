// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Records: short messages of the two ends about the load.

use std::io::{self, Read, Write};

use super::numbers::{malformed, put, put_all, take, take_as, text};
use crate::report::{Received, Sent};

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
