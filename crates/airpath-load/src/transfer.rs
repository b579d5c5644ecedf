// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bulk transfers over TCP.
//!
//! A transfer of a number of bytes is those bytes and nothing else: the first of them are the header
//! (or, from a server, its word that it is ready). One of a length of time comes in units, whose first
//! byte says whether the unit is whole (0) or the end (1): the connection stays open for the results.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::plan::Extent;
use crate::progress::Progress;
use crate::sockets;

/// Size of a write, in bytes; also the bytes by which interval reports may be ahead of the socket.
pub const BLOCK_BYTES: usize = 16 * 1024;
/// Size of a read, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// A unit of a transfer that ends by time, in bytes.
const UNIT_BYTES: usize = 4 * 1024;
/// Limit on unsent bytes of such a transfer in the socket: that much goes on after the end.
const UNSENT_BYTES: u32 = 16 * 1024;
const WHOLE: u8 = 0;
const END: u8 = 1;

/// The load: bytes that no link compresses away, the same in every run.
fn filler(length: usize) -> Vec<u8> {
    (0..length as u32).map(|index| (index.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
}

/// Writes all of `bytes`, counting what the socket takes when it takes it.
pub fn write_counted(socket: &TcpStream, mut bytes: &[u8], progress: &Progress) -> io::Result<()> {
    while !bytes.is_empty() {
        match (&mut &*socket).write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                progress.count(|counts| counts.bytes += written as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads some bytes into `buffer`.
pub fn read_some(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match (&mut &*socket).read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes `bytes` bytes, of which `prefix` are the first.
pub fn write_message(socket: &TcpStream, prefix: &[u8], bytes: u64, progress: &Progress) -> io::Result<()> {
    let block = filler(BLOCK_BYTES);
    // The head goes out with what follows it, not in a segment of its own.
    let mut first = prefix.to_vec();
    let room = (BLOCK_BYTES as u64).min(bytes).saturating_sub(prefix.len() as u64);
    first.extend(&block[..room as usize]);
    write_counted(socket, &first, progress)?;
    let mut left = bytes.saturating_sub(first.len() as u64);
    while left > 0 {
        let part = &block[..left.min(BLOCK_BYTES as u64) as usize];
        write_counted(socket, part, progress)?;
        left -= part.len() as u64;
    }
    Ok(())
}

/// Sends a transfer that begins with `prefix`; when it began, in ns.
///
/// # Errors
/// The connection's.
pub fn send(socket: &TcpStream, extent: Extent, prefix: &[u8], progress: &Progress) -> io::Result<u64> {
    let began_ns = monotonic_ns();
    match extent {
        Extent::Bytes(bytes) => write_message(socket, prefix, bytes, progress)?,
        Extent::Time(time) => send_units(socket, began_ns, time, prefix, progress)?,
    }
    Ok(began_ns)
}

fn send_units(socket: &TcpStream, began_ns: u64, time: Duration, prefix: &[u8], progress: &Progress) -> io::Result<()> {
    sockets::limit_unsent(socket, UNSENT_BYTES)?;
    let mut unit = filler(UNIT_BYTES);
    unit[0] = WHOLE;
    let end_ns = began_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let first = [prefix, &unit].concat();
    write_counted(socket, &first, progress)?;
    while monotonic_ns() < end_ns {
        write_counted(socket, &unit, progress)?;
    }
    write_counted(socket, &[END], progress)
}

/// Receives a transfer of whose bytes `taken` have been read; when the last one came, in ns.
///
/// # Errors
/// The connection's, and [`io::ErrorKind::InvalidData`] for units that are none.
pub fn receive(socket: &TcpStream, extent: Extent, taken: usize, progress: &Progress) -> io::Result<u64> {
    let mut buffer = vec![0; READ_BYTES];
    let mut last_ns = monotonic_ns();
    progress.count(|counts| counts.bytes += taken as u64);
    let mut read = |buffer: &mut [u8]| -> io::Result<usize> {
        let length = read_some(socket, buffer)?;
        last_ns = monotonic_ns();
        progress.count(|counts| counts.bytes += length as u64);
        Ok(length)
    };
    match extent {
        Extent::Bytes(bytes) => {
            let mut left = bytes.checked_sub(taken as u64).ok_or_else(nonsense)?;
            while left > 0 {
                let room = left.min(READ_BYTES as u64) as usize;
                left -= read(&mut buffer[..room])? as u64;
            }
        }
        Extent::Time(_) => {
            let mut units = Units::default();
            loop {
                let length = read(&mut buffer)?;
                if units.take(&buffer[..length])? {
                    break;
                }
            }
        }
    }
    Ok(last_ns)
}

/// Position of a receiver in the sequence of units.
#[derive(Default)]
struct Units {
    left_in_unit: usize,
}

impl Units {
    /// Takes the next bytes; whether they end the transfer.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<bool> {
        while !bytes.is_empty() {
            if self.left_in_unit == 0 {
                match bytes[0] {
                    WHOLE => self.left_in_unit = UNIT_BYTES,
                    END if bytes.len() == 1 => return Ok(true),
                    _ => return Err(nonsense()),
                }
            }
            let step = self.left_in_unit.min(bytes.len());
            self.left_in_unit -= step;
            bytes = &bytes[step..];
        }
        Ok(false)
    }
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "sent other data than announced")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_end_where_the_mark_stands_however_they_are_cut() {
        let mut stream = Vec::new();
        for _ in 0..3 {
            let mut unit = filler(UNIT_BYTES);
            unit[0] = WHOLE;
            stream.extend(unit);
        }
        stream.push(END);
        for step in [1, 7, UNIT_BYTES - 1, UNIT_BYTES, UNIT_BYTES + 1, stream.len()] {
            let mut units = Units::default();
            let ends: Vec<bool> = stream.chunks(step).map(|chunk| units.take(chunk).unwrap()).collect();
            assert_eq!(ends.iter().filter(|end| **end).count(), 1, "{step}");
            assert_eq!(ends.last(), Some(&true), "{step}");
        }
        assert!(Units::default().take(&[END, 0]).is_err());
        assert!(Units::default().take(&[2]).is_err());
    }
}
