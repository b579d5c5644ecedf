// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Stamps of an interface, in ticks of a resolution of its own.

const SECOND_NS: i128 = 1_000_000_000;
/// The finest resolutions that are read: an attosecond, and about as much in powers of two.
const MOST_DECIMAL: u8 = 18;
const MOST_BINARY: u8 = 60;

/// Resolution and epoch of the stamps of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolution {
    per_second: i128,
    epoch_ns: i128,
}

impl Default for Resolution {
    /// Microseconds since 1970.
    fn default() -> Resolution {
        Resolution { per_second: 1_000_000, epoch_ns: 0 }
    }
}

impl Resolution {
    /// Ticks by the exponent of `if_tsresol`, counted from `if_tsoffset` seconds after 1970; none where
    /// a tick would be finer than any clock's.
    pub fn new(exponent: u8, epoch_seconds: i64) -> Option<Resolution> {
        let per_second = match (exponent & 0x80 == 0, exponent & 0x7f) {
            (true, power @ 0..=MOST_DECIMAL) => 10i128.pow(u32::from(power)),
            (false, power @ 0..=MOST_BINARY) => 1 << power,
            _ => return None,
        };
        Some(Resolution { per_second, epoch_ns: i128::from(epoch_seconds) * SECOND_NS })
    }

    /// The time in nanoseconds since 1970, rounded down; none where it is none.
    pub fn unix_ns(self, ticks: u64) -> Option<u64> {
        u64::try_from(i128::from(ticks) * SECOND_NS / self.per_second + self.epoch_ns).ok()
    }

    /// The stamp of `by_ns` nanoseconds later (earlier, if negative), none where it is none. The
    /// difference is what is rounded, so that nothing is lost of finer stamps.
    pub fn moved(self, ticks: u64, by_ns: i128) -> Option<u64> {
        let twice = by_ns.checked_mul(self.per_second)?.checked_mul(2)?;
        u64::try_from(i128::from(ticks) + (twice + SECOND_NS).div_euclid(2 * SECOND_NS)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_times() {
        assert_eq!(Resolution::default().unix_ns(1_500_000), Some(1_500_000_000));
        let nanoseconds = Resolution::new(9, 0).unwrap();
        assert_eq!(nanoseconds.unix_ns(u64::MAX), Some(u64::MAX));
        let binary = Resolution::new(0x80 | 10, 100).unwrap();
        assert_eq!(binary.unix_ns(512), Some(100_500_000_000));
        assert_eq!(Resolution::new(0, -1).unwrap().unix_ns(0), None);
        assert_eq!(Resolution::new(0, 0).unwrap().unix_ns(u64::MAX), None);
        assert_eq!(Resolution::new(18, 0).unwrap().unix_ns(1_999_999_999), Some(1));
        for exponent in [19, 127, 0x80 | 61, 0xff] {
            assert_eq!(Resolution::new(exponent, 0), None, "{exponent}");
        }
        for epoch in [i64::MIN, i64::MAX] {
            assert_eq!(Resolution::new(0, epoch).unwrap().unix_ns(0), None);
        }
    }

    #[test]
    fn differences_are_rounded_to_ticks() {
        let microseconds = Resolution::default();
        assert_eq!(microseconds.moved(1000, 1_499), Some(1001));
        assert_eq!(microseconds.moved(1000, 1_500), Some(1002));
        assert_eq!(microseconds.moved(1000, -1_499), Some(999));
        assert_eq!(microseconds.moved(1, -1_501), None);
        assert_eq!(microseconds.moved(u64::MAX, 1_000), None);
        assert_eq!(microseconds.moved(0, i128::MAX), None);
        // Two attoseconds short of a nanosecond, and a nanosecond later.
        assert_eq!(Resolution::new(18, 0).unwrap().moved(999_999_998, 1), Some(1_999_999_998));
    }
}
