// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Times that kept a sleeping loop from packets that bear no stamps: a stop (SIGSTOP, a debugger, a frozen
//! group of processes) or a wait for a processor. The kernel tells both of the thread itself, however long
//! nothing had happened before.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::sys::resource::{UsageWho, getrusage};

use crate::clock;

/// Sleeps that end within this need no account: no packet can have waited for longer.
pub const SHORT_NS: u64 = 100_000;
/// A timer by itself is no later than this.
const A_TIMER_IS_LATE_BY_NS: u64 = 1_000_000;
/// Times and counts of the scheduler for the thread that reads it.
const ACCOUNT: &str = "/proc/thread-self/schedstat";

/// The kernel's account of a thread, which only that thread may ask for.
#[derive(Debug)]
pub struct OwnThread {
    account: Option<File>,
}

/// State of the accounts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Time of the look, by CLOCK_MONOTONIC in ns.
    pub at_ns: u64,
    /// Total time that the thread has waited for a processor, in ns.
    pub waited_ns: u64,
    /// Number of sleeps and stops.
    pub sleeps: u64,
}

/// Longest time that packets may have waited while the loop slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// At most, in ns.
    pub at_most_ns: u64,
}

impl OwnThread {
    /// The calling thread.
    pub fn open() -> OwnThread {
        // A kernel may be built without it.
        OwnThread { account: File::open(ACCOUNT).ok() }
    }

    /// True if the kernel tells the thread's time of waiting for a processor.
    pub fn is_told(&self) -> bool {
        self.account.is_some()
    }

    /// Current state of the accounts.
    pub fn now(&self) -> Standing {
        let mut text = [0; 96];
        let read = self.account.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let sleeps = getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches());
        Standing {
            at_ns: clock::monotonic_ns(),
            waited_ns: waited_ns(&text[..read]),
            sleeps: u64::try_from(sleeps).unwrap_or(0),
        }
    }
}

/// The second number of a thread's account: the time that it waited for a processor, in ns.
fn waited_ns(account: &[u8]) -> u64 {
    let text = std::str::from_utf8(account).unwrap_or_default();
    text.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl Kept {
    /// From `before` a sleep to `after` it. `interrupted` says that the sleep was cut short by a stop or a
    /// signal, which says nothing of how long ago.
    pub fn between(before: &Standing, after: &Standing, interrupted: bool) -> Kept {
        let waited_ns = after.waited_ns.saturating_sub(before.waited_ns);
        // One who sleeps and is stopped on waking goes to sleep twice.
        let stopped = interrupted || after.sleeps.saturating_sub(before.sleeps) > 1;
        let whole_ns = after.at_ns.saturating_sub(before.at_ns);
        let waited_ns = waited_ns.min(whole_ns);
        Kept { at_most_ns: if stopped { whole_ns } else { waited_ns } }
    }

    /// The same of a sleep from `from_ns` that was to end at `wake_ns` and ended at `woke_ns`: whatever made
    /// that very late, such as a machine whose host gave it no processor, may have begun with the sleep.
    #[must_use]
    pub fn or_late_by(self, woke_ns: u64, wake_ns: u64, from_ns: u64) -> Kept {
        let late_ns = woke_ns.saturating_sub(wake_ns);
        let whole_ns = if late_ns > A_TIMER_IS_LATE_BY_NS { woke_ns.saturating_sub(from_ns) } else { late_ns };
        Kept { at_most_ns: self.at_most_ns.max(whole_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(at_ns: u64, waited_ns: u64, sleeps: u64) -> Standing {
        Standing { at_ns, waited_ns, sleeps }
    }

    #[test]
    fn a_wait_for_a_processor_counts_and_sleeping_does_not() {
        let before = standing(1_000, 500, 7);
        let kept = |after: Standing, interrupted| Kept::between(&before, &after, interrupted);
        assert_eq!(kept(standing(900_000, 520, 8), false), Kept { at_most_ns: 20 });
        assert_eq!(kept(standing(900_000, 60_500, 8), false), Kept { at_most_ns: 60_000 });
    }

    #[test]
    fn a_stop_may_have_begun_with_the_sleep() {
        let before = standing(1_000, 500, 7);
        let stopped = Kept { at_most_ns: 899_000 };
        assert_eq!(Kept::between(&before, &standing(900_000, 520, 8), true), stopped);
        // The stop met a thread that a packet had woken already.
        assert_eq!(Kept::between(&before, &standing(900_000, 520, 9), false), stopped);
    }

    #[test]
    fn a_late_look_up_says_that_something_was_amiss_since_the_sleep_began() {
        let kept = Kept { at_most_ns: 20 };
        let timer = Kept { at_most_ns: 50_000 };
        assert_eq!(kept.or_late_by(1_050_000, 1_000_000, 500_000), timer);
        let late = Kept { at_most_ns: 2_500_000 };
        assert_eq!(kept.or_late_by(3_000_000, 1_000_000, 500_000), late);
    }

    #[test]
    fn the_account_of_this_thread_is_read() {
        let own = OwnThread::open();
        let before = own.now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let after = own.now();
        assert!(after.sleeps > before.sleeps && after.at_ns >= before.at_ns + 5_000_000, "{before:?} {after:?}");
        assert_eq!(waited_ns(b"123 4567 89\n"), 4567);
        assert_eq!(waited_ns(b""), 0);
        if own.is_told() {
            assert!(after.waited_ns >= before.waited_ns);
        }
    }
}
