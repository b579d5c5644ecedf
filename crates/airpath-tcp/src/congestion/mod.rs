// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Congestion control: what an acknowledgement adds to the window, and what a loss takes from it.

mod cubic;
mod hystart;

use airpath_core::Time;

use crate::sequence::Position;
use cubic::Cubic;

/// Threshold before the first loss.
pub(crate) const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// The window where nothing but the receiver limits.
const UNLIMITED: u64 = 1 << 30;
/// The initial window (RFC 6928).
pub(crate) const INITIAL_WINDOW: u64 = 10;

/// Congestion control of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// Nothing but the receiver's window.
    None,
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438) with HyStart.
    Cubic,
}

/// Facts of the sender that a measurement of the round-trip time comes with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub now: Time,
    pub round_trip_us: u64,
    pub acknowledged: Position,
    pub sent: Position,
    /// Time that a super-packet of the greatest size may add, for bursts; known in slow start alone.
    pub burst_us: u64,
}

/// The congestion window and what moves it, in segments.
#[derive(Debug)]
pub(crate) struct Window {
    control: CongestionControl,
    cubic: Cubic,
    segments: u64,
    /// Acknowledged segments that have not yet made a whole one.
    credit: u64,
    /// The slow start threshold.
    pub threshold: u64,
}

impl Window {
    pub(crate) fn new(control: CongestionControl) -> Window {
        let segments = if control == CongestionControl::None { UNLIMITED } else { INITIAL_WINDOW };
        Window { control, cubic: Cubic::new(), segments, credit: 0, threshold: NO_THRESHOLD }
    }

    /// The window.
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// True if the window has no limit.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.control == CongestionControl::None
    }

    /// Sets the window.
    pub(crate) fn set(&mut self, segments: u64) {
        if !self.is_unlimited() {
            self.segments = segments.max(1);
        }
    }

    /// Forgets what has not made a whole segment.
    pub(crate) fn clear_credit(&mut self) {
        self.credit = 0;
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// The threshold that a new loss or idle time leaves at least: three quarters of the window.
    pub(crate) fn current_threshold(&self, in_reduction: bool) -> u64 {
        if in_reduction { self.threshold } else { self.threshold.max((self.segments >> 1) + (self.segments >> 2)) }
    }

    /// The threshold after a loss: RFC 5681, equation (4) with the window in place of what is under way, or RFC 9438,
    /// equation (5).
    pub(crate) fn threshold_after_loss(&mut self) -> u64 {
        match self.control {
            CongestionControl::None => self.threshold,
            CongestionControl::Reno => (self.segments / 2).max(2),
            CongestionControl::Cubic => self.cubic.loss(self.segments),
        }
    }

    /// Raises the window for `acknowledged` segments; `limited` if the window was what limited the sender.
    pub(crate) fn raise(&mut self, now: Time, acknowledged: u64, limited: bool) {
        if !limited || self.is_unlimited() {
            return;
        }
        let mut left = acknowledged;
        if self.in_slow_start() {
            let segments = (self.segments + left).min(self.threshold);
            left -= segments - self.segments;
            self.segments = segments;
            if left == 0 {
                return;
            }
        }
        let per_segment = match self.control {
            CongestionControl::Cubic => self.cubic.segments_per_increase(now, self.segments, left),
            _ => self.segments,
        };
        self.add(per_segment, left);
    }

    /// One more segment for each `per_segment` acknowledged ones.
    fn add(&mut self, per_segment: u64, acknowledged: u64) {
        if self.credit >= per_segment {
            self.credit = 0;
            self.segments += 1;
        }
        self.credit += acknowledged;
        self.segments += self.credit / per_segment;
        self.credit %= per_segment;
    }

    /// Takes a measurement of the round-trip time.
    pub(crate) fn sample(&mut self, sample: &Sample) {
        if self.control == CongestionControl::Cubic
            && self.cubic.sample(sample, self.segments, self.in_slow_start()).is_break()
        {
            self.threshold = self.segments;
        }
    }

    /// A timeout has taken everything for lost.
    pub(crate) fn timeout(&mut self, now: Time, sent: Position) {
        self.cubic.timeout(now, sent);
    }

    /// Something is sent while nothing is under way, `idle_ms` after the last.
    pub(crate) fn restarts(&mut self, now: Time, idle_ms: u64) {
        self.cubic.restarts(now, idle_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn reno_doubles_in_slow_start_and_adds_one_in_a_round_trip() {
        let mut window = Window::new(CongestionControl::Reno);
        window.raise(at(0), 10, true);
        assert_eq!(window.segments(), 20);
        window.raise(at(0), 10, false);
        assert_eq!(window.segments(), 20);
        window.threshold = 25;
        // Five to the threshold; the five left are credit.
        window.raise(at(0), 10, true);
        assert_eq!(window.segments(), 25);
        (0..10).for_each(|_| window.raise(at(0), 2, true));
        assert_eq!(window.segments(), 26);
        (0..13).for_each(|_| window.raise(at(0), 2, true));
        assert_eq!(window.segments(), 27);
        assert_eq!(window.threshold_after_loss(), 13);
    }

    /// RFC 9438, equations (1) and (2): W(t) = C (t - K)^3 + W_max with K = cbrt((W_max - cwnd) / C).
    #[test]
    fn cubic_follows_its_curve() {
        let mut window = Window::new(CongestionControl::Cubic);
        let (round_trip_ms, most) = (100_u64, 400_u64);
        window.set(most);
        window.threshold = window.threshold_after_loss();
        window.set(window.threshold);
        assert_eq!(window.segments(), 280);
        let sample = Sample { now: at(0), round_trip_us: 100_000, acknowledged: 0, sent: 0, burst_us: 0 };
        window.sample(&sample);
        // K = cbrt(120 / 0.4) = 6.694 s.
        let k = 6.694;
        let mut now_ms = 0.0;
        let mut furthest: f64 = 0.0;
        while now_ms < 12_000.0 {
            window.raise(Time::from_nanos((now_ms * 1e6) as u64), 1, true);
            let seconds = now_ms / 1e3 + 0.1;
            let expected = 0.4 * (seconds - k) * (seconds - k) * (seconds - k) + most as f64;
            // The window lags a round trip behind, since it aims at the value one round trip ahead.
            let behind = 0.4 * (seconds - 0.1 - k) * (seconds - 0.1 - k) * (seconds - 0.1 - k) + most as f64;
            let got = window.segments() as f64;
            furthest = furthest.max((got - expected).max(behind - got));
            now_ms += round_trip_ms as f64 / got;
        }
        // The plateau is integer: the increase there is less than one segment in a round trip.
        assert!(furthest < 6.0, "{furthest}");
        assert!(window.segments() > 455, "{}", window.segments());
    }

    /// RFC 9438, section 4.3: as fast as Reno where that is faster, by 3 (1 - β) / (1 + β) = 0.53 a round trip.
    #[test]
    fn cubic_is_no_slower_than_reno_would_be_on_short_paths() {
        let mut window = Window::new(CongestionControl::Cubic);
        window.set(20);
        window.threshold = window.threshold_after_loss();
        window.set(window.threshold);
        assert_eq!(window.segments(), 14);
        let sample = Sample { now: at(0), round_trip_us: 5_000, acknowledged: 0, sent: 0, burst_us: 0 };
        window.sample(&sample);
        let mut rounds = 0;
        let mut now_ms = 0.0;
        while window.segments() < 24 {
            let segments = window.segments();
            (0..segments).for_each(|_| window.raise(Time::from_nanos((now_ms * 1e6) as u64), 1, true));
            now_ms += 5.0;
            rounds += 1;
        }
        // 10 segments at 0.53 a round trip are 19 round trips;
        // and a window that stays is looked at every 31 ms only.
        assert!((19..=26).contains(&rounds), "{rounds}");
    }

    /// RFC 9438, section 4.7: a loss below the last maximum lowers that maximum further, by (1 + β) / 2.
    #[test]
    fn cubic_converges_fast() {
        let mut window = Window::new(CongestionControl::Cubic);
        window.set(100);
        assert_eq!(window.threshold_after_loss(), 70);
        window.set(80);
        assert_eq!(window.threshold_after_loss(), 56);
        window.set(56);
        // W_max is 68, which is K = cbrt(12 / 0.4) = 3.1 s away.
        let sample = Sample { now: at(0), round_trip_us: 100_000, acknowledged: 0, sent: 0, burst_us: 0 };
        window.threshold = 56;
        window.sample(&sample);
        let mut at_plateau = 0;
        for step in 0..3_000_u64 {
            window.raise(at(step), u64::from(step % 2 == 0), true);
            if step == 2_999 {
                at_plateau = window.segments();
            }
        }
        assert!((66..=70).contains(&at_plateau), "{at_plateau}");
    }

    #[test]
    fn no_control_has_no_limit() {
        let mut window = Window::new(CongestionControl::None);
        window.set(2);
        window.raise(at(0), 10, true);
        assert!(window.is_unlimited() && window.segments() == UNLIMITED);
    }
}
