// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From PDUs emitted to packets written.
//!
//! An undamaged packet is written as it was read, unfinished checksum and all: the kernel at the
//! other end finishes or trusts it as if both ends shared a host. Segments of one super-packet that
//! are due within a quantum are written together, as they were read; apart, each gets headers of
//! its own, and so do those whose ECN fields the link has made different. A packet marked by the link
//! gets a header with the new ECN field. A damaged packet is finished first, then damaged, and written singly: only then do the
//! checks of the receiving kernel see what a radio receiver would have seen.

mod datagrams;

use std::io::IoSlice;
use std::ops::Range;

use airpath_core::{Ecn, Payload, Pdu, Span, Time};
use airpath_packet::edit::{ECN_EDIT_BYTES, ecn_of, set_ecn};
use bytes::Bytes;
use smallvec::SmallVec;

use super::frames::is_frame;
use super::{frame, layout};
use crate::packet_bytes::{ChecksumWork, Segmenter, complete_checksum};
use crate::ports::{Journey, OffloadHeader, Outgoing, Port};

/// Maximum number of packets in one system call.
const BATCH: usize = 32;

/// One packet to be written: its link header and headers of its own (if any), and a range of what was read.
#[derive(Debug)]
struct Entry {
    link_header: Range<usize>,
    header: Range<usize>,
    body: Bytes,
    offload: OffloadHeader,
    /// Number of PDUs in it.
    pdus: u32,
    /// Its record, for the hops of another host.
    journey: Option<Journey>,
    /// Further datagrams of the run that it begins.
    run: Vec<Bytes>,
    /// Length of the headers of a datagram that may begin a run; 0 for any other packet.
    datagram_header: usize,
}

impl Entry {
    /// A packet of its own.
    fn single(link_header: Range<usize>, header: Range<usize>, body: Bytes, offload: OffloadHeader) -> Entry {
        Entry { link_header, header, body, offload, pdus: 1, journey: None, run: Vec::new(), datagram_header: 0 }
    }
}

/// Result of one flush.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// PDUs that the kernel refused.
    pub refused: u64,
    /// PDUs that could not be written because the device was full.
    pub not_taken: u64,
    /// True if some that were written wait for room at the interface.
    pub waits: bool,
}

/// Collects packets for a port and writes them in batches.
#[derive(Debug, Default)]
pub struct Egress {
    entries: Vec<Entry>,
    headers: Vec<u8>,
    /// The last entry, if it may grow: the super-packet, the next index, when its first segment is due.
    open: Option<SegmentRun>,
    /// True if the port takes runs of datagrams as one.
    joins_datagrams: bool,
    /// True if the port takes packets only as they would be on a wire.
    finishes: bool,
}

#[derive(Debug)]
struct SegmentRun {
    whole: Bytes,
    layout: u64,
    due: Time,
    first: u16,
    next: u16,
    ecn: Ecn,
}

impl Egress {
    /// A collector for `port`.
    pub fn of(port: &Port) -> Egress {
        Egress {
            joins_datagrams: port.takes_runs_of_datagrams(),
            finishes: !port.takes_unfinished(),
            ..Egress::default()
        }
    }

    /// Adds a PDU that was due at `due`; segments of a super-packet that are due within `quantum` become one again.
    /// PDUs without bytes leave nothing.
    pub fn push(&mut self, pdu: &Pdu, due: Time, quantum: Span) {
        match &pdu.payload {
            Payload::LengthOnly => {}
            _ if pdu.damage.is_some() => {
                self.close();
                let bytes = damaged_bytes(pdu);
                let link_header = self.keep_link_header(pdu);
                // A receiver discards what is no IP packet any more; its kernel would refuse to take it, which
                // would look as if the link had lost a packet that it delivered.
                let was_frame = matches!(&pdu.payload, Payload::Whole(bytes) if is_frame(bytes));
                let is_ip = matches!(bytes.first().map(|first| first >> 4), Some(4 | 6));
                if was_frame || !link_header.is_empty() || is_ip {
                    self.entries.push(Entry::single(link_header, 0..0, bytes.into(), OffloadHeader::default()));
                }
            }
            Payload::Whole(bytes) => {
                self.close();
                self.push_single(bytes, 0, pdu.ecn, OffloadHeader::default());
            }
            Payload::Padded(_) => {
                self.close();
                self.push_single(&pdu.contents().into_owned().into(), 0, pdu.ecn, OffloadHeader::default());
            }
            Payload::Segment { layout, .. } if self.finishes && is_unfinished(*layout) => {
                self.close();
                let (bytes, link_header) = (finished_bytes(pdu), self.keep_link_header(pdu));
                if !bytes.is_empty() {
                    self.entries.push(Entry::single(link_header, 0..0, bytes.into(), OffloadHeader::default()));
                }
            }
            Payload::Segment { whole, index, layout } => {
                if let Some(run) = &mut self.open
                    && run.next == *index
                    && due.since(run.due) <= quantum
                    && run.ecn == pdu.ecn
                    && run.whole.as_ptr() == whole.as_ptr()
                {
                    run.next += 1;
                    return;
                }
                self.close();
                let (first, next) = (*index, *index + 1);
                self.open = Some(SegmentRun { whole: whole.clone(), layout: *layout, due, first, next, ecn: pdu.ecn });
            }
        }
    }

    /// Makes an entry of the segments collected so far.
    fn close(&mut self) {
        let Some(run) = self.open.take() else { return };
        let offload = layout::unpack(run.layout);
        let pdus = u32::from(run.next - run.first);
        if offload.is_super_packet() {
            let link = usize::from(layout::link_bytes(run.layout));
            let Ok(segmenter) = Segmenter::new(&run.whole[link..], &offload, ChecksumWork::Leave) else { return };
            let link_header = self.keep(&run.whole[..link]);
            let start = self.headers.len();
            let group = segmenter.group(u32::from(run.first), u32::from(run.next));
            self.headers.extend_from_slice(group.bytes());
            note_ecn(&mut self.headers[start..], run.ecn);
            let body = run.whole.slice(link + group.payload.start..link + group.payload.end);
            let header = start..self.headers.len();
            self.entries.push(Entry { pdus, ..Entry::single(link_header, header, body, group.offload) });
        } else {
            self.push_single(&run.whole, layout::link_bytes(run.layout), run.ecn, offload);
        }
    }

    /// Keeps some bytes until they are written.
    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.headers.len();
        self.headers.extend_from_slice(bytes);
        start..self.headers.len()
    }

    /// Keeps the link header of a PDU, if it has one.
    fn keep_link_header(&mut self, pdu: &Pdu) -> Range<usize> {
        match &pdu.payload {
            Payload::Segment { whole, layout, .. } => self.keep(&whole[..usize::from(layout::link_bytes(*layout))]),
            Payload::LengthOnly | Payload::Whole(_) | Payload::Padded(_) => 0..0,
        }
    }

    /// Makes an entry of one packet as it was read, but for its ECN field.
    fn push_single(&mut self, bytes: &Bytes, link_bytes: u8, ecn: Ecn, offload: OffloadHeader) {
        let mut body = bytes.clone();
        let link_header = match link_bytes {
            0 => 0..0,
            link_bytes => {
                let link = body.split_to(usize::from(link_bytes));
                self.keep(&link)
            }
        };
        let start = self.headers.len();
        if has_other_ecn(bytes, link_bytes, ecn) {
            let edited = body.split_to(body.len().min(ECN_EDIT_BYTES));
            self.headers.extend_from_slice(&edited);
            set_ecn(&mut self.headers[start..], ecn);
        }
        let header = start..self.headers.len();
        let is_as_read = link_bytes == 0 && header.is_empty();
        let datagram_header =
            if self.joins_datagrams && is_as_read { datagrams::header_bytes(&body, &offload).unwrap_or(0) } else { 0 };
        if datagram_header > 0
            && let Some(last) = self.entries.last_mut().filter(|last| last.datagram_header == datagram_header)
            && datagrams::continues(&last.body, last.pdus, &body, datagram_header)
        {
            last.run.push(body);
            last.pdus += 1;
            return;
        }
        self.entries.push(Entry { datagram_header, ..Entry::single(link_header, header, body, offload) });
    }

    /// Gives each run of datagrams the headers of a super-packet.
    fn close_runs(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.run.is_empty()) {
            let start = self.headers.len();
            let first = &entry.body;
            if let Some(offload) = datagrams::write_header(first, entry.pdus, entry.datagram_header, &mut self.headers)
            {
                (entry.header, entry.offload) = (start..self.headers.len(), offload);
            }
        }
    }

    /// Adds a PDU whose path goes on at another host, where its damage is done.
    pub fn push_onwards(&mut self, pdu: &Pdu, journey: Journey) {
        let body: Bytes = finished_bytes(pdu).into();
        if !body.is_empty() {
            let offload = OffloadHeader::default();
            self.entries.push(Entry { journey: Some(journey), ..Entry::single(0..0, 0..0, body, offload) });
        }
    }

    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.open.is_none()
    }

    /// Writes everything. A device that takes nothing more drops the rest, as a full device queue
    /// does, and says so.
    ///
    /// # Errors
    /// A port that is gone.
    pub fn flush(&mut self, port: &mut Port) -> std::io::Result<Flushed> {
        self.close();
        self.close_runs();
        let mut flushed = Flushed::default();
        let mut from = 0;
        while from < self.entries.len() {
            let batch = &self.entries[from..self.entries.len().min(from + BATCH)];
            let mut parts: SmallVec<[IoSlice<'_>; 2 * BATCH]> = SmallVec::new();
            let mut ends: SmallVec<[usize; BATCH]> = SmallVec::new();
            for entry in batch {
                // An empty first part would only cost the kernel a look.
                if !entry.header.is_empty() {
                    parts.push(IoSlice::new(&self.headers[entry.header.clone()]));
                }
                let skip = if entry.run.is_empty() { 0 } else { entry.datagram_header };
                parts.extend(std::iter::once(&entry.body).chain(&entry.run).map(|body| IoSlice::new(&body[skip..])));
                ends.push(parts.len());
            }
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let outgoing: SmallVec<[Outgoing<'_>; BATCH]> = batch
                .iter()
                .zip(starts.zip(&ends))
                .map(|(entry, (start, end))| Outgoing {
                    link_header: &self.headers[entry.link_header.clone()],
                    parts: &parts[start..*end],
                    offload: entry.offload,
                    journey: entry.journey.as_ref(),
                })
                .collect();
            let outcome = port.write_batch(&outgoing)?;
            flushed.waits = outcome.waits;
            if outcome.done == 0 {
                flushed.not_taken += self.entries[from..].iter().map(|entry| u64::from(entry.pdus)).sum::<u64>();
                break;
            }
            flushed.refused += outcome.refused as u64;
            from += outcome.done;
        }
        self.entries.clear();
        self.headers.clear();
        Ok(flushed)
    }
}

/// True if the sender left work on a packet to the device.
fn is_unfinished(layout: u64) -> bool {
    let offload = layout::unpack(layout);
    offload.is_super_packet() || offload.needs_checksum
}

/// True if the ECN field of a packet behind `link_bytes` bytes of link header is not `ecn`.
fn has_other_ecn(whole: &[u8], link_bytes: u8, ecn: Ecn) -> bool {
    frame::is_ip(whole, link_bytes) && ecn_of(&whole[usize::from(link_bytes)..]).is_some_and(|field| field != ecn)
}

/// Puts `ecn` into the header of an IP packet that says otherwise.
fn note_ecn(packet: &mut [u8], ecn: Ecn) {
    if has_other_ecn(packet, 0, ecn) {
        set_ecn(packet, ecn);
    }
}

/// True if a PDU leaves the link otherwise than it came: damaged, or with another ECN field.
pub fn is_changed(pdu: &Pdu) -> bool {
    pdu.damage.is_some()
        || match &pdu.payload {
            Payload::LengthOnly => false,
            Payload::Whole(bytes) | Payload::Padded(bytes) => has_other_ecn(bytes, 0, pdu.ecn),
            Payload::Segment { whole, layout, .. } => has_other_ecn(whole, layout::link_bytes(*layout), pdu.ecn),
        }
}

/// The finished bytes of a PDU without its link header: checksums complete, headers of a segment its own, damage done.
pub fn damaged_bytes(pdu: &Pdu) -> Vec<u8> {
    let mut bytes = finished_bytes(pdu);
    if let Some(damage) = &pdu.damage {
        damage.apply(&mut bytes);
    }
    bytes
}

/// The bytes of a PDU as they would be on a wire, with the ECN field that it has now, before any
/// damage.
pub fn finished_bytes(pdu: &Pdu) -> Vec<u8> {
    let mut bytes = unmarked_bytes(pdu);
    let is_ip = match &pdu.payload {
        Payload::Segment { whole, layout, .. } => frame::is_ip(whole, layout::link_bytes(*layout)),
        Payload::LengthOnly | Payload::Whole(_) | Payload::Padded(_) => true,
    };
    if is_ip {
        note_ecn(&mut bytes, pdu.ecn);
    }
    bytes
}

fn unmarked_bytes(pdu: &Pdu) -> Vec<u8> {
    match &pdu.payload {
        Payload::LengthOnly | Payload::Whole(_) | Payload::Padded(_) => pdu.contents().into_owned(),
        Payload::Segment { whole, index, layout } => {
            let whole = &whole[usize::from(layout::link_bytes(*layout))..];
            let mut offload = layout::unpack(*layout);
            if offload.is_super_packet() {
                // Arrivals are checked, so that what cannot be cut never gets here.
                let Ok(segmenter) = Segmenter::new(whole, &offload, ChecksumWork::Complete) else { return Vec::new() };
                let segment = segmenter.group(u32::from(*index), u32::from(*index) + 1);
                return [segment.bytes(), &whole[segment.payload.clone()]].concat();
            }
            let mut bytes = whole.to_vec();
            complete_checksum(&mut bytes, &mut offload);
            bytes
        }
    }
}

#[cfg(test)]
mod datagram_tests;
#[cfg(test)]
mod frame_tests;
#[cfg(test)]
mod tests;
