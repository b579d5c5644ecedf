// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! HDLC-like framing of RFC 1662 over an octet-oriented line.

use crate::fcs::Fcs;

const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const ADDRESS: u8 = 0xff;
const CONTROL: u8 = 0x03;
/// The protocol whose frames have the default sequence before anything is agreed.
const LCP: u16 = 0xc021;

/// Characters below 0x20 that are escaped before LCP has agreed on fewer.
pub const DEFAULT_CHARACTER_MAP: u32 = 0xffff_ffff;

/// Reason for which the bytes between two flags were no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingError {
    /// The sequence at its end does not fit its contents.
    BadSequence,
    /// Ended by an escape and a flag: the sender gave it up.
    Aborted,
    /// Too short for a protocol and a sequence.
    Runt,
    /// Longer than the receiver takes.
    Giant,
    /// No valid protocol field.
    BadHeader,
}

/// Finder of frames in the bytes of a line.
#[derive(Debug)]
pub struct Deframer {
    /// Sequence that frames end with.
    pub fcs: Fcs,
    /// Characters below 0x20 that a line may insert, and that are ignored.
    pub character_map: u32,
    longest_bytes: usize,
    buffer: Vec<u8>,
    escaped: bool,
    giant: bool,
}

impl Deframer {
    /// `longest_bytes` is the length of the longest information field taken.
    pub fn new(fcs: Fcs, longest_bytes: usize) -> Self {
        let longest_bytes = longest_bytes + 4 + fcs.length_bytes();
        Self { fcs, character_map: 0, longest_bytes, buffer: Vec::new(), escaped: false, giant: false }
    }

    /// Takes a byte; at the end of a frame, gives its protocol and information.
    /// Flags one after the other are no frames.
    pub fn push(&mut self, byte: u8) -> Option<Result<(u16, Vec<u8>), FramingError>> {
        if byte == FLAG {
            return self.end();
        }
        if byte < 0x20 && self.character_map >> byte & 1 == 1 {
            return None;
        }
        if byte == ESCAPE && !self.escaped {
            self.escaped = true;
            return None;
        }
        let byte = if std::mem::take(&mut self.escaped) { byte ^ 0x20 } else { byte };
        if self.buffer.len() < self.longest_bytes {
            self.buffer.push(byte);
        } else {
            self.giant = true;
        }
        None
    }

    fn end(&mut self) -> Option<Result<(u16, Vec<u8>), FramingError>> {
        let frame = std::mem::take(&mut self.buffer);
        let giant = std::mem::take(&mut self.giant);
        if std::mem::take(&mut self.escaped) {
            return Some(Err(FramingError::Aborted));
        }
        if giant {
            return Some(Err(FramingError::Giant));
        }
        if frame.is_empty() {
            return None;
        }
        if frame.len() < 2 + Fcs::Bits16.length_bytes() {
            return Some(Err(FramingError::Runt));
        }
        if self.fcs.is_good(&frame) {
            return Some(contents(&frame[..frame.len() - self.fcs.length_bytes()]).ok_or(FramingError::BadHeader));
        }
        // A peer that begins anew knows nothing of what was agreed (RFC 1570, 2.1).
        let begun_anew = Fcs::Bits16.is_good(&frame).then(|| contents(&frame[..frame.len() - 2])).flatten();
        Some(begun_anew.filter(|(protocol, _)| *protocol == LCP).ok_or(FramingError::BadSequence))
    }
}

/// Protocol and information, with both headers possibly compressed.
fn contents(frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    let frame = frame.strip_prefix(&[ADDRESS, CONTROL]).unwrap_or(frame);
    let (first, rest) = frame.split_first()?;
    // No protocol has the number of the address (RFC 1661, 6.5).
    if *first == ADDRESS {
        return None;
    }
    if first & 1 == 1 {
        return Some((u16::from(*first), rest.to_vec()));
    }
    let (second, rest) = rest.split_first()?;
    // The last bit of a protocol is 1 (RFC 1661, 2).
    (second & 1 == 1).then(|| (u16::from_be_bytes([*first, *second]), rest.to_vec()))
}

/// Maker of frames.
#[derive(Debug, Clone, Copy)]
pub struct Framer {
    /// Sequence that frames end with.
    pub fcs: Fcs,
    /// Characters below 0x20 to escape.
    pub character_map: u32,
    /// Leaves out address and control.
    pub compresses_address: bool,
    /// Leaves out the first byte of a protocol if it is 0.
    pub compresses_protocol: bool,
}

impl Framer {
    /// Framing before LCP has agreed on anything.
    pub fn new(fcs: Fcs) -> Self {
        Self { fcs, character_map: DEFAULT_CHARACTER_MAP, compresses_address: false, compresses_protocol: false }
    }

    /// Appends a frame, with a flag before and behind it, to `line`.
    pub fn write(&self, protocol: u16, information: &[u8], line: &mut Vec<u8>) {
        let mut frame = Vec::with_capacity(information.len() + 8);
        if !self.compresses_address {
            frame.extend([ADDRESS, CONTROL]);
        }
        let [high, low] = protocol.to_be_bytes();
        if high != 0 || !self.compresses_protocol {
            frame.push(high);
        }
        frame.push(low);
        frame.extend_from_slice(information);
        self.fcs.append(&mut frame);
        line.reserve(frame.len() + 2);
        line.push(FLAG);
        for byte in frame {
            let control = byte < 0x20 && self.character_map >> byte & 1 == 1;
            if control || byte == FLAG || byte == ESCAPE {
                line.extend([ESCAPE, byte ^ 0x20]);
            } else {
                line.push(byte);
            }
        }
        line.push(FLAG);
    }
}

#[cfg(test)]
mod tests;
