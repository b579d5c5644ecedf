// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A serial line as a port whose packets are the PPP frames themselves, as they are on the line.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use airpath_core::Span;
use bytes::BytesMut;

use super::line_news::{LineNews, Teller};
use super::offload::OffloadHeader;
use super::serial::{Baud, LineSpec, SerialLine};
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, Outgoing, ReadOutcome, Received, WriteOutcome,
};
use crate::error::Result;

/// The flag between frames (RFC 1662).
const FLAG: u8 = 0x7e;
/// Longest frame on the line, with its escapes, in bytes.
const LONGEST_FRAME_BYTES: usize = 64_000;
/// Most frames that wait to be read.
const WAITING_FRAMES: usize = 1024;
/// Most bytes behind which a frame waits for the line.
const BEFORE_A_FRAME_BYTES: usize = 32 * 1024;

/// One of the lines of a relay. A packet is a flag and the bytes up to the next flag, untouched: with escapes and
/// frame check sequence, whatever the two ends have agreed on.
#[derive(Debug)]
pub struct FramePort {
    line: SerialLine,
    teller: Teller,
    splitter: Splitter,
    is_gone: bool,
}

/// Frames in the bytes of a line.
#[derive(Debug, Default)]
struct Splitter {
    /// Bytes since the last flag.
    open: Vec<u8>,
    /// A frame that is too long is skipped up to the next flag.
    skips: bool,
    frames: VecDeque<Vec<u8>>,
    giants: u64,
    unread: u64,
}

impl Splitter {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte != FLAG {
                if self.open.len() < LONGEST_FRAME_BYTES {
                    self.open.push(*byte);
                } else {
                    self.skips = true;
                }
                continue;
            }
            let frame = std::mem::take(&mut self.open);
            if std::mem::take(&mut self.skips) {
                self.giants += 1;
            } else if self.frames.len() >= WAITING_FRAMES {
                self.unread += 1;
            } else if !frame.is_empty() {
                self.frames.push_back(frame);
            }
        }
    }
}

impl FramePort {
    /// Opens the line at `baud` (none: at the speed that it has); `teller` tells when it hangs up.
    ///
    /// # Errors
    /// When the line is no terminal, is in use, or cannot be opened or set.
    pub fn open(spec: &LineSpec, baud: Option<Baud>, teller: Teller) -> Result<Self> {
        Ok(Self { line: SerialLine::open(spec, baud)?, teller, splitter: Splitter::default(), is_gone: false })
    }

    /// Name of the line: the path at which a peer finds it.
    pub fn name(&self) -> &str {
        self.line.name()
    }

    /// A line that hung up carries nothing more, and says so once.
    fn unless_hung_up(&mut self, outcome: io::Result<()>) -> io::Result<()> {
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_gone = true;
                self.line.forget();
                self.line.watch(false)?;
                self.teller.tell(LineNews::HungUp(self.line.name().to_owned()));
                Ok(())
            }
            other => other,
        }
    }
}

impl Adapter for FramePort {
    fn label(&self) -> &'static str {
        "frames"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        if !self.is_gone {
            let splitter = &mut self.splitter;
            let read = self.line.read(|bytes| splitter.take(bytes));
            let outcome = read.and_then(|()| self.line.write());
            self.unless_hung_up(outcome)?;
        }
        let mut outcome = ReadOutcome::default();
        make_room(slab, LONGEST_PACKET_BYTES);
        while outcome.packets < limit && has_room(slab, LONGEST_PACKET_BYTES) {
            let Some(frame) = self.splitter.frames.pop_front() else {
                outcome.exhausted = true;
                break;
            };
            slab.extend_from_slice(&[FLAG]);
            slab.extend_from_slice(&frame);
            let bytes = slab.split_to(frame.len() + 1);
            out.push(Received {
                bytes,
                stamp_realtime_ns: None,
                offload: OffloadHeader::default(),
                link_bytes: 0,
                journey: None,
            });
            outcome.packets += 1;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        for packet in packets {
            outcome.done += 1;
            if self.is_gone || self.line.waiting_bytes() > BEFORE_A_FRAME_BYTES {
                outcome.refused += 1;
                continue;
            }
            packet.parts.iter().for_each(|part| self.line.queue(part));
            self.line.queue(&[FLAG]);
            let written = self.line.write();
            self.unless_hung_up(written)?;
        }
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let Splitter { giants, unread, .. } = self.splitter;
        Ok(DropsOutsideModel { before_engine: unread, after_engine: 0, unreadable: giants })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        Ok(InterfaceChanges { downs: u64::from(self.is_gone), queues: Vec::new() })
    }

    fn unread_limit(&self) -> Option<Span> {
        None
    }

    fn is_line(&self) -> bool {
        true
    }

    fn carries_frames(&self) -> bool {
        true
    }
}

impl AsFd for FramePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

#[cfg(test)]
mod tests;
