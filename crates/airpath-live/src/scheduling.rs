//! Asking the kernel to wake the loop exactly. Each attempt may be refused;
//! what came of it goes into the record of the run.
#![allow(unsafe_code)]

use std::fmt;
use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::unistd::Pid;

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The kernel did it.
    Allowed,
    /// The kernel refused, for this reason.
    Refused(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed => formatter.write_str("allowed"),
            Self::Refused(reason) => write!(formatter, "refused: {reason}"),
        }
    }
}

impl From<nix::Result<()>> for Outcome {
    fn from(result: nix::Result<()>) -> Self {
        match result {
            Ok(()) => Self::Allowed,
            Err(errno) => Self::Refused(format!("{errno:?}")),
        }
    }
}

/// Real-time scheduling (SCHED_FIFO) of the calling thread at a priority from
/// 1 to 99. Processes it starts are ordinary again.
pub fn real_time(priority: i32) -> Outcome {
    schedule(libc::SCHED_FIFO, priority)
}

/// The same in turns with threads of the same priority (SCHED_RR).
pub fn round_robin(priority: i32) -> Outcome {
    schedule(libc::SCHED_RR, priority)
}

fn schedule(policy: libc::c_int, priority: i32) -> Outcome {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live over the call; 0 is the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameters) };
    nix::errno::Errno::result(done).map(drop).into()
}

/// Keeps all memory of the process resident.
pub fn lock_memory() -> Outcome {
    // Pages are locked when they are first used: the buffers of a log are large, and most runs use
    // little of them.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault).into()
}

/// Ties the calling thread to one processor.
pub fn pin_to_processor(processor: usize) -> Outcome {
    let mut set = CpuSet::new();
    set.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).into()
}

/// The processors that the calling thread may run on.
///
/// # Errors
/// The kernel's.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false)).collect())
}

/// Sets by how much the kernel may delay the calling thread's timers, in ns
/// (50 µs by default). Processes started by
/// [`Commands`](crate::command::Commands) get the original value.
pub fn timer_slack(slack_ns: u64) -> Outcome {
    // SAFETY: prctl with integer arguments.
    let done = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) };
    nix::errno::Errno::result(done).map(drop).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_well() {
        assert_eq!(Outcome::Allowed.to_string(), "allowed");
        let refused = Outcome::from(Err(nix::errno::Errno::EPERM));
        assert_eq!(refused.to_string(), "refused: EPERM");
    }

    #[test]
    fn pinning_restricts_to_one_processor() {
        std::thread::spawn(|| {
            let last = *allowed_processors().unwrap().last().unwrap();
            assert_eq!(pin_to_processor(last), Outcome::Allowed);
            assert_eq!(allowed_processors().unwrap(), [last]);
            assert_eq!(timer_slack(1), Outcome::Allowed);
        })
        .join()
        .unwrap();
    }
}
