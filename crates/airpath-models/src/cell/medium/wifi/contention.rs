// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A contender for the medium: its backoff, counted in whole slots.
//!
//! Source: IEEE 802.11-2016, 10.3.3 and 10.3.4: after each exchange of frames a contender draws a number of slots from
//! 0 to its contention window, also where it has nothing more to send. Slots in which the medium is idle are counted.
//! The window doubles with each failure, and begins anew with a success or where the limit of retries is reached.

use airpath_core::{DrawKey, Span, Time};

/// Windows of the backoff, and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    pub least_window: u16,
    pub greatest_window: u16,
    /// Number of failures after which the window is the least again.
    pub retry_limit: u16,
}

/// A time from which there is something to send: the instant, and true if only the next slot after it may be used.
pub(super) type Ready = (Time, bool);

/// Nothing to send.
pub(super) const NOT_READY: Ready = (Time::NEVER, true);

/// A contender for the medium.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    key: DrawKey,
    /// Number of its draws.
    draws: u64,
    /// Slots to wait, from the beginning of the idle period.
    backoff: u64,
    /// Number of failures in a row.
    failures: u16,
    pub ready: Ready,
}

impl Contender {
    /// A contender that has never sent.
    pub fn new(key: DrawKey) -> Contender {
        Contender { key, draws: 0, backoff: 0, failures: 0, ready: NOT_READY }
    }

    /// Slot of the idle period in which it sends, where slot 0 begins at `begin`; none if it has nothing to send.
    pub fn access(&self, begin: Time, slot: Span) -> Option<u64> {
        let (at, is_late) = self.ready;
        if at == Time::NEVER {
            return None;
        }
        let first = match at.nanos().checked_sub(begin.nanos()) {
            None => 0,
            Some(waited) => {
                let slots = waited / slot.nanos();
                slots + u64::from(waited % slot.nanos() != 0 || is_late)
            }
        };
        Some(first.max(self.backoff))
    }

    /// Counts `slots` idle slots.
    pub fn count(&mut self, slots: u64) {
        self.backoff = self.backoff.saturating_sub(slots);
    }

    /// The medium was busy from `begin` to `end`. Who had no slot to wait for, and found the medium busy, waits.
    pub fn found_busy(&mut self, begin: Time, end: Time, windows: &Backoff) {
        let (at, _) = self.ready;
        if self.backoff == 0 && at >= begin && at < end {
            self.draw(windows);
        }
    }

    /// Its exchange has ended, with an answer if `is_ok`.
    pub fn ended(&mut self, is_ok: bool, windows: &Backoff) {
        self.failures = if is_ok || self.failures >= windows.retry_limit { 0 } else { self.failures + 1 };
        self.draw(windows);
    }

    fn draw(&mut self, windows: &Backoff) {
        self.backoff = self.key.below(self.draws, 0, self.window(windows) + 1);
        self.draws += 1;
    }

    /// Its contention window.
    fn window(&self, windows: &Backoff) -> u64 {
        let doubled = (u64::from(windows.least_window) + 1) << self.failures.min(16);
        (doubled - 1).min(windows.greatest_window.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    const WINDOWS: Backoff = Backoff { least_window: 15, greatest_window: 1023, retry_limit: 7 };

    fn contender() -> Contender {
        let scope = DrawScope { hop: "wifi", direction: Direction::Uplink, role: "test", instance: 0 };
        Contender::new(DrawKey::new(Seed(1), &scope))
    }

    #[test]
    fn the_window_doubles_with_failures_up_to_the_limits() {
        let mut contender = contender();
        let mut windows = vec![contender.window(&WINDOWS)];
        for _ in 0..9 {
            contender.ended(false, &WINDOWS);
            windows.push(contender.window(&WINDOWS));
        }
        // After seven retries the next frame begins with the least window.
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023, 15, 31]);
        contender.ended(true, &WINDOWS);
        assert_eq!(contender.window(&WINDOWS), 15);
    }

    #[test]
    fn the_first_slot_is_the_first_that_begins_after_the_packet_came() {
        let (begin, slot) = (Time::from_nanos(34_000), Span::from_micros(9));
        let access =
            |at, is_late| Contender { ready: (Time::from_nanos(at), is_late), ..contender() }.access(begin, slot);
        assert_eq!(access(0, true), Some(0));
        assert_eq!(access(34_000, false), Some(0));
        assert_eq!(access(34_000, true), Some(1));
        assert_eq!(access(34_001, false), Some(1));
        assert_eq!(access(43_000, false), Some(1));
        assert_eq!(access(43_000, true), Some(2));
        assert_eq!(contender().access(begin, slot), None);
        let waits = Contender { ready: (Time::ZERO, false), backoff: 5, ..contender() };
        assert_eq!(waits.access(begin, slot), Some(5));
    }
}
