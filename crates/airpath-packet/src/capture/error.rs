// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of a capture, with their places.

use std::fmt;
use std::io;

/// A place in a capture: that of a block or packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The word for the thing at that place: a block of pcapng, or a packet of pcap.
    pub unit: &'static str,
    /// The number of that, from 1; 0 for the file's head.
    pub number: u64,
    /// The byte of the file at which the block begins.
    pub offset: u64,
}

impl Place {
    /// The place behind this one, of so many bytes.
    pub(super) fn after(self, bytes: u64) -> Place {
        Place { number: self.number + 1, offset: self.offset + bytes, ..self }
    }
}

/// A capture that cannot be read on.
#[derive(Debug, thiserror::Error)]
pub struct CaptureError {
    /// Place of the problem.
    pub place: Place,
    /// The problem.
    pub problem: CaptureProblem,
}

/// A defect of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureProblem {
    /// Reading failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file ends in the middle of a block or packet.
    #[error("the file ends in the middle of it: whoever wrote it was killed, or is still writing")]
    Torn,
    /// The file does not begin as a capture does.
    #[error("it begins neither as pcap nor as pcapng does")]
    Foreign,
    /// A length that no block or packet has.
    #[error("it says that it has {0} bytes")]
    Length(u32),
    /// The two lengths of a block differ.
    #[error("it ends with another length than it begins with")]
    Lengths,
    /// A section that does not say its byte order.
    #[error("a section has no byte order")]
    ByteOrder,
    /// A block that is shorter than what it has to hold.
    #[error("it is shorter than what it holds")]
    Short,
    /// An interface with a resolution of time that cannot be.
    #[error("an interface has stamps of no sensible resolution")]
    Resolution,
    /// A packet of an interface that no block describes.
    #[error("a packet is of interface {0}, which the file does not describe")]
    Interface(u32),
    /// A stamp before 1970, or later than its field, or 64 bits of nanoseconds, can hold.
    #[error("its stamp cannot be written as a time since 1970")]
    Time,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { unit, number, offset } = self.place;
        match number {
            0 => write!(formatter, "{}", self.problem),
            _ => write!(formatter, "{unit} {number} (at byte {offset}): {}", self.problem),
        }
    }
}

impl CaptureError {
    /// True if the file ends in the middle of a block or packet.
    pub fn is_torn(&self) -> bool {
        matches!(self.problem, CaptureProblem::Torn)
    }
}

impl From<CaptureError> for io::Error {
    fn from(error: CaptureError) -> io::Error {
        match error.problem {
            CaptureProblem::Io(source) => source,
            _ => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        }
    }
}
