// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! CUBIC (RFC 9438), at the steps at which Linux takes it: the curve is looked at once in a millisecond at most, and
//! the window grows by whole segments for whole numbers of acknowledged ones.

use std::ops::ControlFlow;

use airpath_core::Time;

use super::Sample;
use super::hystart::HyStart;
use crate::clock::{milliseconds, ticks_of};
use crate::sequence::Position;

/// The constant C of RFC 9438, in segments a cubic second.
const C: f64 = 0.4;
/// The factor β of RFC 9438, in tenths.
const BETA_TENTHS: u64 = 7;
/// While the window stays the same the curve is looked at this seldom.
const IDLE_STEP_MS: u64 = 31;
/// Least number of acknowledged segments for an increase by one: 1.5 times in a round trip at most.
const LEAST_PER_INCREASE: u64 = 2;
/// The same before the first loss, where the curve knows no maximum: at least 5 % in a round trip.
const PER_INCREASE_BEFORE_LOSS: u64 = 20;
/// Acknowledged segments for an increase where there is no room below the curve, by windows.
const WINDOWS_PER_INCREASE_AT_MAXIMUM: u64 = 100;
/// Time after the beginning of a curve in which round trips are not measured.
const BLIND_MS: u64 = 1_000;

/// The curve since a reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    begin_ms: u64,
    /// Distance of the curve's plateau: K of equation (2), in seconds.
    k: f64,
    /// The plateau: W_max.
    plateau: u64,
    /// The window that Reno would have, W_est of section 4.3, and what is acknowledged towards its next segment.
    estimate: u64,
    acknowledged: u64,
}

/// State of CUBIC.
#[derive(Debug)]
pub(super) struct Cubic {
    epoch: Option<Epoch>,
    last_maximum: u64,
    last_window: u64,
    last_ms: u64,
    per_increase: u64,
    least_round_trip_us: u64,
    hystart: HyStart,
}

impl Cubic {
    pub(super) fn new() -> Cubic {
        Cubic {
            epoch: None,
            last_maximum: 0,
            last_window: 0,
            last_ms: 0,
            per_increase: 0,
            least_round_trip_us: 0,
            hystart: HyStart::new(),
        }
    }

    /// The threshold after a loss at `window`: equation (5), with fast convergence (section 4.7).
    pub(super) fn loss(&mut self, window: u64) -> u64 {
        self.epoch = None;
        self.last_maximum = if window < self.last_maximum { window * (10 + BETA_TENTHS) / 20 } else { window };
        (window * BETA_TENTHS / 10).max(2)
    }

    /// Forgets the curve, the maximum and the round trips.
    pub(super) fn timeout(&mut self, now: Time, sent: Position) {
        *self = Cubic::new();
        self.hystart.begin_round(now, sent);
    }

    /// Moves the curve on by a time in which nothing was sent (section 5.8).
    pub(super) fn restarts(&mut self, now: Time, idle_ms: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.begin_ms = (epoch.begin_ms + idle_ms).min(milliseconds(now));
        }
    }

    /// Number of acknowledged segments for an increase of `window` by one, after `acknowledged` more.
    pub(super) fn segments_per_increase(&mut self, now: Time, window: u64, acknowledged: u64) -> u64 {
        let now_ms = milliseconds(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.acknowledged += acknowledged;
        }
        if self.epoch.is_some() && self.last_window == window && now_ms - self.last_ms <= IDLE_STEP_MS {
            return self.per_increase;
        }
        if self.epoch.is_none() || now_ms != self.last_ms {
            self.last_window = window;
            self.last_ms = now_ms;
            let epoch = *self.epoch.get_or_insert_with(|| {
                let below = self.last_maximum.saturating_sub(window);
                Epoch {
                    begin_ms: now_ms,
                    k: libm::cbrt(below as f64 / C),
                    plateau: self.last_maximum.max(window),
                    estimate: window,
                    acknowledged,
                }
            });
            self.per_increase = self.by_curve(&epoch, now_ms, window);
        }
        if let Some(epoch) = &mut self.epoch {
            self.per_increase = by_reno(epoch, window, self.per_increase).max(LEAST_PER_INCREASE);
        }
        self.per_increase
    }

    /// By equation (1), with the value one round trip ahead as the aim.
    fn by_curve(&self, epoch: &Epoch, now_ms: u64, window: u64) -> u64 {
        let seconds = (now_ms - epoch.begin_ms + ticks_of(self.least_round_trip_us)) as f64 / 1e3;
        let from_plateau = seconds - epoch.k;
        let distance = (C * from_plateau * from_plateau * from_plateau).abs() as u64;
        let aim = if from_plateau < 0.0 { epoch.plateau.saturating_sub(distance) } else { epoch.plateau + distance };
        let per_increase =
            if aim > window { window / (aim - window) } else { WINDOWS_PER_INCREASE_AT_MAXIMUM * window };
        if self.last_maximum == 0 { per_increase.min(PER_INCREASE_BEFORE_LOSS) } else { per_increase }
    }

    /// Takes a measurement; breaks if slow start is to end.
    pub(super) fn sample(&mut self, sample: &Sample, window: u64, slow_start: bool) -> ControlFlow<()> {
        let now_ms = milliseconds(sample.now);
        if self.epoch.is_some_and(|epoch| now_ms.saturating_sub(epoch.begin_ms) < BLIND_MS) {
            return ControlFlow::Continue(());
        }
        let delay = sample.round_trip_us.max(1);
        if self.least_round_trip_us == 0 || delay < self.least_round_trip_us {
            self.least_round_trip_us = delay;
        }
        if slow_start {
            self.hystart.sample(sample, window, self.least_round_trip_us)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The same by the estimate of Reno's window: 3 (1 - β) / (1 + β) of a segment in a round trip (equation (4)), which is
/// 9/17, and 8/15 in Linux.
fn by_reno(epoch: &mut Epoch, window: u64, per_increase: u64) -> u64 {
    let per_estimate = (window * 15 / 8).max(1);
    if epoch.acknowledged > per_estimate {
        let steps = (epoch.acknowledged - 1) / per_estimate;
        epoch.acknowledged -= steps * per_estimate;
        epoch.estimate += steps;
    }
    if epoch.estimate > window { per_increase.min(window / (epoch.estimate - window)) } else { per_increase }
}
