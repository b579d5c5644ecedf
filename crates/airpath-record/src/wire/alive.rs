// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Signs of life on the connection beside a load.
//!
//! On a path whose losses come in bursts of packets, a segment that is lost may be lost again with each repetition, if
//! nothing else passes in its direction; TCP doubles its timer each time, and is silent for minutes. Probes of TCP do
//! not help where both ends have sent something: Linux sends none while a segment waits for its acknowledgement. There
//! hellos by datagrams do, which go on whatever TCP does.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use airpath_load::sockets::KeepAlive;

/// Time behind a load until the first probe or hello, so that none is part of the load.
pub const BEHIND: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_secs(2);
/// Probes without an answer for two minutes end a recording.
const PROBES: u32 = 60;

/// Asks the other end for signs of life once a load that takes `duration` is over.
///
/// # Errors
/// The kernel's.
pub fn ask_behind(connection: &TcpStream, duration: Duration) -> io::Result<()> {
    KeepAlive { idle: duration + BEHIND, interval: INTERVAL, probes: PROBES }.set(connection)
}
