// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use super::*;

const MS: u64 = 1_000_000;

fn reading(task: i32, party: Party, ran_ms: u64, waited_ms: u64, slices: u64) -> Reading {
    let counters = Counters { ran_ns: ran_ms * MS, waited_ns: waited_ms * MS, slices };
    Reading { task: (task, task), member: Member { party, link: Some(0) }, processors: 2, counters }
}

/// An account that begins with what client and server did before.
fn begun() -> Account {
    let mut account = Account::default();
    account.sample(0, &[reading(2, Party::Client, 5, 700, 9), reading(3, Party::Server, 5, 700, 9)]);
    account.begin();
    account
}

#[test]
fn what_was_before_the_run_does_not_count() {
    let mut account = begun();
    account.sample(20 * MS, &[reading(2, Party::Client, 5, 700, 9), reading(3, Party::Server, 5, 700, 9)]);
    let waits = account.finish();
    assert_eq!((waits.client.waited_ns, waits.server.kept_waiting_ns, waits.samples), (0, 0, 1));
}

#[test]
fn a_wait_in_which_no_command_of_the_run_ran_is_because_of_others() {
    let mut account = begun();
    // Both sleep, then somebody else has the processors for 40 ms; the wait is told when it ends.
    let still = [reading(2, Party::Client, 5, 700, 9), reading(3, Party::Server, 5, 700, 9)];
    account.sample(20 * MS, &still);
    account.sample(40 * MS, &still);
    account.sample(60 * MS, &[reading(2, Party::Client, 5, 740, 10), reading(3, Party::Server, 5, 700, 9)]);
    let waits = account.finish();
    assert_eq!(waits.client.waited_ns, 40 * MS);
    assert!((39 * MS..=40 * MS).contains(&waits.client.kept_waiting_ns), "{waits:?}");
    assert_eq!(waits.client.kept_waiting_ns, waits.client.longest_ns);
    assert_eq!(waits.server, PartyWaits { waited_ns: 0, ..waits.server });
}

#[test]
fn commands_that_wait_for_each_other_are_their_own_doing() {
    let mut account = begun();
    // Three tasks on two processors, always busy: each runs two thirds of the time and waits one third.
    for step in 1..=50 {
        let task = |number, party| reading(number, party, 5 + step * 14, 700 + step * 6, 9 + step * 3);
        account.sample(
            step * 20 * MS,
            &[task(2, Party::Client), task(3, Party::Server), reading(4, Party::Server, step * 12, step * 8, step * 3)],
        );
    }
    let waits = account.finish();
    assert_eq!(waits.client.waited_ns, 300 * MS);
    assert_eq!((waits.client.kept_waiting_ns, waits.server.kept_waiting_ns), (0, 0), "{waits:?}");
}

#[test]
fn the_usual_latency_of_a_wake_up_is_no_wait() {
    let mut account = begun();
    // A thousand wake-ups in 20 ms, each of 10 us.
    account.sample(20 * MS, &[reading(2, Party::Client, 10, 710, 1009)]);
    assert_eq!(account.finish().client.kept_waiting_ns, 0);
}

#[test]
fn several_waits_between_two_samples_are_not_one_long_one() {
    let mut account = begun();
    // Every 20 ms eight waits of 1 ms each.
    for step in 1..=20 {
        account.sample(step * 20 * MS, &[reading(2, Party::Client, 5, 700 + step * 8, 9 + step * 8)]);
    }
    let waits = account.finish();
    assert!(waits.client.kept_waiting_ns > 140 * MS, "{waits:?}");
    // The first sample does not know yet what is usual.
    assert!(waits.client.longest_ns < 8 * MS, "{waits:?}");
}

#[test]
fn tasks_of_one_end_that_wait_together_count_once() {
    let mut account = begun();
    let tasks: Vec<_> = (10..20).map(|task| reading(task, Party::Client, 0, 30, 1)).collect();
    account.sample(40 * MS, &tasks);
    let waits = account.finish();
    assert_eq!((waits.client.tasks, waits.client.waited_ns), (10, 300 * MS));
    assert!(waits.client.kept_waiting_ns <= 30 * MS, "{waits:?}");
}

#[test]
fn a_share_of_what_hogs_take_remains_where_the_commands_are_busy_themselves() {
    let mut account = begun();
    // Client and server compute; 40 of every 100 ms somebody else has both processors.
    for round in 0..10 {
        let base = round * 100;
        for (at, ran, waited, slices) in
            [(20, 20, 0, 0), (40, 40, 0, 0), (60, 60, 0, 0), (80, 60, 0, 0), (100, 60, 40, 1)]
        {
            let task = |number, party| {
                reading(number, party, 5 + round * 60 + ran, 700 + round * 40 + waited, 9 + round + slices)
            };
            account.sample((base + at) * MS, &[task(2, Party::Client), task(3, Party::Server)]);
        }
    }
    let waits = account.finish();
    assert!(waits.client.kept_waiting_ns > 150 * MS, "{waits:?}");
    assert!(waits.client.longest_ns > 15 * MS, "{waits:?}");
}
