// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Schedulers against cases computed by hand, and the errors of their parameters.

use airpath_core::Time;
use airpath_models::schedule::EXAMPLE_BEARERS;

use super::{Case, config, parse, scheduler, slot_start};

/// Bearers of the resources of one slot in which everybody has much to send: `bits` by bearer and resource.
fn first_slot<const R: usize>(toml: &str, bits: &[[u32; R]]) -> Vec<Option<usize>> {
    let mut scheduler = scheduler(&config(toml), bits.len(), R);
    Case::saturated(0, bits.len(), R, |bearer, resource| bits[bearer][resource]).assign(&mut scheduler)
}

#[test]
fn static_resources_belong_to_their_owners() {
    let bits = [[100, 100, 100, 0, 100], [900, 900, 900, 900, 900]];
    let by_number = first_slot(r#"type = "static""#, &bits);
    assert_eq!(by_number, [Some(0), Some(1), Some(0), Some(1), Some(0)]);
    let by_list = first_slot(r#"{ type = "static", owners = ["bob", "alice", "alice", "alice"] }"#, &bits);
    assert_eq!(by_list, [Some(1), Some(0), Some(0), None, None]);
}

#[test]
fn the_best_channel_is_that_of_a_bearer_and_not_the_bearer_of_a_channel() {
    // Alice is near. Each takes the best of what is left, in turn: alice 2, bob 1, alice 0, bob 3.
    let bits = [[800, 700, 864, 600], [10, 40, 30, 5]];
    assert_eq!(first_slot(r#"type = "best_channel""#, &bits), [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(first_slot(r#"{ type = "best_channel", most = 1 }"#, &bits), [None, Some(1), Some(0), None]);
    // The first chooser of a slot is the last of the next.
    let mut scheduler = scheduler(&config(r#"{ type = "best_channel", most = 1 }"#), 3, 3);
    let order = |number| Case::saturated(number, 3, 3, |_, resource| 3 - resource as u32).assign(&mut scheduler);
    let orders: Vec<Vec<Option<usize>>> = (0..4).map(order).collect();
    let expected = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]];
    assert_eq!(orders, expected.map(|order| order.map(Some).to_vec()));
}

#[test]
fn maximum_ci_serves_the_nearest_and_equals_in_turn() {
    let bits = [[500, 0, 864, 864, 0], [400, 300, 864, 864, 0]];
    let mut scheduler = scheduler(&config(r#"type = "max_ci""#), 2, 5);
    let mut slot =
        |number| Case::saturated(number, 2, 5, |bearer, resource| bits[bearer][resource]).assign(&mut scheduler);
    // The two equals go to alice, who then had the last turn; in the next slot they go to bob, and so on.
    let (alice, bob) = (Some(0), Some(1));
    assert_eq!(slot(0), [alice, bob, alice, alice, None]);
    assert_eq!(slot(1), [alice, bob, bob, bob, None]);
    assert_eq!(slot(2), [alice, bob, alice, alice, None]);
}

#[test]
fn proportional_fair_by_hand() {
    // W = 2. Averages when a slot is given away: 0, 0; 0, 75; 25, 37.5; 12.5, 93.75; 31.25, 46.875.
    let mut scheduler = scheduler(&config(r#"{ type = "proportional_fair", window = "2 slots" }"#), 2, 1);
    let mut slot = |number| Case::saturated(number, 2, 1, |bearer, _| [100, 300][bearer]).assign(&mut scheduler)[0];
    assert_eq!([1, 2, 3, 4, 5].map(&mut slot), [1, 0, 1, 0, 1].map(Some));
    // After long silence both are as new: the one with more bits, whoever had the slot before.
    assert_eq!([10_000, 20_000].map(&mut slot), [1, 1].map(Some));
}

#[test]
fn bits_beyond_the_backlog_do_not_count_as_throughput() {
    // In the first slot each got one resource, but alice had one bit: her average is lower although her resource
    // would have carried more.
    let mut scheduler = scheduler(&config(r#"{ type = "proportional_fair", window = "10 slots" }"#), 2, 2);
    let mut case = Case::saturated(1, 2, 2, |bearer, _| [800, 400][bearer]);
    case.contenders[0].backlog_bits = 1;
    assert_eq!(case.assign(&mut scheduler), [Some(0), Some(1)]);
    let equal = Case::saturated(2, 2, 2, |_, _| 400);
    assert_eq!(equal.assign(&mut scheduler), [Some(0), Some(0)]);
}

#[test]
fn deficit_by_hand() {
    // A quantum of 1000 bits pays two resources of 400; with the rest of 200 the next one pays three.
    let mut scheduler = scheduler(&config(r#"{ type = "deficit", quantum = "1000 bit" }"#), 2, 10);
    let turns = [0, 0, 1, 1, 0, 0, 0, 1, 1, 1].map(Some);
    assert_eq!(Case::saturated(0, 2, 10, |_, _| 400).assign(&mut scheduler), turns);
    // A new round, of which three resources are useless to alice: bob takes two of them from his own credit.
    let bits = |bearer, resource| if bearer == 0 && resource < 3 { 0 } else { 400 };
    let turns = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0].map(Some);
    assert_eq!(Case::saturated(1, 2, 10, bits).assign(&mut scheduler), turns);
}

#[test]
fn who_has_nothing_left_loses_the_credit() {
    let mut scheduler = scheduler(&config(r#"{ type = "deficit", quantum = "1000 bit" }"#), 2, 3);
    let mut first = Case::saturated(0, 2, 3, |_, _| 400);
    first.contenders[0].backlog_bits = 400;
    assert_eq!(first.assign(&mut scheduler), [0, 1, 1].map(Some));
    // Bob has 200 left, which do not pay; alice has a whole quantum, and not 1600.
    let second = Case::saturated(1, 2, 3, |_, _| 400);
    assert_eq!(second.assign(&mut scheduler), [0, 0, 1].map(Some));
}

#[test]
fn the_earliest_deadline_goes_first() {
    let toml = r#"{ type = "earliest_deadline", budget = "100 ms", budgets = { alice = "20 ms" } }"#;
    let mut scheduler = scheduler(&config(toml), 3, 4);
    let mut case = Case::saturated(600, 3, 4, |bearer, resource| if (bearer, resource) == (1, 0) { 0 } else { 500 });
    // At 400 ms; deadlines: 390 + 20 = 410, 300 + 100 = 400, 311 + 100 = 411 ms.
    for (contender, (millis, backlog)) in case.contenders.iter_mut().zip([(390, 900), (300, 400), (311, 9000)]) {
        (contender.since, contender.backlog_bits) = (Time::from_nanos(millis * 1_000_000), backlog);
    }
    assert_eq!(case.assign(&mut scheduler), [0, 1, 0, 2].map(Some));
}

#[test]
fn modified_largest_weighted_delay_first_by_hand() {
    let toml = r#"
        type = "modified_largest_weighted_delay_first"
        budget = "100 ms"
        budgets = { alice = "50 ms" }
        weights = { bob = 3 }
    "#;
    let mut scheduler = scheduler(&config(toml), 3, 3);
    // Means: 500, 200, 900. Delays of 90, 80 and 300 ms in budgets, times weights: 1.8, 2.4, 3.
    // Products with the qualities relative to the means: 2.16, 1.44, 1.8; 2.4, 1.2, 3.6; 0.3, 5.7, 3.
    let bits = [[600, 400, 500], [200, 100, 300], [90, 1710, 900]];
    let mut case = Case::saturated(600, 3, 3, |bearer, resource| bits[bearer][resource]);
    for (contender, delay) in case.contenders.iter_mut().zip([90, 80, 300]) {
        contender.since = Time::from_nanos(slot_start(600).nanos() - delay * 1_000_000);
    }
    assert_eq!(case.assign(&mut scheduler), [1, 2, 1].map(Some));
}

#[test]
fn a_score_is_a_rank_among_ones_own_past() {
    // Alice at 100, 200, 300, 400 and then at 350: the second of five. Bob at 900 always, and then at 800: the last.
    let mut scheduler = scheduler(&config(r#"{ type = "score_based", window = 5 }"#), 2, 1);
    for (number, bits) in [[100, 900], [200, 900], [300, 900], [400, 900]].into_iter().enumerate() {
        Case::saturated(number as u64, 2, 1, |bearer, _| bits[bearer]).assign(&mut scheduler);
    }
    assert_eq!(Case::saturated(4, 2, 1, |bearer, _| [350, 800][bearer]).assign(&mut scheduler), [Some(0)]);
}

#[test]
fn errors_name_the_key_and_the_remedy() {
    let problem = |toml: &str| {
        let config = parse(toml);
        let mut problems = config.problems();
        problems.extend(config.problems_of(&EXAMPLE_BEARERS, 2));
        let texts: Vec<String> = problems.iter().map(|it| format!("{} {}", it.key, it.message)).collect();
        texts.join("\n")
    };
    let cases = [
        (
            r#"{ type = "static", owners = ["alice", "bobb"] }"#,
            "owners.1 names `bobb`, which is not in the cell; did you",
        ),
        (
            r#"{ type = "static", owners = ["bob", "bob", "bob"] }"#,
            "owners are 3, but the cell has 2 resources; shorten",
        ),
        (r#"{ type = "best_channel", most = 0 }"#, "most is 0; a bearer must get 1"),
        (r#"{ type = "proportional_fair", window = "0 slots" }"#, "window is 0 slots; it must be longer than 0"),
        (r#"{ type = "proportional_fair", weights = { bob = 0.0 } }"#, "weights.bob is 0; a weight must be from"),
        (r#"{ type = "deficit", quantum = "0 bit" }"#, "quantum is 0 bit; it must be longer than 0"),
        (r#"{ type = "deficit", weights = { carla = 1.0 } }"#, "weights.carla names `carla`, which is not in the cell"),
        (r#"{ type = "earliest_deadline", budgets = { bob = "0 ms" } }"#, "budgets.bob is 0 "),
        (r#"{ type = "score_based", window = 0 }"#, "window is 0; it must be from 1 to 1000"),
    ];
    for (toml, expected) in cases {
        let text = problem(toml);
        assert!(text.contains(expected), "{toml}\n{text}");
    }
}
