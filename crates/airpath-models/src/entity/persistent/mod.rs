// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Persistent retransmission: a packet in each frame, which is sent again until it arrives whole, has been sent as
//! often as it may be, or has become too old. Packets keep their order.
//!
//! Source: Eckhardt and Steenkiste 2002, sections 3 and 3.2: local retransmission as persistent as possible, without
//! reordering, with an expiry for delay-sensitive flows. A window of one packet is their stop and wait; that of 64,
//! with reordering at the receiving end, is the block acknowledgement of IEEE 802.11-2016, 10.24.
//!
//! On a medium that acknowledges frames at once the sending end knows the outcome as the transmission ends. Elsewhere
//! it hears of it after `feedback_delay`, beside the medium.
//!
//! Idealised: acknowledgements are never lost, and the receiving end knows of every frame whose header it cannot read.
//! What was given up because of its age is told with the next frame, or with a frame of its own, as in 802.11.

mod header;
mod receiving;
mod sending;

use airpath_core::{Bits, Cause, End, EventKind, LinkEvent, Pdu, PduId, Span, Stage, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::header::{Acknowledgement, Header, REQUEST};
use self::receiving::Receiver;
use self::sending::{Outgoing, Sender, SenderOptions};
use super::losses::cause_of_loss;
use super::persistence::limit_problems;
use super::recording::{log_block, record_frame, record_start};
use super::stream::{Shape, StreamSender, first_pdu};
use super::{
    Answer, Arrival, EntityBeginning, EntityConfig, EntityParameters, ErrorPositions, Feedback, LinkEntity, OwnFrames,
    Sdus,
};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Greatest window.
const WINDOW_LIMIT: u16 = 1024;

/// Persistent retransmission: `{ type = "persistent", retransmissions = 7 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PersistentConfig {
    /// Number of times that a packet is sent again at most; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<u16>,
    /// Age from which a packet is not sent, or sent again: the time since it came to the hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Span>,
    /// Number of packets that may be under way: 1 for stop and wait.
    #[schemars(range(min = 1, max = 1024))]
    pub window: u16,
    /// Time from the arrival of a frame to that of its acknowledgement, on a medium that does not acknowledge frames
    /// at once.
    pub feedback_delay: Span,
}

impl Default for PersistentConfig {
    fn default() -> PersistentConfig {
        PersistentConfig { retransmissions: None, expiry: None, window: 64, feedback_delay: Span::ZERO }
    }
}

impl PersistentConfig {
    fn sends(&self) -> SenderOptions {
        SenderOptions { retransmissions: self.retransmissions, expiry: self.expiry, window: self.window }
    }
}

impl Configured<EntityBeginning<'_>> for PersistentConfig {
    type Model = Persistent;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = limit_problems(self.retransmissions, self.expiry);
        if !(1..=WINDOW_LIMIT).contains(&self.window) {
            let message = format!("is {}; it must be 1 to {WINDOW_LIMIT}", self.window);
            problems.push(Problem::new("window", message));
        }
        problems
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Persistent {
        let theirs = config_of(beginning.receives.kind).unwrap_or(self);
        let buffer = StreamSender::new(Shape::plain(&beginning.sends), beginning.sends.send_buffer);
        Persistent {
            end: beginning.end,
            sender: Sender::new(self.sends(), buffer),
            receiver: Receiver::default(),
            feedback_delay: theirs.feedback_delay,
            acknowledgement: None,
        }
    }

    fn examples() -> Vec<PersistentConfig> {
        let plain = PersistentConfig::default();
        vec![
            PersistentConfig { retransmissions: Some(7), ..plain },
            PersistentConfig { retransmissions: Some(0), window: 3, feedback_delay: Span::from_millis(3), ..plain },
            PersistentConfig { expiry: Some(Span::from_millis(40)), window: 1, ..plain },
            PersistentConfig {
                retransmissions: Some(20),
                expiry: Some(Span::from_millis(25)),
                feedback_delay: Span::from_millis(7),
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for PersistentConfig {
    // Both directions concern an end: `LinkEntity::configure` knows both.
    fn configure(&self, _entity: &mut Persistent, _at: Time) {}
}

impl OwnFrames for PersistentConfig {
    const OWN_FRAMES: bool = true;
    const OWN_LENGTHS: bool = true;

    const CHANGES: &[&str] = &["retransmissions", "expiry", "window", "feedback_delay"];
}

/// The parameters, if they are those of this kind of entity.
fn config_of(kind: &EntityConfig) -> Option<&PersistentConfig> {
    match kind {
        EntityConfig::Persistent(config) => Some(config),
        _ => None,
    }
}

/// One end of a link with persistent retransmission.
#[derive(Clone, Debug)]
pub struct Persistent {
    end: End,
    sender: Sender,
    receiver: Receiver,
    feedback_delay: Span,
    /// Acknowledgement of the frame that was just received.
    acknowledgement: Option<Acknowledgement>,
}

impl Persistent {
    fn log(&self, event: LinkEvent, pdu: PduId, attempts: Option<u16>, stage: &mut StageCx<'_, '_>) {
        log_block(self.end, event, pdu, (self.sender.outstanding(), attempts), stage);
    }
}

impl LinkEntity for Persistent {
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
        let most = grant.bits.map(Bits::get);
        let Outgoing { frame, repeated } = self.sender.next(most, grant.start, sdus, &mut stage.of(Stage::Entity))?;
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
        let is_received = matches!(outcome, ChannelOutcome::Ok | ChannelOutcome::Delayed { .. });
        let (number, attempt) = (header.number, header.attempt);
        self.acknowledgement = Some(Acknowledgement { number, attempt, is_received });
        let event = if is_received { LinkEvent::Received } else { LinkEvent::Damaged };
        self.log(event, first_pdu(&frame.pieces), None, stage);
        let piece = frame.pieces.first().copied();
        if is_received {
            return self.receiver.take(header, piece, sdus, up);
        }
        record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
        if header.is_last && number != REQUEST {
            // Flipped bits, too, cost a frame.
            let cause = cause_of_loss(&outcome).unwrap_or(Cause::ChannelError);
            self.receiver.lose(header, piece, cause, sdus, stage, up);
        }
    }

    fn acknowledged(&mut self, frame: &Frame, Answer { is_received, .. }: Answer) {
        if let Some(Header { number, attempt, .. }) = Header::read(frame.words.as_deref()) {
            self.sender.hear(Acknowledgement { number, attempt, is_received });
        }
    }

    fn waiting(&self) -> QueueLength {
        self.sender.stream().waiting()
    }

    fn backlog(&self, _at: Time, sdus: &Sdus) -> Backlog {
        self.sender.backlog(sdus)
    }

    fn feedback(&mut self) -> Option<Feedback> {
        let acknowledgement = self.acknowledgement.take()?;
        Some(Feedback { after: self.feedback_delay, word: acknowledgement.word() })
    }

    fn hear(&mut self, word: u64, _: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.hear(Acknowledgement::read(word));
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        Bits::new(u64::from(self.sender.stream().least_line_bits(bytes)))
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn advance(&mut self, _: &mut Sdus, _: &mut StageCx<'_, '_>, _: &mut Vec<Pdu>) {}

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.stream_mut().drop_others(Cause::Blackout, sdus, stage);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.sender.stream_mut().configure(sends.send_buffer);
        if let Some(config) = config_of(sends.kind) {
            self.sender.configure(config.sends());
        }
        if let Some(config) = config_of(receives.kind) {
            self.feedback_delay = config.feedback_delay;
        }
    }
}
