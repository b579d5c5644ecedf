// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A processor for each guest, and one for the live runs beside them.
//!
//! A guest runs one process at a time, and at every system call the kernel's process and the
//! program's take turns. Where both stay on one processor, that is a switch; where the scheduler
//! spreads them, each turn wakes another processor.
//!
//! A live run has instants to keep, and a guest has none. While a live run is on, guests leave one
//! processor alone, where there is more than one.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, getpid};

/// Processor of a guest.
#[derive(Debug)]
pub struct Place {
    /// Processors allowed to this process.
    allowed: CpuSet,
    /// A processor on which no other guest runs.
    claim: Option<Claim>,
    /// Processors last given to the guest.
    now: CpuSet,
}

#[derive(Debug)]
struct Claim {
    index: usize,
    /// A name in the abstract namespace can be had once, and goes with its process however that ends.
    _name: UnixListener,
}

impl Place {
    /// A place for a guest: on a processor that no other guest has, the one that this process is on if
    /// possible; anywhere when other guests have them all, as the scheduler knows better then.
    pub fn find(beside_live_run: bool) -> Place {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let usable = usable(&allowed, beside_live_run);
        let here = sched_getcpu().unwrap_or(0);
        let (before, after): (Vec<usize>, Vec<usize>) = indices(&usable).partition(|index| *index < here);
        let claim = after.into_iter().chain(before).find_map(|index| Some(Claim { index, _name: take(index).ok()? }));
        let mut place = Place { allowed, claim, now: allowed };
        place.now = place.choose(beside_live_run);
        place
    }

    /// Does `start` there: what it starts stays there, this process does not.
    pub fn run_here<T>(&self, start: impl FnOnce() -> T) -> T {
        let own = Pid::from_raw(0);
        // Without it, everything is merely slower.
        let _ = sched_setaffinity(own, &self.now);
        let started = start();
        let _ = sched_setaffinity(own, &self.allowed);
        started
    }

    /// Moves the guest, which is every other process of this PID namespace, when a live run has begun or
    /// the last one has ended.
    pub fn follow(&mut self, beside_live_run: bool) {
        let place = self.choose(beside_live_run);
        if place == self.now {
            return;
        }
        self.now = place;
        // What is started meanwhile stays where its parent was when it was started.
        for _ in 0..MOVES {
            if !move_everything(&place) {
                break;
            }
        }
    }

    fn choose(&self, beside_live_run: bool) -> CpuSet {
        let usable = usable(&self.allowed, beside_live_run);
        match &self.claim {
            Some(claim) if usable.is_set(claim.index).unwrap_or(false) => only(claim.index),
            _ => usable,
        }
    }
}

/// Maximum number of passes over the processes of a guest for ones that have to move.
const MOVES: usize = 5;

/// Processors for guests: all but the first while a live run is on.
fn usable(allowed: &CpuSet, beside_live_run: bool) -> CpuSet {
    let mut usable = *allowed;
    if beside_live_run
        && indices(allowed).nth(1).is_some()
        && let Some(first) = indices(allowed).next()
    {
        let _ = usable.unset(first);
    }
    usable
}

fn indices(set: &CpuSet) -> impl Iterator<Item = usize> {
    let set = *set;
    (0..CpuSet::count()).filter(move |index| set.is_set(*index).unwrap_or(false))
}

fn only(index: usize) -> CpuSet {
    let mut only = CpuSet::new();
    let _ = only.set(index);
    only
}

/// Moves every thread but this process's; whether there was one to move.
fn move_everything(place: &CpuSet) -> bool {
    let own = getpid().as_raw();
    let mut moved = false;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = number(&process) else { continue };
        if pid == own {
            continue;
        }
        for thread in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
            let Some(thread) = number(&thread).map(Pid::from_raw) else { continue };
            // ESRCH: it has ended.
            if sched_getaffinity(thread).is_ok_and(|there| there != *place) {
                moved |= sched_setaffinity(thread, place).is_ok();
            }
        }
    }
    moved
}

fn number(entry: &fs::DirEntry) -> Option<i32> {
    entry.file_name().to_str()?.parse().ok()
}

fn take(index: usize) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("airpath-warp-processor-{index}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(set: &CpuSet) -> Vec<usize> {
        indices(set).collect()
    }

    #[test]
    fn a_processor_is_claimed_once_and_left_as_it_was() {
        let own = Pid::from_raw(0);
        let before = sched_getaffinity(own).unwrap();
        let first = Place::find(false);
        // A run beside this test may have them all.
        let Some(claim) = &first.claim else { return };
        assert!(take(claim.index).is_err());
        assert!(Place::find(false).claim.is_none_or(|second| second.index != claim.index));
        let inside = first.run_here(|| sched_getaffinity(own).unwrap());
        assert_eq!(listed(&inside), [claim.index]);
        assert_eq!(listed(&sched_getaffinity(own).unwrap()), listed(&before));
    }

    fn processors(indices: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for index in indices {
            set.set(*index).unwrap();
        }
        set
    }

    #[test]
    fn one_processor_is_left_to_a_live_run_where_there_are_two() {
        assert_eq!(listed(&usable(&processors(&[2, 3, 5]), true)), [3, 5]);
        assert_eq!(listed(&usable(&processors(&[2, 3, 5]), false)), [2, 3, 5]);
        assert_eq!(listed(&usable(&processors(&[4]), true)), [4]);
    }

    #[test]
    fn a_guest_leaves_its_processor_while_a_live_run_needs_it() {
        let name =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name("airpath-warp-test-claim").unwrap()).unwrap();
        let allowed = processors(&[0, 1, 2]);
        let place = Place { allowed, claim: Some(Claim { index: 0, _name: name }), now: allowed };
        assert_eq!(listed(&place.choose(false)), [0]);
        assert_eq!(listed(&place.choose(true)), [1, 2]);
    }
}
