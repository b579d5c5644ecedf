// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A loop that runs away at real-time priority. A program of its own, as limits are those of a process.

use std::time::{Duration, Instant};

use airpath_live::{clock, scheduling, watchdog};

const LIMIT: Duration = Duration::from_millis(100);
/// Tolerance of the kernel's timing: it counts ticks (of 10 ms at most), and other real-time threads and a host
/// of virtual machines take time of their own.
const SLACK: Duration = Duration::from_secs(20);

/// The policy in force for the calling thread.
fn is_real_time() -> bool {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Field 41 of proc(5), counted from the one behind the name, which is field 3.
    fields[41 - 3] != "0"
}

fn work_for(duration: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < duration {
        std::hint::spin_loop();
    }
}

#[test]
fn a_thread_that_runs_away_becomes_ordinary_and_one_that_sleeps_stays() {
    let allowed = std::thread::spawn(|| scheduling::real_time(1).is_allowed()).join().unwrap();
    if !allowed {
        eprintln!("skipped: real-time priority is refused here");
        return;
    }
    // One that sleeps now and then works for longer than the limit altogether.
    std::thread::spawn(|| {
        assert!(watchdog::guard(LIMIT).is_allowed() && scheduling::real_time(1).is_allowed());
        for _ in 0..30 {
            work_for(LIMIT / 10);
            std::thread::sleep(Duration::from_millis(1));
        }
        // A signal that somebody sends is no word of the kernel.
        for number in 1..=3 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGXCPU).unwrap();
            assert_eq!(watchdog::false_alarms(), number);
        }
        assert!(is_real_time() && watchdog::demoted_at_ns().is_none());
        // What it starts is ordinary.
        assert!(!std::thread::spawn(is_real_time).join().unwrap());
    })
    .join()
    .unwrap();
    for policy in [scheduling::real_time, scheduling::round_robin] {
        std::thread::spawn(move || {
            assert!(watchdog::guard(LIMIT).is_allowed() && policy(1).is_allowed());
            assert!(is_real_time());
            let (begun, begun_ns) = (Instant::now(), clock::monotonic_ns());
            while watchdog::demoted_at_ns().is_none() && begun.elapsed() < SLACK {
                std::hint::spin_loop();
            }
            let after_ns = watchdog::demoted_at_ns().expect("it was demoted") - begun_ns;
            assert!(after_ns > LIMIT.as_nanos() as u64 / 2, "{after_ns}");
            assert!(!is_real_time());
            // And it goes on, also past the next second, at which the kernel asks again.
            work_for(Duration::from_millis(1_200));
            eprintln!("demoted after {} ms", after_ns / 1_000_000);
        })
        .join()
        .unwrap();
    }
    // Of two, the one that asked first runs away: both become ordinary.
    let (ask, asked) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let guarded = || {
        assert!(watchdog::guard(LIMIT).is_allowed() && scheduling::real_time(1).is_allowed());
        is_real_time()
    };
    let runs_away = std::thread::spawn(move || {
        ask.send(guarded()).unwrap();
        told.recv().unwrap();
        let begun = Instant::now();
        while watchdog::demoted_at_ns().is_none() && begun.elapsed() < SLACK {
            std::hint::spin_loop();
        }
        // The signal may still be at work for the other thread.
        work_for(LIMIT / 10);
        is_real_time()
    });
    let sleeps = std::thread::spawn(move || {
        assert!(asked.recv().unwrap());
        tell.send(guarded()).unwrap();
        let begun = Instant::now();
        while is_real_time() && begun.elapsed() < SLACK {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_real_time()
    });
    assert!(!runs_away.join().unwrap() && !sleeps.join().unwrap());
}
