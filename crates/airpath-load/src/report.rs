// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Results of measurements.

use std::net::SocketAddr;
use std::time::Duration;

use crate::plan::Plan;

/// The two ends of one stream, as the load's own socket sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Number of the socket: its descriptor.
    pub socket: i32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// State of a TCP sender (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// Segments retransmitted since the connection began.
    pub retransmits: u64,
    /// Bytes acknowledged since the connection began, with the SYN as one; 0 where the kernel does not tell.
    pub acknowledged_bytes: u64,
    /// Congestion window in bytes.
    pub congestion_window_bytes: u64,
    /// Send window that the receiver grants, in bytes; 0 where the kernel does not tell.
    pub send_window_bytes: u64,
    /// Smoothed round-trip time in µs.
    pub rtt_us: u64,
    /// Its variation in µs.
    pub rtt_variation_us: u64,
    /// Path MTU in bytes.
    pub path_mtu_bytes: u64,
}

/// Measurements of the sending end of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that the application handed over.
    pub bytes: u64,
    /// From the first write until the receiver's word that it has everything, in ns; for datagrams
    /// until the last was sent.
    pub elapsed_ns: u64,
    /// Datagrams, or requests.
    pub packets: u64,
    /// Retransmitted segments of TCP.
    pub retransmits: u64,
    /// Largest congestion window that was seen, in bytes.
    pub max_congestion_window_bytes: u64,
    /// Largest send window that was seen, in bytes.
    pub max_send_window_bytes: u64,
    /// Largest smoothed round-trip time that was seen, in µs.
    pub max_rtt_us: u64,
    /// Smallest, in µs.
    pub min_rtt_us: u64,
    /// Mean of those seen, in µs.
    pub mean_rtt_us: u64,
    /// TCP congestion control in force.
    pub congestion_control: String,
}

/// Measurements of the receiving end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes that reached the application.
    pub bytes: u64,
    /// From the first byte or datagram to the last, in ns.
    pub elapsed_ns: u64,
    /// Different datagrams that arrived, or responses.
    pub packets: u64,
    /// Datagrams that were sent and did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams that arrived once more.
    pub duplicates: u64,
    /// Jitter of the transit time as in RFC 3550, section 6.4.1, in ns.
    pub jitter_ns: u64,
}

/// One stream at its end.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// Its ends.
    pub endpoints: Endpoints,
    /// The sending side, where it is known.
    pub sent: Option<Sent>,
    /// The receiving side, where it is known.
    pub received: Option<Received>,
    /// Response time of each request until the end of its response, in ns, in the order of requests.
    pub response_times_ns: Vec<u64>,
}

/// One stream during one interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalStream {
    /// Bytes written or read by this end's application.
    pub bytes: u64,
    /// Datagrams, or requests answered.
    pub packets: u64,
    /// Datagrams found missing.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Jitter at the end of the interval in ns.
    pub jitter_ns: u64,
    /// Segments retransmitted in the interval.
    pub retransmits: u64,
    /// The TCP sender at the end of the interval, if it is this end.
    pub tcp: Option<TcpSample>,
}

/// One interval of all streams.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Beginning, in ns since the start.
    pub from_ns: u64,
    /// End, in ns since the start.
    pub to_ns: u64,
    /// The streams.
    pub streams: Vec<IntervalStream>,
}

/// Everything that one end knows at the end.
#[derive(Clone, Debug)]
pub struct Report {
    /// Requested plan.
    pub plan: Plan,
    /// True if this end sends the load.
    pub sends: bool,
    /// Start of the load, since 1970.
    pub began: Duration,
    /// Duration of connecting, in ns; 0 at the server.
    pub connecting_ns: u64,
    /// Largest segment of the first connection in bytes.
    pub mss_bytes: u32,
    /// The streams.
    pub streams: Vec<StreamReport>,
    /// Their intervals.
    pub intervals: Vec<Interval>,
}

/// Hears of a transfer while it goes on.
pub trait ProgressObserver {
    /// All connections stand.
    fn connected(&mut self, _streams: &[Endpoints]) {}
    /// An interval has passed.
    fn interval(&mut self, _interval: &Interval) {}
}

/// Nobody listens.
impl ProgressObserver for () {}
