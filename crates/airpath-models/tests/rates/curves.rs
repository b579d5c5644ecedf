// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Curves of steps and lines, also against an integration that adds up every nanosecond.

use airpath_core::{PortId, RateStep};
use airpath_models::medium::rate::steps::StepsConfig;
use airpath_models::medium::rate::trace::Interpolation;
use airpath_models::medium::{RateConfig, VaryingConfig};
use proptest::prelude::*;

use super::{MS, play, sends};
use crate::common::{cases, read};

pub fn steps(steps: &[&str], period: Option<&str>, interpolation: Interpolation) -> VaryingConfig {
    let steps = steps.iter().map(|step| read::<RateStep>(step)).collect();
    let config = VaryingConfig::Steps(StepsConfig { steps, interpolation, period: period.map(read) });
    assert_eq!(config.problems(), []);
    config
}

#[test]
fn a_frame_spans_steps_and_outages() {
    // 10 kbit: 2 ms at 1 Mbit/s (2000 bit), nothing until 5 ms, then 8000 bit at 2 Mbit/s: 4 ms.
    let rate = steps(&["0 s: 1 Mbit/s", "2 ms: 0 bit/s", "5 ms: 2 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play(rate.clone(), &sends(&[(0, 1250)])).times(PortId::SERVER), [9 * MS]);
    // What ends exactly with the step ends there, and not behind the outage; what begins in the
    // outage begins to be sent at 5 ms.
    let trace = play(rate.clone(), &sends(&[(0, 250), (3 * MS, 250)]));
    assert_eq!(trace.times(PortId::SERVER), [2 * MS, 6 * MS]);
    // 8 bit at 3 bit/s take 2.666… s; 24 bit 8 s: fractions are carried over, and through an outage.
    let slow = steps(&["0 s: 3 bit/s", "3 s: 0 bit/s", "4 s: 3 bit/s"], None, Interpolation::Step);
    let trace = play(slow, &sends(&[(0, 1), (0, 1), (0, 1)]));
    assert_eq!(trace.times(PortId::SERVER), [2_666_666_666, 6_333_333_333, 9_000_000_000]);
}

#[test]
fn a_period_repeats_and_an_outage_at_its_end_delays_only_what_is_not_done() {
    let rate = steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], Some("10 ms"), Interpolation::Step);
    // 1000 bit a period.
    let trace = play(rate, &sends(&[(0, 125), (0, 125), (0, 250), (45 * MS, 1)]));
    assert_eq!(trace.times(PortId::SERVER), [MS, 11 * MS, 31 * MS, 50 * MS + 8_000]);
}

#[test]
fn a_line_is_integrated() {
    // From 0 to 2 Mbit/s in 10 ms: t² · 10⁸ bit after t seconds. 2500 bit are done after 5 ms, 10000
    // after 10, and from then on 2 Mbit/s hold.
    let rate = steps(&["0 s: 0 bit/s", "10 ms: 2 Mbit/s"], None, Interpolation::Linear);
    let lens = [(0, 100), (0, 200), (0, 950), (0, 125)];
    let exact = |bits: f64| ((bits / 1e8).sqrt() * 1e9).floor() as u64;
    let trace = play(rate, &sends(&lens));
    assert_eq!(trace.times(PortId::SERVER), [exact(800.0), exact(2_400.0), 10 * MS, 10 * MS + 500_000]);
    assert_eq!(exact(800.0), 2_828_427);
    // Down to nothing: 10 Mbit/s to 0 in 1 ms carries 5000 bit, the last of them in no time at the end.
    let rate = steps(&["0 s: 10 Mbit/s", "1 ms: 0 bit/s", "3 ms: 8 Mbit/s"], None, Interpolation::Linear);
    // From 1 ms: 2·10⁹ · t² bit after t s, 1000 bit after 0.000707106… s.
    let trace = play(rate, &sends(&[(0, 625), (0, 125)]));
    assert_eq!(trace.times(PortId::SERVER), [MS, MS + 707_106]);
}

/// The end of each frame by adding up every nanosecond. The work of a nanosecond is that of the
/// curve's definition: whole billionths of a bit since the beginning of its piece.
struct Naive {
    points: Vec<(u64, u64)>,
    period: Option<u64>,
    linear: bool,
}

impl Naive {
    /// Work from the beginning of the piece that `x` lies in to `x`, and that beginning.
    fn in_piece(&self, x: u64) -> (u64, u128) {
        let index = self.points.iter().rposition(|(at, _)| *at <= x).unwrap();
        let (from, rate) = self.points[index];
        let gone = u128::from(x - from);
        match self.points.get(index + 1).filter(|_| self.linear) {
            None => (from, u128::from(rate) * gone),
            Some((to, next)) => {
                let length = u128::from(to - from);
                let (rate, next) = (u128::from(rate), u128::from(*next));
                // The area of a trapezium, doubled: both sides by what is left and what is gone.
                let twice = 2 * length * rate * gone + next * gone * gone - rate * gone * gone;
                (from, twice / (2 * length))
            }
        }
    }

    /// Work done in the nanosecond that begins at `at`.
    fn work(&self, at: u64) -> u128 {
        let x = self.period.map_or(at, |period| at % period);
        let (from, before) = self.in_piece(x);
        // The end of the nanosecond may be that of the piece, whose own work counts to the end.
        let end = Naive { points: self.points.clone(), ..*self };
        let index = self.points.iter().rposition(|(at, _)| *at <= x).unwrap();
        let piece = Naive { points: end.points[index..(index + 2).min(end.points.len())].to_vec(), ..end };
        let after = piece.to_end(from, x + 1);
        after - before
    }

    fn to_end(&self, from: u64, x: u64) -> u128 {
        let (_, rate) = self.points[0];
        let gone = u128::from(x - from);
        match self.points.get(1).filter(|_| self.linear) {
            None => u128::from(rate) * gone,
            Some((to, next)) => {
                let length = u128::from(to - from);
                let (rate, next) = (u128::from(rate), u128::from(*next));
                (2 * length * rate * gone + next * gone * gone - rate * gone * gone) / (2 * length)
            }
        }
    }

    fn ends(&self, packets: &[(u64, u32)], until: u64) -> Vec<u64> {
        let mut waiting: std::collections::VecDeque<(u64, u32)> = packets.iter().copied().collect();
        let (mut left, mut ends): (Option<u128>, Vec<u64>) = (None, Vec::new());
        let mut now = 0;
        let mut work = 0;
        while now < until && (left.is_some() || !waiting.is_empty()) {
            // `work` is what this nanosecond has left.
            work += self.work(now);
            loop {
                let needed = match left {
                    Some(needed) => needed,
                    None => match waiting.front() {
                        Some((at, len)) if *at <= now => {
                            let needed = u128::from(*len) * 8 * 1_000_000_000;
                            waiting.pop_front();
                            needed
                        }
                        _ => {
                            work = 0;
                            break;
                        }
                    },
                };
                if needed > work {
                    left = Some(needed - work);
                    work = 0;
                    break;
                }
                // Done within this nanosecond, or exactly at its end.
                work -= needed;
                left = None;
                let exactly = work == 0;
                ends.push(if exactly { now + 1 } else { now });
                if exactly {
                    break;
                }
                // What follows without a gap has the rest of the nanosecond; another packet does not.
                if waiting.front().is_none_or(|(at, _)| *at > now) {
                    work = 0;
                }
            }
            now += 1;
        }
        ends
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn any_curve_is_integrated_as_nanosecond_by_nanosecond(
        points in prop::collection::vec((1u64..400, prop::sample::select(vec![0u64, 1, 333, 1_000, 12_345])), 1..6),
        repeats in any::<bool>(),
        linear in any::<bool>(),
        packets in prop::collection::vec((0u64..3_000, prop::sample::select(vec![1u32, 2, 7, 40])), 1..12),
    ) {
        // Rates in Mbit/s, so that a nanosecond matters.
        let mut at = 0;
        let mut all = vec![(0, 250_000_000)];
        for (gap, mbit) in points {
            at += gap;
            all.push((at, mbit * 1_000_000));
        }
        // Something arrives in the end.
        all.push((at + 50, 77_777_777));
        let period = repeats.then_some(at + 173);
        let config = StepsConfig {
            steps: all.iter().map(|(at, rate)| RateStep { at: airpath_core::Span::from_nanos(*at), bits_per_second: *rate }).collect(),
            interpolation: if linear { Interpolation::Linear } else { Interpolation::Step },
            period: period.map(airpath_core::Span::from_nanos),
        };
        let mut packets = packets;
        packets.sort();
        let trace = play(VaryingConfig::Steps(config), &sends(&packets));
        let naive = Naive { points: all, period, linear };
        prop_assert_eq!(trace.times(PortId::SERVER), naive.ends(&packets, 500_000));
    }
}

#[test]
fn a_constant_curve_is_a_constant_rate() {
    let script = sends(&[(0, 1500), (0, 40), (0, 333), (7_000_001, 999), (7_000_001, 1)]);
    for rate in ["9600 bit/s", "7_777_777 bit/s", "3 Gbit/s"] {
        let constant = play(read::<RateConfig>(rate), &script);
        let curve = steps(&[&format!("0 s: {rate}")], None, Interpolation::Step);
        let repeated = steps(&[&format!("0 s: {rate}")], Some("13 us"), Interpolation::Step);
        assert_eq!(play(curve, &script).events, constant.events);
        assert_eq!(play(repeated, &script).events, constant.events);
    }
}

#[test]
fn after_its_end_a_curve_keeps_its_last_rate_even_if_that_is_none() {
    let rate = steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], None, Interpolation::Step);
    let trace = play(rate, &sends(&[(0, 125), (0, 1)]));
    assert_eq!((trace.times(PortId::SERVER), trace.held), (vec![MS], 1));
}
