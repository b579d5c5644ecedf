// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets of which segments have come, by their sequence numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::ranges::Ranges;
use crate::air::Piece;
use crate::entity::SduKey;

/// A segment that has come.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The packet.
    pub sdu: SduKey,
    /// Its first octet in the packet.
    pub from: u32,
    /// The octet behind its last one.
    pub to: u32,
    /// True if it ends the packet.
    pub last: bool,
}

impl Segment {
    /// The segment that is `piece` of its packet, from octet `offset` on.
    pub fn new(piece: &Piece, offset: u32) -> Segment {
        Segment { sdu: piece.sdu, from: offset, to: offset + piece.link_bits / 8, last: piece.last }
    }
}

/// A packet that is not complete.
#[derive(Clone, Debug)]
struct Partial {
    sdu: SduKey,
    got: Ranges,
    /// Octets of the packet, once its end has come.
    total: Option<u32>,
}

/// Effect of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// Its packet is complete.
    Complete,
    /// More segments are missing.
    Kept,
    /// Nothing: all of it has come before.
    Known,
    /// Its number is that of another packet, whose segments are discarded.
    Confused(SduKey),
}

/// Packets behind the first that is not complete.
#[derive(Clone, Debug, Default)]
pub struct Partials {
    partial: BTreeMap<u64, Partial>,
    complete: BTreeSet<u64>,
}

impl Partials {
    /// True if the packet `sn` is complete.
    pub fn is_complete(&self, sn: u64) -> bool {
        self.complete.contains(&sn)
    }

    /// The first number from `sn` on whose packet is not complete.
    pub fn first_incomplete(&self, mut sn: u64) -> u64 {
        while self.complete.contains(&sn) {
            sn += 1;
        }
        sn
    }

    /// True if a segment of the packet `sn` is missing before its last octet that has come.
    pub fn has_gap(&self, sn: u64) -> bool {
        self.partial.get(&sn).is_some_and(|partial| partial.got.has_gap())
    }

    /// The missing octets of the packet `sn`, of which a part has come.
    pub fn missing(&self, sn: u64) -> Option<Vec<(u32, u32)>> {
        self.partial.get(&sn).map(|partial| partial.got.missing(partial.total))
    }

    /// Adds a segment of the packet `sn`.
    pub fn add(&mut self, sn: u64, segment: &Segment) -> Added {
        if self.complete.contains(&sn) {
            return Added::Known;
        }
        let fresh = || Partial { sdu: segment.sdu, got: Ranges::default(), total: None };
        let partial = self.partial.entry(sn).or_insert_with(fresh);
        let other = (partial.sdu != segment.sdu).then_some(partial.sdu);
        if other.is_some() {
            *partial = fresh();
        }
        if partial.got.covers(segment.from, segment.to) && segment.from < segment.to {
            return Added::Known;
        }
        partial.got.insert(segment.from, segment.to);
        if segment.last {
            partial.total = Some(segment.to);
        }
        if let Some(other) = other {
            return Added::Confused(other);
        }
        if partial.total.is_none_or(|total| !partial.got.covers(0, total)) {
            return Added::Kept;
        }
        self.partial.remove(&sn);
        self.complete.insert(sn);
        Added::Complete
    }

    /// Forgets the numbers below `sn`; their packets that are not complete go to `discarded`.
    pub fn forget(&mut self, sn: u64, discarded: &mut Vec<SduKey>) {
        if self.complete.first().is_some_and(|first| *first < sn) {
            self.complete = self.complete.split_off(&sn);
        }
        if self.partial.first_key_value().is_some_and(|(first, _)| *first < sn) {
            let later = self.partial.split_off(&sn);
            discarded.extend(std::mem::replace(&mut self.partial, later).into_values().map(|partial| partial.sdu));
        }
    }
}
