// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Disturbances at the ends of a live link, apart from the link: waiting for a processor, losses in sockets,
//! and the verdict of the run around a nested one.

use serde::{Deserialize, Serialize};

use super::{Grade, Reason};

/// Processor wait times of the tasks of one party.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartyWaits {
    /// Number of tasks seen.
    pub tasks: u64,
    /// Their processor time.
    pub processor_ns: u64,
    /// Time ready to run without running, summed over tasks.
    pub waited_ns: u64,
    /// Time for which at least one of them waited while others than the run's commands had the processors.
    pub kept_waiting_ns: u64,
    /// The longest such wait at a stretch, as far as samples can tell.
    pub longest_ns: u64,
}

/// Waiting for a processor, of everybody on the packets' way but the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// The client's command and all that it started.
    pub client: PartyWaits,
    /// The server's command and all that it started.
    pub server: PartyWaits,
    /// Relays to ports of the host and to its network.
    pub relays: PartyWaits,
    /// Number of samples.
    pub samples: u64,
    /// The longest time between two of them.
    pub longest_gap_ns: u64,
    /// Processor time of commands that ended between two samples: what they waited is not known.
    pub unseen_processor_ns: u64,
    /// Processor time of the sampler.
    pub sampler_processor_ns: u64,
}

/// Times for which processes of one party were held by somebody.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartyHolds {
    /// Time for which at least one of them was stopped by a signal, to within a look at both ends of a stop.
    pub stopped_ns: u64,
    /// The longest such time at a stretch.
    pub longest_stop_ns: u64,
    /// Time for which at least one of them was traced.
    pub traced_ns: u64,
    /// The name of the tracer; empty where there was none, or it cannot be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tracer: String,
}

/// Processes on the packets' way that were stopped or traced.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Holds {
    /// The client's command and all that it started.
    pub client: PartyHolds,
    /// The server's command and all that it started.
    pub server: PartyHolds,
    /// The program behind `--internet`.
    pub relays: PartyHolds,
}

/// Losses in the kernel's sockets at one end during the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketLosses {
    /// Datagrams that reached programs.
    pub udp_received: u64,
    /// Datagrams that programs sent.
    pub udp_sent: u64,
    /// Datagrams lost because a socket's receive buffer was full.
    pub udp_receive_buffer: u64,
    /// Datagrams that could not be sent for lack of room or memory.
    pub udp_send_buffer: u64,
    /// Datagrams lost for lack of memory.
    pub udp_memory: u64,
    /// Datagrams refused for another reason than a wrong checksum, which damage of the link brings about.
    pub udp_other: u64,
    /// Segments that TCP received.
    pub tcp_received: u64,
    /// Segments of TCP thrown away because a receive buffer or backlog was full.
    pub tcp_receive_drops: u64,
    /// Number of times that TCP made room in a full receive buffer; nothing is lost by that alone.
    pub tcp_prunes: u64,
    /// Segments beyond a window of zero, which the sender sends again; nothing that the program misses.
    pub tcp_zero_window_drops: u64,
    /// Connection requests dropped because a listening socket's queue was full.
    pub listen_drops: u64,
}

impl SocketLosses {
    /// Datagrams lost on their way in or out.
    pub const fn datagrams(&self) -> u64 {
        self.udp_receive_buffer + self.udp_send_buffer + self.udp_memory + self.udp_other
    }

    /// Those of this namespace and of another.
    #[must_use]
    pub const fn and(&self, other: &SocketLosses) -> SocketLosses {
        SocketLosses {
            udp_received: self.udp_received + other.udp_received,
            udp_sent: self.udp_sent + other.udp_sent,
            udp_receive_buffer: self.udp_receive_buffer + other.udp_receive_buffer,
            udp_send_buffer: self.udp_send_buffer + other.udp_send_buffer,
            udp_memory: self.udp_memory + other.udp_memory,
            udp_other: self.udp_other + other.udp_other,
            tcp_received: self.tcp_received + other.tcp_received,
            tcp_receive_drops: self.tcp_receive_drops + other.tcp_receive_drops,
            tcp_prunes: self.tcp_prunes + other.tcp_prunes,
            tcp_zero_window_drops: self.tcp_zero_window_drops + other.tcp_zero_window_drops,
            listen_drops: self.listen_drops + other.listen_drops,
        }
    }

    /// Increments since `start`.
    #[must_use]
    pub const fn since(&self, start: &SocketLosses) -> SocketLosses {
        SocketLosses {
            udp_received: self.udp_received.saturating_sub(start.udp_received),
            udp_sent: self.udp_sent.saturating_sub(start.udp_sent),
            udp_receive_buffer: self.udp_receive_buffer.saturating_sub(start.udp_receive_buffer),
            udp_send_buffer: self.udp_send_buffer.saturating_sub(start.udp_send_buffer),
            udp_memory: self.udp_memory.saturating_sub(start.udp_memory),
            udp_other: self.udp_other.saturating_sub(start.udp_other),
            tcp_received: self.tcp_received.saturating_sub(start.tcp_received),
            tcp_receive_drops: self.tcp_receive_drops.saturating_sub(start.tcp_receive_drops),
            tcp_prunes: self.tcp_prunes.saturating_sub(start.tcp_prunes),
            tcp_zero_window_drops: self.tcp_zero_window_drops.saturating_sub(start.tcp_zero_window_drops),
            listen_drops: self.listen_drops.saturating_sub(start.listen_drops),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Answer of the run around a nested one, for the time of the nested one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Around {
    /// Its judgement.
    Judged {
        /// The gravest of the reasons.
        grade: Grade,
        /// Reasons of its verdict.
        reasons: Vec<Reason>,
    },
    /// It could not be asked.
    Unknown {
        /// Reason for the missing answer.
        why: String,
    },
}

/// Disturbances at the ends of a live link, apart from the link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndResults {
    /// Waiting for a processor; none where no time passes while somebody works.
    pub waits: Option<Waits>,
    /// Processes that somebody stopped or traced.
    pub holds: Holds,
    /// Losses in the sockets of the client's end.
    pub client_sockets: SocketLosses,
    /// Losses in the sockets of the server's end.
    pub server_sockets: SocketLosses,
    /// True if the server's end is a network with other users: their losses are among its own.
    pub server_end_is_shared: bool,
    /// Frames that were no IP packets, which never enter a link.
    pub not_ip_frames: u64,
    /// Frames longer than the link takes, which never enter it.
    #[serde(skip_serializing_if = "is_zero")]
    pub too_long_frames: u64,
    /// Frames of one network that came in from the other one, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub returned_frames: u64,
    /// Frames whose source was behind the other end within the last second.
    #[serde(skip_serializing_if = "is_zero")]
    pub moved_addresses: u64,
    /// Packets that the link delivered and the kernel did not take.
    pub refused_writes: u64,
    /// Changes of the link's interfaces by others during the run.
    pub interface_changes: Vec<String>,
    /// Unreadable counters, each with the reason.
    pub unreadable: Vec<String>,
    /// Error status or signal of the server's command, if it ended before the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_failed: Option<String>,
    /// The signal by which the client's command crashed or was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_killed: Option<String>,
    /// True if the ends are networks of others, and not commands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub joins_networks: bool,
    /// True if no packet entered the link although the client's command ran.
    pub no_packets: bool,
    /// Answer of the run around this one; none where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}
