// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! UDP traffic whose ends are two processes, so that any emulator may stand between them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use airpath_live::clock;
use serde::Serialize;

use crate::sockets::{self, Arrival, Receiver};
use crate::testbed::Failure;
use crate::traffic::{self, Pace};

/// Silence after which a receiver ends, once packets came.
const QUIET: Duration = Duration::from_millis(700);
/// Time for the first packet.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Serialize)]
struct Sent {
    sent: u64,
    processor_ns: u64,
}

/// Sends UDP at `pace` to `target`, and prints the number of packets and the processor time as JSON.
///
/// # Errors
/// The kernel's.
pub fn send(target: SocketAddr, pace: Pace) -> Result<(), Failure> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    socket.connect(target)?;
    sockets::with_large_buffers(&socket)?;
    let before_ns = clock::thread_processor_ns();
    let sent = traffic::send_at_pace(&socket, pace)?;
    let processor_ns = clock::thread_processor_ns() - before_ns;
    println!("{}", serde_json::to_string(&Sent { sent, processor_ns })?);
    Ok(())
}

/// Receives UDP at `port` until it falls silent, and writes each packet's time of sending and receiving to `file`.
///
/// Two unsigned 64-bit numbers a packet, in nanoseconds of `CLOCK_REALTIME`, in the machine's byte order. Calls
/// `ready` when packets may come.
///
/// # Errors
/// The kernel's; no packet came.
pub fn receive(port: u16, file: &Path, ready: impl FnOnce() -> io::Result<()>) -> Result<(), Failure> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
    sockets::with_large_buffers(&socket)?;
    sockets::with_stamps(&socket)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    ready()?;
    let mut receiver = Receiver::new(&socket);
    let mut arrivals: Vec<Arrival> = Vec::with_capacity(1 << 21);
    let mut quiet_since_ns = clock::monotonic_ns();
    loop {
        let patience = if arrivals.is_empty() { PATIENCE } else { QUIET };
        if receiver.receive(true, &mut arrivals)? > 0 {
            quiet_since_ns = clock::monotonic_ns();
        } else if clock::monotonic_ns() - quiet_since_ns > patience.as_nanos() as u64 {
            break;
        }
    }
    if arrivals.is_empty() {
        return Err(format!("no packet came to port {port} within {} s", PATIENCE.as_secs()).into());
    }
    let bytes: Vec<u8> =
        arrivals.iter().flat_map(|one| [one.sent_ns, one.stamp_ns]).flat_map(u64::to_ne_bytes).collect();
    std::fs::write(file, bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_packets_arrive_with_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("arrivals");
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::thread::scope(|scope| {
            let (told, ready) = std::sync::mpsc::channel();
            let tell = move || told.send(()).map_err(io::Error::other);
            let receiver = scope.spawn(|| receive(port, &file, tell).map_err(|error| error.to_string()));
            ready.recv().unwrap();
            let pace = Pace { ip_bytes: 128, packets_per_second: 1000.0, seconds: 0.1 };
            send(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), pace).unwrap();
            receiver.join().unwrap().unwrap();
        });
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(bytes.len(), 100 * 16);
        let words: Vec<u64> = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        assert!(words.chunks_exact(2).all(|one| one[1] >= one[0]));
    }
}
