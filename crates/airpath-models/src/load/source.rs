// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background loads as a path drives them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airpath_core::{
    Direction, DrawKey, DrawScope, FiveTuple, Origin, Pdu, PduId, Seed, Time, background_id, background_number,
};

use super::{BackgroundConfig, Generator, Load, Packet};

/// One background load.
#[derive(Debug)]
struct Source {
    load: Load,
    /// Hop that it enters, and the last hop through which it goes: places in the path.
    hop: usize,
    until: usize,
    direction: Direction,
    class: u8,
    flow: u32,
    flows: u32,
    start: Time,
    stop: Time,
    next_id: PduId,
    next: Option<Packet>,
}

impl Source {
    fn new(config: &BackgroundConfig, number: u16, hops: &[&str], seed: Seed) -> Source {
        let place = |name: &str| {
            let place = hops.iter().position(|hop| *hop == name);
            place.expect("a load names hops of its path; the scenario checks that")
        };
        let scope = DrawScope { hop: &config.name, direction: config.direction, role: "background", instance: 0 };
        let mut load = Load::new(&config.load, DrawKey::new(seed, &scope));
        let next = load.next_packet();
        let hop = place(&config.hop);
        Source {
            load,
            hop,
            until: config.until.as_deref().map_or(hop, place),
            direction: config.direction,
            class: config.dscp,
            flow: config.flow.unwrap_or_else(|| flow_of(&config.name)),
            flows: config.flows.max(1),
            start: Time::ZERO + config.start,
            stop: config.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop),
            next_id: background_id(number, 0),
            next,
        }
    }

    /// Time of the next packet; `Time::NEVER` if there is none.
    fn due(&self) -> Time {
        let due = self.next.map_or(Time::NEVER, |packet| self.start + packet.after);
        if due < self.stop { due } else { Time::NEVER }
    }

    /// The packet that comes at `at`.
    fn take(&mut self, at: Time) -> Option<Pdu> {
        let packet = self.next.take()?;
        self.next = self.load.next_packet();
        let flow = self.flow.wrapping_add((packet.sender % u64::from(self.flows)) as u32);
        let pdu = Pdu {
            id: self.next_id,
            arrived: at,
            len: packet.bytes,
            class: self.class,
            origin: Origin::Background,
            flow,
            tuple: FiveTuple { source: flow, ..FiveTuple::default() },
            ..Pdu::default()
        };
        self.next_id += 1;
        Some(pdu)
    }
}

/// A flow's number made of a load's name (FNV-1a, RFC 9923): it does not depend on other loads.
fn flow_of(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// All background loads of a path.
#[derive(Debug)]
pub(crate) struct Loads {
    sources: Vec<Source>,
    /// Number of the first among the loads of the machine.
    first: u16,
    /// Sources that have a packet to come: the earliest first, of several the one that was written first.
    agenda: BinaryHeap<Reverse<(Time, usize)>>,
    /// Time of the first of those; `Time::NEVER` if there is none.
    next: Time,
}

impl Loads {
    /// The loads of `configs` in a path of the hops called `hops`, at the beginning of a run. The machine numbers
    /// them from `first`.
    pub fn new(configs: &[BackgroundConfig], first: u16, hops: &[&str], seed: Seed) -> Loads {
        let numbered = (first..).zip(configs);
        let sources: Vec<Source> = numbered.map(|(number, config)| Source::new(config, number, hops, seed)).collect();
        let agenda = sources.iter().map(Source::due).enumerate().filter(|(_, due)| *due != Time::NEVER);
        let agenda = agenda.map(|(number, due)| Reverse((due, number))).collect();
        let mut loads = Loads { sources, first, agenda, next: Time::NEVER };
        loads.note_next();
        loads
    }

    fn note_next(&mut self) {
        self.next = self.agenda.peek().map_or(Time::NEVER, |Reverse((due, _))| *due);
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Time of the next packet; `Time::NEVER` if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The packet that comes next, and where it enters.
    pub fn take(&mut self) -> Option<(usize, Direction, Pdu)> {
        let mut first = self.agenda.peek_mut()?;
        let Reverse((at, number)) = *first;
        let source = &mut self.sources[number];
        let pdu = source.take(at)?;
        let entered = (source.hop, source.direction, pdu);
        // A source that has ended stays at the end of the agenda, which says never.
        *first = Reverse((source.due(), number));
        drop(first);
        self.note_next();
        Some(entered)
    }

    /// True if the virtual packet `id` goes no farther than hop number `hop`.
    #[inline]
    pub fn ends_at(&self, id: PduId, hop: usize) -> bool {
        let source = background_number(id)
            .and_then(|(number, _)| self.sources.get(usize::from(number.wrapping_sub(self.first))));
        source.is_none_or(|source| source.until == hop)
    }
}
