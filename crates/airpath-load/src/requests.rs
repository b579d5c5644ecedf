// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests and responses over one TCP connection, one after the other.

use std::io;
use std::net::TcpStream;

use crate::clock::monotonic_ns;
use crate::progress::Progress;
use crate::transfer::{read_some, write_message};

/// Sizes and number of requests and responses.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Number of requests.
    pub count: u64,
}

/// Asks, and waits for each answer; the first request stands behind `header`. How long each took
/// from its first byte to the last of its response, in ns.
///
/// # Errors
/// The connection's.
pub fn ask(socket: &TcpStream, header: &[u8], plan: Requests, progress: &Progress) -> io::Result<Vec<u64>> {
    let mut times_ns = Vec::new();
    let unreported = Progress::default();
    for number in 0..plan.count {
        let head = if number == 0 { header } else { &[] };
        let began_ns = monotonic_ns();
        write_message(socket, head, plan.request_bytes + head.len() as u64, &unreported)?;
        read_message(socket, plan.response_bytes)?;
        times_ns.push(monotonic_ns() - began_ns);
        progress.count(|counts| {
            counts.bytes += plan.request_bytes;
            counts.packets += 1;
        });
    }
    Ok(times_ns)
}

/// Answers every request.
///
/// # Errors
/// The connection's.
pub fn answer(socket: &TcpStream, plan: Requests, progress: &Progress) -> io::Result<()> {
    let unreported = Progress::default();
    for _ in 0..plan.count {
        read_message(socket, plan.request_bytes)?;
        write_message(socket, &[], plan.response_bytes, &unreported)?;
        progress.count(|counts| {
            counts.bytes += plan.request_bytes;
            counts.packets += 1;
        });
    }
    Ok(())
}

fn read_message(socket: &TcpStream, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; bytes.min(64 * 1024) as usize];
    let mut left = bytes;
    while left > 0 {
        let room = left.min(buffer.len() as u64) as usize;
        left -= read_some(socket, &mut buffer[..room])? as u64;
    }
    Ok(())
}
