// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Batches that travel from the loop to the writer thread: plain records and one arena of bytes, emptied and
//! used again, so that the loop allocates nothing.

use airpath_core::{
    Cause, Direction, Ecn, Escapes, Event, EventKind, FiveTuple, LinkRecord, Matches, Pdu, PduId, Time,
};
use serde::{Deserialize, Serialize};

/// A stretch of a batch's arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stretch {
    pub start: u32,
    pub length: u32,
}

/// Kind of an input of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum InputKind {
    /// A packet was offered to the machine.
    Offer,
    /// A packet arrived but was filtered before the link.
    Discarded,
    /// A command was carried out.
    Command,
    /// Packets were read from a port; the length column counts them.
    Read,
    /// Records were lost here because the writer could not keep up; replay is impossible.
    Lost,
}

impl InputKind {
    /// Every kind, in order of its number.
    pub const ALL: [InputKind; 5] =
        [InputKind::Offer, InputKind::Discarded, InputKind::Command, InputKind::Read, InputKind::Lost];

    /// The word used in the log.
    pub const fn name(self) -> &'static str {
        match self {
            InputKind::Offer => "offer",
            InputKind::Discarded => "discarded",
            InputKind::Command => "command",
            InputKind::Read => "read",
            InputKind::Lost => "lost",
        }
    }
}

/// One thing that drove the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    pub at: Time,
    /// Time at which the loop read it; `u64::MAX` if unknown.
    pub read_ns: u64,
    /// The kernel's receive stamp in run time; `u64::MAX` where there is none.
    pub kernel_ns: u64,
    pub pdu: PduId,
    /// Hash of the bytes behind the headers; `u64::MAX` where they are not known.
    pub hash: u64,
    /// Bytes of an offer or discard; the command's JSON.
    pub bytes: Stretch,
    /// Bytes of the link header, which lies before `bytes` in the arena.
    pub link_bytes: u8,
    /// The packet's length in bytes; of a read the number of packets.
    pub length: u32,
    pub flow: u32,
    pub header_len: u16,
    pub escapes: Escapes,
    /// Answers of filters; none where the link has no filter.
    pub matches: Matches,
    pub port: u16,
    pub kind: InputKind,
    pub class: u8,
    pub ecn: Ecn,
    pub tuple: FiveTuple,
    pub cause: Cause,
}

impl Input {
    pub(crate) const UNKNOWN: u64 = u64::MAX;

    pub(crate) fn new(kind: InputKind, at: Time) -> Input {
        Input {
            at,
            read_ns: Input::UNKNOWN,
            kernel_ns: Input::UNKNOWN,
            pdu: 0,
            hash: 0,
            bytes: Stretch::default(),
            link_bytes: 0,
            length: 0,
            flow: 0,
            header_len: 0,
            escapes: Escapes::UNKNOWN,
            matches: Matches::NONE,
            port: 0,
            kind,
            class: 0,
            ecn: Ecn::NotEct,
            tuple: FiveTuple::default(),
            cause: Cause::None,
        }
    }
}

/// A packet that really left, belonging to a delivery among the batch's events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emitted {
    /// Index of the delivery in the batch's events.
    pub event: u32,
    pub port: u16,
    /// True if the packet differs from the one that was offered; then `bytes` and `length` are its.
    pub changed: bool,
    pub at_ns: u64,
    pub bytes: Stretch,
    pub length: u32,
    /// Positions of flipped bits, in the batch's `flips`.
    pub flips: Stretch,
    /// The bytes that are left of a truncated packet.
    pub kept_bytes: Option<u32>,
}

/// Maximum size of a batch before it is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchSize {
    /// Events.
    pub events: usize,
    /// Offers, discards, commands and reads together.
    pub inputs: usize,
    /// Bytes of packets.
    pub arena_bytes: usize,
}

impl Default for BatchSize {
    fn default() -> BatchSize {
        BatchSize { events: 8_192, inputs: 4_096, arena_bytes: 512 << 10 }
    }
}

impl BatchSize {
    /// Memory of a batch of this size, in bytes.
    pub const fn bytes(&self) -> usize {
        self.events * size_of::<Event>()
            + self.events / 2 * size_of::<Emitted>()
            + self.inputs * size_of::<Input>()
            + self.arena_bytes
    }
}

/// Records that were lost because the writer could not keep up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lost {
    /// Events, records of link entities included.
    pub events: u64,
    /// Offers, discards, commands and reads.
    pub inputs: u64,
}

impl Lost {
    /// True if nothing was lost.
    pub fn is_none(&self) -> bool {
        *self == Lost::default()
    }

    /// Counts what is in `batch`.
    pub(crate) fn add(&mut self, batch: &LogBatch) {
        self.events += (batch.events.len() + batch.links.len()) as u64;
        self.inputs += batch.inputs.len() as u64;
    }
}

/// Some milliseconds of a run.
#[derive(Debug, Default)]
pub struct LogBatch {
    pub(crate) events: Vec<Event>,
    /// Records of link entities.
    pub(crate) links: Vec<LinkRecord>,
    pub(crate) emitted: Vec<Emitted>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) arena: Vec<u8>,
    /// Positions of flipped bits, packet after packet.
    pub(crate) flips: Vec<u32>,
    /// Records lost between the previous batch and this one.
    pub(crate) lost_before: Lost,
    /// Time at which it was handed over.
    pub(crate) sealed_at: Time,
}

impl LogBatch {
    pub(crate) fn with_size(size: BatchSize) -> LogBatch {
        LogBatch {
            events: Vec::with_capacity(size.events),
            links: Vec::new(),
            emitted: Vec::with_capacity(size.events / 2),
            inputs: Vec::with_capacity(size.inputs),
            arena: Vec::with_capacity(size.arena_bytes),
            flips: Vec::new(),
            lost_before: Lost::default(),
            sealed_at: Time::ZERO,
        }
    }

    /// Brings all its memory in, so that filling it costs no page fault.
    pub(crate) fn touch(&mut self) {
        fn fill<T: Clone>(records: &mut Vec<T>, record: T) {
            records.resize(records.capacity(), record);
            records.clear();
        }
        fill(
            &mut self.events,
            Event::of_path(Time::ZERO, Direction::Uplink, EventKind::Offered, Cause::None, &Pdu::default(), 0),
        );
        fill(
            &mut self.emitted,
            Emitted {
                event: 0,
                port: 0,
                changed: false,
                at_ns: 0,
                bytes: Stretch::default(),
                length: 0,
                flips: Stretch::default(),
                kept_bytes: None,
            },
        );
        fill(&mut self.inputs, Input::new(InputKind::Offer, Time::ZERO));
        fill(&mut self.arena, 0);
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.links.clear();
        self.emitted.clear();
        self.inputs.clear();
        self.arena.clear();
        self.flips.clear();
        self.lost_before = Lost::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.links.is_empty() && self.inputs.is_empty()
    }

    pub(crate) fn bytes(&self, stretch: Stretch) -> &[u8] {
        &self.arena[stretch.start as usize..][..stretch.length as usize]
    }

    /// Bytes of an input, with the link header before them.
    pub(crate) fn frame(&self, input: &Input) -> &[u8] {
        let link_bytes = u32::from(input.link_bytes);
        let Stretch { start, length } = input.bytes;
        self.bytes(Stretch { start: start - link_bytes, length: length + link_bytes })
    }

    /// The positions of flipped bits of a packet that left.
    pub(crate) fn flips(&self, stretch: Stretch) -> &[u32] {
        &self.flips[stretch.start as usize..][..stretch.length as usize]
    }

    /// Copies positions of flipped bits.
    pub(crate) fn keep_flips(&mut self, positions: &[u32]) -> Stretch {
        let start = self.flips.len();
        self.flips.extend_from_slice(positions);
        Stretch { start: start as u32, length: positions.len() as u32 }
    }

    /// Copies the first `limit` bytes of `header` and `rest` into the arena.
    pub(crate) fn keep(&mut self, header: &[u8], rest: &[u8], limit: usize) -> Stretch {
        let start = self.arena.len();
        self.arena.extend_from_slice(&header[..header.len().min(limit)]);
        let room = limit.saturating_sub(header.len());
        self.arena.extend_from_slice(&rest[..rest.len().min(room)]);
        Stretch { start: start as u32, length: (self.arena.len() - start) as u32 }
    }
}
