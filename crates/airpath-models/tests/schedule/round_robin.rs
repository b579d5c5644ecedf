// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Round robin: equal numbers of resources; there, and under best channel, nobody waits for long.

use super::{Case, config, key, scheduler};

const ROUND_ROBIN: &str = r#"type = "round_robin""#;
const BEST_CHANNEL: &str = r#"type = "best_channel""#;

#[test]
fn busy_bearers_differ_by_one_resource_at_most_after_every_slot() {
    for (bearers, resources) in [(3, 1), (3, 25), (20, 25), (25, 25), (7, 4)] {
        let mut scheduler = scheduler(&config(ROUND_ROBIN), bearers, resources);
        let mut counts = vec![0u32; bearers];
        for number in 0..100 {
            let case = Case::saturated(number, bearers, resources, |bearer, _| 100 * (bearer as u32 + 1));
            case.assign(&mut scheduler).into_iter().flatten().for_each(|bearer| counts[bearer] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?}");
        }
        assert_eq!(counts.iter().sum::<u32>(), 100 * resources as u32);
    }
}

#[test]
fn the_order_by_hand() {
    // Bob cannot use the first resource, keeps his place, and is next.
    let mut scheduler = scheduler(&config(ROUND_ROBIN), 3, 4);
    let usable = |bearer, resource| if (bearer, resource) == (0, 0) { 0 } else { 500 };
    let mut slot = |number, backlogs: [u64; 3]| {
        let mut case = Case::saturated(number, 3, 4, usable);
        case.contenders.iter_mut().zip(backlogs).for_each(|(contender, backlog)| contender.backlog_bits = backlog);
        case.assign(&mut scheduler)
    };
    assert_eq!(slot(0, [9999; 3]), [Some(1), Some(0), Some(2), Some(1)]);
    // The order is 0, 2, 1 now; the first has nothing left after 500 bits, the last nothing at all.
    assert_eq!(slot(1, [500, 600, 0]), [Some(1), Some(0), Some(1), None]);
}

#[test]
fn a_bearer_with_one_usable_resource_a_slot_waits_for_the_others_at_most() {
    // With 5 bearers and 25 resources a pointer that goes round would always be elsewhere at that resource.
    for (bearers, toml) in [2, 5, 25].into_iter().flat_map(|bearers| [(bearers, ROUND_ROBIN), (bearers, BEST_CHANNEL)])
    {
        let mut scheduler = scheduler(&config(toml), bearers, 25);
        let mut waited = 0;
        for number in 0..200 {
            let usable = key(3).below(number, 0, 25) as usize;
            let bits = |bearer, resource| if bearer > 0 || resource == usable { 864 } else { 0 };
            let to = Case::saturated(number, bearers, 25, bits).assign(&mut scheduler);
            waited = if to.contains(&Some(0)) { 0 } else { waited + 1 };
            assert!(waited < bearers, "{toml}, slot {number}");
        }
    }
}
