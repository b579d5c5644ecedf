// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A contender for the medium: its backoff, counted in whole slots.
//!
//! Source: IEEE 802.11-2016, 10.3.3 and 10.3.4: after each exchange of frames a contender draws a number of slots from
//! 0 to its contention window, also where it has nothing more to send. Slots in which the medium is idle are counted.
//! The window doubles with each failure, and begins anew with a success or where the limit of retries is reached.
//!
//! With access categories (10.22.2) each has an interframe space of its own, and a backoff is counted down at the
//! beginning of a slot and not behind it, also of the one in which somebody else begins: a contender that waited for k
//! more slots then waits for k - 1 behind the busy time (Tinnirello, Bianchi and Xiao 2010).

use airpath_core::{DrawKey, Span, Time};

/// Windows of the backoff, and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    pub least_window: u16,
    pub greatest_window: u16,
    /// Number of failures after which the window is the least again.
    pub retry_limit: u16,
}

/// Access of a contender to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub windows: Backoff,
    /// Number of slots that the medium has to be idle for behind SIFS: 2 is DIFS.
    pub space: u8,
    /// Longest time for which it keeps the medium; 0 for one exchange, however long.
    pub txop_limit: Span,
    /// True if a slot counts at its beginning.
    pub counts_boundaries: bool,
}

impl Access {
    /// Access by the distributed coordination function.
    pub fn distributed(windows: Backoff) -> Access {
        Access { windows, space: 2, txop_limit: Span::ZERO, counts_boundaries: false }
    }
}

/// A time from which there is something to send: the instant, and true if only the next slot after it may be used.
pub(super) type Ready = (Time, bool);

/// Nothing to send.
pub(super) const NOT_READY: Ready = (Time::NEVER, true);

/// A contender for the medium.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    key: DrawKey,
    access: Access,
    /// Number of slots from slot 0 of the idle period to the end of its interframe space.
    offset: u64,
    /// Number of its draws.
    draws: u64,
    /// Slots to wait, from the beginning of the idle period.
    backoff: u64,
    /// Number of failures in a row.
    failures: u16,
    pub ready: Ready,
}

impl Contender {
    /// A contender that has never sent. Slot 0 of idle periods begins `space` slots behind SIFS.
    pub fn new(key: DrawKey, access: Access, space: u8) -> Contender {
        let offset = u64::from(access.space.saturating_sub(space));
        Contender { key, access, offset, draws: 0, backoff: 0, failures: 0, ready: NOT_READY }
    }

    /// Longest time for which it keeps the medium; 0 for one exchange, however long.
    pub fn txop_limit(&self) -> Span {
        self.access.txop_limit
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
        Some(first.max(self.offset + self.backoff))
    }

    /// Counts the slots of an idle period that ends as slot number `slots` begins, or later in that slot's time.
    pub fn count(&mut self, slots: u64) {
        if let Some(idle) = slots.checked_sub(self.offset) {
            self.backoff = self.backoff.saturating_sub(idle + u64::from(self.access.counts_boundaries));
        }
    }

    /// The medium was busy from `begin` to `end`. Who had no slot to wait for, and found the medium busy, waits.
    pub fn found_busy(&mut self, begin: Time, end: Time) {
        let (at, _) = self.ready;
        if self.backoff == 0 && at >= begin && at < end {
            self.draw();
        }
    }

    /// Its exchange has ended, with an answer if `is_ok`, and it gives the medium away.
    pub fn ended(&mut self, is_ok: bool) {
        let limit = self.access.windows.retry_limit;
        self.failures = if is_ok || self.failures >= limit { 0 } else { self.failures + 1 };
        self.draw();
    }

    /// Its exchange has ended with an answer, and it keeps the medium for another one.
    pub fn keeps(&mut self) {
        self.failures = 0;
    }

    fn draw(&mut self) {
        self.backoff = self.key.below(self.draws, 0, self.window() + 1);
        self.draws += 1;
    }

    /// Its contention window.
    fn window(&self) -> u64 {
        let windows = &self.access.windows;
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
        with_access(Access::distributed(WINDOWS))
    }

    fn with_access(access: Access) -> Contender {
        let scope = DrawScope { hop: "wifi", direction: Direction::Uplink, role: "test", instance: 0 };
        Contender::new(DrawKey::new(Seed(1), &scope), access, 2)
    }

    #[test]
    fn the_window_doubles_with_failures_up_to_the_limits() {
        let mut contender = contender();
        let mut windows = vec![contender.window()];
        for _ in 0..9 {
            contender.ended(false);
            windows.push(contender.window());
        }
        // After seven retries the next frame begins with the least window.
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023, 15, 31]);
        contender.ended(true);
        assert_eq!(contender.window(), 15);
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

    /// Behind SIFS and 7 slots, slot 0 of the contender is slot 5 of the idle period, whose slot 0 is behind DIFS.
    #[test]
    fn a_longer_space_shifts_the_slots_of_a_category() {
        let access = Access { space: 7, counts_boundaries: true, ..Access::distributed(WINDOWS) };
        let (begin, slot) = (Time::from_nanos(34_000), Span::from_micros(9));
        let mut waits = Contender { ready: (Time::ZERO, false), backoff: 4, ..with_access(access) };
        assert_eq!(waits.access(begin, slot), Some(9));
        // The medium is busy before its space is over.
        waits.count(4);
        assert_eq!(waits.backoff, 4);
        // Its slots 0 and 1 have begun, the second one as somebody else began.
        waits.count(6);
        assert_eq!(waits.backoff, 2);
        // By the distributed function only the slot that has passed counts.
        let mut plain = Contender { backoff: 4, ..with_access(Access { counts_boundaries: false, ..access }) };
        plain.count(6);
        assert_eq!(plain.backoff, 3);
    }
}
