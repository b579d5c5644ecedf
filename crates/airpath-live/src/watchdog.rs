// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Keeps a loop at real-time priority from hanging the host: if its thread works for too long without
//! once going to sleep (stuck, or with more packets than it can carry), it becomes an ordinary thread.
//!
//! The kernel itself counts, at its timer tick, how long a real-time thread has gone without sleeping
//! (RLIMIT_RTTIME), and interrupts the thread by SIGXCPU. So nobody has to watch: it costs nothing while
//! all is well, needs no processor to spare, and no higher priority. The kernel's own throttling of
//! real-time threads comes later, lets the host breathe for 50 ms in a second, and may be switched off.
#![allow(unsafe_code)]

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

/// The thread that is guarded; 0 for none.
static GUARDED: AtomicI32 = AtomicI32::new(0);
/// Number of signals from programs that only the kernel has reason to send.
static FALSE_ALARMS: AtomicU64 = AtomicU64::new(0);
/// Time of the thread's demotion, by CLOCK_MONOTONIC in ns; 0 if it was not demoted.
static DEMOTED_NS: AtomicU64 = AtomicU64::new(0);

/// Guards the calling thread, which is at real-time priority or about to be: after `limit` without
/// sleeping, counted in ticks of the kernel, it becomes ordinary. One thread of a process can be guarded;
/// the last to ask is. Limits are those of the whole process, and children inherit them.
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
    DEMOTED_NS.store(0, Ordering::Relaxed);
    FALSE_ALARMS.store(0, Ordering::Relaxed);
    GUARDED.store(gettid().as_raw(), Ordering::Release);
    // Where the user may do less at all, the kernel kills at that: stay below it by half.
    scheduling::set_real_time_limits((limit_us.min(hard_us / 2), hard_us)).into()
}

/// Time of the guarded thread's demotion, by CLOCK_MONOTONIC in ns, if it was demoted.
pub fn demoted_at_ns() -> Option<u64> {
    Some(DEMOTED_NS.load(Ordering::Acquire)).filter(|at_ns| *at_ns != 0)
}

/// Number of SIGXCPU signals from programs; they are ignored.
pub fn false_alarms() -> u64 {
    FALSE_ALARMS.load(Ordering::Relaxed)
}

extern "C" fn demote(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a record that lives as long as the handler runs.
    if unsafe { (*info).si_code } != libc::SI_KERNEL {
        FALSE_ALARMS.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let thread = GUARDED.load(Ordering::Acquire);
    if thread == 0 {
        return;
    }
    // SAFETY: the address of the calling thread's errno is always valid.
    let errno = unsafe { *libc::__errno_location() };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters live over the call. The flag stays, as only the privileged may take it away.
    let done = unsafe { libc::sched_setscheduler(thread, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &parameters) };
    if done == 0 {
        let _ = DEMOTED_NS.compare_exchange(0, monotonic_ns(), Ordering::AcqRel, Ordering::Relaxed);
    }
    // SAFETY: as above; what was interrupted finds its own errno.
    unsafe { *libc::__errno_location() = errno };
}
