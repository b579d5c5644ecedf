// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Use of the processors over some time: the share that a virtual machine's host took, and the time for which
//! programs waited for one. The kernel keeps the sums; two looks at them tell of the time between.

use std::fs;
use std::path::Path;

use crate::clock;

/// A share of the whole is told in millionths.
const WHOLE_PPM: u128 = 1_000_000;

/// The kernel's sums at one instant. What it does not tell is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorTime {
    at_ns: u64,
    ticks: Option<Ticks>,
    /// Time for which some program that could run had no processor, in µs.
    waiting_us: Option<u64>,
}

/// Time of all processors together, in the kernel's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

/// Use of the processors between two looks, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorShares {
    /// The part of all processors' time that the host of this virtual machine took.
    pub stolen_ppm: Option<u64>,
    /// The part of all processors' time in which they worked for this machine.
    pub busy_ppm: Option<u64>,
    /// The part of the time in which some program waited for a processor.
    pub waiting_ppm: Option<u64>,
}

impl ProcessorTime {
    /// The sums now.
    pub fn now() -> ProcessorTime {
        ProcessorTime::under(Path::new("/"), clock::monotonic_ns())
    }

    fn under(root: &Path, at_ns: u64) -> ProcessorTime {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        ProcessorTime {
            at_ns,
            ticks: text("proc/stat").and_then(|text| ticks(&text)),
            waiting_us: text("proc/pressure/cpu").and_then(|text| waiting_us(&text)),
        }
    }

    /// Increments since `earlier`.
    pub fn since(&self, earlier: &ProcessorTime) -> ProcessorShares {
        let ticks = self.ticks.zip(earlier.ticks);
        let all = ticks.map(|(now, then)| now.all.saturating_sub(then.all));
        let of_all = |part: fn(Ticks) -> u64| {
            let (now, then) = ticks?;
            share(part(now).saturating_sub(part(then)), all?)
        };
        let waited_us = self.waiting_us.zip(earlier.waiting_us).map(|(now, then)| now.saturating_sub(then));
        ProcessorShares {
            stolen_ppm: of_all(|ticks| ticks.stolen),
            busy_ppm: of_all(|ticks| ticks.all - ticks.idle - ticks.stolen),
            waiting_ppm: waited_us.and_then(|us| share(us, self.at_ns.saturating_sub(earlier.at_ns) / 1_000)),
        }
    }
}

/// `part` of `whole` in millionths; none where nothing has passed.
fn share(part: u64, whole: u64) -> Option<u64> {
    let ppm = (u128::from(part) * WHOLE_PPM).checked_div(u128::from(whole))?;
    Some(ppm.min(WHOLE_PPM) as u64)
}

/// The first line of proc(5) stat: user nice system idle iowait irq softirq steal.
fn ticks(stat: &str) -> Option<Ticks> {
    let numbers: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [_, _, _, idle, waiting_for_disks, _, _, stolen, ..] = numbers[..] else { return None };
    // What guests took is in the first two already.
    let all = numbers[..8].iter().sum();
    Some(Ticks { all, idle: idle + waiting_for_disks, stolen })
}

/// Of `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`.
fn waiting_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// The load average of the last minute, in hundredths.
pub fn load_hundredths() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let (whole, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ns: u64, stat: &str, pressure: &str) -> ProcessorTime {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        fs::write(root.path().join("proc/stat"), stat).unwrap();
        fs::write(root.path().join("proc/pressure/cpu"), pressure).unwrap();
        ProcessorTime::under(root.path(), at_ns)
    }

    #[test]
    fn two_looks_tell_of_the_time_between() {
        let then = look(0, "cpu  100 0 100 800 0 0 0 0 7 7\ncpu0 1\n", "some avg10=1.00 total=1000\nfull total=5\n");
        let stat = "cpu  150 0 120 1010 10 0 0 10 7 7\ncpu0 1\n";
        let now = look(1_000_000_000, stat, "some avg10=1.00 total=251000\nfull total=5\n");
        // 300 ticks: 70 of work, 10 stolen, 220 idle; a quarter of the second waited.
        let told = ProcessorShares { stolen_ppm: Some(33_333), busy_ppm: Some(233_333), waiting_ppm: Some(250_000) };
        assert_eq!(now.since(&then), told);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_left_out() {
        let nothing = look(5, "cpu  1 2\n", "");
        assert_eq!(nothing, ProcessorTime { at_ns: 5, ..ProcessorTime::default() });
        assert_eq!(nothing.since(&nothing), ProcessorShares::default());
        let same = look(5, "cpu  1 1 1 1 1 1 1 1\n", "some total=1\n");
        assert_eq!(same.since(&same), ProcessorShares::default());
    }

    #[test]
    fn this_machine_tells_of_its_processors() {
        let then = ProcessorTime::now();
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let shares = ProcessorTime::now().since(&then);
        assert!(shares.busy_ppm.is_some_and(|ppm| ppm > 0), "{shares:?}");
    }
}
