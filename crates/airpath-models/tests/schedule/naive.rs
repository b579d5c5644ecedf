// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Schedulers written for clarity alone, over the same random slots: one resource after the other, every bearer and
//! every slot looked at.

use super::{Case, config, key, scheduler};

/// State of a naïve scheduler.
struct Naive {
    /// By bearer: slot, and number in the slot, of the last turn.
    last_turn: Vec<Option<(u64, usize)>>,
    /// By bearer: throughput of proportional fair.
    average: Vec<f64>,
    next_slot: u64,
}

impl Naive {
    fn new(bearers: usize) -> Naive {
        Naive { last_turn: vec![None; bearers], average: vec![0.0; bearers], next_slot: 0 }
    }

    /// Gives each resource to the greatest `metric` (of bearer and bits), and of equals to the earliest last turn,
    /// as it was at the beginning of the slot, or at present if `is_at_once`.
    fn assign(
        &mut self,
        case: &Case,
        is_at_once: bool,
        metric: impl Fn(&Naive, usize, u32) -> f64,
    ) -> Vec<Option<usize>> {
        let mut left: Vec<u64> = case.contenders.iter().map(|contender| contender.backlog_bits).collect();
        let before = self.last_turn.clone();
        let mut to = Vec::new();
        for resource in 0..case.resources {
            let bits = |bearer: usize| case.bits[bearer * case.resources + resource];
            let mut able: Vec<usize> =
                (0..left.len()).filter(|bearer| left[*bearer] > 0 && bits(*bearer) > 0).collect();
            let turns = if is_at_once { &self.last_turn } else { &before };
            // The sort is stable: those without a turn stay in the order of their numbers.
            able.sort_by_key(|bearer| turns[*bearer]);
            able.sort_by(|one, two| metric(self, *two, bits(*two)).total_cmp(&metric(self, *one, bits(*one))));
            let best = able.first().copied();
            if let Some(bearer) = best {
                left[bearer] = left[bearer].saturating_sub(u64::from(bits(bearer)));
                self.last_turn[bearer] = Some((case.number, resource));
            }
            to.push(best);
        }
        to
    }
}

/// Random slots, one after the other without a gap.
fn cases(seed: u64, bearers: usize, resources: usize) -> impl Iterator<Item = Case> {
    (1..400).map(move |number| Case::random(key(seed), number, bearers, resources))
}

#[test]
fn round_robin_and_maximum_ci() {
    for (bearers, resources) in [(3, 1), (4, 9), (12, 25)] {
        let mut robin = (scheduler(&config(r#"type = "round_robin""#), bearers, resources), Naive::new(bearers));
        let mut max = (scheduler(&config(r#"type = "max_ci""#), bearers, resources), Naive::new(bearers));
        for case in cases(51, bearers, resources) {
            assert_eq!(case.assign(&mut robin.0), robin.1.assign(&case, true, |_, _, _| 0.0), "{case:?}");
            assert_eq!(case.assign(&mut max.0), max.1.assign(&case, false, |_, _, bits| bits.into()), "{case:?}");
        }
    }
}

#[test]
fn earliest_deadline() {
    let toml = r#"{ type = "earliest_deadline", budget = "100 ms", budgets = { bob = "20 ms" } }"#;
    let mut real = scheduler(&config(toml), 6, 10);
    let mut naive = Naive::new(6);
    for case in cases(52, 6, 10) {
        let deadline = |_: &Naive, bearer: usize, _: u32| {
            let budget = if bearer == 1 { 20e6 } else { 100e6 };
            -(case.contenders[bearer].since.nanos() as f64 + budget)
        };
        assert_eq!(case.assign(&mut real), naive.assign(&case, false, deadline), "{case:?}");
    }
}

#[test]
fn proportional_fair() {
    let toml = r#"{ type = "proportional_fair", window = "16 slots", weights = { bob = 2.0 } }"#;
    let mut real = scheduler(&config(toml), 6, 10);
    let mut naive = Naive::new(6);
    for case in cases(53, 6, 10).filter(|case| case.number % 50 > 5) {
        // Every slot that was left out.
        for _ in naive.next_slot..=case.number {
            naive.average.iter_mut().for_each(|average| *average *= 1.0 - 1.0 / 16.0);
        }
        naive.next_slot = case.number + 1;
        let metric = |naive: &Naive, bearer: usize, bits: u32| {
            let weight = if bearer == 1 { 2.0 } else { 1.0 };
            f64::from(bits) * (weight / naive.average[bearer].max(1e-6))
        };
        let to = naive.assign(&case, false, metric);
        assert_eq!(case.assign(&mut real), to, "{case:?}");
        for (bearer, contender) in case.contenders.iter().enumerate() {
            let got = (0..10).filter(|resource| to[*resource] == Some(bearer));
            let bits: u64 = got.map(|resource| u64::from(case.bits[bearer * 10 + resource])).sum();
            naive.average[bearer] += bits.min(contender.backlog_bits) as f64 / 16.0;
        }
    }
}

#[test]
fn best_channel() {
    let mut real = scheduler(&config(r#"type = "best_channel""#), 5, 8);
    let mut order: Vec<usize> = (0..5).collect();
    for case in cases(54, 5, 8) {
        let mut left: Vec<u64> = case.contenders.iter().map(|contender| contender.backlog_bits).collect();
        let mut to = vec![None; 8];
        let mut first = None;
        // More rounds than there are resources change nothing.
        for _ in 0..9 {
            for bearer in order.iter().copied() {
                let bits = |resource: &usize| case.bits[bearer * 8 + resource];
                let free = (0..8).filter(|resource| to[*resource].is_none() && bits(resource) > 0).rev();
                // The last of equals of the reversed: the first.
                let Some(best) = free.max_by_key(bits).filter(|_| left[bearer] > 0) else { continue };
                left[bearer] = left[bearer].saturating_sub(u64::from(bits(&best)));
                to[best] = Some(bearer);
                first = first.or(Some(bearer));
            }
        }
        assert_eq!(case.assign(&mut real), to, "{case:?}");
        if let Some(first) = first {
            order.retain(|bearer| *bearer != first);
            order.push(first);
        }
    }
}

#[test]
fn the_examples_of_the_page_are_schedulers() {
    let page = include_str!("../../../../docs/scenario/schedulers.md");
    let examples: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("scheduler = ")).collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        let problems = config(example).problems_of(&airpath_models::schedule::EXAMPLE_BEARERS, 25);
        assert_eq!(problems, [], "{example}");
    }
}
