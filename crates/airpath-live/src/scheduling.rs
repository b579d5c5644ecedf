// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Asking the kernel to wake the loop exactly. Each attempt may be refused;
//! what came of it goes into the record of the run.
#![allow(unsafe_code)]

use std::fmt;
use std::io;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// The kernel did it.
    Allowed,
    /// The kernel refused, for this reason.
    Refused(String),
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed => formatter.write_str("allowed"),
            Self::Refused(reason) => write!(formatter, "refused: {reason}"),
        }
    }
}

impl From<nix::Result<()>> for Permission {
    fn from(result: nix::Result<()>) -> Self {
        match result {
            Ok(()) => Self::Allowed,
            Err(errno) => Self::Refused(format!("{errno:?}")),
        }
    }
}

impl Permission {
    /// True if the kernel did it.
    pub fn is_allowed(&self) -> bool {
        *self == Self::Allowed
    }

    /// Says how to get what was refused.
    fn or_else_do(self, hint: impl FnOnce() -> String) -> Self {
        match self {
            Self::Refused(reason) => Self::Refused(format!("{reason}; {}", hint())),
            Self::Allowed => self,
        }
    }
}

/// Real-time scheduling (SCHED_FIFO) of the calling thread at a priority from
/// 1 to 99. Processes it starts are ordinary again.
pub fn real_time(priority: i32) -> Permission {
    schedule(libc::SCHED_FIFO, priority)
}

/// The same in turns with threads of the same priority (SCHED_RR).
pub fn round_robin(priority: i32) -> Permission {
    schedule(libc::SCHED_RR, priority)
}

fn schedule(policy: libc::c_int, priority: i32) -> Permission {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live over the call; 0 is the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &parameters) };
    Permission::from(Errno::result(done).map(drop)).or_else_do(|| {
        let limit = getrlimit(Resource::RLIMIT_RTPRIO).map_or(0, |(soft, _)| soft);
        format!("run as root, or allow it (`ulimit -r {priority}`; rtprio in /etc/security/limits.conf; now {limit})")
    })
}

/// Ordinary scheduling (SCHED_OTHER) of the calling thread.
pub fn ordinary() -> Permission {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. The flag stays, as only the privileged may take it away.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &parameters) };
    Errno::result(done).map(drop).into()
}

/// Keeps all memory of the process resident from when it is first used: the buffers of a log are large,
/// and most runs use little of them. What must not even be waited for the first time has to be touched
/// beforehand.
///
/// Allocated memory that is freed stays with the process, too: giving it back and asking for it again
/// changes the address space, for which every thread that meets a new page may have to wait.
pub fn lock_memory() -> Permission {
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let locked = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault);
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallopt takes integers and may be called at any time.
        unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX) };
        // SAFETY: as above. Larger blocks than this have mappings of their own all the same.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_BLOCK_BYTES) };
    }
    Permission::from(locked).or_else_do(|| {
        let limit = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
        format!(
            "run as root, or allow more locked memory than {limit} bytes (`ulimit -l unlimited`; memlock in \
             /etc/security/limits.conf)"
        )
    })
}

/// Blocks of memory up to this size are kept when they are freed; the C library takes no more.
#[cfg(target_env = "gnu")]
const KEPT_BLOCK_BYTES: libc::c_int = 32 << 20;

/// Lets the kernel take the memory of the process away again when others need it.
pub fn unlock_memory() -> Permission {
    munlockall().into()
}

/// Size of the stack that a thread of the datapath touches beforehand, in bytes; less than the half of the
/// smallest that the standard library makes.
const STACK_BYTES: usize = 256 << 10;

/// Brings the calling thread's stack into memory, as deep as the loop goes.
#[inline(never)]
pub fn touch_stack() {
    let mut area = [0_u8; STACK_BYTES];
    for page in area.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&mut area);
}

/// Resource usage of the calling thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Page faults without reading from a disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Number of voluntary context switches.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches.
    pub involuntary_switches: u64,
}

impl ThreadUsage {
    /// So far.
    pub fn now() -> ThreadUsage {
        let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD) else {
            return ThreadUsage::default();
        };
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        ThreadUsage {
            minor_faults: count(usage.minor_page_faults()),
            major_faults: count(usage.major_page_faults()),
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
        }
    }

    /// Increments since `earlier`.
    #[must_use]
    pub fn since(self, earlier: ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

/// The limits of a process's real-time threads (RLIMIT_RTTIME), in µs without sleeping.
pub type RealTimeLimits = (u64, u64);

/// Those of this process.
pub fn real_time_limits() -> Option<RealTimeLimits> {
    getrlimit(Resource::RLIMIT_RTTIME).ok()
}

/// Sets them. Makes one system call and nothing else, so that it may run between `fork` and `execve`.
///
/// # Errors
/// When more is asked for than is allowed.
pub fn set_real_time_limits(limits: RealTimeLimits) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_RTTIME, limits.0, limits.1)
}

/// Ties the calling thread to one processor.
pub fn pin_to_processor(processor: usize) -> Permission {
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
pub fn timer_slack(slack_ns: u64) -> Permission {
    // SAFETY: prctl with integer arguments.
    let done = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) };
    Errno::result(done).map(drop).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_well() {
        assert_eq!(Permission::Allowed.to_string(), "allowed");
        let refused = Permission::from(Err(nix::errno::Errno::EPERM));
        assert_eq!(refused.to_string(), "refused: EPERM");
    }

    #[test]
    fn a_refusal_says_how_to_mend_it() {
        let refused = Permission::from(Err(Errno::EPERM)).or_else_do(|| "run as root".into());
        assert_eq!(refused.to_string(), "refused: EPERM; run as root");
        assert_eq!(Permission::Allowed.or_else_do(|| unreachable!()), Permission::Allowed);
    }

    #[test]
    fn page_faults_of_a_thread_are_its_own() {
        const PAGES: usize = 1024;
        let before = ThreadUsage::now();
        std::thread::spawn(|| {
            let before = ThreadUsage::now();
            // A mapping of its own, nowhere in memory yet.
            let mut area = vec![0_u8; PAGES * 4096];
            for page in area.chunks_mut(4096) {
                page[0] = 1;
            }
            std::hint::black_box(&area);
            let after = ThreadUsage::now().since(before);
            // Large pages may bring many at once.
            assert!(after.minor_faults >= 1, "{after:?}");
        })
        .join()
        .unwrap();
        assert!(ThreadUsage::now().since(before).minor_faults < PAGES as u64 / 2);
    }

    #[test]
    fn pinning_restricts_to_one_processor() {
        std::thread::spawn(|| {
            let last = *allowed_processors().unwrap().last().unwrap();
            assert_eq!(pin_to_processor(last), Permission::Allowed);
            assert_eq!(allowed_processors().unwrap(), [last]);
            assert_eq!(timer_slack(1), Permission::Allowed);
        })
        .join()
        .unwrap();
    }
}
