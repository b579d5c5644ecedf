// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Scheduling between the queues of several classes.
//!
//! A scheduler says whose turn it is and how long a packet may be; what came of it is told to it. When
//! the packet chosen finds no room downstream, the scheduler returns to where it was, so that its
//! choice is made anew when there is room, with all that has arrived by then.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ClassConfig;

/// The order between classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A class goes only while all before it are empty.
    #[default]
    Strict,
    /// Classes take turns as they are written; in its turn a class sends up to `weight` packets.
    WeightedRoundRobin,
    /// Classes that hold something take turns; in its turn a class may send `quantum` more than it
    /// has sent, and what it leaves it has in its next turn.
    DeficitRoundRobin,
}

/// A set of classes, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    pub fn put(&mut self, class: usize, there: bool) {
        self.0 = self.0 & !(1 << class) | u64::from(there) << class;
    }

    pub fn has(self, class: usize) -> bool {
        self.0 >> class & 1 == 1
    }

    fn first(self) -> Option<usize> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as usize)
    }

    /// The first from `class` on, or else the first of all.
    fn first_from(self, class: usize) -> Option<usize> {
        let behind = self.0.checked_shr(class as u32).unwrap_or(0);
        if behind == 0 { self.first() } else { Some(class + behind.trailing_zeros() as usize) }
    }
}

/// A scheduler.
#[derive(Clone, Debug)]
pub(super) enum Scheduler {
    Strict,
    Rounds(Rounds),
    Deficits(Deficits),
}

impl Scheduler {
    /// A scheduler at its beginning, all classes being empty.
    pub fn new(order: Order, classes: &[ClassConfig]) -> Scheduler {
        match order {
            Order::Strict => Scheduler::Strict,
            Order::WeightedRoundRobin => Scheduler::Rounds(Rounds::new(classes)),
            Order::DeficitRoundRobin => Scheduler::Deficits(Deficits::new(classes)),
        }
    }

    /// Goes on where `old` was, if that was of the same kind; `was` gives the number that each class
    /// had in it. `occupied` are the classes that hold packets.
    pub fn go_on(&mut self, old: &Scheduler, was: &[Option<usize>], occupied: Set) {
        let is = |old: usize| was.iter().position(|was| *was == Some(old));
        match (self, old) {
            (Scheduler::Rounds(new), Scheduler::Rounds(old)) => {
                if let Some(class) = is(old.now.class) {
                    new.now = Turn { class, left: old.now.left.min(new.weights[class]) };
                }
            }
            (Scheduler::Deficits(new), Scheduler::Deficits(old)) => {
                let numbers = old.now.active.iter().map(|class| is(*class));
                new.now.in_turn = old.now.in_turn && numbers.clone().next().flatten().is_some();
                new.now.active = numbers.flatten().collect();
                for class in &new.now.active {
                    new.now.deficits[*class] = was[*class].map_or(0, |old_class| old.now.deficits[old_class]);
                }
                new.now.settle(occupied);
            }
            (Scheduler::Deficits(new), _) => new.now.settle(occupied),
            _ => {}
        }
    }

    /// `class`, which was empty, holds something.
    #[inline]
    pub fn filled(&mut self, class: usize) {
        if let Scheduler::Deficits(deficits) = self {
            deficits.now.active.push_back(class);
        }
    }

    /// `class` has become empty.
    #[inline]
    pub fn emptied(&mut self, class: usize) {
        match self {
            Scheduler::Strict => {}
            Scheduler::Rounds(rounds) if rounds.now.class == class => rounds.now.left = 0,
            Scheduler::Rounds(_) => {}
            Scheduler::Deficits(deficits) => deficits.now.remove(class),
        }
    }

    /// Remembers where it is.
    #[inline]
    pub fn save(&mut self) {
        match self {
            Scheduler::Strict => {}
            Scheduler::Rounds(rounds) => rounds.saved = rounds.now,
            Scheduler::Deficits(deficits) => deficits.saved.clone_from(&deficits.now),
        }
    }

    /// Returns to where it was when it last remembered, but for classes that have become empty.
    #[inline]
    pub fn undo(&mut self, occupied: Set) {
        match self {
            Scheduler::Strict => {}
            Scheduler::Rounds(rounds) => {
                rounds.now = rounds.saved;
                rounds.now.left *= u32::from(occupied.has(rounds.now.class));
            }
            Scheduler::Deficits(deficits) => {
                deficits.now.clone_from(&deficits.saved);
                deficits.now.settle(occupied);
            }
        }
    }

    /// Class whose turn it is, and the maximum number of bits of its packet.
    #[inline]
    pub fn choose(&mut self, occupied: Set) -> Option<(usize, u64)> {
        match self {
            Scheduler::Strict => occupied.first().map(|class| (class, u64::MAX)),
            Scheduler::Rounds(rounds) => rounds.choose(occupied).map(|class| (class, u64::MAX)),
            Scheduler::Deficits(deficits) => deficits.choose(),
        }
    }

    /// The class whose turn it is holds packets, but its first is longer than it may be.
    pub fn pass(&mut self) {
        if let Scheduler::Deficits(deficits) = self {
            deficits.now.active.rotate_left(1);
            deficits.now.in_turn = false;
        }
    }

    /// `class`, whose turn it was, has sent a packet of `bits`, and is not empty.
    #[inline]
    pub fn sent(&mut self, class: usize, bits: u64) {
        match self {
            Scheduler::Strict => {}
            Scheduler::Rounds(rounds) => rounds.now.left = rounds.now.left.saturating_sub(1),
            Scheduler::Deficits(deficits) => {
                deficits.now.deficits[class] = deficits.now.deficits[class].saturating_sub(bits);
            }
        }
    }
}

/// Weighted round robin.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    weights: Vec<u32>,
    now: Turn,
    saved: Turn,
}

/// A class and how many packets more it may send in its turn; none when the turn is over.
#[derive(Clone, Copy, Debug)]
struct Turn {
    class: usize,
    left: u32,
}

impl Rounds {
    fn new(classes: &[ClassConfig]) -> Rounds {
        let weights: Vec<u32> = classes.iter().map(|class| class.weight).collect();
        // As if the last had just had its turn.
        let now = Turn { class: weights.len().saturating_sub(1), left: 0 };
        Rounds { weights, now, saved: now }
    }

    fn choose(&mut self, occupied: Set) -> Option<usize> {
        if self.now.left == 0 {
            let class = occupied.first_from(self.now.class + 1)?;
            self.now = Turn { class, left: self.weights[class] };
        }
        Some(self.now.class)
    }
}

/// Deficit round robin (Shreedhar & Varghese 1996, Figure 3): `active` is their list of active flows,
/// of which the first has its turn.
#[derive(Clone, Debug)]
pub(super) struct Deficits {
    quanta: Vec<u64>,
    now: Turns,
    saved: Turns,
}

#[derive(Debug, Default)]
struct Turns {
    active: VecDeque<usize>,
    /// Bits that each class may still send; 0 for those that are empty.
    deficits: Vec<u64>,
    /// True if the first has had its quantum.
    in_turn: bool,
}

impl Clone for Turns {
    fn clone(&self) -> Turns {
        Turns { active: self.active.clone(), deficits: self.deficits.clone(), in_turn: self.in_turn }
    }

    // What is there is used again: this happens whenever something is asked for.
    fn clone_from(&mut self, other: &Turns) {
        self.active.clone_from(&other.active);
        self.deficits.clone_from(&other.deficits);
        self.in_turn = other.in_turn;
    }
}

impl Turns {
    fn remove(&mut self, class: usize) {
        self.in_turn &= self.active.front() != Some(&class);
        self.active.retain(|active| *active != class);
        self.deficits[class] = 0;
    }

    /// Leaves out those that are empty, and appends those that are new.
    fn settle(&mut self, occupied: Set) {
        for class in 0..self.deficits.len() {
            match (self.active.contains(&class), occupied.has(class)) {
                (true, false) => self.remove(class),
                (false, true) => self.active.push_back(class),
                _ => {}
            }
        }
    }
}

impl Deficits {
    fn new(classes: &[ClassConfig]) -> Deficits {
        let quanta: Vec<u64> = classes.iter().map(|class| class.quantum.get()).collect();
        let now = Turns { deficits: vec![0; quanta.len()], ..Turns::default() };
        Deficits { quanta, saved: now.clone(), now }
    }

    fn choose(&mut self) -> Option<(usize, u64)> {
        let class = *self.now.active.front()?;
        if !self.now.in_turn {
            self.now.deficits[class] += self.quanta[class];
            self.now.in_turn = true;
        }
        Some((class, self.now.deficits[class]))
    }
}
