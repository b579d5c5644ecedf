// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Keeps loops at real-time priority from hanging the host: if one of their threads works for too long without
//! once going to sleep (stuck, or with more packets than it can carry), all of them become ordinary threads.
//!
//! The kernel itself counts, at its timer tick, how long a real-time thread has gone without sleeping
//! (RLIMIT_RTTIME), and interrupts the thread by SIGXCPU. So nobody has to watch: it costs nothing while
//! all is well, needs no processor to spare, and no higher priority. The kernel's own throttling of
//! real-time threads comes later, lets the host breathe for 50 ms in a second, and may be switched off.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::gettid;

use crate::clock::monotonic_ns;
use crate::scheduling::{self, Permission};

/// Time for which the loop may work without sleeping. Longer than any burst that it catches up with, and less
/// than the 950 ms after which the kernel would stop it for 50 ms.
pub const LIMIT: Duration = Duration::from_millis(500);

/// Most threads that are guarded at a time.
const MOST_THREADS: usize = 256;
/// The threads that are guarded; 0 in a free place. The signal is the process's, and does not say whose time is up.
static GUARDED: [AtomicI32; MOST_THREADS] = [const { AtomicI32::new(0) }; MOST_THREADS];
/// Number of signals from programs that only the kernel has reason to send.
static FALSE_ALARMS: AtomicU64 = AtomicU64::new(0);
/// Time of the first demotion, by CLOCK_MONOTONIC in ns; 0 if it was not demoted.
static DEMOTED_NS: AtomicU64 = AtomicU64::new(0);

/// Guards the calling thread, which is at real-time priority or about to be: after `limit` without
/// sleeping, counted in ticks of the kernel, it becomes ordinary, and with it all that are guarded. A thread is
/// guarded until it ends; the first one clears what is known of earlier ones. Limits are those of the whole process,
/// and children inherit them.
pub fn guard(limit: Duration) -> Permission {
    static HANDLER: Once = Once::new();
    let mut installed = Ok(());
    HANDLER.call_once(|| {
        let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO;
        let action = SigAction::new(SigHandler::SigAction(demote), flags, SigSet::empty());
        // SAFETY: the handler makes system calls and uses atomics only.
        installed = unsafe { sigaction(Signal::SIGXCPU, &action) }.map(drop);
    });
    if let Err(errno) = installed {
        return Permission::from(Err(errno));
    }
    let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
    let (_, hard_us) = scheduling::real_time_limits().unwrap_or((u64::MAX, u64::MAX));
    if !PLACE.with(Place::take) {
        return Permission::from(Err(nix::errno::Errno::EAGAIN));
    }
    // Where the user may do less at all, the kernel kills at that: stay below it by half.
    scheduling::set_real_time_limits((limit_us.min(hard_us / 2), hard_us)).into()
}

/// Time of the guarded threads' demotion, by CLOCK_MONOTONIC in ns, if they were demoted.
pub fn demoted_at_ns() -> Option<u64> {
    Some(DEMOTED_NS.load(Ordering::Acquire)).filter(|at_ns| *at_ns != 0)
}

/// Number of SIGXCPU signals from programs; they are ignored.
pub fn false_alarms() -> u64 {
    FALSE_ALARMS.load(Ordering::Relaxed)
}

/// The place of a thread in the list of those that are guarded; it is free again when the thread ends.
struct Place(Cell<Option<usize>>);

thread_local! {
    static PLACE: Place = const { Place(Cell::new(None)) };
}

impl Place {
    /// Enters the calling thread, and returns false if there are too many.
    fn take(&self) -> bool {
        let thread = gettid().as_raw();
        let others = GUARDED.iter().map(|place| place.load(Ordering::Acquire)).any(|one| one != 0 && one != thread);
        if !others {
            DEMOTED_NS.store(0, Ordering::Relaxed);
            FALSE_ALARMS.store(0, Ordering::Relaxed);
        }
        if self.0.get().is_none() {
            let free =
                |place: &AtomicI32| place.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            self.0.set(GUARDED.iter().position(free));
        }
        self.0.get().is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(place) = self.0.get() {
            GUARDED[place].store(0, Ordering::Release);
        }
    }
}

extern "C" fn demote(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a record that lives as long as the handler runs.
    if unsafe { (*info).si_code } != libc::SI_KERNEL {
        FALSE_ALARMS.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the address of the calling thread's errno is always valid.
    let errno = unsafe { *libc::__errno_location() };
    let parameters = libc::sched_param { sched_priority: 0 };
    for thread in GUARDED.iter().map(|place| place.load(Ordering::Acquire)).filter(|thread| *thread != 0) {
        let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
        // SAFETY: the parameters live over the call. The flag stays, as only the privileged may take it away.
        if unsafe { libc::sched_setscheduler(thread, policy, &parameters) } == 0 {
            let _ = DEMOTED_NS.compare_exchange(0, monotonic_ns(), Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    // SAFETY: as above; what was interrupted finds its own errno.
    unsafe { *libc::__errno_location() = errno };
}
