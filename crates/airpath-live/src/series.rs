// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several system calls in one: a call of the kernel of warp, where each way into the kernel costs two switches
//! between processes of the host. Other kernels do not have it.

#![allow(unsafe_code)]

mod deferred;
mod received;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::EpollEvent;
use nix::sys::time::TimeSpec;

pub use deferred::{CALLS_OF_A_WAIT, LostFrames, MOST_CALLS_AHEAD, defer, defer_until, send_deferred, take_sent_ns};
#[cfg(test)]
pub use received::receive_now;
pub use received::{Taken, forget_received, has_received, leave_alone, take};

/// Number of the call: see `6-series.patch` in `crates/airpath-warp/kernel/`.
const SERIES: libc::c_long = 0x6169_7270;

/// A system call of a series, and its result once it is made.
#[repr(C)]
struct Call {
    number: libc::c_long,
    arguments: [libc::c_long; 6],
    result: libc::c_long,
}

impl Call {
    fn new<const N: usize>(number: libc::c_long, arguments: [libc::c_long; N]) -> Call {
        let mut all = [0; 6];
        all[..N].copy_from_slice(&arguments);
        Call { number, arguments: all, result: libc::c_long::from(-libc::EINTR) }
    }

    fn outcome(&self) -> nix::Result<usize> {
        if self.result < 0 { Err(Errno::from_raw(-self.result as i32)) } else { Ok(self.result as usize) }
    }
}

/// Makes the calls one after the other, up to the first that fails.
///
/// # Safety
/// Each call must be sound with its arguments.
unsafe fn make(calls: &mut [Call]) -> io::Result<()> {
    // SAFETY: the calls live over the call; the caller answers for each of them.
    let made = unsafe { libc::syscall(SERIES, calls.as_mut_ptr(), calls.len()) };
    if made < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn timespec(at_ns: u64) -> libc::timespec {
    *TimeSpec::from(Duration::from_nanos(at_ns)).as_ref()
}

fn epoll_wait(epoll: BorrowedFd<'_>, events: &mut [EpollEvent], timeout_ms: libc::c_int) -> Call {
    let (at, length) = (events.as_mut_ptr() as libc::c_long, events.len() as libc::c_long);
    Call::new(libc::SYS_epoll_wait, [libc::c_long::from(epoll.as_raw_fd()), at, length, timeout_ms.into()])
}

/// Sends what is [deferred](defer), sleeps until `until_ns` of CLOCK_MONOTONIC, asks what is ready in the set `epoll`,
/// and receives what can then be [taken](take), in one call. Returns the number of `events` that were written.
///
/// # Errors
/// `ENOSYS` where the kernel has no such call, and then nothing was sent; `EINTR` when a signal cut the sleep short.
pub fn nap_and_poll(until_ns: u64, epoll: BorrowedFd<'_>, events: &mut [EpollEvent]) -> io::Result<usize> {
    let until = timespec(until_ns);
    let nap = Call::new(
        libc::SYS_clock_nanosleep,
        [
            libc::c_long::from(libc::CLOCK_MONOTONIC),
            libc::c_long::from(libc::TIMER_ABSTIME),
            (&raw const until) as libc::c_long,
            0,
        ],
    );
    // SAFETY: the time and the events live over the call; the kernel writes at most `events.len()` of the events,
    // which have the layout of `epoll_event`.
    let [napped, polled] = unsafe { deferred::send_and([nap, epoll_wait(epoll, events, 0)]) }?;
    napped?;
    Ok(polled?)
}

/// Sends what is [deferred](defer), sets `timer` to `until_ns` of its clock if given, waits until something is ready in
/// the set `epoll`, and receives what can then be [taken](take), in one call. Returns the number of `events` that were
/// written.
///
/// # Errors
/// `ENOSYS` where the kernel has no such call, and then nothing was sent; `EINTR` when a signal cut the sleep short.
pub fn sleep(
    timer: BorrowedFd<'_>,
    until_ns: Option<u64>,
    epoll: BorrowedFd<'_>,
    events: &mut [EpollEvent],
) -> io::Result<usize> {
    let wait = epoll_wait(epoll, events, -1);
    let Some(until_ns) = until_ns else {
        // SAFETY: the events live over the call; the kernel writes at most `events.len()` of them.
        let [waited] = unsafe { deferred::send_and([wait]) }?;
        return Ok(waited?);
    };
    // All zero, which is that of no time, takes the timer's setting back.
    let setting = libc::itimerspec {
        it_interval: timespec(0),
        it_value: timespec(if until_ns == u64::MAX { 0 } else { until_ns.max(1) }),
    };
    let set = Call::new(
        libc::SYS_timerfd_settime,
        [
            libc::c_long::from(timer.as_raw_fd()),
            libc::c_long::from(libc::TFD_TIMER_ABSTIME),
            (&raw const setting) as libc::c_long,
            0,
        ],
    );
    // SAFETY: the setting and the events live over the call; the kernel writes at most `events.len()` of the events.
    let [set, waited] = unsafe { deferred::send_and([set, wait]) }?;
    set?;
    Ok(waited?)
}

/// Sends `request` over a connected socket and receives two answers, in one call: the first, and the second if it is
/// there already. Returns their lengths.
///
/// # Errors
/// `ENOSYS` where the kernel has no such call, and then nothing was sent; the kernel's for the request and the first
/// answer.
pub fn request(socket: RawFd, request: &[u8], answers: [&mut [u8]; 2]) -> io::Result<(usize, Option<usize>)> {
    let [first, second] = answers;
    let socket = libc::c_long::from(socket);
    let receive = |into: &mut [u8], flags: libc::c_int| {
        let arguments = [socket, into.as_mut_ptr() as libc::c_long, into.len() as libc::c_long, flags.into(), 0, 0];
        Call::new(libc::SYS_recvfrom, arguments)
    };
    let mut calls = [
        Call::new(libc::SYS_sendto, [socket, request.as_ptr() as libc::c_long, request.len() as libc::c_long, 0, 0, 0]),
        receive(first, 0),
        receive(second, libc::MSG_DONTWAIT),
    ];
    // SAFETY: the buffers live over the call; the kernel reads and writes no more than their lengths.
    unsafe { make(&mut calls) }?;
    calls[0].outcome()?;
    Ok((calls[1].outcome()?, calls[2].outcome().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{Epoll, EpollCreateFlags};
    use std::os::fd::AsFd;

    #[test]
    fn a_kernel_without_the_call_says_so() {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let mut events = [EpollEvent::empty(); 2];
        let error = nap_and_poll(1, epoll.0.as_fd(), &mut events).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
        let (_, socket) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let error = request(socket.as_raw_fd(), b"?", [&mut [0; 8], &mut [0; 8]]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
    }

    #[test]
    fn results_are_those_of_the_kernel() {
        let mut call = Call::new(7, [1, 2]);
        assert_eq!((call.arguments, call.outcome()), ([1, 2, 0, 0, 0, 0], Err(Errno::EINTR)));
        call.result = 3;
        assert_eq!(call.outcome(), Ok(3));
    }
}
