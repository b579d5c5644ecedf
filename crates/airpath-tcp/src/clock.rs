// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Clocks and timers as coarse as those of Linux with 1000 ticks a second.
//!
//! Linux arms its timers in ticks and fires them at the end of a tick, so that none is early. Its timer wheel (since
//! 4.8) keeps timers that are further away in coarser slots: 8 ticks from 63 ticks on, and 8 times more at each
//! further level. So a timeout of 1 s comes up to 64 ms late, and one of 5 s up to 512 ms.

use airpath_core::Time;

const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;
const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;
/// Ticks of the finest level.
const LEVEL_TICKS: u64 = 63;
/// Logarithm of the factor between levels.
const LEVEL_SHIFT: u32 = 3;
const LEVELS: u32 = 8;

/// Whole milliseconds since the beginning: the ticks of the clock.
pub(crate) fn milliseconds(at: Time) -> u64 {
    at.nanos() / NANOSECONDS_PER_MILLISECOND
}

/// Whole microseconds since the beginning.
pub(crate) fn microseconds(at: Time) -> u64 {
    at.nanos() / NANOSECONDS_PER_MICROSECOND
}

/// Ticks that last at least `microseconds`.
pub(crate) fn ticks_of(microseconds: u64) -> u64 {
    microseconds.div_ceil(1_000)
}

/// The instant at which a timer fires that is armed at `now` for `ticks` later.
pub(crate) fn fires(now: Time, ticks: u64) -> Time {
    let expires = milliseconds(now) + ticks;
    let shift =
        (0..LEVELS).find(|level| ticks < LEVEL_TICKS << (level * LEVEL_SHIFT)).unwrap_or(LEVELS - 1) * LEVEL_SHIFT;
    Time::from_nanos((((expires >> shift) + 1) << shift) * NANOSECONDS_PER_MILLISECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_late_by_less_than_a_slot() {
        let now = Time::from_nanos(10_400_000);
        for (ticks, fires_ms) in [(1, 12), (40, 51), (62, 73), (63, 80), (200, 216), (1_000, 1_024), (5_000, 5_120)] {
            assert_eq!(fires(now, ticks), Time::from_nanos(fires_ms * 1_000_000), "{ticks}");
        }
    }
}
