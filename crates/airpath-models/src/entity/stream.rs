// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A stream of octets between the two ends of a hop. The sending end cuts it into pieces of any length,
//! several packets to a frame or a packet over many frames; the receiving end puts the packets together.
//!
//! Lengths of the stream count bits of the line: 8 for an octet, or 10 where each octet has a start and a
//! stop bit. A packet takes the link's overhead, the octets of PPP in front, its own octets (with a compressed
//! header, compressed, and with their escapes) and the octets of PPP behind. Pieces arrive in the order in which they were cut;
//! what is missing between them costs the packets that it belonged to.

use std::collections::VecDeque;

use airpath_core::{Bits, BufferLimit, Cause, Escapes, EventKind, Pdu, PduId, Ratio, Time};
use smallvec::SmallVec;

use super::ppp::PppConfig;
use super::vj::{Compressor, Decompressor};
use super::{EntityParameters, Sdu, SduKey, Sdus};
use crate::air::Piece;
use crate::stage::{QueueLength, StageCx};

/// The pieces of one frame.
pub type Pieces = SmallVec<[Piece; 1]>;

/// The first packet in a frame; 0 for none.
pub fn first_pdu(pieces: &[Piece]) -> PduId {
    pieces.first().map_or(0, |piece| piece.pdu)
}

/// Shape of the stream: what packets look like in it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// PPP; none where the link tells packets apart by itself.
    pub ppp: Option<PppConfig>,
    /// Bits on the line for an octet: 8, or 10 with a start and a stop bit.
    pub bits_per_octet: u32,
    overhead: Bits,
    compression: Ratio,
}

/// Place of a bit of the line within a packet of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a start or stop bit, or in front of the packet itself.
    Guard,
    /// Bit of the packet.
    Packet(u32),
    /// In an octet behind the packet, counted from the first of them.
    Back(u32),
}

impl Shape {
    /// The stream of the direction that `link` describes.
    pub fn new(link: &EntityParameters<'_>, ppp: PppConfig, bits_per_octet: u32) -> Shape {
        Shape { ppp: Some(ppp), bits_per_octet, overhead: link.overhead, compression: link.compression }
    }

    /// The stream of the direction that `link` describes, in octets of eight bits without PPP.
    pub fn plain(link: &EntityParameters<'_>) -> Shape {
        Shape { ppp: None, bits_per_octet: 8, overhead: link.overhead, compression: link.compression }
    }

    /// Octets in front of a packet.
    fn front(&self) -> u32 {
        self.overhead.get().div_ceil(8) as u32 + self.ppp.map_or(0, |ppp| ppp.front())
    }

    /// Octets behind a packet.
    fn back(&self) -> u32 {
        self.ppp.map_or(0, |ppp| ppp.back())
    }

    /// Bits of the line around `body` octets, an octet at least.
    fn framed(&self, body: u32) -> u32 {
        (self.front() + body + self.back()).max(1) * self.bits_per_octet
    }

    /// Octets that `bits` of a packet take without escapes.
    fn octets(&self, bits: Bits) -> u32 {
        self.compression.of(bits).get().div_ceil(8) as u32
    }

    /// Bits of the line that a packet of `bits` takes with the header that it has there, of whose escapes `counted`
    /// were counted.
    pub fn line_bits(&self, bits: Bits, counted: Escapes) -> u32 {
        let octets = self.octets(bits);
        self.framed(self.ppp.map_or(octets, |ppp| ppp.stuffed(octets, counted)))
    }

    /// The fewest bits of the line that a packet of `bits` takes, whatever its contents.
    pub fn least_line_bits(&self, bits: Bits) -> u32 {
        let vj = self.ppp.and_then(|ppp| ppp.vj());
        let bytes = bits.get().div_ceil(8) as u32;
        let bits = vj.map_or(bits, |vj| Bits::from_bytes(vj.least_octets(bytes).into()));
        let octets = self.octets(bits);
        self.framed(self.ppp.map_or(octets, |ppp| ppp.least_stuffed(octets)))
    }

    /// Octets of a packet, escapes included, that takes `line_bits` of the line. Escapes of the octets in front of
    /// and behind the packet are taken for escapes of its own.
    fn body(&self, line_bits: u32) -> u32 {
        (line_bits / self.bits_per_octet).saturating_sub(self.front() + self.back())
    }

    /// Bits of the line in front of a packet.
    pub fn front_bits(&self) -> u32 {
        self.front() * self.bits_per_octet
    }

    /// The bit of a packet of `packet_bits`, with the header that it has on the line, that takes `line_bits` in front of which bit `line_bit` of its part of
    /// the stream lies.
    pub fn packet_bit(&self, packet_bits: u32, line_bits: u32, line_bit: u32) -> u32 {
        let octet = (line_bit / self.bits_per_octet).saturating_sub(self.front());
        let within = match line_bit / self.bits_per_octet < self.front() {
            true => 0,
            // Behind a start bit; a stop bit lies behind the last bit of its octet.
            false if self.bits_per_octet == 10 => (line_bit % 10).saturating_sub(1).min(8),
            false => line_bit % self.bits_per_octet,
        };
        let body = self.body(line_bits);
        if u64::from(body) * 8 == u64::from(packet_bits) {
            return (octet * 8 + within).min(packet_bits);
        }
        let bit = u64::from(octet) * 8 + u64::from(within);
        (bit * u64::from(packet_bits) / (u64::from(body) * 8).max(1)).min(u64::from(packet_bits)) as u32
    }

    /// Place of bit `line_bit` of the `line_bits` of the stream that a packet of `packet_bits` takes. The line
    /// carries the least significant bit of an octet first.
    pub fn place(&self, packet_bits: u32, line_bits: u32, line_bit: u32) -> Place {
        let (octet, in_octet) = (line_bit / self.bits_per_octet, line_bit % self.bits_per_octet);
        let framed = self.bits_per_octet == 10;
        if framed && (in_octet == 0 || in_octet == 9) || octet < self.front() {
            return Place::Guard;
        }
        let body = self.body(line_bits);
        let octet = octet - self.front();
        if octet >= body {
            return Place::Back(octet - body);
        }
        let bit = octet * 8 + 7 - (in_octet - u32::from(framed));
        if body * 8 == packet_bits {
            return Place::Packet(bit);
        }
        // A bit of a compressed or stuffed packet stands for its proportional place.
        Place::Packet((u64::from(bit) * u64::from(packet_bits) / (u64::from(body) * 8)) as u32)
    }
}

/// A packet in the send buffer.
#[derive(Clone, Copy, Debug)]
struct Sending {
    sdu: SduKey,
    pdu: PduId,
    packet_bits: u32,
    /// Bits of the packet of which a compressed header has none.
    spared_bits: u32,
    header_bits: u32,
    line_bits: u32,
    /// Bits of the line that pieces have taken.
    taken: u32,
    /// Bits of the line that need not be sent again.
    settled: u32,
}

impl Sending {
    /// The bits of the line from `from` to `to`.
    fn piece(&self, shape: &Shape, from: u32, to: u32) -> Piece {
        let last = to == self.line_bits;
        // Of a compressed header the first bit stands for the beginning of the header, the others for its end.
        let place = |bit| match shape.packet_bit(self.packet_bits - self.spared_bits, self.line_bits, bit) {
            0 => 0,
            bit => bit + self.spared_bits,
        };
        let first_bit = place(from);
        let end = if last { self.packet_bits } else { place(to) };
        Piece {
            sdu: self.sdu,
            pdu: self.pdu,
            first_bit,
            bits: end - first_bit,
            last,
            packet_bits: self.packet_bits,
            header_bits: self.header_bits,
            link_bits: to - from,
        }
    }
}

/// The sending end of a stream: the send buffer.
#[derive(Clone, Debug)]
pub struct StreamSender {
    shape: Shape,
    /// Compression of headers, where there is one.
    compressor: Option<Box<Compressor>>,
    limit: BufferLimit,
    buffer: VecDeque<Sending>,
    /// Number of packets at the front of the buffer of which pieces have taken everything.
    taken: usize,
    buffered_bytes: u64,
    /// Bits of the line cut so far.
    position: u64,
    /// Bits of the line in the buffer that have yet to be cut.
    uncut: u64,
}

impl StreamSender {
    /// An empty send buffer of `limit`.
    pub fn new(shape: Shape, limit: BufferLimit) -> StreamSender {
        let vj = shape.ppp.and_then(|ppp| ppp.vj());
        StreamSender {
            shape,
            compressor: vj.map(|options| Box::new(Compressor::new(options))),
            limit,
            buffer: VecDeque::new(),
            taken: 0,
            buffered_bytes: 0,
            position: 0,
            uncut: 0,
        }
    }

    /// True if the buffer takes `next` now.
    pub fn has_room(&self, next: &Pdu) -> bool {
        if self.buffer.is_empty() {
            return true;
        }
        match self.limit {
            BufferLimit::Unlimited => true,
            BufferLimit::Packets(limit) | BufferLimit::Frames(limit) => self.buffer.len() < limit as usize,
            BufferLimit::Bytes(limit) => self.buffered_bytes + u64::from(next.len) <= limit,
        }
    }

    /// Changes the buffer's limit.
    pub fn configure(&mut self, limit: BufferLimit) {
        self.limit = limit;
    }

    /// The fewest bits of the line that a packet of `bytes` takes.
    pub fn least_line_bits(&self, bytes: u32) -> u32 {
        self.shape.least_line_bits(Bits::from_bytes(bytes.into()))
    }

    /// Takes a packet.
    pub fn accept(&mut self, pdu: Pdu, sdus: &mut Sdus) {
        let (id, packet_bits, header_bits) = (pdu.id, pdu.bits().get() as u32, u32::from(pdu.header_len) * 8);
        let line = self.compressor.as_mut().and_then(|compressor| compressor.take(&pdu));
        let (mut spared_bits, mut escapes) = (0, pdu.escapes);
        if let (Some(line), Some(headers), Some(ppp)) = (&line, &pdu.headers, self.shape.ppp) {
            spared_bits = line.spared() * 8;
            // Counted in the header as it came in.
            escapes = ppp.escapes_with(escapes, &headers.bytes()[..line.original() as usize], line.octets());
        }
        let line_bits = self.shape.line_bits(Bits::new((packet_bits - spared_bits).into()), escapes);
        self.buffered_bytes += u64::from(pdu.len);
        self.uncut += u64::from(line_bits);
        let sdu = sdus.insert(pdu, line_bits);
        sdus[sdu].line = line;
        let sending = Sending { sdu, pdu: id, packet_bits, spared_bits, header_bits, line_bits, taken: 0, settled: 0 };
        self.buffer.push_back(sending);
    }

    /// True if there is something to cut.
    pub fn has_more(&self) -> bool {
        self.taken < self.buffer.len()
    }

    /// The next `room` bits of the line, or fewer, and their position in the stream; none if there is nothing.
    pub fn cut(&mut self, mut room: u32) -> Option<(u64, Pieces)> {
        let mut pieces = Pieces::new();
        let position = self.position;
        while room > 0
            && let Some(piece) = self.cut_piece(room)
        {
            room -= piece.link_bits;
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some((position, pieces))
    }

    /// The next `room` bits of the line, or fewer, of one packet; none if there is nothing.
    pub fn cut_piece(&mut self, room: u32) -> Option<Piece> {
        let sending = self.buffer.get_mut(self.taken)?;
        let bits = (sending.line_bits - sending.taken).min(room);
        let (from, to) = (sending.taken, sending.taken + bits);
        sending.taken = to;
        self.position += u64::from(bits);
        self.uncut -= u64::from(bits);
        let piece = sending.piece(&self.shape, from, to);
        self.taken += usize::from(piece.last);
        Some(piece)
    }

    /// The bits of the line from `from` to `to` of a packet in the buffer, which have been cut before.
    pub fn piece_of(&self, sdu: SduKey, from: u32, to: u32) -> Option<Piece> {
        let sending = self.buffer.iter().find(|sending| sending.sdu == sdu)?;
        Some(sending.piece(&self.shape, from, to))
    }

    /// Position of the next bit to be cut.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bits of the line of each packet that have yet to be cut, the oldest packet first.
    pub fn rests(&self) -> impl Iterator<Item = u32> {
        self.buffer.iter().skip(self.taken).map(|sending| sending.line_bits - sending.taken)
    }

    /// Bits of the line of the next packet that have yet to be cut.
    pub fn next_rest(&self) -> Option<u32> {
        self.buffer.get(self.taken).map(|sending| sending.line_bits - sending.taken)
    }

    /// Arrival of the oldest packet in the buffer; none if it is empty.
    pub fn oldest(&self, sdus: &Sdus) -> Option<Time> {
        let first = self.buffer.front()?;
        sdus.get(first.sdu).map(|sdu| sdu.pdu.arrived)
    }

    /// Packets of which nothing has been cut.
    pub fn waiting(&self) -> QueueLength {
        let first = self.buffer.partition_point(|sending| sending.taken > 0);
        let bytes = self.buffer.range(first..).map(|sending| u64::from(sending.packet_bits / 8)).sum();
        QueueLength { packets: (self.buffer.len() - first) as u32, bytes }
    }

    /// Number of packets of which something has yet to be cut.
    pub fn uncut_packets(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Bits of the line in the buffer that have yet to be cut.
    pub fn uncut(&self) -> u64 {
        self.uncut
    }

    /// The next packet to be cut, and the bits of the line that have been cut of it; none if there is nothing.
    pub fn next(&self) -> Option<(SduKey, u32)> {
        self.buffer.get(self.taken).map(|sending| (sending.sdu, sending.taken))
    }

    /// The first `bits` of the line of `piece`, which begins at bit `offset` of its packet, and the rest of it.
    pub fn split(&self, piece: &Piece, offset: u32, bits: u32, sdus: &Sdus) -> (Piece, Piece) {
        let line_bits = sdus.get(piece.sdu).map_or(offset + piece.link_bits, |sdu| sdu.parts);
        let end = piece.first_bit + piece.bits;
        let middle = self.shape.packet_bit(piece.packet_bits, line_bits, offset + bits).clamp(piece.first_bit, end);
        let first = Piece { bits: middle - piece.first_bit, link_bits: bits, last: false, ..*piece };
        let rest = Piece { first_bit: middle, bits: end - middle, link_bits: piece.link_bits - bits, ..*piece };
        (first, rest)
    }

    /// True if a part of the next packet has been cut.
    pub fn has_begun(&self) -> bool {
        self.buffer.get(self.taken).is_some_and(|sending| sending.taken > 0)
    }

    /// `pieces`, the oldest that are not settled, need not be sent again; the packets in the buffer of which that
    /// is true as a whole leave it, each handed to `leave`.
    pub fn settle(&mut self, pieces: &[Piece], mut leave: impl FnMut(SduKey)) {
        let mut bits: u32 = pieces.iter().map(|piece| piece.link_bits).sum();
        while bits > 0
            && let Some(first) = self.buffer.front_mut()
        {
            let settled = (first.taken - first.settled).min(bits);
            bits -= settled;
            first.settled += settled;
            if first.settled < first.line_bits {
                debug_assert_eq!(bits, 0, "only what was cut is settled");
                return;
            }
            self.leave_first(&mut leave);
        }
    }

    /// The bits of `piece`, which may be of any packet, need not be sent again; the packet leaves the buffer if that
    /// is true of it as a whole.
    pub fn settle_piece(&mut self, piece: &Piece) {
        let Some(place) = self.buffer.iter().position(|sending| sending.sdu == piece.sdu) else { return };
        let sending = &mut self.buffer[place];
        sending.settled += piece.link_bits;
        if sending.settled == sending.line_bits {
            self.buffered_bytes -= u64::from(sending.packet_bits / 8);
            self.buffer.remove(place);
            self.taken -= 1;
        }
    }

    fn leave_first(&mut self, leave: &mut impl FnMut(SduKey)) {
        if let Some(first) = self.buffer.pop_front() {
            self.taken -= 1;
            self.uncut -= u64::from(first.line_bits - first.taken);
            self.buffered_bytes -= u64::from(first.packet_bits / 8);
            leave(first.sdu);
        }
    }

    /// Drops the packets of which pieces have taken anything: what they took is gone.
    pub fn drop_begun(&mut self, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.take_begun(|sdu| sdus.release(sdu, cause, stage));
    }

    /// Hands the packets of which pieces have taken anything to `leave`; they leave the buffer.
    pub fn take_begun(&mut self, mut leave: impl FnMut(SduKey)) {
        while self.buffer.front().is_some_and(|first| first.taken > 0) {
            let whole = self.taken > 0;
            self.taken += usize::from(!whole);
            self.leave_first(&mut leave);
        }
    }

    /// Drops the packets of which pieces have taken nothing.
    pub fn drop_others(&mut self, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let first = self.buffer.partition_point(|sending| sending.taken > 0);
        for sending in self.buffer.drain(first..) {
            self.buffered_bytes -= u64::from(sending.packet_bits / 8);
            self.uncut -= u64::from(sending.line_bits);
            sdus.release(sending.sdu, cause, stage);
        }
    }
}

/// The receiving end of a stream.
#[derive(Clone, Debug)]
pub struct StreamReceiver {
    shape: Shape,
    /// Decompression of headers, where there is one.
    decompressor: Option<Box<Decompressor>>,
    /// Position of the next bit.
    expected: u64,
    /// The packet of which a part has arrived.
    partial: Option<SduKey>,
}

impl StreamReceiver {
    /// The end of a stream of which nothing has arrived.
    pub fn new(shape: Shape) -> StreamReceiver {
        let vj = shape.ppp.and_then(|ppp| ppp.vj());
        let decompressor = vj.map(|options| Box::new(Decompressor::new(options)));
        StreamReceiver { shape, decompressor, expected: 0, partial: None }
    }

    /// Forgets the packet of which a part has arrived; what comes next begins a packet.
    pub fn restart(&mut self) {
        if self.partial.take().is_some() {
            self.discard_frame();
        }
    }

    /// PPP has discarded a frame that was damaged, and says so.
    fn discard_frame(&mut self) {
        if let Some(decompressor) = &mut self.decompressor {
            decompressor.lose();
        }
    }

    /// Takes the pieces of a frame that begins at `position`, hit at the bits of the line in `flips`, which are
    /// ascending and count from the first piece. Packets that are complete go to `up`.
    pub fn take(
        &mut self,
        position: u64,
        pieces: &[Piece],
        flips: &[u32],
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        if position != self.expected
            && let Some(broken) = self.partial.take()
        {
            // What is missing in the middle of a packet moves its end: the FCS or the length does not fit.
            sdus.lose(broken, Cause::Integrity, stage);
            self.discard_frame();
        }
        let mut from = 0;
        for piece in pieces {
            let to = from + piece.link_bits;
            let hit = flips.partition_point(|flip| *flip < from)..flips.partition_point(|flip| *flip < to);
            self.take_piece(piece, from, &flips[hit], sdus, stage, up);
            from = to;
        }
        self.expected = position + u64::from(from);
    }

    fn take_piece(
        &mut self,
        piece: &Piece,
        from: u32,
        flips: &[u32],
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let Some(sdu) = sdus.get_mut(piece.sdu) else {
            self.discard_frame();
            return self.partial = None;
        };
        let begins = self.partial != Some(piece.sdu);
        if begins && sdu.accounted > 0 {
            // A part that was delivered before.
            return self.discard_frame();
        }
        let begun_at = sdu.accounted;
        sdu.accounted += piece.link_bits;
        let fits = match piece.last {
            true => sdu.accounted == sdu.parts,
            false => sdu.accounted < sdu.parts,
        };
        self.partial = (!piece.last).then_some(piece.sdu);
        let fatal = self.hit(piece, begun_at, from, flips, sdus, stage);
        if !fits || fatal {
            sdus.lose(piece.sdu, Cause::Integrity, stage);
            self.discard_frame();
        }
        if piece.last {
            self.decompress(piece.sdu, sdus, stage);
            up.extend(sdus.hand_up(piece.sdu));
        }
    }

    /// Rebuilds the header of a packet that has arrived, where it is compressed. A packet of which that is not possible
    /// is dropped.
    fn decompress(&mut self, sdu: SduKey, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let (Some(decompressor), Some(arrived)) = (&mut self.decompressor, sdus.get_mut(sdu)) else { return };
        if !arrived.is_inside() {
            return;
        }
        match decompressor.take(arrived) {
            Ok(others) => damage(arrived, &others, stage),
            Err(cause) => drop(sdus.lose(sdu, cause, stage)),
        }
    }

    /// Flips bits of a packet that is still whole; true if that costs the packet.
    fn hit(
        &self,
        piece: &Piece,
        begun_at: u32,
        from: u32,
        flips: &[u32],
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
    ) -> bool {
        let Some(sdu) = sdus.get_mut(piece.sdu).filter(|sdu| sdu.is_inside() && !flips.is_empty()) else {
            return false;
        };
        let mut damaged: SmallVec<[u32; 16]> = SmallVec::new();
        let mut in_header: SmallVec<[u32; 16]> = SmallVec::new();
        let packet_bits = piece.packet_bits - sdu.line.as_ref().map_or(0, |line| line.spared() * 8);
        for flip in flips {
            match self.shape.place(packet_bits, sdu.parts, begun_at + flip - from) {
                Place::Guard => return true,
                Place::Back(octet) if self.shape.ppp.is_none_or(|ppp| ppp.guards_back(octet)) => return true,
                Place::Back(_) => {}
                Place::Packet(bit) if self.shape.ppp.is_none_or(|ppp| ppp.guards_packet(bit)) => return true,
                Place::Packet(bit) => {
                    let place = sdu.line.as_ref().map_or(Some(bit), |line| line.behind(bit));
                    let (hit, bit) = place.map_or((&mut in_header, bit), |bit| (&mut damaged, bit));
                    // Two bits of the line may stand for the same bit of a compressed packet.
                    if !hit.contains(&bit) {
                        hit.push(bit);
                    }
                }
            }
        }
        if let Some(line) = &mut sdu.line {
            in_header.into_iter().for_each(|bit| line.flip(bit));
        }
        damage(sdu, &damaged, stage);
        false
    }
}

/// Flips these bits of a packet, if there are any.
fn damage(sdu: &mut Sdu, bits: &[u32], stage: &mut StageCx<'_, '_>) {
    if !bits.is_empty() {
        stage.record(EventKind::Damaged, Cause::None, &sdu.pdu, bits.len() as u64, QueueLength::default());
        sdu.pdu.flip(bits);
    }
}
