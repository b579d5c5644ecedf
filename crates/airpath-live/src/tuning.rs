// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Kernel settings of the loop's thread: scheduling, memory, processor, and the policy of meeting deadlines.
//! Each wish may be refused; what came of it is told, and the run goes on.

use std::fmt;
use std::str::FromStr;

use airpath_log::Economy;

use crate::engine_loop::SpinPolicy;
use crate::scheduling::{self, Permission};
use crate::wake_latency::WakeLatency;
use crate::watchdog;

/// Priority of the loop among real-time threads: above ordinary programs, below the kernel's own.
pub const REAL_TIME_PRIORITY: i32 = 10;
/// With fewer processors than this, tying the loop to one would keep it from an idle one.
const PROCESSORS_TO_PIN: usize = 4;

/// A scheduling policy of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// That of ordinary programs.
    #[default]
    Other,
    /// Real time, first in first out, at a priority of 1 to 99.
    Fifo(i32),
    /// Real time, in turns, at a priority of 1 to 99.
    RoundRobin(i32),
}

impl Policy {
    /// Schedules the calling thread so, for good; a thread that is ordinary already is left alone.
    pub fn take(self) -> Permission {
        match self {
            Policy::Other => Permission::Allowed,
            Policy::Fifo(priority) => scheduling::real_time(priority),
            Policy::RoundRobin(priority) => scheduling::round_robin(priority),
        }
    }

    /// Name in the kernel.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Policy::Other => "SCHED_OTHER",
            Policy::Fifo(_) => "SCHED_FIFO",
            Policy::RoundRobin(_) => "SCHED_RR",
        }
    }
}

impl FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Policy, String> {
        let (name, priority) = match text.split_once(':') {
            Some((name, priority)) => (name, Some(priority)),
            None => (text, None),
        };
        let priority = match priority {
            None => Ok(REAL_TIME_PRIORITY),
            Some(text) => text
                .parse()
                .ok()
                .filter(|priority| (1..=99).contains(priority))
                .ok_or_else(|| format!("`{text}` is not a priority; priorities are 1 to 99")),
        };
        match (name, text.contains(':')) {
            ("other", false) => Ok(Policy::Other),
            ("other", true) => Err("policy `other` takes no priority; write other, fifo[:PRIORITY] or \
                rr[:PRIORITY]"
                .into()),
            ("fifo", _) => priority.map(Policy::Fifo),
            ("rr", _) => priority.map(Policy::RoundRobin),
            _ => Err(format!("`{name}` is not a policy; write other, fifo[:PRIORITY] or rr[:PRIORITY]")),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other => f.write_str("other"),
            Policy::Fifo(priority) => write!(f, "fifo:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

/// Processors on which the loop may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// On all that the process may use.
    #[default]
    Any,
    /// On this one.
    Processor(usize),
}

/// Settings that the loop asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Scheduling policy.
    pub policy: Policy,
    /// Processor affinity.
    pub affinity: Affinity,
    /// True if all memory of the process is kept resident.
    pub lock_memory: bool,
    /// Timer slack: delay that the kernel may add to its timers, in ns.
    pub timer_slack_ns: u64,
    /// True if processors are kept out of deep idle states.
    pub wake_latency: bool,
    /// Policy of meeting deadlines.
    pub spin: SpinPolicy,
    /// Policy of trading exactness of departures for processor time.
    pub economy: Economy,
}

/// A wish, and what came of it, for the record of the run.
pub type Told = (String, String);

impl Tuning {
    /// Default for a machine that nobody has measured, meeting deadlines by `spin`.
    pub fn usual(spin: SpinPolicy) -> Tuning {
        let processors = scheduling::allowed_processors().unwrap_or_default();
        let affinity = match processors.last() {
            Some(last) if processors.len() >= PROCESSORS_TO_PIN => Affinity::Processor(*last),
            _ => Affinity::Any,
        };
        Tuning {
            policy: Policy::Fifo(REAL_TIME_PRIORITY),
            affinity,
            lock_memory: true,
            timer_slack_ns: 1,
            wake_latency: true,
            spin,
            economy: Economy::Off,
        }
    }

    /// For a kernel whose time passes only while everything sleeps: nobody comes first where working
    /// takes no time, and time would never pass while the loop watches the clock.
    pub fn with_frozen_clock() -> Tuning {
        Tuning {
            policy: Policy::Other,
            affinity: Affinity::Any,
            lock_memory: false,
            timer_slack_ns: 1,
            wake_latency: false,
            spin: SpinPolicy::Off,
            economy: Economy::Off,
        }
    }

    /// Carries out what concerns the whole process; to be called before the loop's thread is made.
    pub fn prepare_process(&self) -> Vec<Told> {
        if !self.lock_memory {
            return Vec::new();
        }
        vec![("memory lock".to_string(), scheduling::lock_memory().to_string())]
    }

    /// Carries out what holds for as long as the returned value lives: the time of the run.
    pub fn hold(&self) -> (Vec<Told>, Option<WakeLatency>) {
        if !self.wake_latency {
            return (Vec::new(), None);
        }
        let (outcome, held) = WakeLatency::hold(0);
        (vec![("wake latency 0 us".to_string(), outcome.to_string())], held)
    }

    /// Carries out what concerns the calling thread.
    pub fn prepare_thread(&self) -> Vec<Told> {
        let slack_ns = self.timer_slack_ns;
        let mut told = vec![(format!("timer slack {slack_ns} ns"), scheduling::timer_slack(slack_ns).to_string())];
        if self.lock_memory {
            scheduling::touch_stack();
        }
        if let Policy::Fifo(priority) | Policy::RoundRobin(priority) = self.policy {
            let outcome = self.policy.take();
            let allowed = outcome.is_allowed();
            told.push((format!("{} {priority}", self.policy.kernel_name()), outcome.to_string()));
            if allowed {
                let guarded = watchdog::guard(watchdog::LIMIT);
                told.push((format!("watchdog {} ms", watchdog::LIMIT.as_millis()), guarded.to_string()));
                if !guarded.is_allowed() {
                    // Nobody would stop it if it ran away.
                    scheduling::ordinary();
                }
            }
        }
        if let Affinity::Processor(processor) = self.affinity {
            let outcome = scheduling::pin_to_processor(processor);
            told.push(("processor affinity".to_string(), format!("processor {processor}: {outcome}")));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_read_and_print() {
        let read = |text: &str| text.parse::<Policy>();
        assert_eq!(read("other"), Ok(Policy::Other));
        assert_eq!(read("fifo"), Ok(Policy::Fifo(REAL_TIME_PRIORITY)));
        assert_eq!(read("rr:99"), Ok(Policy::RoundRobin(99)));
        for text in ["other", "fifo:10", "rr:1"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for (text, why) in [
            ("fifo:0", "1 to 99"),
            ("rr:x", "`x`"),
            ("other:3", "takes no priority"),
            ("deadline", "`deadline`"),
            ("", "fifo"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}: {:?}", read(text));
        }
    }
}
