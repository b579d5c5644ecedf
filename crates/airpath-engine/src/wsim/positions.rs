// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A list, in CSV, of the places of the output that are not as in the input.

use std::io::{self, Write};

use super::damage::DamagedByte;

/// A writer of the list. Lengths are those of runs of neighbouring bytes within an ADU.
pub struct Positions<'a>(Option<&'a mut dyn Write>);

impl<'a> Positions<'a> {
    /// A list that goes to `out`; without it none is written.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: Option<&'a mut dyn Write>) -> io::Result<Positions<'a>> {
        if let Some(out) = &mut out {
            out.write_all(b"offset_bytes,length_bytes,kind\n")?;
        }
        Ok(Positions(out))
    }

    /// Adds the `damaged` bytes, ascending, of an ADU that is written from `offset` on; `skipped` bytes of the packet
    /// precede the ADU.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn damaged(&mut self, offset: u64, skipped: usize, damaged: &[DamagedByte]) -> io::Result<()> {
        let Some(out) = &mut self.0 else { return Ok(()) };
        for run in damaged.chunk_by(|one, other| one.position + 1 == other.position) {
            writeln!(out, "{},{},damaged", offset + (run[0].position - skipped) as u64, run.len())?;
        }
        Ok(())
    }

    /// Adds an ADU of `length` bytes that was dropped: `zeros` from `offset` on, or missing there.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn dropped(&mut self, offset: u64, length: usize, zeros: bool) -> io::Result<()> {
        let Some(out) = &mut self.0 else { return Ok(()) };
        writeln!(out, "{offset},{length},{}", if zeros { "zeros" } else { "missing" })
    }

    /// Ends the list.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Write::flush)
    }
}
