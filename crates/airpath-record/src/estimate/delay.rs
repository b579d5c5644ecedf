// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One-way delay of an idle path.

use serde::Serialize;

use super::order::Order;
use super::quantiles::{median, quantile};

/// Spread of transit times, from the 25th to the 75th percentile, above which the delay varies, in ns.
const STEADY_NS: f64 = 1e6;

/// Delay of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Propagation: the transit time of a packet less the time of its transmission, in ns.
    pub propagation_ns: i64,
    /// Time of transmission that was taken off, in ns.
    pub transmission_ns: u64,
    /// Least transit time in ns.
    pub least_ns: i64,
    /// Median transit time in ns.
    pub median_ns: i64,
    /// 95th percentile of transit times in ns.
    pub p95_ns: i64,
    /// Deviation of transit times in ns: that of a normal distribution with the quartiles of the samples.
    pub deviation_ns: u64,
    /// True if the delay varies: its quartiles are more than 1 ms apart.
    pub varies: bool,
    /// Number of packets.
    pub samples: usize,
}

/// Measures the delay: `offset_ns` is the receiver's clock less the sender's at a time of the sender, and a
/// packet takes `transmission_ns` to be transmitted. Where the path has `opportunities` at times of its own, the
/// least transit time counts instead of the median: it has waited for none.
pub fn delay(
    order: &Order,
    offset_ns: impl Fn(u64) -> i128,
    transmission_ns: f64,
    opportunities: bool,
) -> Option<Delay> {
    let all = order.straight.iter().chain(order.reordered.iter().map(|(late, _)| late));
    let mut transits: Vec<f64> =
        all.map(|arrived| (arrived.transit_ns() - offset_ns(arrived.sent_ns)) as f64).collect();
    let middle = median(&mut transits)?;
    let at = |share: f64, transits: &mut Vec<f64>| quantile(transits, share).unwrap_or(middle);
    let (least, p25, p75, p95) =
        (at(0.0, &mut transits), at(0.25, &mut transits), at(0.75, &mut transits), at(0.95, &mut transits));
    let basis = if opportunities { least } else { middle };
    Some(Delay {
        propagation_ns: (basis - transmission_ns).round() as i64,
        transmission_ns: transmission_ns.round() as u64,
        least_ns: least as i64,
        median_ns: middle as i64,
        p95_ns: p95 as i64,
        // The quartiles of a normal distribution are 1.349 deviations apart.
        deviation_ns: ((p75 - p25) / 1.349).round() as u64,
        varies: !opportunities && p75 - p25 > STEADY_NS,
        samples: transits.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Packets;
    use crate::wire::message::Arrival;

    fn order(transits_ns: &[u64]) -> Order {
        let sent: Vec<u64> = (0..transits_ns.len() as u64).map(|number| 1_000_000_000 + number * 100_000_000).collect();
        let arrivals: Vec<Arrival> = sent
            .iter()
            .zip(transits_ns)
            .enumerate()
            .map(|(number, (sent, transit))| Arrival { number: number as u32, arrived_ns: sent + transit })
            .collect();
        Order::of(&Packets::of(68, &sent, &arrivals))
    }

    #[test]
    fn clock_offset_and_transmission_are_taken_off() {
        // 20 ms of propagation, 1 ms of transmission, a clock 5 s ahead, one late packet.
        let order = order(&[5_021_000_000, 5_021_000_000, 5_021_200_000, 5_029_000_000, 5_021_000_000]);
        let found = delay(&order, |_| 5_000_000_000, 1e6, false).unwrap();
        assert_eq!((found.propagation_ns, found.least_ns, found.p95_ns), (20_000_000, 21_000_000, 29_000_000));
        assert!(!found.varies);
    }

    #[test]
    fn the_least_counts_before_opportunities_and_jitter_is_told() {
        let waits = order(&[10_000_000, 14_000_000, 18_000_000, 22_000_000]);
        assert_eq!(delay(&waits, |_| 0, 0.0, true).unwrap().propagation_ns, 10_000_000);
        let found = delay(&waits, |_| 0, 0.0, false).unwrap();
        assert_eq!((found.propagation_ns, found.varies), (16_000_000, true));
        // Quartiles 10 and 18 ms: 8 / 1.349.
        assert_eq!(found.deviation_ns, 5_930_319);
        assert!(delay(&order(&[]), |_| 0, 0.0, false).is_none());
    }
}
