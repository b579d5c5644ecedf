// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! UDP traffic between two ends, with the times at which the kernel received it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_live::tuning::REAL_TIME_PRIORITY;
use airpath_live::{clock, scheduling};
use airpath_load::clock::sleep_until;

use crate::sockets::{self, Arrival, Messages, Receiver, Sender};
use crate::testbed::NetworkEnd;

/// IPv4 and UDP headers, in bytes.
pub const UDP_HEADERS_BYTES: usize = 28;
/// A sender that wakes more often than this sleeps no better than it spins.
const SHORTEST_SLEEP_NS: f64 = 50_000.0;

/// UDP at a steady pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Length of a packet with its headers, in bytes.
    pub ip_bytes: usize,
    /// Packets a second.
    pub packets_per_second: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Result at the receiver.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Packets sent.
    pub sent: u64,
    /// Packets received, in order.
    pub arrivals: Vec<Arrival>,
}

impl Received {
    /// One-way delays in µs, the first `skip` packets left out.
    pub fn delays_us(&self, skip: usize) -> Vec<f64> {
        let late = self.arrivals.iter().skip(skip);
        late.map(|arrival| arrival.stamp_ns as f64 / 1e3 - arrival.sent_ns as f64 / 1e3).collect()
    }

    /// Packets that never came.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrivals.len() as u64)
    }
}

/// A connected pair of sockets, from `from` to `to`.
///
/// # Errors
/// The kernel's.
pub fn pair(from: &NetworkEnd<'_>, to: &NetworkEnd<'_>) -> io::Result<(UdpSocket, UdpSocket)> {
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let receiving = to.run(move || UdpSocket::bind(any))?;
    let target = SocketAddr::new(to.address, receiving.local_addr()?.port());
    let sending = from.run(move || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(target)?;
        Ok(socket)
    })?;
    for socket in [&sending, &receiving] {
        sockets::with_large_buffers(socket)?;
    }
    sockets::with_stamps(&receiving)?;
    receiving.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok((sending, receiving))
}

/// Sends from `from` to `to` at `pace`, and goes on receiving until nothing has come for `drain`.
///
/// # Errors
/// The kernel's.
pub fn run(from: &NetworkEnd<'_>, to: &NetworkEnd<'_>, pace: Pace, drain: Duration) -> io::Result<Received> {
    run_in(Messages::Single, from, to, pace, drain)
}

/// As [`run`], with datagrams handed to the kernel in such messages.
///
/// # Errors
/// The kernel's.
pub fn run_in(
    messages: Messages,
    from: &NetworkEnd<'_>,
    to: &NetworkEnd<'_>,
    pace: Pace,
    drain: Duration,
) -> io::Result<Received> {
    let (sending, receiving) = pair(from, to)?;
    if messages == Messages::Batches {
        sockets::with_segments_of(&sending, pace.ip_bytes - UDP_HEADERS_BYTES)?;
    }
    let sent_all = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> io::Result<Vec<Arrival>> {
            let mut receiver = Receiver::new(&receiving);
            let mut arrivals = Vec::with_capacity((pace.packets_per_second * pace.seconds) as usize + 1024);
            let mut quiet_since_ns = clock::monotonic_ns();
            loop {
                let done = sent_all.load(Ordering::Acquire);
                let now_ns = clock::monotonic_ns();
                if receiver.receive(true, &mut arrivals)? > 0 || !done {
                    quiet_since_ns = clock::monotonic_ns();
                } else if now_ns - quiet_since_ns > drain.as_nanos() as u64 {
                    return Ok(arrivals);
                }
            }
        });
        let sender = scope.spawn(|| {
            let sender = Sender::of(&sending, pace.ip_bytes - UDP_HEADERS_BYTES, messages);
            let outcome = send_all(sender, pace);
            sent_all.store(true, Ordering::Release);
            outcome
        });
        let sent = sender.join().expect("the sender does not panic")?;
        let arrivals = receiver.join().expect("the receiver does not panic")?;
        Ok(Received { sent, arrivals })
    })
}

/// Arrivals of packets that a real-time thread sends one by one, watching the clock in between: no sender keeps a pace
/// more exactly.
///
/// # Errors
/// The kernel's.
pub fn exact(from: &NetworkEnd<'_>, to: &NetworkEnd<'_>, pace: Pace) -> io::Result<Vec<Arrival>> {
    let (sending, receiving) = pair(from, to)?;
    let mut sender = Sender::new(&sending, pace.ip_bytes - UDP_HEADERS_BYTES);
    let total = (pace.packets_per_second * pace.seconds) as u64;
    let interval_ns = 1e9 / pace.packets_per_second;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            scheduling::timer_slack(1);
            scheduling::real_time(REAL_TIME_PRIORITY);
            let start_ns = clock::monotonic_ns();
            while sender.sent() < total {
                let due_ns = start_ns + (sender.sent() as f64 * interval_ns) as u64;
                // A thread that never sleeps would be stopped by the kernel.
                sleep_until(due_ns.saturating_sub((interval_ns * 0.9) as u64))?;
                while clock::monotonic_ns() < due_ns {}
                sender.send(1)?;
            }
            Ok(())
        });
        let mut receiver = Receiver::new(&receiving);
        let mut arrivals = Vec::with_capacity(total as usize);
        while !thread.is_finished() {
            receiver.receive(true, &mut arrivals)?;
        }
        receiver.receive(true, &mut arrivals)?;
        thread.join().expect("the sender does not panic").map(|()| arrivals)
    })
}

/// Sends over a connected socket at `pace`; returns the number of packets.
///
/// # Errors
/// The kernel's.
pub fn send_at_pace(socket: &UdpSocket, pace: Pace) -> io::Result<u64> {
    send_all(Sender::new(socket, pace.ip_bytes - UDP_HEADERS_BYTES), pace)
}

fn send_all(mut sender: Sender, pace: Pace) -> io::Result<u64> {
    scheduling::timer_slack(1);
    let interval_ns = 1e9 / pace.packets_per_second;
    let total = (pace.packets_per_second * pace.seconds) as u64;
    let start_ns = clock::monotonic_ns() + 1_000_000;
    while sender.sent() < total {
        let due_ns = start_ns + (sender.sent() as f64 * interval_ns) as u64;
        sleep_until(due_ns)?;
        let late_ns = (clock::monotonic_ns().saturating_sub(start_ns)) as f64;
        // At high rates a few at once, as an application would.
        let until_ns = if interval_ns < SHORTEST_SLEEP_NS { late_ns + SHORTEST_SLEEP_NS } else { late_ns };
        let due = ((until_ns / interval_ns) as u64 + 1).min(total).saturating_sub(sender.sent());
        sender.send(due as usize)?;
    }
    Ok(total)
}
