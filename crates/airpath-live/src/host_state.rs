// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Facts about this machine that affect timing, from the kernel. What it does not tell is left out: nothing
//! here is guessed.

mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_getres};
use serde::{Deserialize, Serialize};

use crate::wake_latency;

/// The state of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HostState {
    /// The processor's name.
    pub processor: Option<String>,
    /// Hypervisor of a virtual machine by name, or "unknown"; none for hardware.
    pub hypervisor: Option<String>,
    /// Preemption model of the kernel, in its own words, such as "PREEMPT_DYNAMIC" or "PREEMPT_RT".
    pub preemption: Option<String>,
    /// Rate of the kernel's tick, in Hz.
    pub tick_hz: Option<u64>,
    /// True if timers are exact, rather than those of the tick.
    pub high_resolution_timers: Option<bool>,
    /// The clocks that the kernel could read.
    pub clock_sources: Clocks,
    /// Processors that are on, such as "0-3".
    pub processors_online: Option<String>,
    /// Processors that the scheduler leaves alone.
    pub processors_isolated: Option<String>,
    /// Processors whose tick stops while one thread runs.
    pub processors_tickless: Option<String>,
    /// Frequencies of the first processor; none where the kernel does not set them.
    pub frequency: Option<Frequency>,
    /// Idle states of the first processor; none where the kernel chooses none.
    pub idle: Option<Idle>,
    /// True if this user may hold the wake latency down.
    pub wake_latency_device: bool,
    /// Limit on real-time threads; none without a limit.
    pub real_time_throttling: Option<Throttling>,
    /// The highest real-time priority that this user may take without further rights.
    pub real_time_priority_limit: Option<u64>,
    /// Amount of memory that this user may lock without further rights, in bytes; none without a limit.
    pub locked_memory_limit_bytes: Option<u64>,
    /// True for root, to whom these two limits do not apply.
    pub root: bool,
    /// Memory in all, in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space in all, in bytes: without any, only files are paged out.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages, in the kernel's word: always, madvise, never.
    pub transparent_huge_pages: Option<String>,
}

/// The kernel's clocks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Clocks {
    /// The one in use.
    pub current: Option<String>,
    /// All that there are.
    pub available: Vec<String>,
}

/// Frequency scaling of a processor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Frequency {
    /// The driver.
    pub driver: Option<String>,
    /// The governor.
    pub governor: Option<String>,
    /// Current frequency, in kHz.
    pub current_khz: Option<u64>,
    /// Minimum frequency, in kHz.
    pub least_khz: Option<u64>,
    /// Maximum frequency, in kHz.
    pub most_khz: Option<u64>,
    /// True if it may exceed the nominal one for a while.
    pub turbo: Option<bool>,
}

/// Idle states of a processor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Idle {
    /// The driver.
    pub driver: Option<String>,
    /// The governor.
    pub governor: Option<String>,
    /// The states, the lightest first.
    pub states: Vec<IdleState>,
}

/// One way of sleeping.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Exit latency, in µs.
    pub exit_latency_us: Option<u64>,
    /// True if it is never chosen.
    pub disabled: bool,
}

/// Run time limit of real-time threads in each period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Throttling {
    /// For this long, in µs,
    pub runtime_us: u64,
    /// out of this, in µs.
    pub period_us: u64,
}

impl HostState {
    /// This machine, now.
    pub fn look() -> HostState {
        let state = HostState::under(Path::new("/"));
        let resolution_ns = |clock| {
            let resolution = clock_getres(clock).ok()?;
            u64::try_from(resolution.tv_sec() * 1_000_000_000 + resolution.tv_nsec()).ok().filter(|ns| *ns > 0)
        };
        let limit = |resource| getrlimit(resource).ok().map(|(soft, _)| soft);
        HostState {
            // The coarse clock moves with the tick.
            tick_hz: resolution_ns(ClockId::CLOCK_MONOTONIC_COARSE).map(|ns| (1_000_000_000 + ns / 2) / ns),
            high_resolution_timers: resolution_ns(ClockId::CLOCK_MONOTONIC).map(|ns| ns < 1_000),
            wake_latency_device: fs::OpenOptions::new().write(true).open(wake_latency::DEVICE).is_ok(),
            real_time_priority_limit: limit(Resource::RLIMIT_RTPRIO),
            locked_memory_limit_bytes: limit(Resource::RLIMIT_MEMLOCK).filter(|bytes| *bytes != libc::RLIM_INFINITY),
            root: nix::unistd::geteuid().is_root(),
            ..state
        }
    }

    /// Facts from the files below `root`.
    fn under(root: &Path) -> HostState {
        let files = Files { root };
        let information = files.line_all("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = information.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let clock_sources = files.clocks();
        HostState {
            processor: field("model name"),
            hypervisor: files
                .hypervisor(field("flags").is_some_and(|flags| has_word(&flags, "hypervisor")), &clock_sources),
            preemption: files.preemption(),
            clock_sources,
            processors_online: files.line("sys/devices/system/cpu/online"),
            processors_isolated: files.line("sys/devices/system/cpu/isolated"),
            processors_tickless: files.line("sys/devices/system/cpu/nohz_full").filter(|list| list != "(null)"),
            frequency: files.frequency(),
            idle: files.idle(),
            real_time_throttling: files.throttling(),
            memory_bytes: files.memory("MemTotal"),
            swap_bytes: files.memory("SwapTotal"),
            transparent_huge_pages: files.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
            ..HostState::default()
        }
    }

    /// The same as named facts, for the record of a run.
    pub fn facts(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(facts)) => facts,
            _ => serde_json::Map::new(),
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|one| one == word)
}

/// The kernel's files, below a root that tests can choose.
struct Files<'a> {
    root: &'a Path,
}

impl Files<'_> {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn line_all(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// The content of a file of one line, unless it is empty.
    fn line(&self, path: &str) -> Option<String> {
        Some(self.line_all(path)?.trim().to_owned()).filter(|line| !line.is_empty())
    }

    fn number<N: FromStr>(&self, path: &str) -> Option<N> {
        self.line(path)?.parse().ok()
    }

    /// The word in brackets of a file that lists what may be chosen.
    fn chosen(&self, path: &str) -> Option<String> {
        let line = self.line(path)?;
        let (_, rest) = line.split_once('[')?;
        rest.split_once(']').map(|(word, _)| word.to_owned())
    }

    fn clocks(&self) -> Clocks {
        let folder = "sys/devices/system/clocksource/clocksource0";
        let available = self.line(&format!("{folder}/available_clocksource")).unwrap_or_default();
        Clocks {
            current: self.line(&format!("{folder}/current_clocksource")),
            available: available.split_whitespace().map(str::to_owned).collect(),
        }
    }

    fn hypervisor(&self, is_flagged: bool, clocks: &Clocks) -> Option<String> {
        let told = self.line("sys/hypervisor/type");
        let known = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")];
        let by_clock = || {
            let (_, name) =
                known.iter().find(|(clock, _)| clocks.available.iter().any(|one| one.starts_with(clock)))?;
            Some((*name).to_owned())
        };
        let by_vendor = || self.line("sys/class/dmi/id/sys_vendor").filter(|_| is_flagged);
        told.or_else(by_clock).or_else(by_vendor).or_else(|| is_flagged.then(|| "unknown".to_owned()))
    }

    fn preemption(&self) -> Option<String> {
        let version = self.line("proc/sys/kernel/version")?;
        let build = version.split_whitespace().find(|word| word.starts_with("PREEMPT"))?.to_owned();
        // Only where the kernel lets it be looked at: what the dynamic kind is at the moment.
        let now = self.line("sys/kernel/debug/sched/preempt").and_then(|line| {
            let (_, rest) = line.split_once('(')?;
            rest.split_once(')').map(|(word, _)| word.to_owned())
        });
        Some(match now {
            Some(now) => format!("{build} ({now})"),
            None => build,
        })
    }

    fn frequency(&self) -> Option<Frequency> {
        let folder = "sys/devices/system/cpu/cpu0/cpufreq";
        if !self.path(folder).is_dir() {
            return None;
        }
        let file = |name: &str| format!("{folder}/{name}");
        let boost = self.number::<u8>("sys/devices/system/cpu/cpufreq/boost").map(|on| on == 1);
        let no_turbo = || self.number::<u8>("sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0);
        Some(Frequency {
            driver: self.line(&file("scaling_driver")),
            governor: self.line(&file("scaling_governor")),
            current_khz: self.number(&file("scaling_cur_freq")),
            least_khz: self.number(&file("scaling_min_freq")),
            most_khz: self.number(&file("scaling_max_freq")),
            turbo: boost.or_else(no_turbo),
        })
    }

    fn idle(&self) -> Option<Idle> {
        let driver = self.line("sys/devices/system/cpu/cpuidle/current_driver").filter(|driver| driver != "none");
        let states: Vec<IdleState> = (0..)
            .map(|number| format!("sys/devices/system/cpu/cpu0/cpuidle/state{number}"))
            .map_while(|folder| {
                Some(IdleState {
                    name: self.line(&format!("{folder}/name"))?,
                    exit_latency_us: self.number(&format!("{folder}/latency")),
                    disabled: self.number::<u64>(&format!("{folder}/disable")).is_some_and(|disabled| disabled != 0),
                })
            })
            .collect();
        if driver.is_none() && states.is_empty() {
            return None;
        }
        let governor = self
            .line("sys/devices/system/cpu/cpuidle/current_governor")
            .or_else(|| self.line("sys/devices/system/cpu/cpuidle/current_governor_ro"));
        Some(Idle { driver, governor, states })
    }

    fn throttling(&self) -> Option<Throttling> {
        let period_us = self.number("proc/sys/kernel/sched_rt_period_us")?;
        // -1 is no limit, and no number here.
        let runtime_us = self.number("proc/sys/kernel/sched_rt_runtime_us")?;
        Some(Throttling { runtime_us, period_us })
    }

    fn memory(&self, name: &str) -> Option<u64> {
        let information = self.line_all("proc/meminfo")?;
        let line = information.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> HostState {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
        HostState::under(root.path())
    }

    #[test]
    fn a_machine_that_tells_nothing_has_no_facts() {
        assert_eq!(machine(&[]), HostState::default());
    }

    #[test]
    fn a_laptop_with_deep_idle_states_is_read() {
        let state = machine(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Example 3000\nflags\t\t: fpu tsc\n"),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12"),
            ("sys/kernel/debug/sched/preempt", "none (voluntary) full"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
            ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C10"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "890"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1"),
            ("sys/devices/system/cpu/isolated", ""),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("proc/meminfo", "MemTotal:       16000000 kB\nSwapTotal:             0 kB"),
        ]);
        assert_eq!(state.processor.as_deref(), Some("Example 3000"));
        assert_eq!(state.hypervisor, None);
        assert_eq!(state.preemption.as_deref(), Some("PREEMPT_DYNAMIC (voluntary)"));
        assert_eq!(state.clock_sources.available, ["tsc", "hpet", "acpi_pm"]);
        let frequency = state.frequency.clone().unwrap();
        assert_eq!((frequency.governor.as_deref(), frequency.turbo), (Some("powersave"), Some(true)));
        let states = &state.idle.as_ref().unwrap().states;
        assert_eq!((states.len(), states[1].exit_latency_us, states[1].disabled), (2, Some(890), true));
        assert_eq!(state.processors_isolated, None);
        assert_eq!(state.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!(state.real_time_throttling, Some(Throttling { runtime_us: 950_000, period_us: 1_000_000 }));
        assert_eq!((state.memory_bytes, state.swap_bytes), (Some(16_384_000_000), Some(0)));
        assert!(state.to_string().contains("C10 890 us (disabled)"), "{state}");
        // It reads back from a manifest.
        let facts = serde_json::Value::Object(state.facts());
        assert_eq!(serde_json::from_value::<HostState>(facts).unwrap(), state);
    }

    #[test]
    fn hypervisors_are_known_by_what_they_leave() {
        let flagged = ("proc/cpuinfo", "flags : fpu hypervisor");
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let name = |files: &[(&str, &str)]| machine(files).hypervisor;
        assert_eq!(name(&[flagged]).as_deref(), Some("unknown"));
        assert_eq!(name(&[flagged, (clocks, "tsc kvm-clock")]).as_deref(), Some("kvm"));
        assert_eq!(name(&[("sys/hypervisor/type", "xen")]).as_deref(), Some("xen"));
        assert_eq!(name(&[flagged, ("sys/class/dmi/id/sys_vendor", "Maker")]).as_deref(), Some("Maker"));
        assert_eq!(name(&[("sys/class/dmi/id/sys_vendor", "Maker")]), None);
    }

    #[test]
    fn real_time_threads_without_a_limit_have_none() {
        let files = [("proc/sys/kernel/sched_rt_period_us", "1000000"), ("proc/sys/kernel/sched_rt_runtime_us", "-1")];
        let state = machine(&files);
        assert_eq!(state.real_time_throttling, None);
    }

    #[test]
    fn this_machine_has_a_tick_and_a_clock() {
        let state = HostState::look();
        assert!(state.tick_hz.is_some_and(|hz| (10..=10_000).contains(&hz)), "{state:?}");
        assert!(state.high_resolution_timers.is_some());
    }
}
