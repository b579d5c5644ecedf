//! A processor for each guest.
//!
//! A guest runs one process at a time, and at every system call the kernel's process and the
//! program's take turns. Where both stay on one processor, that is a switch; where the scheduler
//! spreads them, each turn wakes another processor.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// A processor on which no other guest runs, until this value goes.
#[derive(Debug)]
pub struct Processor {
    index: usize,
    allowed: CpuSet,
    /// A name in the abstract namespace can be had once, and goes with its process however that ends.
    _claim: UnixListener,
}

impl Processor {
    /// Claims one that this process may use, the one it is on if possible. None when other guests have
    /// them all: the scheduler knows better then.
    pub fn claim() -> Option<Processor> {
        let own = Pid::from_raw(0);
        let allowed = sched_getaffinity(own).ok()?;
        let here = sched_getcpu().unwrap_or(0);
        let (before, after): (Vec<usize>, Vec<usize>) = (0..CpuSet::count())
            .filter(|index| allowed.is_set(*index).unwrap_or(false))
            .partition(|index| *index < here);
        let (index, claim) = after.into_iter().chain(before).find_map(|index| Some((index, take(index).ok()?)))?;
        Some(Processor { index, allowed, _claim: claim })
    }

    /// Does `start` on this processor: what it starts stays there, this process does not.
    pub fn run_here<T>(&self, start: impl FnOnce() -> T) -> T {
        let own = Pid::from_raw(0);
        let mut only = CpuSet::new();
        // Without it, everything is merely slower.
        let _ = only.set(self.index).and_then(|()| sched_setaffinity(own, &only));
        let started = start();
        let _ = sched_setaffinity(own, &self.allowed);
        started
    }
}

fn take(index: usize) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("airpath-warp-processor-{index}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_claimed_once_and_left_as_it_was() {
        let own = Pid::from_raw(0);
        let before = sched_getaffinity(own).unwrap();
        // A run beside this test may have them all.
        let Some(first) = Processor::claim() else { return };
        assert!(take(first.index).is_err());
        assert!(Processor::claim().is_none_or(|second| second.index != first.index));
        let inside = first.run_here(|| sched_getaffinity(own).unwrap());
        let set = |set: &CpuSet| (0..CpuSet::count()).filter(|index| set.is_set(*index).unwrap()).collect::<Vec<_>>();
        assert_eq!(set(&inside), [first.index]);
        assert_eq!(set(&sched_getaffinity(own).unwrap()), set(&before));
    }
}
