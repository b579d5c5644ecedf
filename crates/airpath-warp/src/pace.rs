// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Telling early that a program holds the virtual time up.
//!
//! Virtual time passes while everything sleeps. A program that looks at the clock again and again lets it
//! crawl, and nobody sees why a short run takes minutes. What runs is read out of the kernel's memory now
//! and then, which nothing in the guest can notice.

use std::collections::BTreeMap;
use std::time::Duration;

/// Processor time of the guest over which the pace is taken: by the wall clock, a guest on a busy host would be
/// slow whatever its programs did.
const WINDOW: Duration = Duration::from_secs(10);
/// A slower pace than this, in virtual seconds for each second of work, is worth a word.
const SLOW: f64 = 10.0;
/// A program that runs at so many of the looks does not sleep: the kernel's own work is seen as the
/// work of whatever called for it.
const HARDLY_SLEEPS: f64 = 0.6;
/// With fewer looks than this nothing is said: the host itself hardly got on.
const FEWEST_LOOKS: u32 = 50;

/// Observations since the last window ended.
#[derive(Debug, Default)]
pub struct Pace {
    begun: Option<(Duration, u64)>,
    looks: u32,
    seen: BTreeMap<String, u32>,
    told: bool,
}

/// A program that does not sleep.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// Its name.
    pub program: String,
    /// Share of the looks at which it was running.
    pub share: f64,
    /// Virtual seconds per second of work.
    pub pace: f64,
}

impl Pace {
    /// Takes one look: when the guest had worked for so long it was `virtual_ns`, and `running` ran, if the kernel was
    /// not idle. Tells once what is slow.
    pub fn look(&mut self, work: Duration, virtual_ns: u64, running: Option<&str>) -> Option<Slow> {
        if self.told {
            return None;
        }
        let (work_begun, virtual_begun) = *self.begun.get_or_insert((work, virtual_ns));
        self.looks += 1;
        if let Some(name) = running {
            match self.seen.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(self.seen.insert(name.to_owned(), 1)),
            }
        }
        let window = work.saturating_sub(work_begun);
        if window < WINDOW {
            return None;
        }
        let pace = virtual_ns.saturating_sub(virtual_begun) as f64 / 1e9 / window.as_secs_f64();
        let looks = std::mem::take(&mut self.looks);
        let seen = std::mem::take(&mut self.seen);
        self.begun = Some((work, virtual_ns));
        let (program, count) = seen.into_iter().max_by_key(|(_, count)| *count)?;
        let share = f64::from(count) / f64::from(looks);
        if pace >= SLOW || share < HARDLY_SLEEPS || looks < FEWEST_LOOKS {
            return None;
        }
        self.told = true;
        Some(Slow { program, share, pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warning over 30 s at `pace`, with `name` running at `busy` of 10 looks.
    fn watched(pace: f64, name: &str, busy: u32) -> Vec<Slow> {
        let mut watch = Pace::default();
        let look = |step: u32| {
            let work = Duration::from_millis(20 * u64::from(step));
            let running = (step % 10 < busy).then_some(name);
            watch.look(work, (work.as_secs_f64() * pace * 1e9) as u64, running)
        };
        (0..1500).filter_map(look).collect()
    }

    #[test]
    fn a_program_that_polls_is_told_once() {
        let told = watched(7.0, "iperf3", 9);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].program, "iperf3");
        assert!((told[0].pace - 7.0).abs() < 0.1 && (told[0].share - 0.9).abs() < 0.05, "{told:?}");
        assert_eq!(watched(0.0, "spin", 10).len(), 1);
    }

    #[test]
    fn neither_a_fast_run_nor_programs_that_sleep_are_told() {
        assert_eq!(watched(100.0, "iperf3", 9), []);
        assert_eq!(watched(1.0, "server", 5), []);
    }

    #[test]
    fn a_host_that_hardly_looks_says_nothing() {
        let mut watch = Pace::default();
        for step in 0..20 {
            assert_eq!(watch.look(Duration::from_secs(step), 0, Some("spin")), None);
        }
    }
}
