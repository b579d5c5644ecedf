// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Plan of a phase: what is sent, in which directions, how fast, how long.

use std::time::Duration;

/// The most packets of a phase in one direction.
pub const MOST_PACKETS: u32 = 4_000_000;
/// The longest phase.
pub const LONGEST: Duration = Duration::from_secs(3_600);
/// The shortest packet in bytes, IP header included: a probe over IPv6.
pub const LEAST_LENGTH_BYTES: u32 = 68;
/// The longest packet in bytes, IP header included.
pub const MOST_LENGTH_BYTES: u32 = 9_000;
/// The highest rate at which a phase may send, in bit/s.
pub const MOST_RATE_BITS_PER_SECOND: u64 = 10_000_000_000;

/// Way of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Packets follow each other so fast that the queue of the path never empties.
    Saturating,
    /// Trains of packets at equal distances, with an idle path between them.
    Light {
        /// Distance from the beginning of one train to the next.
        interval: Duration,
        /// Number of packets of a train; they follow each other at once.
        train: u32,
    },
}

/// A phase of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Way of sending.
    pub load: Load,
    /// True if the client sends.
    pub uplink: bool,
    /// True if the server sends.
    pub downlink: bool,
    /// Duration of sending.
    pub duration: Duration,
    /// Length of each packet in bytes, IP and UDP headers included.
    pub length_bytes: u32,
    /// Sending ends after so many bytes in a direction.
    pub most_bytes: u64,
    /// No direction sends faster than this, in bit/s.
    pub most_rate_bits_per_second: u64,
    /// Queueing delay up to which the last third of a saturating phase fills the queue.
    pub deepest: Duration,
}

impl Phase {
    /// The time before the first phase, in which the client says where it is.
    pub fn hello() -> Phase {
        Phase {
            load: Load::Saturating,
            uplink: true,
            downlink: false,
            duration: Duration::ZERO,
            length_bytes: LEAST_LENGTH_BYTES,
            most_bytes: 0,
            most_rate_bits_per_second: 1,
            deepest: Duration::ZERO,
        }
    }

    /// Reason for which no host carries the plan out; none for a sensible plan.
    pub fn problem(&self) -> Option<&'static str> {
        let checks = [
            (self.duration <= LONGEST, "a phase lasts an hour at most"),
            (
                (LEAST_LENGTH_BYTES..=MOST_LENGTH_BYTES).contains(&self.length_bytes),
                "packets have 68 to 9000 bytes, headers included",
            ),
            (
                (1..=MOST_RATE_BITS_PER_SECOND).contains(&self.most_rate_bits_per_second),
                "the rate is limited to 1 bit/s to 10 Gbit/s",
            ),
            (self.uplink || self.downlink, "a phase has a direction"),
            (self.deepest <= Duration::from_secs(60), "the queue is filled to 60 s at most"),
            (
                match self.load {
                    Load::Saturating => true,
                    Load::Light { interval, train } => {
                        interval >= Duration::from_micros(100) && (1..=1_000).contains(&train)
                    }
                },
                "trains are at least 0.1 ms apart, and have 1 to 1000 packets",
            ),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }

    /// The most packets of one direction.
    pub fn most_packets(&self) -> u32 {
        let of_bytes = self.most_bytes / u64::from(self.length_bytes.max(1));
        u32::try_from(of_bytes).unwrap_or(u32::MAX).min(MOST_PACKETS)
    }

    /// Length of a packet in bits.
    pub fn bits(&self) -> u64 {
        u64::from(self.length_bytes) * 8
    }
}
