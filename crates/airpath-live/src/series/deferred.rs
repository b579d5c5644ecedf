// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that are sent with the next call that waits, since the clock stands still until then; and frames that this
//! call sends at times to come, so that nobody has to wake up for them.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use smallvec::SmallVec;

use super::{Call, make, received, timespec};
use crate::clock;

/// Maximum number of calls in a series: that of the kernel.
const MOST_CALLS: usize = 256;
/// That of earlier kernels of warp.
const MOST_CALLS_BEFORE: usize = 8;
/// Number of calls for which no memory is allocated.
const FEW_CALLS: usize = 8;
/// Frames are sent at once if more bytes than this are deferred: copying them would cost more than a call.
const MOST_BYTES: usize = 64 << 10;
/// Maximum number of calls for frames that are deferred until later: those that wait, and what a series has at its
/// beginning and its end, have room beside them.
pub const MOST_CALLS_AHEAD: usize = 192;
/// Number of calls of a wait.
pub const CALLS_OF_A_WAIT: usize = 2;

thread_local! {
    /// Those of the loop that runs in this thread.
    static DEFERRED: RefCell<Deferred> = RefCell::default();
}

/// Number of deferred frames that the kernel did not take.
#[derive(Clone, Debug, Default)]
pub struct LostFrames(Arc<AtomicU64>);

impl LostFrames {
    /// Their number since the beginning.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Deferred {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    waits: Vec<Wait>,
    /// Times at which the frames behind each wait were sent, of the last call that waited.
    sent_ns: Vec<u64>,
    /// True if the kernel takes only few calls in a series.
    takes_few: bool,
    /// Room for the headers of one call, filled anew by every call.
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

struct Frame {
    socket: RawFd,
    /// End of its bytes, which begin at the end of the frame before.
    end: usize,
    lost: LostFrames,
}

/// A wait for an instant, before the frames from `first` on are sent.
struct Wait {
    first: usize,
    until: libc::timespec,
    /// The clock after it.
    ended: Cell<libc::timespec>,
}

/// One of the things to be done in order.
enum Step {
    /// A wait, by number.
    Wait(usize),
    /// Frames that go to the same socket.
    Send(Range<usize>),
}

/// Frames that are deferred from now on are sent at `until_ns` of CLOCK_MONOTONIC, in a call of the kernel that lasts
/// until then.
pub fn defer_until(until_ns: u64) {
    DEFERRED.with_borrow_mut(|deferred| {
        let first = deferred.frames.len();
        if deferred.waits.is_empty() {
            deferred.sent_ns.clear();
        }
        deferred.waits.push(Wait { first, until: timespec(until_ns), ended: Cell::new(timespec(0)) });
    });
}

/// Times of CLOCK_MONOTONIC in ns at which this thread's last call that waited sent what was deferred until later, in
/// the order of [`defer_until`].
pub fn take_sent_ns(mut give: impl FnMut(u64)) {
    DEFERRED.with_borrow_mut(|deferred| deferred.sent_ns.drain(..).for_each(&mut give));
}

/// Copies a frame, given in parts, to be sent over `socket` by this thread's next call that waits or by
/// [`send_deferred`]. The socket must stay open until then. Frames that the kernel does not take are counted in `lost`.
pub fn defer<'a>(socket: BorrowedFd<'_>, parts: impl Iterator<Item = &'a [u8]>, lost: &LostFrames) {
    DEFERRED.with_borrow_mut(|deferred| {
        parts.for_each(|part| deferred.bytes.extend_from_slice(part));
        let (socket, end) = (socket.as_raw_fd(), deferred.bytes.len());
        deferred.frames.push(Frame { socket, end, lost: lost.clone() });
        if end > MOST_BYTES && deferred.waits.is_empty() {
            deferred.send();
        }
    });
}

/// Sends what is deferred.
pub fn send_deferred() {
    DEFERRED.with_borrow_mut(Deferred::send);
}

/// Sends what is deferred, makes the calls of `then`, and receives from the sockets to which frames were sent, in one
/// call of the kernel; returns the outcomes of `then`.
///
/// # Errors
/// `ENOSYS` where the kernel has no such call, and then nothing was sent.
///
/// # Safety
/// Each call of `then` must be sound with its arguments.
pub(super) unsafe fn send_and<const N: usize>(then: [Call; N]) -> io::Result<[nix::Result<usize>; N]> {
    DEFERRED.with_borrow_mut(|deferred| {
        deferred.write_headers();
        let most = if deferred.takes_few { MOST_CALLS_BEFORE } else { MOST_CALLS };
        if deferred.steps().map(|step| step.calls()).sum::<usize>() + N > most {
            deferred.send();
        }
        let mut calls: SmallVec<[Call; FEW_CALLS]> = SmallVec::new();
        let Deferred { frames, messages, waits, .. } = &mut *deferred;
        for step in steps(frames, waits) {
            match step {
                Step::Wait(number) => calls.extend(waits[number].calls()),
                Step::Send(range) => {
                    let socket = libc::c_long::from(frames[range.start].socket);
                    let messages = &mut messages[range];
                    let (at, length) = (messages.as_mut_ptr() as libc::c_long, messages.len() as libc::c_long);
                    calls.push(Call::new(libc::SYS_sendmmsg, [socket, at, length, libc::MSG_DONTWAIT.into()]));
                }
            }
        }
        let own = calls.len();
        calls.extend(then);
        let room = most - calls.len();
        calls.extend(received::calls(frames.iter().map(|frame| frame.socket), room));
        // SAFETY: the message headers point at parts and bytes that live over the call, as do the times of the waits
        // and what is received; the caller answers for `then`.
        if let Err(error) = unsafe { make(&mut calls) } {
            if error.raw_os_error() != Some(libc::E2BIG) || deferred.takes_few {
                return Err(error);
            }
            // Nothing was made. Only what waits is left for the second try.
            deferred.takes_few = true;
            deferred.send();
            calls.drain(..own);
            calls.truncate(N);
            // SAFETY: the caller answers for `then`.
            unsafe { make(&mut calls) }?;
            return Ok(std::array::from_fn(|index| calls[index].outcome()));
        }
        received::settle(calls[own + N..].iter());
        deferred.settle(calls[..own].iter().map(Call::outcome));
        Ok(std::array::from_fn(|index| calls[own + index].outcome()))
    })
}

/// Steps of sending `frames` with `waits` between them.
fn steps(frames: &[Frame], waits: &[Wait]) -> impl Iterator<Item = Step> {
    let (mut next, mut wait) = (0, 0);
    std::iter::from_fn(move || {
        if waits.get(wait).is_some_and(|wait| wait.first <= next) {
            wait += 1;
            return Some(Step::Wait(wait - 1));
        }
        let until = waits.get(wait).map_or(frames.len(), |wait| wait.first);
        let first = frames[next..until].first()?;
        let count = frames[next..until].iter().take_while(|frame| frame.socket == first.socket).count();
        next += count;
        Some(Step::Send(next - count..next))
    })
}

impl Step {
    /// Number of its calls.
    fn calls(&self) -> usize {
        match self {
            Step::Wait(_) => CALLS_OF_A_WAIT,
            Step::Send(_) => 1,
        }
    }
}

impl Wait {
    /// The calls that wait, and read the clock.
    fn calls(&self) -> [Call; CALLS_OF_A_WAIT] {
        let clock = libc::c_long::from(libc::CLOCK_MONOTONIC);
        let (until, ended) = (&raw const self.until, self.ended.as_ptr());
        let sleep = [clock, libc::c_long::from(libc::TIMER_ABSTIME), until as libc::c_long, 0];
        [
            Call::new(libc::SYS_clock_nanosleep, sleep),
            Call::new(libc::SYS_clock_gettime, [clock, ended as libc::c_long]),
        ]
    }

    /// Waits for the rest of the time, whatever signals come. The clock after it in ns.
    fn wait(&self) -> u64 {
        let until = TimeSpec::from(self.until);
        while let Err(Errno::EINTR) =
            clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until)
        {}
        clock::monotonic_ns()
    }
}

/// Counts the frames of a run that were not sent.
fn note(run: &[Frame], outcome: nix::Result<usize>) {
    for frame in &run[outcome.unwrap_or(0).min(run.len())..] {
        frame.lost.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Deferred {
    /// Points the message headers at the frames.
    fn write_headers(&mut self) {
        self.parts.clear();
        self.messages.clear();
        let mut start = 0;
        for frame in &self.frames {
            let bytes = &mut self.bytes[start..frame.end];
            self.parts.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
            start = frame.end;
        }
        for part in &mut self.parts {
            // SAFETY: an all-zero message header is valid.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            self.messages.push(message);
        }
    }

    fn send(&mut self) {
        self.write_headers();
        self.settle(std::iter::empty());
    }

    fn steps(&self) -> impl Iterator<Item = Step> {
        steps(&self.frames, &self.waits)
    }

    /// Notes the outcomes of the first calls, up to the first that failed, and takes the steps that were not tried.
    fn settle(&mut self, mut outcomes: impl Iterator<Item = nix::Result<usize>>) {
        let mut has_failed = false;
        for step in steps(&self.frames, &self.waits) {
            // A series ends with the first call that fails.
            let mut tried = || outcomes.next().filter(|_| !has_failed);
            match step {
                Step::Wait(number) => {
                    let wait = &self.waits[number];
                    let is_made = tried().is_some_and(|slept| slept.is_ok()) & tried().is_some_and(|read| read.is_ok());
                    has_failed |= !is_made;
                    let ended = TimeSpec::from(wait.ended.get());
                    self.sent_ns.push(if is_made { Duration::from(ended).as_nanos() as u64 } else { wait.wait() });
                }
                Step::Send(range) => {
                    let run = &self.frames[range.clone()];
                    let outcome = tried().unwrap_or_else(|| {
                        let messages = self.messages[range].as_mut_ptr();
                        // SAFETY: `run.len()` headers point at parts and bytes that live over the call.
                        let sent = unsafe {
                            libc::sendmmsg(run[0].socket, messages, run.len() as libc::c_uint, libc::MSG_DONTWAIT as _)
                        };
                        Errno::result(sent).map(|sent| sent as usize)
                    });
                    has_failed |= outcome.is_err();
                    note(run, outcome);
                }
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
        self.waits.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    fn received(socket: &UnixDatagram) -> Vec<Vec<u8>> {
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 64];
        std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec())).collect()
    }

    #[test]
    fn frames_are_sent_in_order_when_asked_and_not_before() {
        let ((one, its_end), (other, other_end)) = (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        let lost = LostFrames::default();
        for (socket, text) in [(&one, "first"), (&one, "second"), (&other, "third"), (&one, "fourth")] {
            let (begin, rest) = text.as_bytes().split_at(2);
            defer(socket.as_fd(), [begin, rest].into_iter(), &lost);
        }
        assert!(received(&its_end).is_empty());
        send_deferred();
        assert_eq!(received(&its_end), [&b"first"[..], b"second", b"fourth"]);
        assert_eq!(received(&other_end), [b"third"]);
        send_deferred();
        assert!(received(&its_end).is_empty());
        assert_eq!(lost.count(), 0);
    }

    #[test]
    fn what_the_kernel_does_not_take_is_counted() {
        let (socket, end) = UnixDatagram::pair().unwrap();
        drop(end);
        let (lost, other) = (LostFrames::default(), LostFrames::default());
        defer(socket.as_fd(), [&b"one"[..]].into_iter(), &lost);
        defer(socket.as_fd(), [&b"two"[..]].into_iter(), &other);
        send_deferred();
        assert_eq!((lost.count(), other.count()), (1, 1));
    }

    #[test]
    fn what_a_series_did_not_come_to_is_sent() {
        let (one, its_end) = UnixDatagram::pair().unwrap();
        let (other, other_end) = UnixDatagram::pair().unwrap();
        let lost = LostFrames::default();
        for socket in [&one, &other, &one] {
            defer(socket.as_fd(), [&b"frame"[..]].into_iter(), &lost);
        }
        DEFERRED.with_borrow_mut(|deferred| {
            deferred.write_headers();
            // The series ended with the second; the third was never made.
            deferred.settle([Ok(1), Err(Errno::ENOBUFS), Err(Errno::EINTR)].into_iter());
        });
        assert_eq!((received(&its_end), received(&other_end)), (vec![b"frame".to_vec()], vec![]));
        assert_eq!(lost.count(), 1);
    }

    #[test]
    fn a_kernel_without_series_leaves_them_to_be_sent() {
        let (socket, end) = UnixDatagram::pair().unwrap();
        let lost = LostFrames::default();
        defer(socket.as_fd(), [&b"one"[..]].into_iter(), &lost);
        // SAFETY: there are no further calls.
        let error = unsafe { send_and([]) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
        assert!(received(&end).is_empty());
        send_deferred();
        assert_eq!(received(&end), [b"one"]);
    }

    #[test]
    fn frames_for_times_to_come_are_sent_then_and_in_order() {
        let ((one, its_end), (other, other_end)) = (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        let lost = LostFrames::default();
        let send = |socket: &UnixDatagram, text: &str| defer(socket.as_fd(), [text.as_bytes()].into_iter(), &lost);
        let begin_ns = clock::monotonic_ns();
        let times_ns = [1, 2, 4].map(|millis| begin_ns + millis * 1_000_000);
        send(&one, "now");
        defer_until(times_ns[0]);
        send(&one, "first");
        send(&other, "other");
        defer_until(times_ns[1]);
        send(&one, "second");
        // Nothing is sent then.
        defer_until(times_ns[2]);
        send_deferred();
        // A look that follows has nothing to send, and takes nothing away.
        send_deferred();
        let mut sent_ns = Vec::new();
        take_sent_ns(|at_ns| sent_ns.push(at_ns));
        assert!(sent_ns.iter().zip(times_ns).all(|(sent, due)| *sent >= due) && sent_ns.is_sorted(), "{sent_ns:?}");
        assert_eq!(sent_ns.len(), 3);
        assert_eq!(received(&its_end), [&b"now"[..], b"first", b"second"]);
        assert_eq!(received(&other_end), [b"other"]);
        take_sent_ns(|_| panic!("told twice"));
        send_deferred();
        assert!(received(&its_end).is_empty());
    }

    #[test]
    fn a_wait_that_a_signal_cut_short_is_made_up_for() {
        let (one, its_end) = UnixDatagram::pair().unwrap();
        let lost = LostFrames::default();
        let until_ns = clock::monotonic_ns() + 3_000_000;
        defer_until(until_ns);
        defer(one.as_fd(), [&b"frame"[..]].into_iter(), &lost);
        DEFERRED.with_borrow_mut(|deferred| {
            deferred.write_headers();
            deferred.settle([Err(Errno::EINTR), Err(Errno::EINTR), Err(Errno::EINTR)].into_iter());
        });
        let mut sent_ns = 0;
        take_sent_ns(|at_ns| sent_ns = at_ns);
        assert!(sent_ns >= until_ns);
        assert_eq!((received(&its_end), lost.count()), (vec![b"frame".to_vec()], 0));
    }

    #[test]
    fn calls_are_those_of_the_steps() {
        let (one, other) = (UnixDatagram::pair().unwrap().0, UnixDatagram::pair().unwrap().0);
        for (socket, until_ns) in [(&one, 1), (&one, 0), (&other, 2), (&one, 0)] {
            if until_ns > 0 {
                defer_until(until_ns);
            }
            defer(socket.as_fd(), [&b"frame"[..]].into_iter(), &LostFrames::default());
        }
        DEFERRED.with_borrow_mut(|deferred| {
            let told = |step| match step {
                Step::Wait(number) => (number, 0..0),
                Step::Send(range) => (usize::MAX, range),
            };
            let steps: Vec<_> = deferred.steps().map(told).collect();
            let send = |range| (usize::MAX, range);
            assert_eq!(steps, [(0, 0..0), send(0..2), (1, 0..0), send(2..3), send(3..4)]);
            deferred.clear();
        });
    }

    #[test]
    fn many_bytes_are_not_kept() {
        let (socket, end) = UnixDatagram::pair().unwrap();
        let large = vec![7; MOST_BYTES + 1];
        defer(socket.as_fd(), [&large[..]].into_iter(), &LostFrames::default());
        assert_eq!(received(&end), [&[7; 64]]);
    }
}
