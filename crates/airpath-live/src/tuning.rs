//! How the loop's thread asks the kernel to be woken: scheduling, memory, processor, and how it meets
//! deadlines. Each wish may be refused; what came of it is told, and the run goes on.

use crate::engine_loop::SpinPolicy;
use crate::scheduling;

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

/// On which processors the loop may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// On all that the process may use.
    #[default]
    Any,
    /// On this one.
    Processor(usize),
}

/// What the loop asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How it is scheduled.
    pub policy: Policy,
    /// Where it runs.
    pub affinity: Affinity,
    /// Whether all memory of the process is kept resident.
    pub lock_memory: bool,
    /// By how much the kernel may delay its timers, in ns.
    pub timer_slack_ns: u64,
    /// How it meets deadlines.
    pub spin: SpinPolicy,
}

/// A wish, and what came of it, for the record of the run.
pub type Told = (String, String);

impl Tuning {
    /// What suits a machine that nobody has measured, meeting deadlines by `spin`.
    pub fn usual(spin: SpinPolicy) -> Tuning {
        let processors = scheduling::allowed_processors().unwrap_or_default();
        let affinity = match processors.last() {
            Some(last) if processors.len() >= PROCESSORS_TO_PIN => Affinity::Processor(*last),
            _ => Affinity::Any,
        };
        Tuning { policy: Policy::Fifo(REAL_TIME_PRIORITY), affinity, lock_memory: true, timer_slack_ns: 1, spin }
    }

    /// For a kernel whose time passes only while everything sleeps: nobody comes first where working
    /// takes no time, and time would never pass while the loop watches the clock.
    pub fn where_work_takes_no_time() -> Tuning {
        Tuning {
            policy: Policy::Other,
            affinity: Affinity::Any,
            lock_memory: false,
            timer_slack_ns: 1,
            spin: SpinPolicy::Off,
        }
    }

    /// Carries out what concerns the whole process; to be called before the loop's thread is made.
    pub fn prepare_process(&self) -> Vec<Told> {
        if !self.lock_memory {
            return Vec::new();
        }
        vec![("memory lock".to_string(), scheduling::lock_memory().to_string())]
    }

    /// Carries out what concerns the calling thread.
    pub fn prepare_thread(&self) -> Vec<Told> {
        let slack_ns = self.timer_slack_ns;
        let mut told = vec![(format!("timer slack {slack_ns} ns"), scheduling::timer_slack(slack_ns).to_string())];
        match self.policy {
            Policy::Other => {}
            Policy::Fifo(priority) => {
                told.push((format!("SCHED_FIFO {priority}"), scheduling::real_time(priority).to_string()));
            }
            Policy::RoundRobin(priority) => {
                told.push((format!("SCHED_RR {priority}"), scheduling::round_robin(priority).to_string()));
            }
        }
        if let Affinity::Processor(processor) = self.affinity {
            let outcome = scheduling::pin_to_processor(processor);
            told.push(("processor affinity".to_string(), format!("processor {processor}: {outcome}")));
        }
        told
    }
}
