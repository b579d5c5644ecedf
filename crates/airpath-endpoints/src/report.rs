// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Report on a flow.

use airpath_core::{Direction, Time};
use airpath_workload::Workload;
use serde::Serialize;

/// Outcome of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadOutcome {
    /// All that it was to do is done.
    Complete,
    /// It was going on when the run ended.
    Incomplete,
    /// It could not go on, and why.
    Failed(String),
}

/// Report on a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// The workload's name, or its kind and number.
    pub name: String,
    /// The number of its packets.
    pub flow: u32,
    /// The workload with all its defaults.
    pub workload: Workload,
    /// Outcome.
    pub outcome: WorkloadOutcome,
    /// Start time; none if the run ended before.
    pub start_ns: Option<u64>,
    /// Time at which the last part of its work was done.
    pub end_ns: Option<u64>,
    /// From the one to the other.
    pub elapsed_ns: Option<u64>,
    /// From the client to the server; none where nothing was sent.
    pub uplink: Option<Delivery>,
    /// From the server to the client; none where nothing was sent.
    pub downlink: Option<Delivery>,
    /// The requests of a workload that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestReport>,
    /// Reports of the QUIC stacks of the client and the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicReports>,
    /// The frames of a media flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaReport>,
}

impl FlowReport {
    /// Delivery in `direction`.
    pub fn delivery(&self, direction: Direction) -> Option<&Delivery> {
        match direction {
            Direction::Uplink => self.uplink.as_ref(),
            Direction::Downlink => self.downlink.as_ref(),
        }
    }
}

/// Delivery in one direction of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Delivery {
    /// IP packets sent.
    pub packets_sent: u64,
    /// Their length.
    pub sent_bytes: u64,
    /// IP packets that the receiver took, duplicates aside.
    pub packets_received: u64,
    /// Their length.
    pub received_bytes: u64,
    /// Packets sent and not received: lost, rejected, or still inside the link when the run ended.
    pub packets_lost: u64,
    /// Packets that the receiver dropped for a checksum or a length.
    pub packets_rejected: u64,
    /// Packets received although damaged, where no checksum covers it.
    pub packets_damaged: u64,
    /// Packets received once more.
    pub packets_duplicated: u64,
    /// Packets received after one that was sent later.
    pub packets_reordered: u64,
    /// Segments or packets with data that had been sent before, where the protocol tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_retransmitted: Option<u64>,
    /// Bytes that the receiving application got.
    pub delivered_bytes: u64,
    /// Time of its first byte.
    pub first_byte_ns: Option<u64>,
    /// Time of its last byte.
    pub last_byte_ns: Option<u64>,
    /// Goodput: its bits, by the time from the flow's beginning to the last of them.
    pub goodput_bits_per_second: Option<f64>,
    /// The shortest time that a packet spent in the link.
    pub least_delay_ns: Option<u64>,
    /// The longest.
    pub longest_delay_ns: Option<u64>,
    /// The mean of all.
    pub mean_delay_ns: Option<u64>,
    /// The interarrival jitter of RFC 3550 (section 6.4.1) after the last packet.
    pub jitter_ns: Option<u64>,
}

/// Report on requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestReport {
    /// Requests whose whole response came.
    pub completed: u64,
    /// From the sending of each request to the end of its response, in order.
    pub durations_ns: Vec<u64>,
}

/// Reports of the QUIC stacks of both ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuicReports {
    /// The client's.
    pub client: QuicReport,
    /// The server's.
    pub server: QuicReport,
}

/// Report of one end's QUIC stack on its path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuicReport {
    /// Packets that it took for lost.
    pub lost_packets: u64,
    /// Their length.
    pub lost_bytes: u64,
    /// Number of times that it cut its window.
    pub congestion_events: u64,
    /// Its congestion window at the end.
    pub congestion_window_bytes: u64,
    /// The round-trip time at the end, smoothed.
    pub round_trip_ns: u64,
    /// The largest datagram that it found the path to carry.
    pub datagram_bytes: u16,
}

/// Report on the frames of a media flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MediaReport {
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames that were complete when they were to be shown.
    pub frames_on_time: u64,
    /// Frames that were complete later.
    pub frames_late: u64,
    /// Frames of which a packet was missing to the end.
    pub frames_lost: u64,
    /// Frames on time with damage that no checksum covered.
    pub frames_damaged: u64,
    /// Frames on time like all before them in their group.
    pub frames_decodable: u64,
}

/// The time between two instants, in nanoseconds.
pub(crate) fn between(from: Option<Time>, to: Option<Time>) -> Option<u64> {
    Some(to?.since(from?).nanos())
}
