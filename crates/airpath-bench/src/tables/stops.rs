// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Stops of the machine itself: the floor of every lateness.

use std::thread;
use std::time::Duration;

use airpath_live::tuning::REAL_TIME_PRIORITY;
use airpath_live::{clock, scheduling};

use super::Options;
use crate::report::{Table, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

/// A shorter time between two looks at the clock is no stop.
const LEAST_NS: u64 = 5_000;
/// The thread rests for a tenth of each of these, so that the kernel does not stop it.
const PERIOD_NS: u64 = 100_000_000;
const REST: Duration = Duration::from_millis(10);

/// Stops of one processor, in µs.
struct Stops {
    us: Samples,
    watched_ns: u64,
    real_time: bool,
}

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "stops of the machine: a real-time thread that only reads the clock, on each processor at once";
    let columns = ["processor", "stops over 5 µs", "over 100 µs", "over 1 ms", "worst µs", "gone ‰", "over 1 ms, ‰"];
    let mut table = Table::new("stops", title, &columns);
    let length_ns = (options.seconds(20.0) * 1e9) as u64;
    let threads: Vec<_> = scheduling::allowed_processors()?
        .into_iter()
        .map(|processor| (processor, thread::spawn(move || watch(processor, length_ns))))
        .collect();
    for (processor, thread) in threads {
        let Stops { us, watched_ns, real_time } = thread.join().expect("a thread that reads the clock does not panic");
        let over = |bound: f64| us.values().iter().filter(|stop| **stop > bound).count().to_string();
        let gone = |bound: f64| {
            let sum_us: f64 = us.values().iter().filter(|stop| **stop > bound).sum();
            sum_us * 1e6 / watched_ns as f64
        };
        let name = processor.to_string();
        let counts = [us.count().to_string(), over(100.0), over(1_000.0)];
        let shares = [us.max(), gone(0.0), gone(1_000.0)].map(short);
        table.row([name.clone()].into_iter().chain(counts).chain(shares));
        table.figure("worst stop", format!("processor {name}"), us.max(), "µs", None);
        table.figure("gone in stops over 1 ms", format!("processor {name}"), gone(1_000.0), "‰", None);
        if !real_time {
            table.notes.push(format!("processor {name}: no real-time priority, so that other programs count, too"));
        }
    }
    table.notes.push("packets due during a stop are late whatever the program: no verdict can be better".into());
    Ok(table)
}

fn watch(processor: usize, length_ns: u64) -> Stops {
    scheduling::pin_to_processor(processor);
    let real_time = scheduling::real_time(REAL_TIME_PRIORITY).is_allowed();
    let mut us = Vec::new();
    let (begin_ns, mut watched_ns) = (clock::monotonic_ns(), 0);
    while clock::monotonic_ns() - begin_ns < length_ns {
        let start_ns = clock::monotonic_ns();
        let mut last_ns = start_ns;
        while last_ns - start_ns < PERIOD_NS - REST.as_nanos() as u64 {
            let now_ns = clock::monotonic_ns();
            if now_ns - last_ns > LEAST_NS {
                us.push((now_ns - last_ns) as f64 / 1e3);
            }
            last_ns = now_ns;
        }
        watched_ns += last_ns - start_ns;
        thread::sleep(REST);
    }
    Stops { us: Samples::new(us), watched_ns, real_time }
}
