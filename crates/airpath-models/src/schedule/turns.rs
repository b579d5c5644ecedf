// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The order of bearers by their last turns, and what each has left to send in a slot.

use super::{NOBODY, Slot};

/// Bearers in the order of their last turns, the longest ago first.
///
/// A cyclic pointer would starve a bearer that can use one resource of a slot alone, if it is always another's turn at
/// that resource. Here nobody who was passed over loses the place.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    order: Vec<u16>,
    /// Bearers that had a turn in this slot, in order; one may be in it several times.
    had: Vec<u16>,
    /// By bearer: its place among the contenders, and the number of its last turn in the slot.
    place: Vec<u16>,
    last: Vec<usize>,
    /// Places of the contenders with something left to send, in order.
    waiting: Vec<u16>,
    /// By place: number of bits left to send.
    left: Vec<u64>,
    /// By resource: the greatest value of the metric.
    best: Vec<f64>,
    /// Keys by which those that wait are sorted.
    keys: Vec<(u64, usize, u16)>,
}

impl Turns {
    pub fn new(bearers: usize) -> Turns {
        Turns {
            order: (0..bearers as u16).collect(),
            had: Vec::new(),
            place: vec![NOBODY; bearers],
            last: vec![usize::MAX; bearers],
            waiting: Vec::with_capacity(bearers),
            left: Vec::with_capacity(bearers),
            best: Vec::new(),
            keys: Vec::with_capacity(bearers),
        }
    }

    /// Begins a slot.
    pub fn begin(&mut self, slot: &Slot<'_>) {
        self.place.fill(NOBODY);
        self.left.clear();
        for (place, contender) in slot.contenders.iter().enumerate() {
            self.left.push(contender.backlog_bits);
            if contender.backlog_bits > 0 {
                self.place[usize::from(contender.bearer)] = place as u16;
            }
        }
        self.waiting.clear();
        let places = self.order.iter().map(|bearer| self.place[usize::from(*bearer)]);
        self.waiting.extend(places.filter(|place| *place != NOBODY));
    }

    /// Places of the contenders with something left to send, in the order of their last turns.
    pub fn waiting(&self) -> &[u16] {
        &self.waiting
    }

    /// Number of bits that the contender at `place` has left to send.
    pub fn left(&self, place: u16) -> u64 {
        self.left[usize::from(place)]
    }

    /// True if `bearer` is a contender that had something to send when the slot began.
    pub fn contends(&self, bearer: u16) -> bool {
        self.place[usize::from(bearer)] != NOBODY
    }

    /// Gives `bits` to the contender at `index` of those that wait; true if it has something left.
    pub fn give(&mut self, index: usize, bits: u32) -> bool {
        let left = &mut self.left[usize::from(self.waiting[index])];
        *left = left.saturating_sub(bits.into());
        let has_left = *left > 0;
        if !has_left {
            self.leave(index);
        }
        has_left
    }

    /// Takes the contender at `index` of those that wait out of the slot.
    pub fn leave(&mut self, index: usize) {
        self.waiting.remove(index);
    }

    /// Puts the contender at `index` of those that wait behind all others.
    pub fn pass(&mut self, slot: &Slot<'_>, index: usize) {
        let place = self.waiting.remove(index);
        self.waiting.push(place);
        self.note_turn(slot, place);
    }

    /// Notes a turn of the contender at `place`: the next slot begins with others.
    pub fn note_turn(&mut self, slot: &Slot<'_>, place: u16) {
        self.had.push(slot.contenders[usize::from(place)].bearer);
    }

    /// Gives `bits` to the contender at `index` of those that wait, as a turn: it goes behind all others.
    pub fn give_turn(&mut self, slot: &Slot<'_>, index: usize, bits: u32) {
        let place = self.waiting[index];
        if self.give(index, bits) {
            self.pass(slot, index);
        } else {
            self.note_turn(slot, place);
        }
    }

    /// Ends the slot: the order is that of the last turns.
    pub fn end(&mut self) {
        if self.had.is_empty() {
            return;
        }
        for (number, bearer) in self.had.iter().enumerate() {
            self.last[usize::from(*bearer)] = number;
        }
        self.order.retain(|bearer| self.last[usize::from(*bearer)] == usize::MAX);
        for (number, bearer) in self.had.iter().enumerate() {
            if self.last[usize::from(*bearer)] == number {
                self.order.push(*bearer);
            }
        }
        for bearer in self.had.drain(..) {
            self.last[usize::from(bearer)] = usize::MAX;
        }
    }

    /// Gives each resource to the contender for which `metric` (of place, resource and bits) is greatest, and above 0:
    /// it is 0 where the bits are. Of equals the first in order gets all resources of the slot.
    #[inline(always)]
    pub fn give_best(&mut self, slot: &Slot<'_>, to: &mut [u16], metric: impl Fn(usize, usize, u32) -> f64) {
        self.begin(slot);
        to.fill(NOBODY);
        self.best.clear();
        self.best.resize(slot.resources, 0.0);
        // Contender by contender, which the compiler can do for several resources at once.
        for place in self.waiting.iter().copied() {
            let row = &slot.bits[usize::from(place) * slot.resources..][..slot.resources];
            for (resource, ((best, to), bits)) in self.best.iter_mut().zip(to.iter_mut()).zip(row).enumerate() {
                let value = metric(usize::from(place), resource, *bits);
                let is_better = value > *best;
                *best = if is_better { value } else { *best };
                *to = if is_better { place } else { *to };
            }
        }
        for (resource, to) in to.iter_mut().enumerate() {
            if *to != NOBODY && self.left[usize::from(*to)] == 0 {
                *to = self.next_best(slot, resource, &metric);
            }
            if *to != NOBODY {
                self.note_turn(slot, *to);
                let left = &mut self.left[usize::from(*to)];
                *left = left.saturating_sub(slot.bits_of(usize::from(*to), resource).into());
            }
        }
        self.end();
    }

    /// The best of those that have something left.
    fn next_best(&mut self, slot: &Slot<'_>, resource: usize, metric: impl Fn(usize, usize, u32) -> f64) -> u16 {
        self.waiting.retain(|place| self.left[usize::from(*place)] > 0);
        let mut best = (NOBODY, 0.0);
        for place in &self.waiting {
            let value = metric(usize::from(*place), resource, slot.bits_of(usize::from(*place), resource));
            if value > best.1 {
                best = (*place, value);
            }
        }
        best.0
    }

    /// Puts those that wait in the order of `key` (of the place), and equals in the order of their last turns.
    pub fn sort_by_key(&mut self, key: impl Fn(u16) -> u64) {
        self.keys.clear();
        self.keys.extend(self.waiting.iter().enumerate().map(|(index, place)| (key(*place), index, *place)));
        self.keys.sort_unstable();
        self.waiting.clear();
        self.waiting.extend(self.keys.iter().map(|(_, _, place)| *place));
    }

    /// Index of the first of those that wait which can use `resource`.
    pub fn first_for(&self, slot: &Slot<'_>, resource: usize) -> Option<usize> {
        self.waiting.iter().position(|place| slot.bits_of(usize::from(*place), resource) > 0)
    }
}
