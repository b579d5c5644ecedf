//! Facts of the machine that matter to timing.

use std::fs;

use airpath_live::tuning::{Policy, REAL_TIME_PRIORITY};
use airpath_log::manifest;
use nix::time::{ClockId, clock_getres};
use serde_json::{Value, json};

use crate::conditions::{Conditions, try_out};

/// The kernel's tick: its length in ns.
fn tick_ns() -> Option<u64> {
    // The coarse clock moves at the ticks, and so tells how far apart they are.
    resolution_ns(ClockId::CLOCK_MONOTONIC_COARSE)
}

fn resolution_ns(clock: ClockId) -> Option<u64> {
    let resolution = clock_getres(clock).ok()?;
    Some(resolution.tv_sec() as u64 * 1_000_000_000 + resolution.tv_nsec() as u64)
}

/// The rate of the kernel's ticks, in Hz: what was 100 in 1999.
pub fn ticks_per_second() -> Option<u64> {
    tick_ns().filter(|tick| *tick > 0).map(|tick| (1_000_000_000 + tick / 2) / tick)
}

/// Whether timers are finer than ticks.
pub fn has_fine_timers() -> bool {
    resolution_ns(ClockId::CLOCK_MONOTONIC) == Some(1)
}

/// Whether this process may be scheduled in real time, as the live loop wishes to be; else why not.
pub fn real_time_scheduling() -> Result<(), String> {
    let conditions = Conditions { timer_slack_ns: None, policy: Policy::Fifo(REAL_TIME_PRIORITY) };
    try_out(conditions).map_err(|error| error.to_string())
}

fn line_of(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.lines().next().unwrap_or_default().trim().to_owned())
}

fn processor_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The facts by name; null where the system does not tell.
pub fn facts() -> Value {
    let host = manifest::Host::detect();
    let load = line_of("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    json!({
        "kernel": host.kernel,
        "processors": host.cpus,
        "processor_model": processor_model(),
        "clock_source": line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "ticks_per_second": ticks_per_second(),
        "high_resolution_timers": has_fine_timers(),
        "default_timer_slack_ns": nix::sys::prctl::get_timerslack().ok(),
        "real_time_scheduling": real_time_scheduling().map_or_else(|reason| reason, |()| "allowed".into()),
        "load_average": load,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_tick_and_a_kernel() {
        let ticks = ticks_per_second().unwrap();
        assert!((10..=10_000).contains(&ticks), "{ticks}");
        let facts = facts();
        assert!(facts["processors"].as_u64().unwrap() >= 1);
        assert!(!facts["kernel"].as_str().unwrap().is_empty());
        assert!(facts["default_timer_slack_ns"].as_u64().unwrap() > 0);
    }
}
