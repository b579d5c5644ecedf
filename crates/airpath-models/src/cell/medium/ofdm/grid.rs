// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The grid of slots: by number, so that no rounding adds up.

use airpath_core::{Span, Time};

use super::OfdmConfig;

const SECOND_NS: u64 = 1_000_000_000;

/// Slots of equal length, rounded down to whole nanoseconds each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    slots_per_second: u32,
}

impl Grid {
    pub(super) fn new(config: &OfdmConfig) -> Grid {
        Grid { slots_per_second: config.slots_per_second }
    }

    /// Beginning of slot `number`; `Time::NEVER` beyond the end of time.
    pub(super) fn start(self, number: u64) -> Time {
        // Whole seconds apart, so that nothing needs 128 bits, whose division is slow.
        let in_second = u64::from(self.slots_per_second);
        let (seconds, rest) = (number / in_second, number % in_second);
        let whole = seconds.checked_mul(SECOND_NS);
        whole.and_then(|whole| whole.checked_add(rest * SECOND_NS / in_second)).map_or(Time::NEVER, Time::from_nanos)
    }

    /// Number of the slot that begins at `at` or was the last to begin before.
    pub(super) fn number(self, at: Time) -> u64 {
        // Slot n begins at or before t if n·10⁹ < (t + 1)·f.
        let in_second = u64::from(self.slots_per_second);
        let (seconds, rest) = (at.nanos() / SECOND_NS, at.nanos() % SECOND_NS);
        seconds * in_second + ((rest + 1) * in_second - 1) / SECOND_NS
    }

    /// Number of the first slot that begins at `at` or later.
    pub(super) fn at_or_after(self, at: Time) -> u64 {
        let number = self.number(at);
        if self.start(number) == at { number } else { number + 1 }
    }

    /// Length of the shortest slot.
    pub(super) fn least_slot(self) -> Span {
        Span::from_nanos(SECOND_NS / u64::from(self.slots_per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_begin_where_their_numbers_say() {
        let grid = Grid { slots_per_second: 1500 };
        assert_eq!(
            [0, 1, 2, 3, 1500].map(|slot| grid.start(slot).nanos()),
            [0, 666_666, 1_333_333, 2_000_000, 1_000_000_000]
        );
        for slots_per_second in [1, 7, 1000, 1500, 100_000] {
            let grid = Grid { slots_per_second };
            for slot in [0u64, 1, 2, 3, 100, 12_345, 9_999_999] {
                let start = grid.start(slot);
                assert_eq!(grid.number(start), slot);
                assert_eq!((grid.at_or_after(start), grid.at_or_after(start + Span::from_nanos(1))), (slot, slot + 1));
                if slot > 0 {
                    let before = Time::from_nanos(start.nanos() - 1);
                    assert_eq!(grid.number(before), slot - 1);
                }
            }
        }
        assert_eq!(grid.least_slot().nanos(), 666_666);
        // In 128 bits, up to the end of time.
        for slots_per_second in [1, 7, 1500, 99_999, 100_000] {
            let grid = Grid { slots_per_second };
            for slot in [1u64, 1_499_999, 1 << 40, 1 << 53, u64::MAX / 2, u64::MAX] {
                let exact = u128::from(slot) * 1_000_000_000 / u128::from(slots_per_second);
                assert_eq!(grid.start(slot), u64::try_from(exact).map_or(Time::NEVER, Time::from_nanos));
            }
            for nanos in [0, 1, 999_999_999, 1_000_000_000, 1 << 60, u64::MAX - 1, u64::MAX] {
                let exact = ((u128::from(nanos) + 1) * u128::from(slots_per_second) - 1) / 1_000_000_000;
                assert_eq!(u128::from(grid.number(Time::from_nanos(nanos))), exact, "{nanos} {slots_per_second}");
            }
        }
    }
}
