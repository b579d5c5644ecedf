// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Capacity of a path from a saturating load.
//!
//! A packet that was sent before the packet before it left the bottleneck has waited for it: the distance of
//! their arrivals is the time of its transmission, whatever the clocks and the constant delays are. Only such
//! *busy* gaps count, so that neither the beginning of the load nor a pause of the sender lowers the estimate.
//! For a constant rate, only neighbours by number count: between others there may be a packet that took time
//! and was lost behind the bottleneck, or one that the queue dropped and that took none.

use serde::Serialize;

use super::order::{Arrived, Order};
use super::quantiles::quantile;

/// Bits of an opportunity of a trace of mm-link.
const OPPORTUNITY_BITS: f64 = 12_000.0;
/// Least number of busy gaps for an estimate.
const LEAST_GAPS: usize = 10;
/// Least length of a part in which a rate is measured, in ns, and its least number of packets.
const PART_NS: f64 = 2e8;
const PART_PACKETS: usize = 20;
/// The rate is constant if this share of parts…
const ALIKE: f64 = 0.95;
/// … differs from the mean by no more than this share of it.
const TOLERANCE: f64 = 0.1;

/// Course of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Constant.
    Constant,
    /// Varying.
    Varying,
}

/// Capacity of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Mean rate in bit/s of IP packets.
    pub rate_bits_per_second: f64,
    /// Course.
    pub course: Course,
    /// Least, median and greatest rate of parts of at least 0.2 s and 20 packets, in bit/s; empty where the
    /// record has no whole part.
    pub parts_bits_per_second: Vec<f64>,
    /// Share of the time between the first and the last arrival in which the path was busy.
    pub busy_share: f64,
    /// Number of busy gaps.
    pub gaps: usize,
    /// Opportunities to send 1500 bytes, in ms since the first: a trace of mm-link.
    #[serde(skip)]
    pub opportunities_ms: Vec<u64>,
}

/// A gap between two arrivals in which the path was busy.
struct Gap {
    ns: f64,
    neighbours: bool,
}

/// Least transit time in ns, of a path that is idle.
pub fn least_transit_ns(order: &Order) -> Option<i128> {
    order.straight.iter().map(Arrived::transit_ns).min()
}

/// The gap between each pair of arrivals in order; none where the path was idle.
fn gaps(order: &Order) -> Vec<Option<Gap>> {
    let Some(least) = least_transit_ns(order) else { return Vec::new() };
    let busy = |pair: &[Arrived]| {
        let waited = i128::from(pair[1].sent_ns) + least <= i128::from(pair[0].at_ns);
        let ns = (pair[1].at_ns - pair[0].at_ns) as f64;
        waited.then_some(Gap { ns, neighbours: pair[1].number == pair[0].number + 1 })
    };
    order.straight.windows(2).map(busy).collect()
}

/// Measures the capacity: each packet has so many `bits`, and `lost_share` of the packets are lost behind the
/// bottleneck. None with fewer than ten busy gaps.
pub fn capacity(order: &Order, bits: f64, lost_share: f64) -> Option<Capacity> {
    let gaps = gaps(order);
    let exact: Vec<f64> = gaps.iter().flatten().filter(|gap| gap.neighbours).map(|gap| gap.ns).collect();
    let exact_ns: f64 = exact.iter().sum();
    if exact.len() < LEAST_GAPS || exact_ns <= 0.0 {
        return None;
    }
    let constant_rate = exact.len() as f64 * bits * 1e9 / exact_ns;
    let mut parts = parts(&exact, bits);
    let alike = parts.iter().filter(|rate| (*rate / constant_rate - 1.0).abs() <= TOLERANCE).count();
    let constant = alike as f64 >= ALIKE * parts.len() as f64;
    let (opportunities_ms, busy_ns) = opportunities(order, &gaps, bits / (1.0 - lost_share.clamp(0.0, 0.9)));
    let varying_rate =
        opportunities_ms.last().map(|last| opportunities_ms.len() as f64 * OPPORTUNITY_BITS * 1e3 / *last as f64);
    let span_ns = order.straight.last()?.at_ns - order.straight.first()?.at_ns;
    let at = |share, parts: &mut Vec<f64>| quantile(parts, share);
    let parts_bits_per_second =
        [at(0.0, &mut parts), at(0.5, &mut parts), at(1.0, &mut parts)].into_iter().flatten().collect();
    Some(Capacity {
        rate_bits_per_second: if constant { constant_rate } else { varying_rate.unwrap_or(constant_rate) },
        course: if constant { Course::Constant } else { Course::Varying },
        parts_bits_per_second,
        busy_share: busy_ns / (span_ns as f64).max(1.0),
        gaps: gaps.iter().flatten().count(),
        opportunities_ms,
    })
}

/// Rates of parts of the gaps, in bit/s.
fn parts(gaps_ns: &[f64], bits: f64) -> Vec<f64> {
    let (mut rates, mut ns, mut packets) = (Vec::new(), 0.0, 0);
    for gap in gaps_ns {
        ns += gap;
        packets += 1;
        if ns >= PART_NS && packets >= PART_PACKETS {
            rates.push(packets as f64 * bits * 1e9 / ns);
            (ns, packets) = (0.0, 0);
        }
    }
    rates
}

/// Times of opportunities in ms, and the busy time in ns. Idle time is cut out. An arrival stands for `bits`,
/// which includes its part of the packets that were lost behind the bottleneck.
fn opportunities(order: &Order, gaps: &[Option<Gap>], bits: f64) -> (Vec<u64>, f64) {
    let (mut times, mut busy_ns, mut credit) = (Vec::new(), 0.0, 0.0);
    let mut late = order.reordered.iter().map(|(late, _)| late.at_ns).peekable();
    for (pair, gap) in order.straight.windows(2).zip(gaps) {
        let Some(gap) = gap else {
            // Late arrivals of an idle time tell nothing of the rate.
            while late.next_if(|at| *at <= pair[1].at_ns).is_some() {}
            continue;
        };
        busy_ns += gap.ns;
        credit += bits;
        while late.next_if(|at| *at <= pair[1].at_ns).is_some() {
            credit += bits;
        }
        while credit >= OPPORTUNITY_BITS {
            credit -= OPPORTUNITY_BITS;
            times.push(((busy_ns / 1e6).ceil() as u64).max(1));
        }
    }
    (times, busy_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Packets;
    use crate::wire::message::Arrival;

    const MS: u64 = 1_000_000;

    /// Packets that are all sent at once, at 1 s, and leave at these times in ms; none is a lost one.
    fn backlog(leave_ms: &[Option<u64>]) -> Order {
        let sent = vec![1_000 * MS; leave_ms.len()];
        let arrivals: Vec<Arrival> = leave_ms
            .iter()
            .enumerate()
            .filter_map(|(number, at)| at.map(|at| Arrival { number: number as u32, arrived_ns: (5_000 + at) * MS }))
            .collect();
        Order::of(&Packets::of(1_500, &sent, &arrivals))
    }

    #[test]
    fn a_constant_rate_by_hand() {
        // 12,000 bit every 10 ms; a clock that is 4 s ahead.
        let found =
            capacity(&backlog(&(1..=101).map(|number| Some(number * 10)).collect::<Vec<_>>()), 12_000.0, 0.0).unwrap();
        assert_eq!((found.rate_bits_per_second, found.course, found.gaps), (1_200_000.0, Course::Constant, 100));
        assert!((found.busy_share - 1.0).abs() < 1e-12);
        // 100 opportunities in 1 s.
        assert_eq!((found.opportunities_ms.len(), found.opportunities_ms.last()), (100, Some(&1_000)));
    }

    #[test]
    fn losses_behind_the_bottleneck_and_drops_before_it_do_not_change_a_constant_rate() {
        // Every tenth packet took its 10 ms and was lost.
        let lost: Vec<Option<u64>> = (1..=200).map(|number| (number % 10 != 5).then_some(number * 10)).collect();
        assert_eq!(capacity(&backlog(&lost), 12_000.0, 0.1).unwrap().rate_bits_per_second, 1_200_000.0);
        // Every second one was dropped by a full queue and took no time.
        let dropped: Vec<Option<u64>> =
            (0..200).map(|number| (number % 4 < 2).then_some(10 * (number / 4 * 2 + number % 4))).collect();
        assert_eq!(capacity(&backlog(&dropped), 12_000.0, 0.0).unwrap().rate_bits_per_second, 1_200_000.0);
    }

    #[test]
    fn idle_time_is_cut_out() {
        // A packet every 30 ms on a link that needs 10 ms, and then 50 at once.
        let sent: Vec<u64> = (0..20).map(|number| number * 30 * MS).chain(vec![600 * MS; 50]).collect();
        let arrivals: Vec<Arrival> = (0..70u32)
            .map(|number| {
                let at = if number < 20 { u64::from(number) * 30 + 10 } else { 600 + u64::from(number - 19) * 10 };
                Arrival { number, arrived_ns: at * MS }
            })
            .collect();
        let found = capacity(&Order::of(&Packets::of(1_500, &sent, &arrivals)), 12_000.0, 0.0).unwrap();
        assert_eq!((found.rate_bits_per_second, found.gaps, found.opportunities_ms.len()), (1_200_000.0, 49, 49));
        assert!((found.busy_share - 490.0 / 1_090.0).abs() < 1e-9, "{}", found.busy_share);
    }

    #[test]
    fn a_varying_rate_becomes_opportunities() {
        // A second with a packet every 10 ms, a second with one every 2 ms: 600 packets in 2 s.
        let times: Vec<Option<u64>> =
            (0..=100).map(|number| Some(number * 10)).chain((1..=500).map(|number| Some(1_000 + number * 2))).collect();
        let found = capacity(&backlog(&times), 12_000.0, 0.0).unwrap();
        assert_eq!((found.course, found.rate_bits_per_second), (Course::Varying, 3_600_000.0));
        assert_eq!((found.opportunities_ms[0], found.opportunities_ms[100]), (10, 1_002));
        // A tenth of what was sent was lost behind the bottleneck: ten ninths as many opportunities.
        let found = capacity(&backlog(&times), 12_000.0, 0.1).unwrap();
        assert!((found.rate_bits_per_second - 4_000_000.0).abs() < 6_001.0, "{}", found.rate_bits_per_second);
    }

    #[test]
    fn nothing_is_made_of_a_few_packets() {
        assert!(capacity(&backlog(&(0..10).map(Some).collect::<Vec<_>>()), 12_000.0, 0.0).is_none());
        assert!(capacity(&backlog(&[]), 12_000.0, 0.0).is_none());
        assert!(capacity(&backlog(&[Some(5); 50]), 12_000.0, 0.0).is_none());
    }
}
