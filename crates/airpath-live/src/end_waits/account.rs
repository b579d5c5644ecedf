// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From readings of tasks to what was waited, and because of whom.

use std::collections::{HashMap, VecDeque};

use airpath_log::{PartyWaits, Waits};

use super::{Member, Party};

/// Usual wait of a wake-up on a calm machine: a processor has to leave its idle state first.
const USUAL_WAIT_NS: u64 = 50_000;
/// Length of the history of the commands' run time.
const HISTORY_NS: u64 = 2_000_000_000;

/// Names a task: process and thread.
pub(super) type TaskId = (i32, i32);

/// Counters of a task in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Time on a processor, in ns.
    pub(super) ran_ns: u64,
    /// Time ready to run and not running, in ns. A wait is added when it ends.
    pub(super) waited_ns: u64,
    /// Number of times that it was given a processor.
    pub(super) slices: u64,
}

/// A task that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) task: TaskId,
    pub(super) member: Member,
    /// Number of processors on which it may run.
    pub(super) processors: u32,
    pub(super) counters: Counters,
}

/// State of a known task.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    last: Counters,
    /// Waits and slices since the beginning, for what is usual for it.
    waited_ns: u64,
    slices: u64,
}

/// The account of a run.
#[derive(Debug, Default)]
pub(super) struct Account {
    tasks: HashMap<TaskId, Known>,
    begun: bool,
    last_ns: u64,
    ran_ns: u64,
    /// Run time of the run's commands altogether, by time.
    history: VecDeque<(u64, u64)>,
    waits: Waits,
}

impl Account {
    /// Makes the current state the beginning.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// Takes a sample of all tasks.
    pub(super) fn sample(&mut self, at_ns: u64, readings: &[Reading]) {
        if self.begun {
            self.waits.samples += 1;
            self.waits.longest_gap_ns = self.waits.longest_gap_ns.max(at_ns.saturating_sub(self.last_ns));
        }
        self.add(at_ns, readings);
        self.last_ns = at_ns;
        let alive: std::collections::HashSet<TaskId> = readings.iter().map(|reading| reading.task).collect();
        self.tasks.retain(|task, _| alive.contains(task));
    }

    /// Adds what some tasks did since they were last read.
    pub(super) fn add(&mut self, at_ns: u64, readings: &[Reading]) {
        let mut steps = Vec::with_capacity(readings.len());
        for reading in readings {
            let fresh = !self.tasks.contains_key(&reading.task);
            let known = self.tasks.entry(reading.task).or_default();
            let (before, now) = (known.last, reading.counters);
            known.last = now;
            if !self.begun {
                continue;
            }
            let step = Counters {
                ran_ns: now.ran_ns.saturating_sub(before.ran_ns),
                waited_ns: now.waited_ns.saturating_sub(before.waited_ns),
                slices: now.slices.saturating_sub(before.slices),
            };
            let usual_ns = known.waited_ns.checked_div(known.slices).unwrap_or(0).max(USUAL_WAIT_NS);
            known.waited_ns += step.waited_ns;
            known.slices += step.slices;
            let waits = party(&mut self.waits, reading.member.party);
            waits.tasks += u64::from(fresh);
            waits.processor_ns += step.ran_ns;
            waits.waited_ns += step.waited_ns;
            self.ran_ns += step.ran_ns;
            steps.push((reading, step, usual_ns));
        }
        self.history.push_back((at_ns, self.ran_ns));
        while self.history.len() > 2 && self.history[1].0 + HISTORY_NS < at_ns {
            self.history.pop_front();
        }
        // How long at least one task of each party was kept waiting.
        let mut kept: [(Party, u64); 3] = [(Party::Client, 0), (Party::Server, 0), (Party::Relay, 0)];
        for (reading, step, usual_ns) in steps {
            let foreign_ns = self.because_of_others(reading.processors, &step);
            // Several waits may lie between two samples; all but one are taken for usual ones.
            let others_ns = usual_ns.saturating_mul(step.slices.saturating_sub(1));
            let stretch_ns = foreign_ns.min(step.waited_ns.saturating_sub(others_ns));
            let waits = party(&mut self.waits, reading.member.party);
            waits.longest_ns = waits.longest_ns.max(stretch_ns);
            for (kind, kept_ns) in &mut kept {
                if *kind == reading.member.party {
                    *kept_ns = foreign_ns.max(*kept_ns);
                }
            }
        }
        for (kind, kept_ns) in kept {
            party(&mut self.waits, kind).kept_waiting_ns += kept_ns;
        }
    }

    /// Part of a task's wait that others than the run's own commands caused: the time that its other commands
    /// ran meanwhile, spread over the processors on which the task may run, is its own doing; and so is the
    /// usual wait of a wake-up.
    fn because_of_others(&self, processors: u32, step: &Counters) -> u64 {
        let usual_ns = USUAL_WAIT_NS.saturating_mul(step.slices);
        let Some(beyond_ns) = step.waited_ns.checked_sub(usual_ns).filter(|beyond_ns| *beyond_ns > 0) else { return 0 };
        // The wait ended after the last sample, and so began at most that long before it.
        let own_ns = self.ran_since(self.last_ns.saturating_sub(step.waited_ns)).saturating_sub(step.ran_ns);
        beyond_ns.saturating_sub(own_ns / u64::from(processors.max(1)))
    }

    /// Run time of all tasks since `from_ns`.
    fn ran_since(&self, from_ns: u64) -> u64 {
        let after = self.history.partition_point(|(at_ns, _)| *at_ns < from_ns);
        let then_ns = match (after.checked_sub(1).map(|before| self.history[before]), self.history.get(after)) {
            (Some((before_ns, ran_before)), Some((after_ns, ran_after))) => {
                let part = u128::from(ran_after - ran_before) * u128::from(from_ns - before_ns);
                ran_before + (part / u128::from((after_ns - before_ns).max(1))) as u64
            }
            (None, Some((_, ran_first))) => *ran_first,
            (_, None) => self.ran_ns,
        };
        self.ran_ns.saturating_sub(then_ns)
    }

    /// Measured waits.
    pub(super) fn finish(self) -> Waits {
        self.waits
    }
}

fn party(waits: &mut Waits, party: Party) -> &mut PartyWaits {
    match party {
        Party::Client => &mut waits.client,
        Party::Server => &mut waits.server,
        Party::Relay => &mut waits.relays,
    }
}

#[cfg(test)]
mod tests;
