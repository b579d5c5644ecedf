// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From PDUs emitted to packets written.
//!
//! An undamaged packet is written as it was read, unfinished checksum and all: the kernel at the
//! other end finishes or trusts it as if both ends shared a host. Segments of one super-packet that
//! are due at the same instant are written together, as they were read; apart, each gets headers of
//! its own, and so do those whose ECN fields the link has made different. A packet marked by the link
//! gets a header with the new ECN field. A damaged packet is finished first, then damaged, and written singly: only then do the
//! checks of the receiving kernel see what a radio receiver would have seen.

use std::io::IoSlice;
use std::ops::Range;

use airpath_core::{Ecn, Payload, Pdu, Time};
use airpath_packet::edit::{ECN_EDIT_BYTES, ecn_of, set_ecn};
use bytes::Bytes;
use smallvec::SmallVec;

use super::frames::is_frame;
use super::layout;
use crate::packet_bytes::{ChecksumWork, Segmenter, complete_checksum};
use crate::ports::{Journey, OffloadHeader, Outgoing, Port};

/// Maximum number of packets in one system call.
const BATCH: usize = 32;

/// One packet to be written: headers of its own (if any) and a range of what was read.
#[derive(Debug)]
struct Entry {
    header: Range<usize>,
    body: Bytes,
    offload: OffloadHeader,
    /// Number of PDUs in it.
    pdus: u32,
    /// Its record, for the hops of another host.
    journey: Option<Journey>,
}

/// Result of one flush.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// PDUs that the kernel refused.
    pub refused: u64,
    /// PDUs that could not be written because the device was full.
    pub not_taken: u64,
}

/// Collects packets for a port and writes them in batches.
#[derive(Debug, Default)]
pub struct Egress {
    entries: Vec<Entry>,
    headers: Vec<u8>,
    /// The last entry, if it may grow: the super-packet, the next index, when it is due, its first.
    open: Option<SegmentRun>,
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
    /// Adds a PDU that was due at `due`. PDUs without bytes leave nothing.
    pub fn push(&mut self, pdu: &Pdu, due: Time) {
        match &pdu.payload {
            Payload::LengthOnly => {}
            _ if pdu.damage.is_some() => {
                self.close();
                let bytes = damaged_bytes(pdu);
                // A receiver discards what is no IP packet any more; its kernel would refuse to take it, which
                // would look as if the link had lost a packet that it delivered.
                let was_frame = matches!(&pdu.payload, Payload::Whole(bytes) if is_frame(bytes));
                if was_frame || matches!(bytes.first().map(|first| first >> 4), Some(4 | 6)) {
                    self.entries.push(Entry {
                        header: 0..0,
                        body: bytes.into(),
                        offload: OffloadHeader::default(),
                        pdus: 1,
                        journey: None,
                    });
                }
            }
            Payload::Whole(bytes) => {
                self.close();
                self.push_single(bytes, pdu.ecn, OffloadHeader::default());
            }
            Payload::Segment { whole, index, layout } => {
                if let Some(run) = &mut self.open
                    && run.next == *index
                    && run.due == due
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
        let start = self.headers.len();
        if offload.is_super_packet() {
            let Ok(segmenter) = Segmenter::new(&run.whole, &offload, ChecksumWork::Leave) else { return };
            let group = segmenter.group(u32::from(run.first), u32::from(run.next));
            self.headers.extend_from_slice(group.bytes());
            note_ecn(&mut self.headers[start..], run.ecn);
            let body = run.whole.slice(group.payload.clone());
            let header = start..self.headers.len();
            self.entries.push(Entry { header, body, offload: group.offload, pdus, journey: None });
        } else {
            self.push_single(&run.whole, run.ecn, offload);
        }
    }

    /// Makes an entry of one packet as it was read, but for its ECN field.
    fn push_single(&mut self, bytes: &Bytes, ecn: Ecn, offload: OffloadHeader) {
        let start = self.headers.len();
        let mut body = bytes.clone();
        if has_other_ecn(bytes, ecn) {
            let edited = body.split_to(body.len().min(ECN_EDIT_BYTES));
            self.headers.extend_from_slice(&edited);
            set_ecn(&mut self.headers[start..], ecn);
        }
        self.entries.push(Entry { header: start..self.headers.len(), body, offload, pdus: 1, journey: None });
    }

    /// Adds a PDU whose path goes on at another host, where its damage is done.
    pub fn push_onwards(&mut self, pdu: &Pdu, journey: Journey) {
        let body: Bytes = finished_bytes(pdu).into();
        if !body.is_empty() {
            let offload = OffloadHeader::default();
            self.entries.push(Entry { header: 0..0, body, offload, pdus: 1, journey: Some(journey) });
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
    /// When the port is gone.
    pub fn flush(&mut self, port: &mut Port) -> std::io::Result<Flushed> {
        self.close();
        let mut flushed = Flushed::default();
        let mut from = 0;
        while from < self.entries.len() {
            let batch = &self.entries[from..self.entries.len().min(from + BATCH)];
            let parts: SmallVec<[[IoSlice<'_>; 2]; BATCH]> = batch
                .iter()
                .map(|entry| [IoSlice::new(&self.headers[entry.header.clone()]), IoSlice::new(&entry.body)])
                .collect();
            let outgoing: SmallVec<[Outgoing<'_>; BATCH]> = batch
                .iter()
                .zip(&parts)
                .map(|(entry, parts)| Outgoing {
                    // An empty first part would only cost the kernel a look.
                    parts: if entry.header.is_empty() { &parts[1..] } else { &parts[..] },
                    offload: entry.offload,
                    journey: entry.journey.as_ref(),
                })
                .collect();
            let outcome = port.write_batch(&outgoing)?;
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

/// True if the ECN field of a packet is not `ecn`.
fn has_other_ecn(packet: &[u8], ecn: Ecn) -> bool {
    ecn_of(packet).is_some_and(|field| field != ecn)
}

/// Puts `ecn` into the header of a packet that says otherwise.
fn note_ecn(packet: &mut [u8], ecn: Ecn) {
    if has_other_ecn(packet, ecn) {
        set_ecn(packet, ecn);
    }
}

/// True if a PDU leaves the link otherwise than it came: damaged, or with another ECN field.
pub fn is_changed(pdu: &Pdu) -> bool {
    pdu.damage.is_some()
        || match &pdu.payload {
            Payload::LengthOnly => false,
            Payload::Whole(bytes) | Payload::Segment { whole: bytes, .. } => has_other_ecn(bytes, pdu.ecn),
        }
}

/// The finished bytes of a PDU: checksums complete, headers of a segment its own, damage done.
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
    note_ecn(&mut bytes, pdu.ecn);
    bytes
}

fn unmarked_bytes(pdu: &Pdu) -> Vec<u8> {
    match &pdu.payload {
        Payload::LengthOnly => Vec::new(),
        Payload::Whole(bytes) => bytes.to_vec(),
        Payload::Segment { whole, index, layout } => {
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
mod tests;
