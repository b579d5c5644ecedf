// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Progress of a stream, as its own thread counts it and the reporting thread reads it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::report::{Sent, TcpSample};

/// Counts since the beginning of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that this end's application has written or read.
    pub bytes: u64,
    /// Datagrams, or requests answered.
    pub packets: u64,
    /// Datagrams missing among those before the latest.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Jitter now, in ns.
    pub jitter_ns: u64,
}

/// Observed state of a TCP sender.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    last: TcpSample,
    max_congestion_window_bytes: u64,
    max_send_window_bytes: u64,
    max_rtt_us: u64,
    min_rtt_us: u64,
    sum_rtt_us: u64,
    samples: u64,
}

/// One stream's progress.
#[derive(Debug, Default)]
pub struct Progress {
    counts: Mutex<Counts>,
    seen: Mutex<Seen>,
}

/// A thread that panicked while it counted has left numbers that are still numbers.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Counts more.
    pub fn count(&self, more: impl FnOnce(&mut Counts)) {
        more(&mut lock(&self.counts));
    }

    /// The counts now.
    pub fn counts(&self) -> Counts {
        *lock(&self.counts)
    }

    /// Notes the state of the sender; returns how many segments it has retransmitted since the state
    /// noted before.
    pub fn note(&self, sample: TcpSample) -> u64 {
        let mut seen = lock(&self.seen);
        let more = sample.retransmits.saturating_sub(seen.last.retransmits);
        seen.max_congestion_window_bytes = seen.max_congestion_window_bytes.max(sample.congestion_window_bytes);
        seen.max_send_window_bytes = seen.max_send_window_bytes.max(sample.send_window_bytes);
        seen.max_rtt_us = seen.max_rtt_us.max(sample.rtt_us);
        seen.min_rtt_us = if seen.samples == 0 { sample.rtt_us } else { seen.min_rtt_us.min(sample.rtt_us) };
        seen.sum_rtt_us += sample.rtt_us;
        seen.samples += 1;
        seen.last = sample;
        more
    }

    /// Puts what was noted into `sent`.
    pub fn summarize(&self, sent: &mut Sent) {
        let seen = lock(&self.seen);
        sent.retransmits = seen.last.retransmits;
        sent.max_congestion_window_bytes = seen.max_congestion_window_bytes;
        sent.max_send_window_bytes = seen.max_send_window_bytes;
        sent.max_rtt_us = seen.max_rtt_us;
        sent.min_rtt_us = seen.min_rtt_us;
        sent.mean_rtt_us = seen.sum_rtt_us / seen.samples.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_and_means_of_what_was_noted() {
        let progress = Progress::default();
        let sample = |retransmits, rtt_us| TcpSample { retransmits, rtt_us, ..TcpSample::default() };
        assert_eq!(
            [progress.note(sample(2, 300)), progress.note(sample(5, 100)), progress.note(sample(5, 200))],
            [2, 3, 0]
        );
        let mut sent = Sent::default();
        progress.summarize(&mut sent);
        assert_eq!((sent.retransmits, sent.min_rtt_us, sent.max_rtt_us, sent.mean_rtt_us), (5, 100, 300, 200));
    }
}
