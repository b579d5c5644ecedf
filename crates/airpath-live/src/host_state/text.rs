// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The state of the machine for people, and what to change about it.

use std::fmt;

use airpath_log::verdict::advice::GET_REAL_TIME;

use super::HostState;

/// Idle states that take longer than this to leave show in every delay.
const LONG_EXIT_US: u64 = 50;

const NOT_TOLD: &str = "unknown";

impl HostState {
    /// Possible changes that make runs keep their times better, one sentence each.
    pub fn advice(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if self.high_resolution_timers == Some(false) {
            advice.push(
                "timers have only the resolution of the kernel tick: boot without highres=off, with a kernel built \
                 with CONFIG_HIGH_RES_TIMERS"
                    .to_owned(),
            );
        }
        if let Some(clock) = self.clock_sources.current.as_deref().filter(|clock| matches!(*clock, "hpet" | "acpi_pm"))
        {
            advice.push(format!("the clock source is {clock}, which is slow to read: `dmesg` shows why it is not tsc"));
        }
        let governor = self.frequency.as_ref().and_then(|frequency| frequency.governor.as_deref());
        if let Some(governor) = governor.filter(|governor| *governor != "performance") {
            advice.push(format!(
                "the frequency governor is {governor}, so CPUs are slow after idle periods: `cpupower frequency-set \
                 -g performance`"
            ));
        }
        let slow = self.idle.iter().flat_map(|idle| &idle.states);
        let slowest = slow.filter(|state| !state.disabled).filter_map(|state| state.exit_latency_us).max();
        if let Some(latency_us) = slowest.filter(|us| *us > LONG_EXIT_US && !self.wake_latency_device) {
            advice.push(format!(
                "CPUs may take {latency_us} us to wake up, and this user may not limit that: run as root, or give \
                 your group write access to {}",
                crate::wake_latency::DEVICE
            ));
        }
        if !self.root && self.real_time_priority_limit.is_some_and(|limit| limit < 10) {
            advice.push(format!("this user may not use real-time priority: {GET_REAL_TIME}"));
        }
        if !self.root && self.locked_memory_limit_bytes.is_some() {
            advice.push(
                "this user may not lock memory: run as root, or set memlock to unlimited in /etc/security/limits.conf"
                    .to_owned(),
            );
        }
        advice
    }

    fn facts_told(&self) -> Vec<(&'static str, String)> {
        let told = |text: &Option<String>| text.clone().unwrap_or_else(|| NOT_TOLD.to_owned());
        let none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let tick = self.tick_hz.map_or(NOT_TOLD.to_owned(), |hz| format!("{hz} Hz"));
        let timers = match self.high_resolution_timers {
            Some(true) => "high resolution",
            Some(false) => "kernel tick only",
            None => NOT_TOLD,
        };
        let gigabytes =
            |bytes: Option<u64>| bytes.map_or(NOT_TOLD.to_owned(), |bytes| format!("{:.1} GB", bytes as f64 / 1e9));
        let throttling = self.real_time_throttling.map_or("without a limit".to_owned(), |limit| {
            format!("{} ms in every {} ms", limit.runtime_us / 1000, limit.period_us / 1000)
        });
        let locked = match (self.root, self.locked_memory_limit_bytes) {
            (true, _) | (false, None) => "without a limit".to_owned(),
            (false, Some(bytes)) => format!("up to {bytes} bytes"),
        };
        let priority = match (self.root, self.real_time_priority_limit) {
            (true, _) => "up to 99".to_owned(),
            (false, Some(limit)) if limit > 0 => format!("up to {limit}"),
            (false, _) => "none".to_owned(),
        };
        let device =
            if self.wake_latency_device { "can be limited by this user" } else { "cannot be limited by this user" };
        vec![
            ("processor", told(&self.processor)),
            ("processors", told(&self.processors_online)),
            ("isolated", none(&self.processors_isolated)),
            ("without tick", none(&self.processors_tickless)),
            ("hypervisor", none(&self.hypervisor)),
            ("preemption", told(&self.preemption)),
            ("tick", tick),
            ("timers", timers.to_owned()),
            ("clock", self.clock_told()),
            ("frequency", self.frequency_told()),
            ("idle states", self.idle_told()),
            ("wake latency", device.to_owned()),
            ("real-time priority", priority),
            ("real-time threads", throttling),
            ("locked memory", locked),
            ("memory", format!("{}, swap {}", gigabytes(self.memory_bytes), gigabytes(self.swap_bytes))),
            ("huge pages", told(&self.transparent_huge_pages)),
        ]
    }

    fn clock_told(&self) -> String {
        let current = self.clock_sources.current.as_deref().unwrap_or(NOT_TOLD);
        match self.clock_sources.available.as_slice() {
            [] | [_] => current.to_owned(),
            available => format!("{current} (of {})", available.join(", ")),
        }
    }

    fn frequency_told(&self) -> String {
        let Some(frequency) = &self.frequency else { return "not controlled by this kernel".to_owned() };
        let megahertz = |khz: Option<u64>| khz.map_or("?".to_owned(), |khz| format!("{}", khz / 1000));
        let turbo = match frequency.turbo {
            Some(true) => ", turbo on",
            Some(false) => ", turbo off",
            None => "",
        };
        format!(
            "{}, governor {}, {} MHz of {} to {}{turbo}",
            frequency.driver.as_deref().unwrap_or("?"),
            frequency.governor.as_deref().unwrap_or("?"),
            megahertz(frequency.current_khz),
            megahertz(frequency.least_khz),
            megahertz(frequency.most_khz),
        )
    }

    fn idle_told(&self) -> String {
        let Some(idle) = &self.idle else { return "not controlled by this kernel".to_owned() };
        let states: Vec<String> = idle
            .states
            .iter()
            .map(|state| {
                let latency = state.exit_latency_us.map_or("?".to_owned(), |us| us.to_string());
                format!("{} {latency} us{}", state.name, if state.disabled { " (disabled)" } else { "" })
            })
            .collect();
        format!(
            "{}, governor {}: {}",
            idle.driver.as_deref().unwrap_or("?"),
            idle.governor.as_deref().unwrap_or("?"),
            if states.is_empty() { "none".to_owned() } else { states.join(", ") }
        )
    }
}

impl fmt::Display for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, fact) in self.facts_told() {
            writeln!(f, "{name:<18}  {fact}")?;
        }
        for advice in self.advice() {
            writeln!(f, "\n{advice}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Clocks, Frequency, Idle, IdleState};
    use super::*;

    #[test]
    fn advice_is_for_what_can_be_mended() {
        let good = HostState { root: true, wake_latency_device: true, ..HostState::default() };
        assert_eq!(good.advice(), Vec::<String>::new());
        let bad = HostState {
            high_resolution_timers: Some(false),
            clock_sources: Clocks { current: Some("hpet".into()), available: Vec::new() },
            frequency: Some(Frequency { governor: Some("powersave".into()), ..Frequency::default() }),
            idle: Some(Idle {
                states: vec![IdleState { name: "C6".into(), exit_latency_us: Some(133), disabled: false }],
                ..Idle::default()
            }),
            real_time_priority_limit: Some(0),
            locked_memory_limit_bytes: Some(8 << 20),
            ..HostState::default()
        };
        let advice = bad.advice();
        for word in ["highres", "hpet", "powersave", "133 us", "rtprio", "memlock"] {
            assert!(advice.iter().any(|one| one.contains(word)), "{word}: {advice:?}");
        }
        assert_eq!(advice.len(), 6);
        assert!(bad.to_string().ends_with(&format!("{}\n", advice[5])));
    }
}
