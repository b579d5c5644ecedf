// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The transparent bearer of GSM: a stream of octets in radio blocks, without any protocol of the link.
//!
//! Source: Singh 2000, section 2.3.2 and appendix A; 3GPP TS 44.021. A block of 240 bits carries 192 bits of
//! the stream (`v110`). In asynchronous mode an octet takes ten bits, a start and a stop bit among them. Bit
//! errors go through to PPP, which says what they do (`ppp`); one in a start or stop bit moves the octets
//! behind it and costs the packet. A block that is lost as a whole costs the packets of which it carried a
//! part. Blocks in which there is nothing to carry are not modelled: nobody hears them.

use airpath_core::{Bits, Cause, End, EventKind, Framing, LinkEvent, LinkFrame, LinkRecord, Pdu, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::losses::{cause_of_loss, lose_parts, release_ended};
use super::ppp::PppConfig;
use super::recording::record_frame;
use super::stream::{Shape, StreamReceiver, StreamSender, first_pdu};
use super::v110::{self, BLOCK_BITS, BLOCK_DATA_BITS};
use super::{Arrival, EntityBeginning, EntityParameters, ErrorPositions, LinkEntity, OwnFrames, Sdus};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Characters of a transparent bearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Characters {
    /// An octet with a start and a stop bit: 19.2 octets in a block.
    #[default]
    Asynchronous,
    /// An octet alone: 24 octets in a block.
    Synchronous,
}

impl Characters {
    fn bits(self) -> u32 {
        match self {
            Characters::Asynchronous => 10,
            Characters::Synchronous => 8,
        }
    }
}

/// A transparent bearer: `{ type = "transparent", characters = "asynchronous" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TransparentConfig {
    /// Characters of the line.
    pub characters: Characters,
    /// PPP over it.
    pub ppp: PppConfig,
}

impl Configured<EntityBeginning<'_>> for TransparentConfig {
    type Model = Transparent;

    fn problems(&self) -> Vec<Problem> {
        self.ppp.problems().into_iter().map(|problem| problem.under("ppp")).collect()
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Transparent {
        let shape = |link: &EntityParameters<'_>, config: &TransparentConfig| {
            Shape::new(link, config.ppp, config.characters.bits())
        };
        // The other end may have other parameters.
        let theirs = match beginning.receives.kind {
            super::EntityConfig::Transparent(config) => config,
            _ => self,
        };
        Transparent {
            end: beginning.end,
            last_sent: Time::ZERO,
            sender: StreamSender::new(shape(&beginning.sends, self), beginning.sends.send_buffer),
            receiver: StreamReceiver::new(shape(&beginning.receives, theirs)),
            next_number: 0,
        }
    }

    fn examples() -> Vec<TransparentConfig> {
        vec![
            TransparentConfig::default(),
            TransparentConfig {
                characters: Characters::Synchronous,
                ppp: PppConfig { fcs: super::ppp::FcsCoverage::Off, flags: 2, ..PppConfig::default() },
            },
            // Packets whose contents decide how long they are.
            TransparentConfig {
                ppp: PppConfig {
                    stuffing: super::ppp::Stuffing::COUNTED,
                    fcs: super::ppp::FcsCoverage::Off,
                    ..PppConfig::default()
                },
                ..TransparentConfig::default()
            },
            // Headers on the line that differ from those of the packets, and errors in them.
            TransparentConfig {
                ppp: PppConfig {
                    fcs: super::ppp::FcsCoverage::Off,
                    header_compression: super::ppp::HeaderCompression::Vj,
                    max_slots: 2,
                    ..PppConfig::default()
                },
                ..TransparentConfig::default()
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for TransparentConfig {
    fn configure(&self, _entity: &mut Transparent, _at: Time) {}
}

impl OwnFrames for TransparentConfig {
    const OWN_FRAMES: bool = true;

    fn framing(&self) -> Option<Framing> {
        self.ppp.framing()
    }

    fn reads_headers(&self) -> bool {
        self.ppp.vj().is_some()
    }
}

/// One end of a transparent bearer.
#[derive(Clone, Debug)]
pub struct Transparent {
    end: End,
    /// Beginning of the last frame.
    last_sent: Time,
    sender: StreamSender,
    receiver: StreamReceiver,
    next_number: u64,
}

impl Transparent {
    /// Records a block.
    fn log(&self, event: LinkEvent, frame: &Frame, stage: &mut StageCx<'_, '_>) {
        let pdu = first_pdu(&frame.pieces);
        stage.link(|| LinkRecord { frame: LinkFrame::Block, pdu, ..LinkRecord::new(self.end.sends(), event) });
    }
}

impl LinkEntity for Transparent {
    fn has_room(&self, next: &Pdu) -> bool {
        self.sender.has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.accept(pdu, sdus);
    }

    fn ready_at(&self) -> Time {
        if self.sender.has_more() { Time::ZERO } else { Time::NEVER }
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        if grant.bits.is_some_and(|most| most.get() < u64::from(BLOCK_BITS)) {
            return None;
        }
        self.last_sent = grant.start;
        let (position, pieces) = self.sender.cut(BLOCK_DATA_BITS)?;
        let number = self.next_number;
        self.next_number += 1;
        let bits = Bits::new(u64::from(BLOCK_BITS));
        let frame = Frame { number, bits, pieces, words: Some(Box::new([position])) };
        record_frame(EventKind::FrameStarted, &frame, sdus, stage);
        self.log(LinkEvent::Sent, &frame, stage);
        Some(frame)
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        record_frame(EventKind::FrameSent, frame, sdus, stage);
        self.sender.settle(&frame.pieces, |_| {});
    }

    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let position = frame.words.as_deref().and_then(|words| words.first().copied()).unwrap_or(0);
        let is_whole = matches!(outcome, ChannelOutcome::Ok | ChannelOutcome::Delayed { .. });
        self.log(if is_whole { LinkEvent::Received } else { LinkEvent::Damaged }, &frame, stage);
        if let Some(cause) = cause_of_loss(&outcome) {
            record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(airpath_core::Stage::Channel));
            return lose_parts(&frame.pieces, cause, sdus, stage);
        }
        let flips: Vec<u32> = match outcome {
            ChannelOutcome::Flipped(places) => places.iter().filter_map(|place| v110::data_bit(*place)).collect(),
            _ => Vec::new(),
        };
        self.receiver.take(position, &frame.pieces, &flips, sdus, stage, up);
        release_ended(&frame.pieces, Cause::Integrity, sdus, stage);
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn backlog(&self, at: Time, sdus: &Sdus) -> Backlog {
        // A frame without a packet waits since the last one was sent.
        let since = self.sender.oldest(sdus).map_or(self.last_sent, |oldest| oldest.min(self.last_sent));
        Backlog { bits: u64::from(self.ready_at() <= at), since }
    }

    fn waiting(&self) -> QueueLength {
        self.sender.waiting()
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        let blocks = self.sender.least_line_bits(bytes).div_ceil(BLOCK_DATA_BITS);
        Bits::new(u64::from(blocks * BLOCK_BITS))
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn advance(&mut self, _: &mut Sdus, _: &mut StageCx<'_, '_>, _: &mut Vec<Pdu>) {}

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.drop_others(Cause::Blackout, sdus, stage);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, _: &EntityParameters<'_>) {
        self.sender.configure(sends.send_buffer);
    }
}
