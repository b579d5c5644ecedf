// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Laws of every registered scheduler, over random slots.

use std::collections::BTreeSet;

use airpath_models::schedule::{EXAMPLE_BEARERS, Scheduler, SchedulerConfig};

use super::{Case, config, key, scheduler};

const SHAPES: [(usize, usize); 5] = [(1, 1), (2, 3), (3, 8), (7, 25), (20, 6)];

/// Random slots with numbers that rise, mostly by one, sometimes by many.
fn cases(seed: u64, bearers: usize, resources: usize) -> impl Iterator<Item = Case> {
    let key = key(seed);
    let mut number = 0;
    (0..300).map(move |step| {
        number += if key.below(step, 0, 10) == 0 { key.below(step, 1, 1_000_000) } else { 1 };
        Case::random(key, number, bearers, resources)
    })
}

#[test]
fn examples_are_printed_as_they_are_read_and_have_no_problems() {
    for example in SchedulerConfig::examples() {
        assert_eq!(example.problems(), [], "{example:?}");
        assert_eq!(example.problems_of(&EXAMPLE_BEARERS, 25), [], "{example:?}");
        let text = toml::to_string(&example).unwrap();
        assert_eq!(config(&text), example, "{text}");
    }
}

#[test]
fn resources_are_usable_and_no_more_than_the_backlog_is_given() {
    for example in SchedulerConfig::examples() {
        for (bearers, resources) in SHAPES {
            let mut scheduler = scheduler(&example, bearers, resources);
            for case in cases(1, bearers, resources) {
                let to = case.assign(&mut scheduler);
                let bits = |bearer: usize, resource: usize| u64::from(case.bits[bearer * resources + resource]);
                let mut given = vec![0; bearers];
                let mut largest = vec![0; bearers];
                for (resource, bearer) in to.iter().enumerate() {
                    let Some(bearer) = *bearer else { continue };
                    let bits = bits(bearer, resource);
                    assert_ne!(bits, 0, "{example:?} {case:?} {to:?}");
                    given[bearer] += bits;
                    largest[bearer] = bits.max(largest[bearer]);
                }
                for (bearer, contender) in case.contenders.iter().enumerate() {
                    // Without its last resource it would have had something left.
                    let before = given[bearer] - largest[bearer];
                    assert!(given[bearer] == 0 || before < contender.backlog_bits, "{example:?} {case:?} {to:?}");
                }
                if scheduler.is_work_conserving() {
                    for resource in (0..resources).filter(|resource| to[*resource].is_none()) {
                        let could = |bearer: &usize| {
                            bits(*bearer, resource) > 0 && given[*bearer] < case.contenders[*bearer].backlog_bits
                        };
                        assert_eq!((0..bearers).find(could), None, "{example:?} {case:?} {to:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn empty_slots_and_idle_contenders_change_nothing() {
    for example in SchedulerConfig::examples() {
        for (bearers, resources) in SHAPES {
            let mut plain = scheduler(&example, bearers, resources);
            let mut asked = plain.clone();
            let mut next = 0;
            for case in cases(2, bearers, resources) {
                // At the beginning of the gap before this slot, and in its middle.
                for number in BTreeSet::from([next, next + (case.number - next) / 2]) {
                    if number < case.number {
                        assert_eq!(case.emptied(number).assign(&mut asked), vec![None; resources], "{example:?}");
                    }
                }
                next = case.number + 1;
                let to = case.assign(&mut asked);
                let without = case.without_idle();
                if without.contenders.is_empty() {
                    continue;
                }
                assert_eq!(without.assign(&mut plain), to, "{example:?} {case:?}");
            }
        }
    }
}

#[test]
fn an_only_bearer_gets_all_that_it_can_use() {
    for example in SchedulerConfig::examples() {
        let mut scheduler = scheduler(&example, 1, 4);
        for number in 0..50 {
            let case = Case::saturated(number, 1, 4, |_, resource| [0, 300, 1, 864][resource]);
            let to = case.assign(&mut scheduler);
            if scheduler.is_work_conserving() {
                assert_eq!(to, [None, Some(0), Some(0), Some(0)], "{example:?}");
            }
        }
    }
}

#[test]
fn nobody_starves_alone_with_many_empty_slots() {
    // An hour of silence, then one slot: averages have decayed, and nothing overflows.
    for example in SchedulerConfig::examples() {
        let mut scheduler = scheduler(&example, 2, 2);
        for number in [0, 1, 5_400_000, 5_400_001, (1 << 44) - 1] {
            let to = Case::saturated(number, 2, 2, |_, _| 864).assign(&mut scheduler);
            assert!(to.iter().flatten().count() > 0, "{example:?} {to:?}");
        }
    }
}
