// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ARQ of a cell with adaptive OFDM: a resource of a slot carries one frame, which is repeated until it arrives
//! without an error or has been sent as often as it may be.
//!
//! Source: Alfredsson et al. 2006 (WIPEMU), section II: packets are decomposed into frames of the bits that the
//! modulation of a resource has; a frame in error is repeated 3 to 30 times, the answer comes 2 ms later;
//! repetitions go before new data; transmission is pipelined; what is in error after the last try is taken as it is,
//! with its bit errors. The paper does not say what becomes of a frame that is to be repeated where fewer bits fit
//! ([`Repeat`]).
//!
//! Idealised: the receiving end notices every error and every frame that does not come, and its answers are neither
//! lost nor late. Frames have no header of their own: the numbers in their words take no bits, as in the paper, where
//! the payload is what is counted. There is no window; the send buffer limits what is under way. A grant that does
//! not limit the bits takes one packet in a frame.

mod by_place;
pub(super) mod combining;
pub(super) mod header;
mod receiving;
pub(super) mod repeats;
mod sending;

use airpath_core::{Bits, Cause, End, EventKind, LinkEvent, Pdu, PduId, Span, Stage, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::combining::Combining;

use self::combining::Combiner;
use self::header::{Answer, Header};
use self::receiving::{Fate, Receiver, ReceiverOptions};
use self::repeats::RepeatOptions;
use self::sending::{Outgoing, Sender, SenderOptions};
use super::recording::{log_block, record_frame, record_start};
use super::stream::{Shape, StreamSender, first_pdu};
use super::{
    Arrival, EntityBeginning, EntityConfig, EntityParameters, ErrorPositions, Feedback, LinkEntity, OwnFrames, Sdus,
};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::{ChannelOutcome, Headers};
use crate::problem::Problem;
use crate::quality::Quality;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Greatest number of retransmissions.
const RETRANSMISSIONS_LIMIT: u16 = 1000;

/// Treatment of a frame with errors that is not repeated any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LastTry {
    /// Its packets are delivered with the bit errors.
    #[default]
    Deliver,
    /// Its packets are dropped.
    Drop,
}

/// Treatment of a frame that is to be repeated where fewer bits fit than it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// It waits for a resource in which it fits; others go ahead meanwhile.
    Hold,
    /// It is cut: the part that fits is sent, the rest is a frame of its own.
    #[default]
    Resegment,
    /// It is always sent with the bits that it had first, so that the modulation is that of its length.
    OwnModulation,
}

/// ARQ: `{ type = "arq", retransmissions = 10 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArqConfig {
    /// Number of times that a frame is repeated at most.
    #[schemars(range(max = 1000))]
    pub retransmissions: u16,
    /// Time from the arrival of a frame to that of the answer at the sending end.
    pub feedback_delay: Span,
    /// True if packets are handed up in the order in which they were sent, false if each is handed up when it is
    /// complete.
    pub in_order: bool,
    /// Longest wait of complete packets for a missing one, where packets are handed up in order: t-Reordering of PDCP.
    /// Without it they wait for as long as the missing one is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_reordering: Option<Span>,
    /// True if a frame carries parts of several packets, false if the last frame of each packet is padded.
    pub concatenate: bool,
    /// Treatment of a frame that has errors in the last try.
    pub last_try: LastTry,
    /// Bit errors of the last try in the packets' own headers.
    pub headers: Headers,
    /// Treatment of a frame that is to be repeated where fewer bits fit than it carries.
    pub repeat: Repeat,
    /// Use of the copies of a frame that had errors (hybrid ARQ), on a medium that knows the quality of a radio
    /// channel. All copies must have one length: `repeat = "own_modulation"`.
    pub combining: Combining,
}

impl Default for ArqConfig {
    fn default() -> ArqConfig {
        ArqConfig {
            retransmissions: 10,
            feedback_delay: Span::from_millis(2),
            in_order: true,
            t_reordering: None,
            concatenate: true,
            last_try: LastTry::Deliver,
            headers: Headers::Included,
            repeat: Repeat::Resegment,
            combining: Combining::None,
        }
    }
}

impl ArqConfig {
    fn sends(&self) -> SenderOptions {
        let repeats = RepeatOptions { retransmissions: self.retransmissions, repeat: self.repeat };
        SenderOptions { repeats, concatenate: self.concatenate }
    }

    /// Parameters of the receiving end, where the other end sends as `self` says.
    fn receives(&self) -> ReceiverOptions {
        ReceiverOptions { in_order: self.in_order, t_reordering: self.t_reordering, headers: self.headers }
    }
}

impl Configured<EntityBeginning<'_>> for ArqConfig {
    type Model = Arq;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.retransmissions > RETRANSMISSIONS_LIMIT {
            let message = format!("is {}; it may be {RETRANSMISSIONS_LIMIT} at most", self.retransmissions);
            problems.push(Problem::new("retransmissions", message));
        }
        if self.combining != Combining::None && self.repeat != Repeat::OwnModulation {
            let message = "needs copies of one length; write repeat = \"own_modulation\"";
            problems.push(Problem::new("combining", message));
        }
        if self.t_reordering.is_some() && !self.in_order {
            let message = "has no meaning with in_order = false, where no packet waits";
            problems.push(Problem::new("t_reordering", message));
        }
        if self.headers == Headers::Spared && self.last_try == LastTry::Drop {
            let message = "is \"spared\", which has no meaning with last_try = \"drop\": no packet arrives with errors";
            problems.push(Problem::new("headers", message));
        }
        problems
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Arq {
        let theirs = config_of(beginning.receives.kind).unwrap_or(self);
        let buffer = StreamSender::new(Shape::plain(&beginning.sends), beginning.sends.send_buffer);
        Arq {
            end: beginning.end,
            sender: Sender::new(self.sends(), buffer),
            receiver: Receiver::new(theirs.receives(), Shape::plain(&beginning.receives)),
            feedback_delay: theirs.feedback_delay,
            last_try: theirs.last_try,
            combiner: Combiner::new(theirs.combining),
            answer: None,
        }
    }

    fn examples() -> Vec<ArqConfig> {
        let plain = ArqConfig::default();
        vec![
            plain.clone(),
            // As in the paper, with few retransmissions.
            ArqConfig { retransmissions: 1, in_order: false, concatenate: false, ..plain.clone() },
            ArqConfig {
                retransmissions: 0,
                last_try: LastTry::Drop,
                feedback_delay: Span::ZERO,
                repeat: Repeat::OwnModulation,
                ..plain.clone()
            },
            ArqConfig { repeat: Repeat::Hold, t_reordering: Some(Span::from_millis(12)), ..plain.clone() },
            ArqConfig { repeat: Repeat::OwnModulation, combining: Combining::Chase, ..plain.clone() },
            ArqConfig {
                retransmissions: 2,
                headers: Headers::Spared,
                feedback_delay: Span::from_millis(35),
                repeat: Repeat::Resegment,
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for ArqConfig {
    // Both directions concern an end: `LinkEntity::configure` knows both.
    fn configure(&self, _entity: &mut Arq, _at: Time) {}
}

impl OwnFrames for ArqConfig {
    const OWN_FRAMES: bool = true;
    const FITS_GRANTS: bool = true;

    const CHANGES: &[&str] = &["retransmissions", "feedback_delay", "last_try", "headers", "repeat", "combining"];
}

/// The parameters, if they are those of this kind of entity.
fn config_of(kind: &EntityConfig) -> Option<&ArqConfig> {
    match kind {
        EntityConfig::Arq(config) => Some(config),
        _ => None,
    }
}

/// One end of a link with ARQ.
#[derive(Clone, Debug)]
pub struct Arq {
    end: End,
    sender: Sender,
    receiver: Receiver,
    feedback_delay: Span,
    last_try: LastTry,
    combiner: Combiner,
    /// Answer to the frame that was just received.
    answer: Option<Answer>,
}

impl Arq {
    fn log(&self, event: LinkEvent, pdu: PduId, attempts: Option<u16>, stage: &mut StageCx<'_, '_>) {
        log_block(self.end, event, pdu, (self.sender.outstanding(), attempts), stage);
    }
}

impl LinkEntity for Arq {
    fn has_room(&self, next: &Pdu) -> bool {
        self.sender.stream().has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.stream_mut().accept(pdu, sdus);
    }

    fn ready_at(&self) -> Time {
        if self.sender.has_more() { Time::ZERO } else { Time::NEVER }
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        let Outgoing { frame, repeated } = self.sender.next(grant.bits.map(Bits::get), sdus)?;
        let event = record_start(&frame, repeated, sdus, stage);
        self.log(event, first_pdu(&frame.pieces), Some(repeated.saturating_add(1)), stage);
        Some(frame)
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        record_frame(EventKind::FrameSent, frame, sdus, stage);
    }

    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let Some(header) = Header::read(frame.words.as_deref()) else { return };
        let is_whole = matches!(outcome, ChannelOutcome::Ok | ChannelOutcome::Delayed { .. });
        let fate = match outcome {
            ChannelOutcome::Ok | ChannelOutcome::Delayed { .. } => Fate::Arrived(Vec::new()),
            ChannelOutcome::Flipped(flips) if self.last_try == LastTry::Deliver => Fate::Arrived(flips),
            ChannelOutcome::BlackedOut => Fate::Lost(Cause::Blackout),
            ChannelOutcome::Flipped(_) | ChannelOutcome::Lost | ChannelOutcome::Truncated { .. } => {
                Fate::Lost(Cause::ChannelError)
            }
        };
        let repeat = !is_whole && !header.is_last;
        self.answer = Some(Answer { position: header.position, repeat });
        let event = if is_whole { LinkEvent::Received } else { LinkEvent::Damaged };
        self.log(event, first_pdu(&frame.pieces), None, stage);
        if repeat || matches!(fate, Fate::Lost(_)) {
            record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
        }
        if !repeat {
            self.combiner.forget(frame.number);
            self.receiver.take(header, frame.pieces, fate, sdus, stage, up);
        }
    }

    fn backlog(&self, _at: Time, sdus: &Sdus) -> Backlog {
        self.sender.backlog(sdus)
    }

    fn waiting(&self) -> QueueLength {
        self.sender.stream().waiting()
    }

    fn feedback(&mut self) -> Option<Feedback> {
        let answer = self.answer.take()?;
        Some(Feedback { after: self.feedback_delay, word: answer.word() })
    }

    fn hear(&mut self, word: u64, _: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.hear(Answer::read(word));
    }

    fn hit(&mut self, frame: &Frame, quality: &Quality) -> Option<ChannelOutcome> {
        self.combiner.hit(frame, quality)
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        Bits::new(u64::from(self.sender.stream().least_line_bits(bytes)))
    }

    fn next_deadline(&self) -> Time {
        self.receiver.expires()
    }

    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        self.receiver.expire(stage.at, sdus, up);
    }

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.stream_mut().drop_others(Cause::Blackout, sdus, stage);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.sender.stream_mut().configure(sends.send_buffer);
        if let Some(config) = config_of(sends.kind) {
            self.sender.configure(config.sends());
        }
        if let Some(config) = config_of(receives.kind) {
            self.receiver.configure(config.receives());
            self.combiner.configure(config.combining);
            (self.feedback_delay, self.last_try) = (config.feedback_delay, config.last_try);
        }
    }
}
