// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Minstrel-HT: the rate that has brought most, with occasional tries of others.
//!
//! Source: the rate control of Linux for 802.11n (Fietkau 2010, `minstrel_ht`), written from its rules. For each rate the
//! share of packets that were acknowledged is averaged from interval to interval. A rate is worth its share, of which
//! more than 90 % count as 90 %, over the time of a packet of 1200 octets with its part of the overhead; below 10 % it is
//! worth nothing. A transmission goes at the rate that is worth most; after failures it goes at the second best, and then
//! at the one that is most probably received: of those above 75 % the one worth most. Now and then, after 16 transmissions
//! and two for each packet of a mean aggregate, the first try is at another rate: one in an order that is drawn. Those
//! received above 95 % are left out, and slow ones are tried only after 20 intervals, three in an interval at most.
//!
//! Limits: rates are those of one number of streams, width and guard interval. Later versions of Linux, from 2021 on,
//! choose the rates to try in another way.

use airpath_core::{DrawKey, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choose, ModeTimes, RateBeginning};
use crate::problem::Problem;
use crate::registry::Configured;

/// Most that a share counts for.
const GREATEST_SHARE: f64 = 0.9;
/// Share below which a rate is worth nothing.
const LEAST_SHARE: f64 = 0.1;
/// Share above which a faster rate is preferred to a more probable one.
const PROBABLE_SHARE: f64 = 0.75;
/// Share above which a rate is not tried.
const CERTAIN_SHARE: f64 = 0.95;
/// Intervals without any try after which a slow rate is tried, and how many are in an interval.
const SKIPPED_INTERVALS: u32 = 20;
const SLOW_TRIES: u32 = 3;
/// Transmissions between two tries of other rates, beside two for each packet of a mean aggregate.
const WAIT: u32 = 16;
/// Tries at the beginning.
const FIRST_TRIES: u32 = 16;
/// Longest time of the transmissions at one rate, and their greatest number.
const SEGMENT: Span = Span::from_millis(6);
const MOST_TRIES: u16 = 7;

/// Rate control as that of Linux: `{ type = "minstrel_ht" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MinstrelHtConfig {
    /// Time from one evaluation of outcomes to the next.
    pub interval: Span,
    /// Weight of what was known before in the average of an interval.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

impl Default for MinstrelHtConfig {
    fn default() -> MinstrelHtConfig {
        MinstrelHtConfig { interval: Span::from_millis(50), weight: 0.75 }
    }
}

impl Configured<RateBeginning<'_>> for MinstrelHtConfig {
    type Model = MinstrelHt;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.interval == Span::ZERO {
            problems.push(Problem::new("interval", "is 0; Linux has 50 ms"));
        }
        if !(0.0..1.0).contains(&self.weight) {
            let message = format!("is {}; it must be from 0 to below 1 (Linux has 0.75)", self.weight);
            problems.push(Problem::new("weight", message));
        }
        problems
    }

    fn build(&self, beginning: RateBeginning<'_>) -> MinstrelHt {
        let rates = beginning.modes.iter().map(|times| Rate::new(*times)).collect();
        MinstrelHt {
            config: *self,
            rates,
            best: 0,
            second: 0,
            safest: 0,
            evaluated: Time::ZERO,
            mean_length: 1.0,
            transmissions: 0,
            packets: 0,
            order: Order { key: beginning.key, round: 0, left: Vec::new() },
            wait: 0,
            tries_left: FIRST_TRIES,
            slow_tries: 0,
            series: None,
        }
    }

    fn examples() -> Vec<MinstrelHtConfig> {
        vec![MinstrelHtConfig::default(), MinstrelHtConfig { interval: Span::from_millis(7), weight: 0.0 }]
    }
}

/// Knowledge of a rate.
#[derive(Clone, Copy, Debug)]
struct Rate {
    times: ModeTimes,
    /// Average share of packets that were acknowledged; none before the first.
    share: Option<f64>,
    /// Packets of the present interval, and those acknowledged.
    sent: u32,
    received: u32,
    /// Number of intervals without a packet.
    skipped: u32,
}

impl Rate {
    fn new(times: ModeTimes) -> Rate {
        Rate { times, share: None, sent: 0, received: 0, skipped: 0 }
    }

    fn share(&self) -> f64 {
        self.share.unwrap_or(0.0)
    }

    fn evaluate(&mut self, weight: f64) {
        if self.sent == 0 {
            self.skipped += 1;
            return;
        }
        let share = f64::from(self.received) / f64::from(self.sent);
        self.share = Some(self.share.map_or(share, |before| before + (share - before) * (1.0 - weight)));
        (self.sent, self.received, self.skipped) = (0, 0, 0);
    }

    /// Packets that it brings in a nanosecond, in aggregates of `length` packets.
    fn worth(&self, length: f64) -> f64 {
        if self.share() < LEAST_SHARE {
            return 0.0;
        }
        let time = self.times.packet.nanos() as f64 + self.times.overhead.nanos() as f64 / length;
        self.share().min(GREATEST_SHARE) / time
    }

    /// Number of tries in a row, for aggregates of `length` packets: 2, and as many more as fit in.
    fn tries(&self, length: f64) -> u16 {
        if self.share() < 2.0 * LEAST_SHARE {
            return 2;
        }
        let one = self.times.overhead.nanos() as f64 + self.times.packet.nanos() as f64 * length;
        let fitting = SEGMENT.nanos() as f64 / one.max(1.0);
        (fitting as u16).clamp(2, MOST_TRIES)
    }
}

/// The order in which rates are tried: one drawn permutation after the other.
#[derive(Clone, Debug)]
struct Order {
    key: DrawKey,
    round: u64,
    left: Vec<usize>,
}

impl Order {
    fn next(&mut self, count: usize) -> usize {
        if self.left.is_empty() {
            self.left.extend(0..count);
            for place in (1..count).rev() {
                let other = self.key.below(self.round, place as u64, place as u64 + 1) as usize;
                self.left.swap(place, other);
            }
            self.round += 1;
        }
        self.left.pop().unwrap_or(0)
    }
}

/// Transmissions of the same packets: the rates of its stages, each with the number of tries.
#[derive(Clone, Copy, Debug)]
struct Series {
    stages: [(usize, u16); 3],
    /// Number of failures.
    failures: u16,
}

impl Series {
    /// Rate of the next transmission; none where all stages have failed.
    fn rate(&self) -> Option<usize> {
        let mut failures = self.failures;
        for (rate, tries) in self.stages {
            match failures.checked_sub(tries) {
                None => return Some(rate),
                Some(rest) => failures = rest,
            }
        }
        None
    }
}

/// Minstrel-HT at one sending end.
#[derive(Clone, Debug)]
pub struct MinstrelHt {
    config: MinstrelHtConfig,
    rates: Vec<Rate>,
    /// The rate that is worth most, the second best, and the one most probably received.
    best: usize,
    second: usize,
    safest: usize,
    /// Time of the last evaluation.
    evaluated: Time,
    /// Mean number of packets of a transmission, and those of the present interval.
    mean_length: f64,
    transmissions: u32,
    packets: u32,
    order: Order,
    /// Transmissions until another rate is tried, and how many may be tried in the present interval.
    wait: u32,
    tries_left: u32,
    slow_tries: u32,
    series: Option<Series>,
}

impl MinstrelHt {
    fn evaluate(&mut self, at: Time) {
        let weight = self.config.weight;
        self.evaluated = at;
        if self.transmissions > 0 {
            let mean = f64::from(self.packets) / f64::from(self.transmissions);
            self.mean_length += (mean - self.mean_length) * (1.0 - weight);
        }
        (self.transmissions, self.packets, self.slow_tries) = (0, 0, 0);
        self.tries_left = self.rates.len() as u32;
        self.rates.iter_mut().for_each(|rate| rate.evaluate(weight));
        let worth: Vec<f64> = self.rates.iter().map(|rate| rate.worth(self.mean_length)).collect();
        // The slower one first where two are worth the same; the slowest where nothing is.
        let greatest = |among: &dyn Fn(usize) -> bool, of: &dyn Fn(usize) -> f64| {
            let fitting = (0..worth.len()).filter(|rate| among(*rate) && worth[*rate] > 0.0);
            fitting.fold(None, |best: Option<usize>, rate| match best {
                Some(best) if of(best) >= of(rate) => Some(best),
                _ => Some(rate),
            })
        };
        let share = |rate: usize| self.rates[rate].share();
        self.best = greatest(&|_| true, &|rate| worth[rate]).unwrap_or(0);
        self.second = greatest(&|rate| rate != self.best, &|rate| worth[rate]).unwrap_or(self.best);
        let probable = greatest(&|rate| share(rate) > PROBABLE_SHARE, &|rate| worth[rate]);
        self.safest = probable.or_else(|| greatest(&|_| true, &share)).unwrap_or(0);
    }

    /// A rate to try, if it is time for one.
    fn sample(&mut self) -> Option<usize> {
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        if self.tries_left == 0 {
            return None;
        }
        let sample = self.order.next(self.rates.len());
        if [self.best, self.second, self.safest].contains(&sample) || self.rates[sample].share() > CERTAIN_SHARE {
            return None;
        }
        let time = |rate: usize| self.rates[rate].times.packet;
        if time(sample) >= time(self.second) && time(sample) >= time(self.safest) {
            if self.rates[sample].skipped < SKIPPED_INTERVALS || self.slow_tries >= SLOW_TRIES {
                return None;
            }
            self.slow_tries += 1;
        }
        self.tries_left -= 1;
        self.wait = WAIT + 2 * self.mean_length as u32;
        Some(sample)
    }
}

impl Choose for MinstrelHt {
    fn choose(&mut self) -> usize {
        if let Some(rate) = self.series.and_then(|series| series.rate()) {
            return rate;
        }
        let stage = |rate: usize| (rate, self.rates[rate].tries(self.mean_length));
        let (best, second, safest) = (stage(self.best), stage(self.second), stage(self.safest));
        let stages = match self.sample() {
            Some(sample) => [(sample, 1), best, safest],
            None => [best, second, safest],
        };
        self.series = Some(Series { stages, failures: 0 });
        stages[0].0
    }

    fn heard(&mut self, at: Time, sent: u32, received: u32) {
        let rate = self.choose();
        self.rates[rate].sent += sent;
        self.rates[rate].received += received;
        self.transmissions += 1;
        self.packets += sent;
        self.series =
            self.series.filter(|_| received == 0).map(|series| Series { failures: series.failures + 1, ..series });
        if at >= self.evaluated + self.config.interval {
            self.evaluate(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    /// Rates of 1, 2, 4 and 8 packets in a millisecond, without overhead.
    fn four_rates() -> MinstrelHt {
        let times = |packets: u64| ModeTimes { packet: Span::from_micros(1000 / packets), overhead: Span::ZERO };
        let scope = DrawScope { hop: "h", direction: Direction::Uplink, role: "test", instance: 0 };
        let modes = [times(1), times(2), times(4), times(8)];
        let key = DrawKey::new(Seed(5), &scope);
        MinstrelHtConfig::default().build(RateBeginning { modes: &modes, usual: 3, key })
    }

    /// Shares of a seconds' transmissions by rate, one each millisecond from `begin` on; packets at a rate are received
    /// in the shares `of`.
    fn shares(control: &mut MinstrelHt, begin_ms: u64, milliseconds: u64, of: [f64; 4]) -> [f64; 4] {
        let mut sent = [0u32; 4];
        let mut debts = [0.0; 4];
        for step in 0..milliseconds {
            let rate = control.choose();
            sent[rate] += 1;
            debts[rate] += of[rate];
            let is_received = debts[rate] >= 1.0;
            debts[rate] -= f64::from(u8::from(is_received));
            control.heard(Time::from_nanos((begin_ms + step) * 1_000_000), 1, u32::from(is_received));
        }
        sent.map(|sent| f64::from(sent) / milliseconds as f64)
    }

    #[test]
    fn the_rate_that_brings_most_is_found_and_followed() {
        let mut control = four_rates();
        assert_eq!(control.best, 0);
        // 1, 2, 3.2 and 1.6 packets: the third is best.
        shares(&mut control, 0, 1000, [1.0, 1.0, 0.8, 0.2]);
        let found = shares(&mut control, 1000, 1000, [1.0, 1.0, 0.8, 0.2]);
        assert!(found[2] > 0.8, "{found:?}");
        assert_eq!(control.best, 2);
        // Worse: the second one is.
        shares(&mut control, 2000, 500, [1.0, 0.9, 0.0, 0.0]);
        let found = shares(&mut control, 2500, 1000, [1.0, 0.9, 0.0, 0.0]);
        assert!(found[1] > 0.8, "{found:?}");
        // Better than ever.
        shares(&mut control, 3500, 1000, [1.0; 4]);
        let found = shares(&mut control, 4500, 1000, [1.0; 4]);
        assert!(found[3] > 0.9, "{found:?}");
    }

    #[test]
    fn averages_and_worth_by_hand() {
        let mut rate = Rate::new(ModeTimes { packet: Span::from_micros(100), overhead: Span::from_micros(50) });
        assert_eq!(rate.worth(1.0), 0.0);
        (rate.sent, rate.received) = (10, 10);
        rate.evaluate(0.75);
        assert_eq!(rate.share, Some(1.0));
        // 0.9 in 150 us, and in aggregates of two packets in 125 us.
        assert!((rate.worth(1.0) * 150_000.0 - 0.9).abs() < 1e-12);
        assert!((rate.worth(2.0) * 125_000.0 - 0.9).abs() < 1e-12);
        (rate.sent, rate.received) = (4, 2);
        rate.evaluate(0.75);
        assert_eq!(rate.share, Some(0.875));
        rate.evaluate(0.75);
        assert_eq!((rate.share, rate.skipped), (Some(0.875), 1));
        // 6 ms hold 40 tries of 150 us, of which 7 are made.
        assert_eq!(rate.tries(1.0), 7);
        assert_eq!(rate.tries(20.0), 2);
    }

    #[test]
    fn stages_follow_each_other_with_failures() {
        let series = |failures| Series { stages: [(2, 2), (1, 3), (0, 2)], failures }.rate();
        let rates: Vec<Option<usize>> = (0..8).map(series).collect();
        assert_eq!(rates, [Some(2), Some(2), Some(1), Some(1), Some(1), Some(0), Some(0), None]);
    }

    #[test]
    fn every_rate_comes_once_in_an_order() {
        let mut order = four_rates().order;
        for _ in 0..20 {
            let mut round: Vec<usize> = (0..4).map(|_| order.next(4)).collect();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3]);
        }
    }
}
