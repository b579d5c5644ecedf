// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Telling a thread that sleeps while nothing passes that something does again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::Span;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Between the loop, which never waits for it, and one thread that waits for the next packet.
#[derive(Debug)]
pub struct TrafficNotifier {
    /// True while somebody waits: while nobody does, a packet costs the loop one look at this.
    awaited: AtomicBool,
    /// True once the descriptor was made readable, until that is taken back.
    told: AtomicBool,
    /// Maximum time that a packet waits to be told of.
    within: Span,
    notifier: EventFd,
}

impl TrafficNotifier {
    /// One that nobody waits for. A loop that may sleep through the arrivals of packets sleeps no longer than `within`.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new(within: Span) -> io::Result<TrafficNotifier> {
        let notifier = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(TrafficNotifier { awaited: AtomicBool::new(false), told: AtomicBool::new(false), within, notifier })
    }

    /// Maximum time that a packet waits to be told of.
    pub fn within(&self) -> Span {
        self.within
    }

    /// From now on the next packet makes the descriptor readable, once.
    pub fn await_next(&self) {
        self.take_back();
        self.awaited.store(true, Ordering::SeqCst);
    }

    /// Nobody waits any more.
    pub fn leave(&self) {
        self.awaited.store(false, Ordering::SeqCst);
        self.take_back();
    }

    /// Makes the descriptor unreadable again: a system call only if it is readable.
    fn take_back(&self) {
        if self.told.swap(false, Ordering::SeqCst) {
            let _ = self.notifier.read();
        }
    }

    /// Something came or went. A system call only if somebody waits, and then one for all that follows.
    #[inline]
    pub fn passed(&self) {
        if self.awaited.load(Ordering::Acquire) && self.awaited.swap(false, Ordering::AcqRel) {
            let _ = self.notifier.write(1);
            self.told.store(true, Ordering::SeqCst);
        }
    }
}

impl AsFd for TrafficNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifier.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn is_notified(notifier: &TrafficNotifier) -> bool {
        poll(&mut [PollFd::new(notifier.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 1
    }

    #[test]
    fn only_who_waits_is_told_and_once() {
        let notifier = TrafficNotifier::new(Span::from_millis(5)).unwrap();
        notifier.passed();
        assert!(!is_notified(&notifier), "nobody waited");
        notifier.await_next();
        assert!(!is_notified(&notifier), "nothing passed yet");
        notifier.passed();
        notifier.passed();
        assert!(is_notified(&notifier));
        notifier.leave();
        notifier.passed();
        assert!(!is_notified(&notifier));
        notifier.await_next();
        notifier.passed();
        // What was told before is no news for the next wait.
        notifier.await_next();
        assert!(!is_notified(&notifier));
    }
}
