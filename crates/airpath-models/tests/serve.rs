// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packet schedulers: laws of all of them, the equations of effort-limited fairness, and lags by hand.

use airpath_core::{Bits, Span, Time};
use airpath_models::serve::{
    Beginning, Nominal, Outcome, PacketScheduler, PacketSchedulerConfig, PacketSchedulerModel, Waiting,
};
use serde_json::{Value, json};

use crate::common::Dice;

const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
const NOMINAL: Nominal = Nominal { frame: Bits::from_bytes(1275), exchange: Span::from_micros(12_750) };

fn parse(config: &Value) -> PacketSchedulerConfig {
    serde_json::from_value(config.clone()).unwrap()
}

fn build(config: &PacketSchedulerConfig) -> PacketSchedulerModel {
    PacketSchedulerModel::new(config, Beginning { bearers: &NAMES, nominal: NOMINAL })
}

fn waiting(bearers: impl IntoIterator<Item = u16>) -> Vec<Waiting> {
    bearers.into_iter().map(|bearer| Waiting { bearer, since: Time::ZERO }).collect()
}

fn outcome(is_ok: bool) -> Outcome {
    let arrived_bits = if is_ok { NOMINAL.frame } else { Bits::ZERO };
    Outcome { air: NOMINAL.exchange, frames: 1, arrived: is_ok.into(), arrived_bits }
}

/// Attempts and successes of each bearer in so many exchanges, with everybody waiting.
fn busy(model: &mut PacketSchedulerModel, exchanges: u64, mut is_ok: impl FnMut(u16) -> bool) -> [(f64, f64); 4] {
    let all = waiting(0..4);
    let mut counts = [(0.0, 0.0); 4];
    for number in 0..exchanges {
        let at = Time::from_nanos(number * NOMINAL.exchange.nanos());
        let bearer = all[model.pick(at, &all)].bearer;
        let is_ok = is_ok(bearer);
        model.outcome(at + NOMINAL.exchange, bearer, &outcome(is_ok));
        counts[usize::from(bearer)].0 += 1.0;
        counts[usize::from(bearer)].1 += f64::from(u8::from(is_ok));
    }
    counts
}

#[test]
fn examples_have_no_problems_and_are_read_as_they_are_printed() {
    for example in PacketSchedulerConfig::examples() {
        assert_eq!(example.problems(), [], "{example:?}");
        assert_eq!(example.problems_of(&NAMES), [], "{example:?}");
        assert_eq!(example.problems_on(&NOMINAL), [], "{example:?}");
        assert_eq!(parse(&serde_json::to_value(&example).unwrap()), example);
    }
}

/// One that waits is always chosen, whoever does; equal copies choose alike; and choosing twice changes nothing.
#[test]
fn a_choice_is_one_that_waits_and_costs_nothing() {
    for example in PacketSchedulerConfig::examples() {
        let (mut model, mut asked_twice) = (build(&example), build(&example));
        let mut dice = Dice::new(3);
        for number in 0..5000 {
            let at = Time::from_nanos(number * NOMINAL.exchange.nanos());
            let mut who = waiting((0..4).filter(|_| dice.below(3) > 0));
            if who.is_empty() {
                who = waiting([dice.below(4) as u16]);
            }
            let place = model.pick(at, &who);
            assert!(place < who.len(), "{example:?}");
            asked_twice.pick(at, &who);
            assert_eq!(asked_twice.pick(at, &who), place, "{example:?} in exchange {number}");
            let outcome = outcome(dice.below(3) > 0);
            model.outcome(at, who[place].bearer, &outcome);
            asked_twice.outcome(at, who[place].bearer, &outcome);
        }
    }
}

/// Without errors, weights are kept to within 2 exchanges.
#[test]
fn weights_hold_without_errors() {
    let weights = json!({ "alice": 4, "bob": 2, "carol": 0.5, "dave": 3.5 });
    let flows: serde_json::Map<String, Value> =
        weights.as_object().unwrap().iter().map(|(name, weight)| (name.clone(), json!({ "weight": weight }))).collect();
    let mut configs: Vec<Value> = ["wrr", "wfq", "outcome_fair", "cif_q", "server_based"]
        .iter()
        .map(|kind| json!({ "type": kind, "weights": weights }))
        .collect();
    configs.push(json!({ "type": "elf", "flows": flows }));
    configs.push(json!({ "type": "strict_priority", "flows": flows }));
    for config in configs {
        let counts = busy(&mut build(&parse(&config)), 1000, |_| true);
        for ((attempts, _), expected) in counts.iter().zip([400.0, 200.0, 50.0, 350.0]) {
            assert!((attempts - expected).abs() <= 2.0, "{config}: {counts:?}");
        }
    }
}

/// Parts of the medium after equation 1 and section 6.3: reserved flows have a weight below 0.
fn parts(weights: [f64; 4], factors: [f64; 4], errors: [f64; 4]) -> [f64; 4] {
    let claim = |flow: usize| {
        let weight = weights[flow].abs();
        (weight / (1.0 - errors[flow])).min(factors[flow] * weight)
    };
    let claims = [0, 1, 2, 3].map(claim);
    let sum = |is_reserved: bool| -> f64 {
        (0..4).filter(|flow| (weights[*flow] < 0.0) == is_reserved).map(|flow| claims[flow]).sum()
    };
    let (reserved, best_effort) = (sum(true), sum(false));
    [0, 1, 2, 3].map(|flow| match weights[flow] < 0.0 {
        true => claims[flow],
        false => (1.0 - reserved) * claims[flow] / best_effort,
    })
}

/// Equation 1, throughput, guaranteed rates and the rest of section 6 at random parameters. Of 40,000 exchanges a part
/// has a standard deviation of 0.0025 at most; 0.02 also covers the neighbourhood of the crossover, where limits of lag
/// and saved effort count.
#[test]
fn parts_of_the_medium_are_those_of_section_6() {
    let mut dice = Dice::new(11);
    for case in 0..50 {
        let is_reserved = case % 2 == 1;
        let factors = [0; 4].map(|_| 1.0 + dice.unit() * 1.5);
        let errors = [0; 4].map(|_| dice.unit() * 0.9);
        let mut weights = [0; 4].map(|_| 0.5 + dice.unit() * 4.0);
        let mut flows = serde_json::Map::new();
        for flow in 0..4 {
            let mut own = json!({ "power_factor": factors[flow] });
            if is_reserved && flow < 2 {
                let bits = (8_000.0 + dice.unit() * 140_000.0) as u64;
                weights[flow] = -(bits as f64) / 800_000.0;
                own["rate"] = format!("{bits} bit/s").into();
            } else {
                own["weight"] = weights[flow].into();
            }
            flows.insert(NAMES[flow].into(), own);
        }
        let config = parse(&json!({ "type": "elf", "flows": flows }));
        assert_eq!(config.problems_on(&NOMINAL), []);
        let mut fate = Dice::new(case + 100);
        let counts = busy(&mut build(&config), 40_000, |bearer| fate.unit() >= errors[usize::from(bearer)]);
        let expected = parts(weights, factors, errors);
        for flow in 0..4 {
            let (attempts, successes) = (counts[flow].0 / 40_000.0, counts[flow].1 / 40_000.0);
            let what = format!("case {case}, flow {flow}: {weights:?} {factors:?} {errors:?}");
            assert!((attempts - expected[flow]).abs() < 0.02, "{attempts} of {}, {what}", expected[flow]);
            assert!((successes - expected[flow] * (1.0 - errors[flow])).abs() < 0.02, "{successes}, {what}");
        }
    }
}

/// One flow from which nothing arrives takes P W / (P W + Σ W) of the time (section 6.2), to within two exchanges.
#[test]
fn the_power_factor_limits_the_time_of_a_flow() {
    for factor in [1.0, 1.5, 3.0] {
        let config = parse(&json!({ "type": "elf", "flows": { "alice": { "power_factor": factor } } }));
        let counts = busy(&mut build(&config), 6000, |bearer| bearer != 0);
        let expected = 6000.0 * factor / (factor + 3.0);
        // It may save up the effort of 20 exchanges.
        assert!((counts[0].0 - expected).abs() <= 2.0 + 20.0, "{factor}: {counts:?}, {expected} expected");
    }
}

/// A reserved flow with W = 1/4 and P = 2 loses all of 100 exchanges: it gets half of the time, 50. Then it lags by 25
/// packets, and gets half of the time until that is repaid, in 100 exchanges; then a quarter again.
#[test]
fn a_lag_is_repaid_within_the_power_factor() {
    let flows = json!({ "alice": { "rate": "200 kbit/s", "power_factor": 2 } });
    let config = parse(&json!({ "type": "elf", "flows": flows, "effort_window": "1 slot" }));
    let mut model = build(&config);
    let burst = busy(&mut model, 100, |bearer| bearer != 0);
    let after = [0; 4].map(|_| busy(&mut model, 50, |_| true)[0].0);
    println!("{burst:?} {after:?}");
    assert!((burst[0].0 - 50.0).abs() <= 2.0, "{burst:?}");
    for (found, expected) in after.iter().zip([25.0, 25.0, 12.5, 12.5]) {
        assert!((found - expected).abs() <= 2.5, "{after:?}");
    }
    // With a limit of 40 exchanges, the lag is worth 10 packets.
    let config = parse(&json!({ "type": "elf", "flows": flows, "effort_window": "1 slot", "lag_limit": "40 slots" }));
    let mut model = build(&config);
    busy(&mut model, 100, |bearer| bearer != 0);
    let after = [0; 4].map(|_| busy(&mut model, 50, |_| true)[0].0);
    assert!((after[0] - 22.5).abs() <= 2.5 && (after[1] - 12.5).abs() <= 2.5, "{after:?}");
}

#[test]
fn reservations_beyond_the_medium_are_refused() {
    let problem = |config: Value| {
        let config = parse(&config);
        let mut problems = config.problems();
        problems.extend(config.problems_on(&NOMINAL));
        problems.extend(config.problems_of(&NAMES));
        problems.first().map(|problem| problem.message.clone()).unwrap_or_default()
    };
    let one = |flow: Value| json!({ "type": "elf", "flows": { "alice": flow } });
    assert!(problem(one(json!({ "rate": "801 kbit/s" }))).contains("carries 800 kbit/s"));
    assert!(problem(one(json!({ "rate": "500 kbit/s", "power_factor": 2 }))).contains("125 %"));
    let mut overcommitted = one(json!({ "rate": "500 kbit/s", "power_factor": 2 }));
    overcommitted["overcommit"] = true.into();
    assert_eq!(problem(overcommitted), "");
    let mut critical = one(json!({ "rate": "401 kbit/s" }));
    critical["critical_error_rate"] = 0.5.into();
    assert!(problem(critical.clone()).contains("400 kbit/s"));
    critical["flows"]["alice"]["rate"] = "400 kbit/s".into();
    assert_eq!(problem(critical), "");
    assert!(problem(one(json!({ "power_factor": 0.9 }))).contains("from 1"));
    assert!(problem(one(json!({ "weight": 0 }))).contains("0.001"));
    assert!(problem(json!({ "type": "wfq", "weights": { "alise": 2 } })).contains("did you mean `alice`"));
}

/// Weighted fair queueing written for clarity: start and finish tags of every exchange, over random sets of those that
/// wait and random lengths. Weights are powers of 2, and lengths such parts of an exchange, so that no tag is rounded.
#[test]
fn fair_queueing_is_that_of_the_naive_reference() {
    let weights = [4.0, 2.0, 0.5, 1.0];
    let config = json!({ "type": "wfq", "weights": { "alice": 4, "bob": 2, "carol": 0.5, "dave": 1 } });
    let mut model = build(&parse(&config));
    let mut dice = Dice::new(5);
    let mut history: Vec<(usize, f64, f64)> = Vec::new();
    let mut began: [Option<f64>; 4] = [None; 4];
    for number in 0..4000 {
        let present: Vec<u16> = (0..4).filter(|_| dice.below(4) > 0).collect();
        if present.is_empty() {
            continue;
        }
        let clock = history.iter().map(|(_, start, _)| *start).fold(0.0, f64::max);
        let mut best: Option<(f64, u16)> = None;
        for bearer in 0..4u16 {
            let flow = usize::from(bearer);
            if !present.contains(&bearer) {
                began[flow] = None;
                continue;
            }
            let last = history.iter().rev().find(|(served, ..)| *served == flow).map_or(0.0, |(.., finish)| *finish);
            let begin = *began[flow].get_or_insert(clock);
            let start = last.max(begin);
            if best.is_none_or(|(least, _)| start < least) {
                best = Some((start, bearer));
            }
        }
        let (start, expected) = best.unwrap();
        let who = waiting(present);
        assert_eq!(who[model.pick(Time::ZERO, &who)].bearer, expected, "exchange {number}");
        let quarters = 1 + dice.below(8);
        let air = Span::from_nanos(NOMINAL.exchange.nanos() / 4 * quarters);
        model.outcome(Time::ZERO, expected, &Outcome { air, ..outcome(true) });
        let flow = usize::from(expected);
        history.push((flow, start, start + quarters as f64 / 4.0 / weights[flow]));
    }
}

/// Effort-limited fairness written for clarity, from the counts of attempts and successes alone: a reserved flow is due
/// while it has had less than W of the outcome, and less than P W of the effort, of all exchanges so far.
#[test]
fn effort_limited_fairness_is_that_of_the_naive_reference() {
    let mut dice = Dice::new(8);
    for case in 0..40 {
        let factors = [0; 4].map(|_| [1.0, 2.0, 4.0][dice.below(3) as usize]);
        let weights = [1.0 / 8.0, 1.0 / 16.0, [0.5, 1.0, 4.0][dice.below(3) as usize], 1.0];
        let errors = [0; 4].map(|_| dice.unit() * 0.9);
        let flows = json!({
            "alice": { "rate": "100 kbit/s", "power_factor": factors[0] },
            "bob": { "rate": "50 kbit/s", "power_factor": factors[1] },
            "carol": { "weight": weights[2], "power_factor": factors[2] },
            "dave": { "weight": weights[3], "power_factor": factors[3] },
        });
        let windows = json!("1000000000 slots");
        let config = parse(&json!({ "type": "elf", "flows": flows, "lag_limit": windows, "effort_window": windows }));
        let mut model = build(&config);
        let (mut attempts, mut successes) = ([0f64; 4], [0f64; 4]);
        let all = waiting(0..4);
        for number in 0..3000 {
            let now = f64::from(number);
            let tag = |flow: &usize| -> f64 {
                let flow = *flow;
                (successes[flow] / weights[flow]).max(attempts[flow] / (factors[flow] * weights[flow]))
            };
            let due = |flow: &usize| {
                successes[*flow] < weights[*flow] * now && attempts[*flow] < factors[*flow] * weights[*flow] * now
            };
            let first = |flows: Vec<usize>| {
                flows.into_iter().reduce(|one, next| if tag(&next) < tag(&one) { next } else { one })
            };
            let expected = first([0, 1].into_iter().filter(due).collect()).or_else(|| first(vec![2, 3])).unwrap();
            let found = usize::from(all[model.pick(Time::ZERO, &all)].bearer);
            assert_eq!(found, expected, "case {case}, exchange {number}: {weights:?} {factors:?}");
            let is_ok = dice.unit() >= errors[expected];
            attempts[expected] += 1.0;
            successes[expected] += f64::from(u8::from(is_ok));
            model.outcome(Time::ZERO, expected as u16, &outcome(is_ok));
        }
    }
}
