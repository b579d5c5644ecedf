// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Facts of the machine that matter to timing.

use std::fs;

use airpath_live::host_state::HostState;
use airpath_live::tuning::{Policy, REAL_TIME_PRIORITY};
use airpath_log::manifest;
use serde_json::{Value, json};

use crate::conditions::{Conditions, try_out};

/// Returns the reason for which this process may not be scheduled in real time, as the live loop requests.
pub fn real_time_scheduling() -> Result<(), String> {
    let conditions = Conditions { timer_slack_ns: None, policy: Policy::Fifo(REAL_TIME_PRIORITY) };
    try_out(conditions).map_err(|error| error.to_string())
}

/// The facts by name; null for those that the system does not report.
pub fn facts() -> Value {
    let host = manifest::Host::detect();
    let state = HostState::look();
    let load = fs::read_to_string("/proc/loadavg").ok().and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    json!({
        "kernel": host.kernel,
        "processors": host.cpus,
        "processor_model": state.processor,
        "clock_source": state.clock_sources.current,
        "ticks_per_second": state.tick_hz,
        "high_resolution_timers": state.high_resolution_timers.unwrap_or(false),
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
        let facts = facts();
        let ticks = facts["ticks_per_second"].as_u64().unwrap();
        assert!((10..=10_000).contains(&ticks), "{ticks}");
        assert!(facts["processors"].as_u64().unwrap() >= 1);
        assert!(!facts["kernel"].as_str().unwrap().is_empty());
        assert!(facts["default_timer_slack_ns"].as_u64().unwrap() > 0);
    }
}
