// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that are sent with the next call that waits, since the clock stands still until then.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use smallvec::SmallVec;

use super::{Call, make, received};

/// Maximum number of calls in a series: that of the kernel.
const MOST_CALLS: usize = 8;
/// Frames are sent at once if more bytes than this are deferred: copying them would cost more than a call.
const MOST_BYTES: usize = 64 << 10;

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

/// Copies a frame, given in parts, to be sent over `socket` by this thread's next call that waits or by
/// [`send_deferred`]. The socket must stay open until then. Frames that the kernel does not take are counted in `lost`.
pub fn defer<'a>(socket: BorrowedFd<'_>, parts: impl Iterator<Item = &'a [u8]>, lost: &LostFrames) {
    DEFERRED.with_borrow_mut(|deferred| {
        parts.for_each(|part| deferred.bytes.extend_from_slice(part));
        let (socket, end) = (socket.as_raw_fd(), deferred.bytes.len());
        deferred.frames.push(Frame { socket, end, lost: lost.clone() });
        if end > MOST_BYTES {
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
        if runs(&deferred.frames).count() + N > MOST_CALLS {
            deferred.send();
        }
        let mut calls: SmallVec<[Call; MOST_CALLS]> = SmallVec::new();
        deferred.write_headers();
        let Deferred { frames, messages, .. } = &mut *deferred;
        let mut first = 0;
        for run in runs(frames) {
            let messages = &mut messages[first..first + run.len()];
            let (at, length) = (messages.as_mut_ptr() as libc::c_long, messages.len() as libc::c_long);
            let socket = libc::c_long::from(run[0].socket);
            calls.push(Call::new(libc::SYS_sendmmsg, [socket, at, length, libc::MSG_DONTWAIT.into()]));
            first += run.len();
        }
        let sends = calls.len();
        calls.extend(then);
        let room = MOST_CALLS - calls.len();
        calls.extend(received::calls(runs(frames).map(|run| run[0].socket), room));
        // SAFETY: the message headers point at parts and bytes that live over the call, as do those of what is received;
        // the caller answers for `then`.
        unsafe { make(&mut calls) }?;
        received::settle(calls[sends + N..].iter());
        deferred.settle(calls[..sends].iter().map(Call::outcome));
        Ok(std::array::from_fn(|index| calls[sends + index].outcome()))
    })
}

/// Frames in a row that go to the same socket.
fn runs(frames: &[Frame]) -> impl Iterator<Item = &[Frame]> {
    frames.chunk_by(|one, next| one.socket == next.socket)
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

    /// Notes the outcomes of the first runs, up to the first that failed, and sends those that were not tried.
    fn settle(&mut self, mut outcomes: impl Iterator<Item = nix::Result<usize>>) {
        let mut first = 0;
        let mut has_failed = false;
        for run in runs(&self.frames) {
            let tried = outcomes.next().filter(|_| !has_failed);
            let outcome = tried.unwrap_or_else(|| {
                let messages = self.messages[first..].as_mut_ptr();
                // SAFETY: `run.len()` headers point at parts and bytes that live over the call.
                let sent = unsafe {
                    libc::sendmmsg(run[0].socket, messages, run.len() as libc::c_uint, libc::MSG_DONTWAIT as _)
                };
                Errno::result(sent).map(|sent| sent as usize)
            });
            has_failed |= outcome.is_err();
            note(run, outcome);
            first += run.len();
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
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
    fn many_bytes_are_not_kept() {
        let (socket, end) = UnixDatagram::pair().unwrap();
        let large = vec![7; MOST_BYTES + 1];
        defer(socket.as_fd(), [&large[..]].into_iter(), &LostFrames::default());
        assert_eq!(received(&end), [&[7; 64]]);
    }
}
