// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Conditions of a series: timer slack, locked memory, scheduling policy. Slack and policy are the thread's,
//! and every series has a thread of its own, so that they end with it; memory is the process's, and is
//! unlocked again.

use airpath_live::scheduling::{self, Permission};
use airpath_live::tuning::{Policy, REAL_TIME_PRIORITY};
use airpath_live::wake_latency::{DEVICE, LEAVE, WakeLatency};
use nix::sys::mman::munlockall;

use crate::error::{Result, TimingError, unknown};

/// The policies by name. The priority is that of the live loop.
pub const POLICIES: [(&str, Policy); 3] = [
    ("other", Policy::Other),
    ("fifo", Policy::Fifo(REAL_TIME_PRIORITY)),
    ("rr", Policy::RoundRobin(REAL_TIME_PRIORITY)),
];

/// Settings of the thread of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The timer slack in ns; none to leave the system's default.
    pub timer_slack_ns: Option<u64>,
    /// Scheduling policy.
    pub policy: Policy,
}

impl Conditions {
    /// Sets the calling thread, for good.
    ///
    /// # Errors
    /// When the kernel refuses; with how to fix it.
    pub fn set(&self) -> Result<()> {
        if let Some(slack_ns) = self.timer_slack_ns
            && let Permission::Refused(reason) = scheduling::timer_slack(slack_ns)
        {
            return Err(TimingError::Refused(format!("the kernel refuses a timer slack of {slack_ns} ns: {reason}")));
        }
        match self.policy.take() {
            Permission::Allowed => Ok(()),
            Permission::Refused(reason) => Err(TimingError::Refused(format!(
                "the kernel refuses {} ({reason}), or measure with --policy other",
                self.policy.kernel_name()
            ))),
        }
    }
}

/// The policy called `name`.
///
/// # Errors
/// When there is none.
pub fn policy(name: &str) -> Result<Policy> {
    let found = POLICIES.into_iter().find(|(known, _)| *known == name).map(|(_, policy)| policy);
    found.ok_or_else(|| unknown(name, "scheduling policies", POLICIES.iter().map(|(known, _)| *known)))
}

/// Returns an error if `conditions` cannot be had, tried on a thread that ends with the trial.
///
/// # Errors
/// Those of [`Conditions::set`].
pub fn try_out(conditions: Conditions) -> Result<()> {
    let thread = std::thread::Builder::new().name("airpath-trial".into()).spawn(move || conditions.set());
    let thread = thread.map_err(|error| TimingError::System(format!("cannot start a thread: {error}")))?;
    thread.join().unwrap_or_else(|_| Err(TimingError::System("a thread that tried settings ended badly".into())))
}

/// All memory of the process locked, until this is dropped.
pub struct LockedMemory(());

impl LockedMemory {
    /// Locks it as the live loop does.
    ///
    /// # Errors
    /// When the kernel refuses; with how to fix it.
    pub fn new() -> Result<LockedMemory> {
        match scheduling::lock_memory() {
            Permission::Allowed => Ok(LockedMemory(())),
            Permission::Refused(reason) => Err(TimingError::Refused(format!(
                "the kernel refuses to lock memory ({reason}), or measure with --memory unlocked"
            ))),
        }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        unlock_memory();
    }
}

/// Keeps processors from idle states that take long to leave, as the live loop does, until what is returned
/// is dropped.
///
/// # Errors
/// When the kernel refuses; with how to fix it.
pub fn hold_wake_latency() -> Result<WakeLatency> {
    match WakeLatency::hold(0) {
        (_, Some(held)) => Ok(held),
        (outcome, None) => Err(TimingError::Refused(format!(
            "the wake latency cannot be held ({DEVICE}: {outcome}), or measure with --wake-latency {LEAVE}"
        ))),
    }
}

/// Makes sure that no memory is locked.
pub fn unlock_memory() {
    // It fails only where locking is not known at all.
    let _ = munlockall();
}

/// Held by tests that lock memory or count on none being locked: it is the whole process's.
#[cfg(test)]
pub(crate) static MEMORY_IN_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmLck:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn memory_is_locked_only_as_long_as_it_is_held() {
        let _alone = MEMORY_IN_TESTS.lock();
        match LockedMemory::new() {
            Ok(locked) => {
                assert!(locked_kib() > 0);
                drop(locked);
            }
            Err(error) => assert!(error.to_string().contains("--memory unlocked"), "{error}"),
        }
        assert_eq!(locked_kib(), 0);
    }

    #[test]
    fn timer_slack_ends_with_its_thread() {
        let before = nix::sys::prctl::get_timerslack().unwrap();
        let conditions = Conditions { timer_slack_ns: Some(1), policy: Policy::Other };
        let within = std::thread::spawn(move || {
            conditions.set().unwrap();
            nix::sys::prctl::get_timerslack().unwrap()
        });
        assert_eq!(within.join().unwrap(), 1);
        try_out(conditions).unwrap();
        assert_eq!(nix::sys::prctl::get_timerslack().unwrap(), before);
    }

    #[test]
    fn policies_are_known_by_name() {
        assert_eq!(policy("rr").unwrap(), Policy::RoundRobin(REAL_TIME_PRIORITY));
        let error = policy("fifi").unwrap_err().to_string();
        assert!(error.contains("did you mean `fifo`?"), "{error}");
    }
}
