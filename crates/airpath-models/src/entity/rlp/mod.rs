// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Radio Link Protocol of GSM: frames of 240 bits that are numbered, acknowledged and repeated.
//!
//! Source: 3GPP TS 24.022 (GSM 04.22), versions 0, 1 and 2 with one link; Singh 2000, section 2.3.2. `protocol`
//! is the machine, `header`, `xid` and `codec` are its frames. Of the octets of a frame between header and FCS,
//! one is the status octet of the relay function (3GPP TS 27.002), and in version 2 none: a frame of 240 bits
//! carries 24 octets of the stream in every version. The FCS is taken to notice every error.

pub mod codec;
pub mod header;
pub mod protocol;
mod user;
pub mod xid;

use airpath_core::counters::Site;
use airpath_core::{
    Bits, Cause, Direction, End, EventKind, Framing, LinkEvent, LinkRate, LinkRecord, Pdu, PduId, Rate, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::codec::{FCS_OCTETS, decode_header, encode_header, header_octets};
use self::header::Header;
use self::protocol::{Options, Protocol, Signal};
use self::user::{User, Waiting};
use self::xid::Xid;
use super::losses::release_ended;
use super::ppp::{HeaderCompression, PppConfig, Stuffing};
use super::recording::record_frame;
use super::stream::{Pieces, Shape, StreamReceiver, StreamSender, first_pdu};
use super::{Arrival, EntityBeginning, EntityParameters, ErrorPositions, LinkEntity, OwnFrames, RADIO_BLOCK, Sdus};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// The end that opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// The mobile end.
    #[default]
    Client,
    /// The fixed end.
    Server,
    /// Both at once; their commands meet.
    Both,
}

/// Recovery of missing frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reject {
    /// Each missing frame is asked for by SREJ.
    #[default]
    Selective,
    /// Everything from the first missing frame on is asked for by REJ.
    GoBack,
}

/// Length of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameLength {
    /// 240 bits, which take 20 ms at 9.6 kbit/s.
    #[default]
    Short,
    /// 576 bits, which take 40 ms at 14.4 kbit/s.
    Long,
}

impl FrameLength {
    /// Bits of a frame.
    pub fn bits(self) -> u32 {
        self.octets() as u32 * 8
    }

    fn octets(self) -> usize {
        match self {
            FrameLength::Short => 30,
            FrameLength::Long => 72,
        }
    }
}

/// RLP: `{ type = "rlp", window = 61, t1 = "480 ms", n2 = 6 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RlpConfig {
    /// Version: 0, 1 or 2. Version 2 has 496 sequence numbers instead of 62.
    #[schemars(range(min = 0, max = 2))]
    pub version: u8,
    /// Window k in either direction: the number of frames that may be sent and not acknowledged; 61 at most before
    /// version 2.
    #[schemars(range(min = 1, max = 480))]
    pub window: u16,
    /// Acknowledgement timer T1, in steps of 10 ms; longer than a round trip of the link.
    pub t1: Span,
    /// Reply delay T2, in steps of 10 ms: what the end promises. It answers in the next block.
    pub t2: Span,
    /// Number N2 of times that a command or a poll is repeated.
    pub n2: u8,
    /// Length of a frame.
    pub frame: FrameLength,
    /// True if blocks in which there is nothing new to say are not transmitted.
    pub discontinuous: bool,
    /// Recovery of missing frames.
    pub reject: Reject,
    /// The end that opens the connection, when the run begins.
    pub opens: Opener,
    /// True if that end negotiates version, window, T1, T2 and N2 first, by XID.
    pub negotiates: bool,
    /// Rate at which the user of this end takes what arrives, octets of PPP included; `"unlimited"` for at once.
    pub receive_rate: LinkRate,
    /// Length of what may wait for the user: with more this end says RNR, and RR again when half of it has gone. The
    /// frames that are under way by then are still taken. Without it the end is always ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bits>,
    /// Time after which a connection that was given up is opened again; `"never"` drops packets from then on.
    #[serde(with = "super::forever")]
    #[schemars(with = "String")]
    pub reconnect: Option<Span>,
    /// PPP over it.
    pub ppp: PppConfig,
}

impl Default for RlpConfig {
    fn default() -> RlpConfig {
        RlpConfig {
            version: 1,
            window: 61,
            t1: Span::from_millis(480),
            t2: Span::from_millis(80),
            n2: 6,
            frame: FrameLength::Short,
            discontinuous: false,
            reject: Reject::Selective,
            opens: Opener::Client,
            negotiates: true,
            receive_rate: LinkRate::Unlimited,
            receive_buffer: None,
            reconnect: Some(Span::from_secs(5)),
            ppp: PppConfig::default(),
        }
    }
}

/// The unit of T1 and T2 in XID.
const TIMER_UNIT: Span = Span::from_millis(10);

impl RlpConfig {
    fn window_limit(&self) -> u16 {
        if self.version >= 2 { 480 } else { 61 }
    }

    /// Octets of the stream that a frame carries.
    fn room_octets(&self) -> u32 {
        let status = usize::from(self.version < 2);
        (self.frame.octets() - header_octets(self.version) - FCS_OCTETS - status) as u32
    }

    fn xid(&self) -> Xid {
        let units = |span: Span| (span.nanos() / TIMER_UNIT.nanos()) as u8;
        Xid {
            version: self.version,
            window_to_mobile: self.window,
            window_from_mobile: self.window,
            t1: units(self.t1),
            n2: self.n2,
            t2: units(self.t2),
        }
    }

    fn options(&self, end: End) -> Options {
        let opens = match self.opens {
            Opener::Client => end == End::Client,
            Opener::Server => end == End::Server,
            Opener::Both => true,
        };
        Options {
            xid: self.xid(),
            mobile: end == End::Client,
            opens,
            negotiates: self.negotiates,
            selective: self.reject == Reject::Selective,
            discontinuous: self.discontinuous,
            reconnect: self.reconnect,
        }
    }
}

/// Rate of the users with which the laws are tested.
const SLOW_USER: Rate = match Rate::new(4_800) {
    Some(rate) => rate,
    None => unreachable!(),
};

impl Configured<EntityBeginning<'_>> for RlpConfig {
    type Model = Rlp;

    fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.ppp.problems().into_iter().map(|problem| problem.under("ppp")).collect();
        let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.version > 2 {
            problem("version", format!("is {}; RLP has the versions 0, 1 and 2", self.version));
        } else if !(1..=self.window_limit()).contains(&self.window) {
            let limit = self.window_limit();
            problem("window", format!("is {}; in version {} it is from 1 to {limit}", self.window, self.version));
        }
        for (key, timer) in [("t1", self.t1), ("t2", self.t2)] {
            let units = timer.nanos() / TIMER_UNIT.nanos();
            if timer.nanos() % TIMER_UNIT.nanos() != 0 || !(1..=255).contains(&units) {
                problem(key, format!("is {timer}; it is a multiple of 10 ms, from 10 ms to 2550 ms"));
            }
        }
        if self.receive_buffer.is_some() && self.receive_rate == LinkRate::Unlimited {
            let message = "never fills, because the user takes everything at once; write a receive_rate such as \"4800 \
                           bit/s\" too";
            problem("receive_buffer", message.into());
        }
        if self.reconnect == Some(Span::ZERO) {
            problem("reconnect", "is 0 s; write for example \"5 s\", or \"never\"".into());
        }
        problems
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Rlp {
        let shape = |link: &EntityParameters<'_>, config: &RlpConfig| Shape::new(link, config.ppp, 8);
        // The other end may have other parameters.
        let theirs = match beginning.receives.kind {
            super::EntityConfig::Rlp(config) => config,
            _ => self,
        };
        Rlp {
            end: beginning.end,
            protocol: Protocol::new(self.options(beginning.end)),
            last_sent: Time::ZERO,
            sender: StreamSender::new(shape(&beginning.sends, self), beginning.sends.send_buffer),
            receiver: StreamReceiver::new(shape(&beginning.receives, theirs)),
            frame_bits: self.frame.bits(),
            room_bits: self.room_octets() * 8,
            idles: self.discontinuous && self.reconnect.is_none(),
            gives_up: self.reconnect.is_none(),
            user: match self.receive_rate {
                LinkRate::Unlimited => None,
                LinkRate::Fixed(rate) => Some(Box::new(User::new(rate, self.receive_buffer))),
            },
            other_waits: theirs.receive_rate != LinkRate::Unlimited,
            is_down: false,
            next_number: 0,
            signals: Vec::new(),
        }
    }

    fn examples() -> Vec<RlpConfig> {
        let plain = RlpConfig::default();
        vec![
            plain.clone(),
            // A short timer and a small window, and blocks only where there is something to say.
            RlpConfig {
                version: 0,
                window: 7,
                t1: Span::from_millis(200),
                n2: 2,
                discontinuous: true,
                negotiates: false,
                reconnect: Some(Span::from_millis(100)),
                ..plain.clone()
            },
            RlpConfig {
                version: 2,
                window: 200,
                frame: FrameLength::Long,
                reject: Reject::GoBack,
                opens: Opener::Both,
                ppp: PppConfig { flags: 2, fcs_octets: 4, ..PppConfig::default() },
                ..plain.clone()
            },
            // Users that take less than the link gives, which says so or does not.
            RlpConfig {
                receive_rate: LinkRate::Fixed(SLOW_USER),
                receive_buffer: Some(Bits::from_bytes(100)),
                t1: Span::from_millis(200),
                ..plain.clone()
            },
            RlpConfig {
                receive_rate: LinkRate::Fixed(SLOW_USER),
                receive_buffer: Some(Bits::from_bytes(30)),
                reject: Reject::GoBack,
                discontinuous: true,
                window: 20,
                n2: 1,
                t1: Span::from_millis(150),
                ..plain.clone()
            },
            RlpConfig { receive_rate: LinkRate::Fixed(SLOW_USER), ..plain.clone() },
            // A connection that nobody opens again.
            RlpConfig { n2: 1, t1: Span::from_millis(150), reconnect: None, opens: Opener::Server, ..plain.clone() },
            // Headers that are compressed, and escapes of what is on the line.
            RlpConfig {
                ppp: PppConfig {
                    stuffing: Stuffing::COUNTED,
                    header_compression: HeaderCompression::Vj,
                    compress_slot_id: false,
                    ..PppConfig::default()
                },
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for RlpConfig {
    fn configure(&self, _entity: &mut Rlp, _at: Time) {}
}

impl OwnFrames for RlpConfig {
    const OWN_FRAMES: bool = true;

    fn filling_bits(&self) -> Option<u64> {
        Some(self.frame.bits().into())
    }

    fn slot_example(&self) -> (Span, u64) {
        match self.frame {
            FrameLength::Short => (RADIO_BLOCK, 240),
            FrameLength::Long => (Span::from_millis(40), 576),
        }
    }

    fn framing(&self) -> Option<Framing> {
        self.ppp.framing()
    }

    fn reads_headers(&self) -> bool {
        self.ppp.vj().is_some()
    }

    fn pair_problems(&self, other: &super::EntityConfig) -> Vec<Problem> {
        let super::EntityConfig::Rlp(other) = other else { return Vec::new() };
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: &str| problems.push(Problem::new(key, message));
        for (key, same) in [
            ("opens", self.opens == other.opens),
            ("negotiates", self.negotiates == other.negotiates),
            ("frame", self.frame == other.frame),
        ] {
            if !same {
                problem(key, "is not the same at both ends; write it under `link`");
            }
        }
        if !self.negotiates && (self.version, self.window) != (other.version, other.window) {
            problem("version", "and window differ between the ends, which do not negotiate; write negotiates = true");
        }
        problems
    }
}

/// Information of an I+S frame: a part of the stream.
#[derive(Clone, Debug)]
struct Chunk {
    position: u64,
    pieces: Pieces,
}

/// One end of RLP.
#[derive(Clone, Debug)]
pub struct Rlp {
    end: End,
    /// Beginning of the last frame.
    last_sent: Time,
    protocol: Protocol<Chunk>,
    sender: StreamSender,
    receiver: StreamReceiver,
    frame_bits: u32,
    room_bits: u32,
    /// True if it sends nothing once there is nothing to say.
    idles: bool,
    /// The user that takes what arrives; none if that takes no time.
    user: Option<Box<User>>,
    /// True if what the other end has acknowledged may still wait for its user.
    other_waits: bool,
    /// True if a connection that is gone does not come back.
    gives_up: bool,
    /// True if that has happened.
    is_down: bool,
    next_number: u64,
    signals: Vec<Signal<Chunk>>,
}

impl Rlp {
    /// Records what has happened, with a frame or without.
    fn log(&self, event: LinkEvent, header: Option<Header>, pdu: PduId, stage: &mut StageCx<'_, '_>) {
        stage.link(|| {
            let variables = self.protocol.variables();
            let record = LinkRecord { pdu, variables, ..LinkRecord::new(self.end.sends(), event) };
            let Some(header) = header else { return record };
            LinkRecord {
                frame: header.frame(),
                command: Some(header.command),
                poll_final: Some(header.poll_final),
                n_s: header.n_s(),
                n_r: header.n_r(),
                ..record
            }
        });
    }

    /// Does what the protocol has asked for. `receives` is the direction in which it receives.
    fn heed(&mut self, receives: Direction, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        let at = stage.at;
        let site = stage.site;
        let mut signals = std::mem::take(&mut self.signals);
        for signal in signals.drain(..) {
            let concerns_receiving = matches!(signal, Signal::Deliver(_) | Signal::Connected);
            let direction = if concerns_receiving { receives } else { receives.opposite() };
            let stage = &mut StageCx::new(Site { direction, ..site }, at, stage.cx);
            match signal {
                Signal::Deliver(chunk) => match &mut self.user {
                    Some(user) => user.take(at, chunk),
                    None => self.receiver.take(chunk.position, &chunk.pieces, &[], sdus, stage, up),
                },
                Signal::Connected => {
                    self.is_down = false;
                    self.log(LinkEvent::Connected, None, 0, stage);
                }
                // The other end tells what went astray when its user has taken it.
                Signal::Acknowledged(chunk) if self.other_waits => self.sender.settle(&chunk.pieces, |_| {}),
                Signal::Acknowledged(chunk) => {
                    // What is acknowledged and was not handed up went astray.
                    self.sender.settle(&chunk.pieces, |sdu| sdus.release(sdu, Cause::LinkReset, stage));
                }
                Signal::Reset => self.begin_anew(LinkEvent::Reset, sdus, stage),
                Signal::Disconnected => {
                    self.begin_anew(LinkEvent::Disconnected, sdus, stage);
                    if self.gives_up {
                        self.is_down = true;
                        self.sender.drop_others(Cause::LinkDown, sdus, stage);
                    }
                }
            }
        }
        self.signals = signals;
        self.note_busy();
    }

    fn note_busy(&mut self) {
        if let Some(user) = &mut self.user {
            self.protocol.set_busy(user.is_busy());
        }
    }

    /// Drops what is under way. `stage` is that of the direction in which it sends.
    fn begin_anew(&mut self, event: LinkEvent, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        if !self.user.as_mut().is_some_and(|user| user.restart()) {
            self.receiver.restart();
        }
        self.log(event, None, 0, stage);
        stage.record_control(EventKind::LinkReset, 0);
        self.sender.drop_begun(Cause::LinkReset, sdus, stage);
    }
}

impl LinkEntity for Rlp {
    fn has_room(&self, next: &Pdu) -> bool {
        self.is_down || self.sender.has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.accept(pdu, sdus);
        if self.is_down {
            self.sender.drop_others(Cause::LinkDown, sdus, stage);
        }
    }

    fn ready_at(&self) -> Time {
        self.protocol.ready_at(self.sender.has_more())
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        if grant.bits.is_some_and(|most| most.get() < u64::from(self.frame_bits)) {
            return None;
        }
        self.last_sent = grant.start;
        let waiting = self.sender.has_more();
        let (sender, room) = (&mut self.sender, self.room_bits);
        let cut = || sender.cut(room).map(|(position, pieces)| Chunk { position, pieces });
        let outgoing = self.protocol.next_frame(grant.start, cut, waiting, &mut self.signals);
        if !self.signals.is_empty() {
            self.heed(grant.direction.opposite(), sdus, stage, &mut Vec::new());
        }
        let outgoing = outgoing?;
        let (header, _) = encode_header(outgoing.header, self.protocol.version());
        let (more, pieces) = match (outgoing.information, outgoing.xid) {
            (Some(Chunk { position, pieces }), _) => (position, pieces),
            (None, xid) => (xid.map_or(0, Xid::to_word), Pieces::new()),
        };
        let number = self.next_number;
        self.next_number += 1;
        let bits = Bits::new(u64::from(self.frame_bits));
        let frame = Frame { number, bits, pieces, words: Some(Box::new([u64::from(header), more])) };
        record_frame(EventKind::FrameStarted, &frame, sdus, stage);
        if outgoing.repeated {
            record_frame(EventKind::FrameRepeated, &frame, sdus, stage);
        }
        let event = if outgoing.repeated { LinkEvent::Repeated } else { LinkEvent::Sent };
        self.log(event, Some(outgoing.header), first_pdu(&frame.pieces), stage);
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
        let is_whole = match outcome {
            ChannelOutcome::Ok | ChannelOutcome::Delayed { .. } => true,
            ChannelOutcome::Flipped(flips) => flips.is_empty(),
            ChannelOutcome::Lost | ChannelOutcome::BlackedOut | ChannelOutcome::Truncated { .. } => false,
        };
        let words = frame.words.as_deref().and_then(|words| words.first_chunk::<2>());
        let header: Option<Header> = words.and_then(|[bits, _]| decode_header(*bits as u32, self.protocol.version()));
        let pdu = first_pdu(&frame.pieces);
        let (Some(header), Some([_, more]), true) = (header, words, is_whole) else {
            self.log(LinkEvent::Damaged, header, pdu, stage);
            return record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(airpath_core::Stage::Channel));
        };
        let (position, at) = (*more, stage.at);
        let information = (!frame.pieces.is_empty()).then_some(Chunk { position, pieces: frame.pieces });
        let xid = Some(Xid::from_word(position));
        self.protocol.receive(at, header, information, xid, &mut self.signals);
        self.log(LinkEvent::Received, Some(header), pdu, stage);
        self.heed(stage.site.direction, sdus, stage, up);
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn never_idle(&self) -> bool {
        !self.idles
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
        let frames = self.sender.least_line_bits(bytes).div_ceil(self.room_bits);
        Bits::new(u64::from(frames) * u64::from(self.frame_bits))
    }

    fn next_deadline(&self) -> Time {
        self.user.as_ref().map_or(Time::NEVER, |user| user.next_at())
    }

    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        while let Some(waiting) = self.user.as_mut().and_then(|user| user.next(stage.at)) {
            match waiting {
                Waiting::Information(chunk, _) => {
                    self.receiver.take(chunk.position, &chunk.pieces, &[], sdus, stage, up);
                    release_ended(&chunk.pieces, Cause::LinkReset, sdus, stage);
                }
                Waiting::Break => self.receiver.restart(),
            }
        }
        self.note_busy();
    }

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.drop_others(Cause::Blackout, sdus, stage);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, _: &EntityParameters<'_>) {
        self.sender.configure(sends.send_buffer);
    }
}
