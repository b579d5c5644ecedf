// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The packets of a hop between send buffer and way out. Each of them is accounted for once: handed
//! up, or dropped with a cause.

use std::ops::{Index, IndexMut};

use airpath_core::{Cause, Direction, Pdu};

use crate::line_header::LineHeader;
use crate::stage::{QueueLength, StageCx};

/// Place of a packet on a hop. It names no other packet after that one has gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SduKey {
    index: u32,
    /// The number of the packet among all that the hop has taken, which tells it from later ones in its place.
    generation: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Inside,
    HandedUp,
    Lost,
    /// Nothing is left of it, and its place is free.
    Gone,
}

/// A packet on its way over one hop, from the send buffer until it is handed up or dropped.
#[derive(Clone, Debug)]
pub struct Sdu {
    /// The packet.
    pub pdu: Pdu,
    /// Number of parts that the receiving end has to account for: frames or bits, as its entity counts.
    pub parts: u32,
    /// Number of parts accounted for, lost ones included.
    pub accounted: u32,
    /// Its header as it is on the line, where the link compresses it.
    pub line: Option<Box<LineHeader>>,
    /// Number of frames that wait at the receiving end.
    pub buffered: u32,
    /// Payload bits that wait at the receiving end.
    pub buffered_bits: u64,
    /// True if this link has cut it, so that frames behind the cut bring nothing and cost nothing.
    pub cut: bool,
    direction: Direction,
    fate: Fate,
    generation: u32,
}

impl Sdu {
    /// True if it is dropped already, so that the rest of it is thrown away.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.fate == Fate::Lost
    }

    /// True if it is on the hop, handed up and lost or not.
    #[inline]
    fn is_held(&self) -> bool {
        self.fate != Fate::Gone
    }

    /// True if it is neither handed up nor dropped yet.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.fate == Fate::Inside
    }
}

/// The packets of a hop, of both directions.
#[derive(Clone, Debug, Default)]
pub struct Sdus {
    /// Places of packets, those of packets that have gone included: a packet is put into its place field by field, and
    /// taken out of it likewise, without a copy of all that is known about it.
    places: Vec<Sdu>,
    /// Free places, the last one that became free at the end.
    free: Vec<u32>,
    taken: u32,
    /// Direction of the packets that are taken.
    taking: Option<Direction>,
}

impl Sdus {
    /// No packets.
    pub fn new() -> Sdus {
        Sdus::default()
    }

    /// Tells the direction of the packets that are taken from now on; the uplink before the first word.
    #[inline]
    pub(crate) fn take_in(&mut self, direction: Direction) {
        self.taking = Some(direction);
    }

    /// Takes a packet of `parts` parts at the beginning of its way.
    #[inline]
    pub fn insert(&mut self, pdu: Pdu, parts: u32) -> SduKey {
        let generation = self.taken;
        self.taken = self.taken.wrapping_add(1);
        let (direction, fate) = (self.taking.unwrap_or(Direction::Uplink), Fate::Inside);
        let index = self.free.pop().unwrap_or(self.places.len() as u32);
        let sdu = Sdu {
            pdu,
            parts,
            accounted: 0,
            line: None,
            buffered: 0,
            buffered_bits: 0,
            cut: false,
            direction,
            fate,
            generation,
        };
        match self.places.get_mut(index as usize) {
            Some(place) => *place = sdu,
            None => self.places.push(sdu),
        }
        SduKey { index, generation }
    }

    /// The packet, unless it has gone.
    #[inline]
    pub fn get(&self, key: SduKey) -> Option<&Sdu> {
        self.places.get(key.index as usize).filter(|sdu| sdu.generation == key.generation && sdu.is_held())
    }

    /// The packet, unless it has gone.
    #[inline]
    pub fn get_mut(&mut self, key: SduKey) -> Option<&mut Sdu> {
        self.places.get_mut(key.index as usize).filter(|sdu| sdu.generation == key.generation && sdu.is_held())
    }

    /// The packets on the hop, handed up and lost ones included.
    fn held(&self) -> impl Iterator<Item = &Sdu> {
        self.places.iter().filter(|sdu| sdu.is_held())
    }

    /// Drops a packet for `cause`; true unless it was dropped, handed up, or gone before. It stays until it is
    /// released.
    pub fn lose(&mut self, key: SduKey, cause: Cause, stage: &mut StageCx<'_, '_>) -> bool {
        let Some(sdu) = self.get_mut(key).filter(|sdu| sdu.is_inside()) else { return false };
        sdu.fate = Fate::Lost;
        stage.dropped(cause, &sdu.pdu, QueueLength::default());
        true
    }

    /// The packet for the way out, once: none if it was handed up, dropped, or gone before. It stays until it is
    /// released, for an entity whose other end has yet to hear of it.
    pub fn hand_up(&mut self, key: SduKey) -> Option<Pdu> {
        let sdu = self.get_mut(key).filter(|sdu| sdu.is_inside())?;
        sdu.fate = Fate::HandedUp;
        Some(sdu.pdu.clone())
    }

    /// Removes a packet whose last part is accounted for; the packet for the way out, unless it was handed up or
    /// dropped before.
    #[inline]
    pub fn finish(&mut self, key: SduKey) -> Option<Pdu> {
        let sdu = self.get_mut(key)?;
        let is_inside = sdu.is_inside();
        sdu.fate = Fate::Gone;
        sdu.line = None;
        let pdu = std::mem::take(&mut sdu.pdu);
        self.free.push(key.index);
        is_inside.then_some(pdu)
    }

    /// Removes a packet; one that is still inside is dropped for `cause`.
    pub fn release(&mut self, key: SduKey, cause: Cause, stage: &mut StageCx<'_, '_>) {
        self.lose(key, cause, stage);
        self.finish(key);
    }

    /// True if no packet is on the hop, handed up or not.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// The packets that are neither handed up nor dropped.
    pub fn inside(&self) -> impl Iterator<Item = &Pdu> {
        self.held().filter(|sdu| sdu.is_inside()).map(|sdu| &sdu.pdu)
    }

    /// Those of them that travel in `direction`.
    pub(crate) fn inside_in(&self, direction: Direction) -> impl Iterator<Item = &Pdu> {
        let in_direction = move |sdu: &&Sdu| sdu.is_inside() && sdu.direction == direction;
        self.held().filter(in_direction).map(|sdu| &sdu.pdu)
    }
}

impl Index<SduKey> for Sdus {
    type Output = Sdu;

    #[inline]
    fn index(&self, key: SduKey) -> &Sdu {
        self.get(key).expect("the packet is on the hop")
    }
}

impl IndexMut<SduKey> for Sdus {
    #[inline]
    fn index_mut(&mut self, key: SduKey) -> &mut Sdu {
        self.get_mut(key).expect("the packet is on the hop")
    }
}
