//! Telling a thread that sleeps while nothing passes that something does again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Between the loop, which never waits for it, and one thread that waits for the next packet.
#[derive(Debug)]
pub struct TrafficBell {
    /// True while somebody waits: while nobody does, a packet costs the loop one look at this.
    awaited: AtomicBool,
    bell: EventFd,
}

impl TrafficBell {
    /// One that nobody waits for.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new() -> io::Result<TrafficBell> {
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(TrafficBell { awaited: AtomicBool::new(false), bell })
    }

    /// From now on the next packet makes the descriptor readable, once.
    pub fn await_next(&self) {
        let _ = self.bell.read();
        self.awaited.store(true, Ordering::SeqCst);
    }

    /// Nobody waits any more.
    pub fn leave(&self) {
        self.awaited.store(false, Ordering::SeqCst);
        let _ = self.bell.read();
    }

    /// Something came or went. A system call only if somebody waits, and then one for all that follows.
    #[inline]
    pub fn passed(&self) {
        if self.awaited.load(Ordering::Acquire) && self.awaited.swap(false, Ordering::AcqRel) {
            let _ = self.bell.write(1);
        }
    }
}

impl AsFd for TrafficBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn rings(bell: &TrafficBell) -> bool {
        poll(&mut [PollFd::new(bell.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() == 1
    }

    #[test]
    fn only_who_waits_is_told_and_once() {
        let bell = TrafficBell::new().unwrap();
        bell.passed();
        assert!(!rings(&bell), "nobody waited");
        bell.await_next();
        assert!(!rings(&bell), "nothing passed yet");
        bell.passed();
        bell.passed();
        assert!(rings(&bell));
        bell.leave();
        bell.passed();
        assert!(!rings(&bell));
        bell.await_next();
        bell.passed();
        // What was told before is no news for the next wait.
        bell.await_next();
        assert!(!rings(&bell));
    }
}
