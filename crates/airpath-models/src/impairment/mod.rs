// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reordering and duplication: what a hop does to packets after its receiving end has handed them up,
//! and before they go to the next hop or the other end.
//!
//! Links without either keep the order of packets, whatever their delays; these two are models of their
//! own. Of each packet it is first decided whether copies are made, then whether it is itself held back.
//! Copies are not held back: each leaves after a delay of its own, or at once behind the packet. At one
//! instant packets whose time has come leave in the order in which they were put aside.
//!
//! A copy is the same packet: it has the identity, the arrival, the bytes and the damage of the first.

mod decision;
pub mod duplicate;
pub mod reorder;

use std::collections::BTreeMap;

use airpath_core::{Cause, DrawKey, EventKind, Pdu, Span, Time};
use smallvec::SmallVec;

use crate::stage::{QueueLength, StageCx};

pub use duplicate::DuplicateConfig;
pub use reorder::ReorderConfig;

use duplicate::Duplicate;
use reorder::{HoldBack, Reorder};

/// A packet that leaves later.
#[derive(Clone, Debug)]
struct Held {
    pdu: Pdu,
    /// Number of packets that have yet to overtake it before it leaves; `None` if only its time counts.
    overtakers: Option<u32>,
}

/// Reordering and duplication in one direction of a hop.
#[derive(Clone, Debug)]
pub struct Impairment {
    reorder: Reorder,
    duplicate: Duplicate,
    /// Held packets, by departure time and in the order in which they were put aside.
    held: BTreeMap<(Time, u64), Held>,
    /// Number of those that wait to be overtaken.
    overtaken: usize,
    /// Number of packets and copies put aside.
    number: u64,
    /// Departure time of the first held packet; `Time::NEVER` if none is held.
    due: Time,
    /// True if packets pass untouched.
    idle: bool,
}

impl Impairment {
    /// The stage at its beginning; the keys are those of reordering and of duplication.
    pub fn new(
        reorder: Option<&ReorderConfig>,
        duplicate: Option<&DuplicateConfig>,
        [reorder_key, duplicate_key]: [DrawKey; 2],
    ) -> Impairment {
        let mut impairment = Impairment {
            reorder: Reorder::new(reorder, reorder_key),
            duplicate: Duplicate::new(duplicate, duplicate_key),
            held: BTreeMap::new(),
            overtaken: 0,
            number: 0,
            due: Time::NEVER,
            idle: false,
        };
        impairment.note();
        impairment
    }

    /// Changes the parameters for packets that come from now on; what is held keeps its time.
    pub fn configure(&mut self, reorder: Option<&ReorderConfig>, duplicate: Option<&DuplicateConfig>) {
        self.reorder.configure(reorder);
        self.duplicate.configure(duplicate);
        self.note();
    }

    fn note(&mut self) {
        self.due = self.held.first_key_value().map_or(Time::NEVER, |((due, _), _)| *due);
        self.idle = !self.reorder.is_on() && !self.duplicate.is_on() && self.overtaken == 0;
    }

    /// True if packets pass untouched, so that they need not be given to [`take`](Impairment::take).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// Next time at which a packet leaves by itself; `Time::NEVER` if none does.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.due
    }

    /// The packets that are held, copies included.
    pub fn packets(&self) -> impl Iterator<Item = &Pdu> {
        self.held.values().map(|held| &held.pdu)
    }

    fn hold(&mut self, until: Time, pdu: Pdu, overtakers: Option<u32>) {
        self.overtaken += usize::from(overtakers.is_some());
        self.held.insert((until, self.number), Held { pdu, overtakers });
        self.number += 1;
    }

    /// Takes a packet that the receiving end has handed up; what leaves now goes to `pass`.
    pub fn take(&mut self, mut pdu: Pdu, stage: &mut StageCx<'_, '_>, mut pass: impl FnMut(Pdu)) {
        let bits = pdu.bits().get();
        let copies = self.duplicate.copies();
        pdu.copied |= copies > 0;
        let mut at_once: SmallVec<[Pdu; 1]> = SmallVec::new();
        for _ in 0..copies {
            stage.record(EventKind::Duplicated, Cause::None, &pdu, bits, QueueLength::default());
            match self.duplicate.delay() {
                Span::ZERO => at_once.push(pdu.clone()),
                delay => self.hold(stage.at + delay, pdu.clone(), None),
            }
        }
        match self.reorder.hold_back() {
            Some(HoldBack { at_most, overtakers }) if at_most > Span::ZERO => {
                stage.record(EventKind::HeldBack, Cause::None, &pdu, bits, QueueLength::default());
                self.hold(stage.at + at_most, pdu, overtakers);
            }
            _ => {
                pass(pdu);
                self.overtake(&mut pass);
            }
        }
        at_once.into_iter().for_each(pass);
        self.note();
    }

    /// A packet has overtaken all that are held back: those for which it was the last one follow it.
    fn overtake(&mut self, mut pass: impl FnMut(Pdu)) {
        if self.overtaken == 0 {
            return;
        }
        let mut ready: SmallVec<[(u64, Time); 4]> = SmallVec::new();
        for ((due, number), held) in &mut self.held {
            if let Some(left) = &mut held.overtakers {
                *left -= 1;
                if *left == 0 {
                    ready.push((*number, *due));
                }
            }
        }
        ready.sort_unstable();
        for (number, due) in ready {
            if let Some(held) = self.held.remove(&(due, number)) {
                self.overtaken -= 1;
                pass(held.pdu);
            }
        }
    }

    /// Lets go what is due at `at`.
    pub fn release(&mut self, at: Time, mut pass: impl FnMut(Pdu)) {
        while let Some(first) = self.held.first_entry()
            && first.key().0 <= at
        {
            let held = first.remove();
            self.overtaken -= usize::from(held.overtakers.is_some());
            pass(held.pdu);
        }
        self.note();
    }
}
