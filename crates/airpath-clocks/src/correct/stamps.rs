// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One stamp from the one clock to the other.

use crate::estimate::Estimate;
use crate::segments::HostSide;

/// From the clock of the host at which something was recorded to the clock of the other.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    estimate: &'a Estimate,
    recorded_at: HostSide,
}

impl<'a> Move<'a> {
    /// From the clock of `recorded_at`.
    pub fn new(estimate: &'a Estimate, recorded_at: HostSide) -> Move<'a> {
        Move { estimate, recorded_at }
    }

    /// The other clock's stamp; none where it cannot be written (before 1970).
    pub fn moved(&self, unix_ns: u64) -> Option<u64> {
        match self.recorded_at {
            HostSide::Local => self.estimate.remote_ns(unix_ns),
            HostSide::Remote => self.estimate.local_ns(unix_ns),
        }
    }

    /// True if the estimate holds at this time.
    pub fn covers(&self, unix_ns: u64) -> bool {
        self.local(unix_ns).is_some_and(|local_ns| self.estimate.covers(local_ns))
    }

    /// Bound of the error of the moved stamp, in ns.
    pub fn bound_ns(&self, unix_ns: u64) -> u64 {
        self.local(unix_ns).map_or(u64::MAX, |local_ns| self.estimate.bound_at_ns(local_ns))
    }

    /// Drift of the other clock relative to that of the recording, in parts per million; positive if faster.
    pub fn drift_ppm(&self) -> f64 {
        match self.recorded_at {
            HostSide::Local => self.estimate.drift_ppm,
            HostSide::Remote => (1.0 / (1.0 + self.estimate.drift_ppm / 1e6) - 1.0) * 1e6,
        }
    }

    /// Beginning and end of the time for which the estimate holds, by the clock of the recording.
    pub fn interval(&self) -> Option<(u64, u64)> {
        let (from, to) = (self.estimate.from_unix_ns, self.estimate.to_unix_ns);
        match self.recorded_at {
            HostSide::Local => Some((from, to)),
            HostSide::Remote => self.estimate.remote_ns(from).zip(self.estimate.remote_ns(to)),
        }
    }

    fn local(&self, unix_ns: u64) -> Option<u64> {
        match self.recorded_at {
            HostSide::Local => Some(unix_ns),
            HostSide::Remote => self.estimate.local_ns(unix_ns),
        }
    }
}
