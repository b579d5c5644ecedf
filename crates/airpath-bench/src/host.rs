// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Host on which the figures were measured.

use std::fs;

use serde::Serialize;

/// Above this share of all processors taken by others, figures say more about them.
const QUIET_SHARE: f64 = 0.05;

/// The machine and how busy it was.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Processors this process may use.
    pub processors: usize,
    /// Load average over one minute when the run began.
    pub load: String,
    /// The share of all processors that was in use while the benchmark itself rested, in percent.
    pub busy_percent: f64,
    /// True if that is little enough for the figures to count.
    pub quiet: bool,
    /// True if the benchmark runs as root.
    pub root: bool,
}

impl Host {
    /// Looks at the machine, for half a second.
    pub fn look() -> Host {
        let first_line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_owned());
        let busy = busy_share();
        Host {
            kernel: first_line("/proc/sys/kernel/osrelease"),
            processor,
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load: first_line("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            busy_percent: busy * 100.0,
            quiet: busy <= QUIET_SHARE,
            root: nix::unistd::geteuid().is_root(),
        }
    }

    /// One line for the top of the tables.
    pub fn line(&self) -> String {
        format!(
            "{} processors, {}, Linux {}; load {}, others used {:.0} % of all processors: {}",
            self.processors,
            self.processor,
            self.kernel,
            self.load,
            self.busy_percent,
            if self.quiet { "quiet" } else { "NOT QUIET, times and rates are worse than they need be" }
        )
    }
}

/// The share of processor time in use over half a second in which the caller sleeps.
pub fn busy_share() -> f64 {
    let before = processor_ticks();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let after = processor_ticks();
    let (busy, all) = (after.0 - before.0, after.1 - before.1);
    if all == 0 { 0.0 } else { busy as f64 / all as f64 }
}

/// Ticks in use and in all, since the machine started.
fn processor_ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    let all: u64 = ticks.iter().take(8).sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}
