// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The input in ADUs: of a fixed size, or the units of a video codec, the longer ones in fragments.
//!
//! Memory does not depend on the length of the input or of its units.

mod obu;
mod start_codes;

use std::io::{self, Read};

use clap::ValueEnum;

use obu::Obus;
use start_codes::{Codec, StartCodes};

/// The units of which ADUs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Units {
    /// Bytes: every ADU but the last has the full size, as in the thesis
    Fixed,
    /// NAL units of H.264 with start codes (ITU-T H.264, Annex B)
    H264,
    /// NAL units of H.265 with start codes (ITU-T H.265, Annex B)
    H265,
    /// Pictures and groups of blocks of H.263 with byte-aligned start codes (ITU-T H.263, 5.1.1 and 5.2.2)
    H263,
    /// Open bitstream units of AV1: low-overhead format (AV1, 5.2), or IVF
    Obu,
}

/// A reason for which there is no further ADU.
#[derive(Debug)]
pub enum ReadError {
    /// The input cannot be read.
    Read(io::Error),
    /// The input is not of the units that were said.
    Malformed(String),
}

/// The bytes behind an ADU that its end may depend on: headers of IVF and of an OBU.
const LOOK_AHEAD_BYTES: usize = 64;
const LEAST_BUFFER_BYTES: usize = 256 * 1024;

/// Rule by which units end.
#[derive(Debug)]
enum Splitter {
    Fixed,
    StartCodes(StartCodes),
    Obus(Obus),
}

/// The ADUs of an input.
#[derive(Debug)]
pub struct Adus<R> {
    input: R,
    splitter: Splitter,
    most_bytes: usize,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    /// Offset in the input of the first byte that is buffered.
    offset: u64,
}

impl<R: Read> Adus<R> {
    /// The ADUs of `input`, each of at most `most_bytes` (one at least).
    pub fn new(input: R, units: Units, most_bytes: usize) -> Adus<R> {
        let splitter = match units {
            Units::Fixed => Splitter::Fixed,
            Units::H264 => Splitter::StartCodes(StartCodes::new(Codec::H264)),
            Units::H265 => Splitter::StartCodes(StartCodes::new(Codec::H265)),
            Units::H263 => Splitter::StartCodes(StartCodes::new(Codec::H263)),
            Units::Obu => Splitter::Obus(Obus::default()),
        };
        let buffer = vec![0; LEAST_BUFFER_BYTES.max(4 * (most_bytes + LOOK_AHEAD_BYTES))].into();
        Adus { input, splitter, most_bytes, buffer, start: 0, end: 0, at_end: false, offset: 0 }
    }

    /// The next ADU, to be changed at will; none at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next(&mut self) -> Result<Option<&mut [u8]>, ReadError> {
        self.fill().map_err(ReadError::Read)?;
        let bytes = &self.buffer[self.start..self.end];
        let length = match &mut self.splitter {
            Splitter::Fixed => Ok(bytes.len().min(self.most_bytes)),
            Splitter::StartCodes(codes) => codes.length(bytes, self.most_bytes),
            Splitter::Obus(obus) => obus.length(bytes, self.most_bytes, self.offset),
        };
        let length = length.map_err(ReadError::Malformed)?;
        if length == 0 {
            return Ok(None);
        }
        let from = self.start;
        self.start += length;
        self.offset += length as u64;
        Ok(Some(&mut self.buffer[from..self.start]))
    }

    /// Reads until an ADU and what it may depend on is there, or the input has ended.
    fn fill(&mut self) -> io::Result<()> {
        let wanted = self.most_bytes + LOOK_AHEAD_BYTES;
        if self.at_end || self.end - self.start >= wanted {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < wanted && !self.at_end {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The first bytes as text for messages.
fn first(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    if shown.is_empty() { "it is empty".into() } else { format!("it begins with {}", shown.join(" ")) }
}

#[cfg(test)]
mod tests;
