// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The rate of a line whose packets wait for their transmission times one after the other (Gurtov
//! 1999, Figure 1).

use airpath_core::Rate;
use airpath_core::length::Bits;
use airpath_core::rate::Carry;

use crate::error::{Result, TimingError};

/// The size of the packets, as in the figure.
pub const PACKET_BYTES: u32 = 100;
const BITS: u64 = PACKET_BYTES as u64 * 8;
/// Slower lines would take minutes a packet, and faster ones are no matter of sleeping.
const SLOWEST: u64 = 100;
const FASTEST: u64 = 1_000_000_000;
const MOST_RATES: usize = 100;

/// Limits of the time and of the number of packets for one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// In ns, unless the fewest packets take longer.
    pub point_ns: u64,
    /// The fewest packets.
    pub least: u64,
    /// The most packets.
    pub most: u64,
}

/// The usual limits.
pub const USUAL: Effort = Effort { point_ns: 2_000_000_000, least: 4, most: 1_000 };
/// For a first look.
pub const QUICK: Effort = Effort { point_ns: 400_000_000, least: 2, most: 200 };

/// Reads `LOW..HIGH`, which is 1, 2, 5, 10, … times a power of ten between the two and the two
/// themselves, or rates with commas between them.
///
/// # Errors
/// When it is neither, or a rate is out of bounds.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>> {
    let wrong = |problem: String| {
        TimingError::Usage(format!(
            "`{text}` says no line rates: {problem}; write 1kbit/s..1Mbit/s, or 9600bit/s,64kbit/s"
        ))
    };
    let rate = |part: &str| {
        let rate: Rate = part.parse().map_err(|problem| wrong(format!("{problem}")))?;
        match rate.bits_per_second() {
            SLOWEST..=FASTEST => Ok(rate),
            _ => Err(wrong(format!("{rate} is not between 100 bit/s and 1 Gbit/s"))),
        }
    };
    let Some((low, high)) = text.split_once("..") else {
        let rates = text.split(',').map(rate).collect::<Result<Vec<_>>>()?;
        return if rates.len() > MOST_RATES {
            Err(wrong(format!("they are more than {MOST_RATES}")))
        } else {
            Ok(rates)
        };
    };
    let (low, high) = (rate(low)?, rate(high)?);
    if low > high {
        return Err(wrong("the range ends before it begins".into()));
    }
    let steps = (0..=9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    let mut rates: Vec<Rate> = steps.filter_map(Rate::new).filter(|rate| *rate > low && *rate < high).collect();
    rates.insert(0, low);
    if high > low {
        rates.push(high);
    }
    Ok(rates)
}

/// The transmission times of the packets of a point at `rate`, in ns.
pub fn transmission_times_ns(rate: Rate, effort: Effort) -> Vec<u64> {
    let count =
        (effort.point_ns / (BITS * 1_000_000_000 / rate.bits_per_second()).max(1)).clamp(effort.least, effort.most);
    let mut carry = Carry::NONE;
    (0..count).map(|_| rate.tx(Bits::new(BITS), &mut carry).nanos()).collect()
}

/// The rate at which `packets` went in `elapsed_ns`, in bit/s.
pub fn actual_bits_per_second(packets: usize, elapsed_ns: u64) -> f64 {
    packets as f64 * BITS as f64 * 1e9 / elapsed_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Vec<u64> {
        parse_rates(text).unwrap().iter().map(|rate| rate.bits_per_second()).collect()
    }

    #[test]
    fn ranges_and_lists() {
        assert_eq!(bits("1kbit/s..10kbit/s"), [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(bits("9600bit/s..64 kbit/s"), [9_600, 10_000, 20_000, 50_000, 64_000]);
        assert_eq!(bits("9600bit/s"), [9_600]);
        assert_eq!(bits("64kbit/s, 9600bit/s"), [64_000, 9_600]);
        assert_eq!(bits("1Mbit/s..1Mbit/s"), [1_000_000]);
        for (text, problem) in [
            ("2Mbit/s..1Mbit/s", "ends before"),
            ("1bit/s..1kbit/s", "not between"),
            ("fast", "does not begin with a number"),
            ("1kbit/s,,", "begin with a number"),
        ] {
            let error = parse_rates(text).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("1kbit/s..1Mbit/s"), "{error}");
        }
    }

    #[test]
    fn a_point_is_bounded_in_time_and_exact() {
        // 800 bit at 64 kbit/s take 12.5 ms: 160 packets in 2 s.
        let times = transmission_times_ns(Rate::new(64_000).unwrap(), USUAL);
        assert_eq!((times.len(), times[0]), (160, 12_500_000));
        assert_eq!(transmission_times_ns(Rate::new(100).unwrap(), USUAL), [8_000_000_000; 4]);
        assert_eq!(transmission_times_ns(Rate::new(1_000_000_000).unwrap(), USUAL).len(), 1_000);
        assert_eq!(actual_bits_per_second(160, 2_000_000_000), 64_000.0);
    }
}
