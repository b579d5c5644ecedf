// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Open bitstream units of AV1, as they are or in IVF.
//!
//! Source: AV1 Bitstream & Decoding Process Specification, 4.10.5, 5.2, 5.3 (the low-overhead format begins with a
//! temporal delimiter, and every unit has its size). IVF, as libvpx and libaom write it: a header of 32 bytes
//! (`DKIF`), and 12 bytes before each frame, the first four its size. Headers of IVF belong to the unit behind them.

use super::first;

const IVF_MARK: &[u8] = b"DKIF";
const IVF_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 12;
const TEMPORAL_DELIMITER: u8 = 2;
const LONGEST_LEB128_BYTES: usize = 8;

/// The units of a stream.
#[derive(Debug, Default)]
pub struct Obus {
    begun: bool,
    /// Bytes left of the unit.
    left: u64,
    /// In IVF: bytes of the frame behind this unit.
    frame: Option<u64>,
}

/// The header of an OBU.
struct Header {
    kind: u8,
    bytes: usize,
    /// Length of what follows; none if the header does not say.
    size: Option<u64>,
}

impl Obus {
    /// The length of the next ADU of at most `most`, where `bytes` begin with it, at `offset` of the input, and go on
    /// behind it.
    ///
    /// # Errors
    /// When the stream is not of OBUs.
    pub fn length(&mut self, bytes: &[u8], most: usize, offset: u64) -> Result<usize, String> {
        if self.left == 0 && !(bytes.is_empty() && self.begun) {
            self.left = self.unit(bytes).map_err(|problem| format!("byte {offset}: {problem}"))?;
        }
        let length = self.left.min(most.min(bytes.len()) as u64);
        self.left -= length;
        Ok(length as usize)
    }

    /// The length of the unit with which `bytes` begin. A unit that the end of the input cuts short is one too.
    fn unit(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let mut before = 0;
        if !self.begun {
            self.begun = true;
            if bytes.starts_with(IVF_MARK) {
                let word = |at: usize| bytes.get(at..at + 4).unwrap_or_default();
                if word(8) != b"AV01" {
                    return Err("this IVF is not of AV1: its codec is not AV01".into());
                }
                self.frame = Some(0);
                before = IVF_HEADER_BYTES;
            } else if !header(bytes).is_ok_and(|header| header.kind == TEMPORAL_DELIMITER && header.size == Some(0)) {
                return Err(format!(
                    "there is no AV1: its low-overhead format begins with a temporal delimiter (12 00), IVF with \
                     DKIF, and {}",
                    first(bytes)
                ));
            }
        }
        if self.frame == Some(0) {
            let size = bytes.get(before..before + FRAME_HEADER_BYTES).map(|head| [head[0], head[1], head[2], head[3]]);
            let Some(size) = size.map(u32::from_le_bytes) else { return Ok(bytes.len() as u64) };
            self.frame = Some(u64::from(size));
            before += FRAME_HEADER_BYTES;
            if size == 0 {
                return Ok(before as u64);
            }
        }
        let Some(rest) = bytes.get(before..).filter(|rest| !rest.is_empty()) else { return Ok(bytes.len() as u64) };
        let header = header(rest)?;
        let size = match (header.size, self.frame) {
            (Some(size), _) => header.bytes as u64 + size,
            (None, Some(frame)) => frame,
            (None, None) => return Err("an OBU has no size, which the low-overhead format needs".into()),
        };
        if let Some(frame) = &mut self.frame {
            let left = frame.checked_sub(size);
            *frame = left.ok_or_else(|| format!("an OBU of {size} bytes is longer than its frame in IVF, {frame}"))?;
        }
        Ok(before as u64 + size)
    }
}

/// The header of the OBU with which `bytes` begin.
fn header(bytes: &[u8]) -> Result<Header, String> {
    let flags = *bytes.first().ok_or("there is no OBU")?;
    if flags & 0x80 != 0 {
        return Err(format!("this is no OBU: the forbidden bit of {flags:02x} is set"));
    }
    let kind = flags >> 3 & 0xf;
    let bytes_of_flags = 1 + usize::from(flags & 4 != 0);
    if flags & 2 == 0 {
        return Ok(Header { kind, bytes: bytes_of_flags, size: None });
    }
    let mut size = 0;
    for (index, byte) in bytes.iter().skip(bytes_of_flags).take(LONGEST_LEB128_BYTES).enumerate() {
        size |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            if size > u64::from(u32::MAX) {
                return Err(format!("this is no OBU: its size would be {size} bytes"));
            }
            return Ok(Header { kind, bytes: bytes_of_flags + index + 1, size: Some(size) });
        }
    }
    match bytes.len() > bytes_of_flags + LONGEST_LEB128_BYTES {
        true => Err("this is no OBU: its size has no end".into()),
        // The end of the input cuts the header short.
        false => Ok(Header { kind, bytes: bytes.len(), size: Some(0) }),
    }
}
