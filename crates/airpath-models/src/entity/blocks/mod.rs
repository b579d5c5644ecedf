// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of Reed-Solomon blocks, whose number and redundancy a policy chooses, and which are repeated until they
//! arrive: error control on the link by size, code and persistence.
//!
//! Source: Eckhardt and Steenkiste 2002, section 4: link packets of 1 to 5 blocks of 255 bytes and the policies BOLD,
//! LIGHT, ROBUST and FLEX. Retransmission is that of `persistent` with a window of one frame, stop and wait. A packet
//! that does not fit into a frame is cut: each try carries the next bytes of it that are not acknowledged, as many as
//! the size and the code of that moment carry. A frame carries one packet, or a part of one.
//!
//! The code is linear, and whether a block is decoded depends on the number of its wrong and missing bytes alone, not
//! on what it carries (the crate `airpath-coding` has the decoder against which a test holds this).
//!
//! Idealised: answers are never lost; the receiving end knows the number of blocks and the code of each frame, as from
//! the header of a physical layer; it knows of frames of which nothing arrives; and the check sequence of 32 bits lets
//! no wrong frame pass. Bytes are not interleaved over blocks. What arrives of a frame that is not decoded as a whole is
//! not used.

mod frame;
mod header;
mod policy;
mod receiving;
mod sending;

use airpath_core::{Bits, Cause, End, EventKind, LinkEvent, LinkRecord, Pdu, PduId, Span, Stage, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::frame::{Arrived, Finding, Shape};
pub use self::policy::Policy;

use self::frame::{MOST_BLOCKS, MOST_PARITY};
use self::header::{Header, Report};
use self::policy::{Adaptation, Flex};
use self::receiving::Receiver;
use self::sending::{Outgoing, Sender, SenderOptions};
use super::losses::cause_of_loss;
use super::persistence::limit_problems;
use super::recording::{block_record, record_frame, record_start};
use super::stream::{self, StreamSender, first_pdu};
use super::{
    Answer, Arrival, EntityBeginning, EntityConfig, EntityParameters, ErrorPositions, Feedback, LinkEntity, OwnFrames,
    Sdus,
};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Frames of Reed-Solomon blocks: `{ type = "blocks", policy = "flex" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BlocksConfig {
    /// Choice of blocks and redundancy.
    pub policy: Policy,
    /// With `policy = "custom"`: number of blocks of a frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5))]
    pub blocks: Option<u8>,
    /// With `policy = "custom"`: number of parity bytes among the 255 bytes of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 199))]
    pub parity: Option<u8>,
    /// Number of times that a fragment of a packet is sent again at most; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<u16>,
    /// Age from which a packet is not sent, or sent again: the time since it came to the hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Span>,
    /// Time from the arrival of a frame to that of its acknowledgement, on a medium that does not acknowledge frames
    /// at once.
    pub feedback_delay: Span,
}

impl BlocksConfig {
    fn sends(&self) -> SenderOptions {
        SenderOptions { retransmissions: self.retransmissions, expiry: self.expiry }
    }

    fn adaptation(&self) -> Adaptation {
        let (blocks, parity) = match self.policy {
            Policy::Bold => (MOST_BLOCKS, 0),
            Policy::Light => (MOST_BLOCKS, 12),
            Policy::Robust => (1, 74),
            Policy::Flex => return Adaptation::Flex(Flex::new()),
            Policy::Custom => (self.blocks.unwrap_or(1), self.parity.unwrap_or(0)),
        };
        Adaptation::Fixed(Shape { blocks, parity })
    }

    /// Parameters that decide about blocks and redundancy.
    fn choice(&self) -> (Policy, Option<u8>, Option<u8>) {
        (self.policy, self.blocks, self.parity)
    }
}

impl Configured<EntityBeginning<'_>> for BlocksConfig {
    type Model = Blocks;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = limit_problems(self.retransmissions, self.expiry);
        let ranges = [("blocks", self.blocks, 1..=MOST_BLOCKS, 1), ("parity", self.parity, 0..=MOST_PARITY, 74)];
        for (key, value, range, example) in ranges {
            let message = match (value, self.policy == Policy::Custom) {
                (Some(_), false) => "has no meaning with this policy; write policy = \"custom\"".into(),
                (None, true) => format!("is missing: policy = \"custom\" needs it, for example {key} = {example}"),
                (Some(value), true) if !range.contains(&value) => {
                    format!("is {value}; it must be {} to {}", range.start(), range.end())
                }
                _ => continue,
            };
            problems.push(Problem::new(key, message));
        }
        problems
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Blocks {
        let theirs = config_of(beginning.receives.kind).unwrap_or(self);
        let buffer = StreamSender::new(stream::Shape::plain(&beginning.sends), beginning.sends.send_buffer);
        Blocks {
            end: beginning.end,
            choice: self.choice(),
            sender: Sender::new(self.sends(), self.adaptation(), buffer),
            receiver: Receiver::default(),
            feedback_delay: theirs.feedback_delay,
            report: None,
        }
    }

    fn examples() -> Vec<BlocksConfig> {
        let plain = BlocksConfig::default();
        vec![
            BlocksConfig { feedback_delay: Span::from_millis(3), ..plain },
            BlocksConfig { policy: Policy::Bold, retransmissions: Some(2), ..plain },
            BlocksConfig { policy: Policy::Light, expiry: Some(Span::from_millis(400)), ..plain },
            BlocksConfig { policy: Policy::Robust, feedback_delay: Span::from_millis(7), ..plain },
            BlocksConfig {
                policy: Policy::Custom,
                blocks: Some(2),
                parity: Some(199),
                retransmissions: Some(0),
                expiry: Some(Span::from_secs(2)),
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for BlocksConfig {
    // Both directions concern an end: `LinkEntity::configure` knows both.
    fn configure(&self, _entity: &mut Blocks, _at: Time) {}
}

impl OwnFrames for BlocksConfig {
    const OWN_FRAMES: bool = true;
    const OWN_LENGTHS: bool = true;
    const USES_BEGINNINGS: bool = true;

    const CHANGES: &[&str] = &["policy", "blocks", "parity", "retransmissions", "expiry", "feedback_delay"];
}

/// The parameters, if they are those of this kind of entity.
fn config_of(kind: &EntityConfig) -> Option<&BlocksConfig> {
    match kind {
        EntityConfig::Blocks(config) => Some(config),
        _ => None,
    }
}

/// One end of a link with frames of Reed-Solomon blocks.
#[derive(Clone, Debug)]
pub struct Blocks {
    end: End,
    /// Parameters that decide about blocks and redundancy.
    choice: (Policy, Option<u8>, Option<u8>),
    sender: Sender,
    receiver: Receiver,
    feedback_delay: Span,
    /// Answer to the frame that was just received.
    report: Option<Report>,
}

impl Blocks {
    fn log(&self, event: LinkEvent, pdu: PduId, shape: Shape, attempts: Option<u16>, stage: &mut StageCx<'_, '_>) {
        let outstanding = self.sender.outstanding();
        stage.link(|| LinkRecord {
            blocks: Some(shape.blocks),
            parity: Some(shape.parity),
            ..block_record(self.end, event, pdu, (outstanding, attempts))
        });
    }
}

impl LinkEntity for Blocks {
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
        let Outgoing { frame, shape, repeated } =
            self.sender.next(most, grant.start, sdus, &mut stage.of(Stage::Entity))?;
        let event = record_start(&frame, repeated, sdus, stage);
        self.log(event, first_pdu(&frame.pieces), shape, Some(repeated.saturating_add(1)), stage);
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
        let Some(piece) = frame.pieces.first().copied() else { return };
        let finding = Finding::new(header.shape, &outcome);
        self.report = Some(Report::new(header, finding));
        let event = if finding.is_received { LinkEvent::Received } else { LinkEvent::Damaged };
        self.log(event, piece.pdu, header.shape, None, stage);
        if finding.is_received {
            return self.receiver.take(header, piece, sdus, stage, up);
        }
        record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
        // Flipped bits, too, cost a frame that is not decoded.
        let cause = cause_of_loss(&outcome).unwrap_or(Cause::ChannelError);
        self.receiver.lose(header, piece, cause, sdus, stage);
    }

    fn answer(&self, frame: &Frame, outcome: &ChannelOutcome) -> Answer {
        let Some(header) = Header::read(frame.words.as_deref()) else { return Answer::default() };
        let finding = Finding::new(header.shape, outcome);
        Answer { is_received: finding.is_received, word: Report::new(header, finding).word() }
    }

    fn acknowledged(&mut self, frame: &Frame, answer: Answer) {
        // A frame that a blackout took away has no answer.
        let silent = || Header::read(frame.words.as_deref()).map(|header| Report::new(header, Finding::NOTHING));
        let report = if answer.word == 0 { silent() } else { Some(Report::read(answer.word)) };
        if let Some(report) = report {
            self.sender.hear(report);
        }
    }

    fn waiting(&self) -> QueueLength {
        self.sender.stream().waiting()
    }

    fn backlog(&self, _at: Time, sdus: &Sdus) -> Backlog {
        self.sender.backlog(sdus)
    }

    fn feedback(&mut self) -> Option<Feedback> {
        let report = self.report.take()?;
        Some(Feedback { after: self.feedback_delay, word: report.word() })
    }

    fn hear(&mut self, word: u64, _: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.hear(Report::read(word));
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        let octets = self.sender.stream().least_line_bits(bytes) / 8;
        Bits::new(self.sender.adaptation().least().bits_of(octets))
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
            if self.choice != config.choice() {
                self.choice = config.choice();
                self.sender.adapt(config.adaptation());
            }
        }
        if let Some(config) = config_of(receives.kind) {
            self.feedback_delay = config.feedback_delay;
        }
    }
}
