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

/// Time of transmission of `packets` of `length_bytes` each at a rate; that of the longest phase at most.
pub fn transmission(packets: u32, length_bytes: u32, bits_per_second: f64) -> Duration {
    let seconds = f64::from(packets) * f64::from(length_bytes) * 8.0 / bits_per_second;
    Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
}

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
            (
                match self.load {
                    Load::Saturating => true,
                    Load::Light { interval, train } => interval >= self.least_interval(train),
                },
                "the light load exceeds the rate limit; make its interval longer, or its trains shorter",
            ),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }

    /// Least interval of trains of `train` packets within the limit of the rate.
    pub fn least_interval(&self, train: u32) -> Duration {
        transmission(train, self.length_bytes, self.most_rate_bits_per_second as f64)
    }

    /// Number of whole trains of one direction that the duration and the limit of bytes leave room for; 0 without
    /// trains.
    pub fn most_trains(&self) -> u64 {
        let Load::Light { interval, train } = self.load else { return 0 };
        let of_time = self.duration.as_nanos().div_ceil(interval.as_nanos().max(1));
        u64::try_from(of_time).unwrap_or(u64::MAX).min(u64::from(self.most_packets() / train.max(1)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Trains of 200 packets of 1500 bytes, 2.4 Mbit each, for 12 s at 1 Mbit/s at most.
    fn light(interval_ms: u64) -> Phase {
        Phase {
            load: Load::Light { interval: Duration::from_millis(interval_ms), train: 200 },
            duration: Duration::from_secs(12),
            length_bytes: 1_500,
            most_bytes: 10_000_000,
            most_rate_bits_per_second: 1_000_000,
            ..Phase::hello()
        }
    }

    #[test]
    fn trains_keep_to_the_rate_limit() {
        assert_eq!(light(2_400).problem(), None);
        assert!(light(2_399).problem().is_some_and(|problem| problem.contains("exceeds the rate limit")));
        let any = light(1);
        let load = Load::Light { interval: any.least_interval(200), train: 200 };
        assert_eq!(Phase { load, ..any }.problem(), None);
        // A plan of zeros from the other end is refused like any other.
        let nothing = Load::Light { interval: Duration::ZERO, train: 0 };
        assert!(Phase { load: nothing, most_rate_bits_per_second: 0, ..any }.problem().is_some());
    }

    #[test]
    fn trains_fit_into_the_duration_and_the_bytes() {
        assert_eq!([2_400, 6_000, 11_999, 12_000].map(|interval_ms| light(interval_ms).most_trains()), [5, 2, 2, 1]);
        assert_eq!(Phase { most_bytes: 599_999, ..light(2_400) }.most_trains(), 1);
        assert_eq!(Phase::hello().most_trains(), 0);
    }

    #[test]
    fn the_time_of_transmission_has_no_limit_but_the_longest_phase() {
        // Ten times a train of 200 packets at 100 kbit/s.
        assert_eq!(transmission(2_000, 1_500, 1e5), Duration::from_secs(240));
        assert_eq!(transmission(2_000, 1_500, 1.0), LONGEST);
        assert_eq!(transmission(2_000, 1_500, 0.0), LONGEST);
    }
}
