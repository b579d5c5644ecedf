// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The grid of slots: by number, so that no rounding adds up.

use airpath_core::{Span, Time};

use super::OfdmConfig;

const SECOND_NS: u128 = 1_000_000_000;

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
        let nanos = u128::from(number) * SECOND_NS / u128::from(self.slots_per_second);
        u64::try_from(nanos).map_or(Time::NEVER, Time::from_nanos)
    }

    /// Number of the slot that begins at `at` or was the last to begin before.
    pub(super) fn number(self, at: Time) -> u64 {
        // Slot n begins at or before t if n·10⁹ < (t + 1)·f.
        let limit = (u128::from(at.nanos()) + 1) * u128::from(self.slots_per_second);
        ((limit - 1) / SECOND_NS) as u64
    }

    /// Number of the first slot that begins at `at` or later.
    pub(super) fn at_or_after(self, at: Time) -> u64 {
        let number = self.number(at);
        if self.start(number) == at { number } else { number + 1 }
    }

    /// Length of the shortest slot.
    pub(super) fn least_slot(self) -> Span {
        Span::from_nanos((SECOND_NS / u128::from(self.slots_per_second)) as u64)
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
    }
}
