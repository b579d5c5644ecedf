// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Link entities: one at each end of a hop, sending and receiving. They own framing, the link
//! buffers and recovery.

pub mod arq;
pub mod blocks;
pub mod egprs;
mod forever;
pub mod gprs;
mod losses;
pub mod nr_rlc;
mod parameters;
mod persistence;
pub mod persistent;
pub mod ppp;
mod recording;
pub mod reordering;
pub mod rlc;
pub mod rlp;
pub mod simple;
pub mod stream;
pub mod transparent;
mod v110;
pub mod vj;

use std::collections::BTreeSet;

use airpath_core::{Bits, DrawKey, End, Framing, Pdu, Span, Time};

use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::quality::Quality;
use crate::registry::registry;
use crate::stage::{QueueLength, StageCx};

pub use crate::channel::ErrorPositions;
pub use crate::sdus::{Sdu, SduKey, Sdus};
pub use parameters::{EntityParameters, Fragmentation, LastFrame};
pub use simple::Simple;

registry! {
    /// The kind of link entity at both ends of a hop: `{ type = "simple" }`.
    config EntityConfig,
    /// A link entity of any registered kind.
    model EntityModel,
    dispatch dispatch_entity, dispatch_entity_config,
    built from EntityBeginning<'_>,
    reconfigured yes,
    /// Framing, buffers and allocation delay, without recovery.
    /// Source: Kojo et al. 2001, section 4.3.
    Simple = simple::{SimpleConfig, Simple},
    /// Radio blocks of GSM that carry a stream of octets, without recovery.
    /// Source: Singh 2000, section 2.3.2; 3GPP TS 44.021.
    Transparent = transparent::{TransparentConfig, Transparent},
    /// The Radio Link Protocol of GSM, with recovery.
    /// Source: 3GPP TS 24.022; Singh 2000, section 2.3.2.
    Rlp = rlp::{RlpConfig, Rlp},
    /// RLC of GPRS: coding schemes CS-1 to CS-4.
    /// Source: 3GPP TS 45.003, clause 5.1; TS 44.060, clauses 9 and 10.
    Gprs = gprs::{GprsConfig, Rlc},
    /// RLC of EGPRS: coding schemes MCS-1 to MCS-9, with incremental redundancy.
    /// Source: 3GPP TS 45.003, clause 5.1; TS 44.060, clauses 8.1.1, 9 and 10.
    Egprs = egprs::{EgprsConfig, Rlc},
    /// Frames of the bits that a resource has, which are repeated until they arrive.
    /// Source: Alfredsson et al. 2006, section II.
    Arq = arq::{ArqConfig, Arq},
    /// RLC of NR, unacknowledged or acknowledged, above HARQ and below PDCP.
    /// Source: 3GPP TS 38.321, 38.322 and 38.323.
    NrRlc = nr_rlc::{NrRlcConfig, NrRlc},
    /// A packet in each frame, which is repeated until it arrives: the recovery of a wireless LAN.
    /// Source: Eckhardt and Steenkiste 2002, section 3; IEEE 802.11-2016, 10.24.
    Persistent = persistent::{PersistentConfig, Persistent},
    /// Frames of Reed-Solomon blocks, whose number and redundancy a policy chooses, repeated until they arrive.
    /// Source: Eckhardt and Steenkiste 2002, section 4.
    Blocks = blocks::{BlocksConfig, Blocks},
}

/// Duration of a radio block of GSM: four bursts in four of the 13 TDMA frames of 60 ms.
pub(crate) const RADIO_BLOCK: Span = Span::from_millis(20);

/// Maximum number of frames in a slot, where there is always one to send.
const MOST_FRAMES_IN_SLOT: u64 = 1_000;

/// Timeslots of a TDMA frame (3GPP TS 45.002).
const TIMESLOTS: u64 = 8;

/// Frames of a kind of link entity.
pub(crate) trait OwnFrames {
    /// True if packets go into frames of its own, which carry parts of several packets. Such an entity is told of
    /// errors in bits of the frame; division into frames, allocation delay and receive buffer are not those of
    /// the link, and its parameters stay the same for a whole run.
    const OWN_FRAMES: bool;

    /// True if it waits for the link's allocation delay, although it has frames of its own.
    const ALLOCATES: bool = false;

    /// True if its frames are as long as the grants, however many bits these have.
    const FITS_GRANTS: bool = false;

    /// True if a frame carries one packet or a part of one, and is as long as the entity likes: for media that carry
    /// frames of any length.
    const OWN_LENGTHS: bool = false;

    /// True if the beginning of a frame is of use.
    const USES_BEGINNINGS: bool = false;

    /// Keys of the parameters that a state may change although the frames are its own.
    const CHANGES: &[&str] = &[];

    /// Errors in the parameters of this end beside those of the other end, if any.
    fn pair_problems(&self, _other: &EntityConfig) -> Vec<Problem> {
        Vec::new()
    }

    /// Bits of the air in one frame, where slots have to hold a whole number of frames.
    fn slot_bits(&self) -> Option<u64> {
        None
    }

    /// Bits of a frame, where there is always one to send: frames fill each slot.
    fn filling_bits(&self) -> Option<u64> {
        None
    }

    /// Duration and bits of a slot for one frame, where no other number is the right one.
    fn slot_example(&self) -> (Span, u64) {
        (RADIO_BLOCK, self.slot_bits().unwrap_or(240))
    }

    /// Errors in the parameters on so many timeslots of a TDMA frame, if any.
    fn timeslot_problems(&self, _timeslots: u64) -> Vec<Problem> {
        Vec::new()
    }

    /// The framing for which escapes of packets are to be counted, if they are.
    fn framing(&self) -> Option<Framing> {
        None
    }

    /// True if lengths depend on the headers of packets.
    fn reads_headers(&self) -> bool {
        false
    }
}

impl EntityConfig {
    /// True if packets go into frames of the entity's own, so that errors hit frames and not packets.
    pub fn has_own_frames(&self) -> bool {
        fn of<C: OwnFrames>(_: &C) -> bool {
            C::OWN_FRAMES
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// True if its frames are as long as the grants, however many bits these have.
    pub fn fits_grants(&self) -> bool {
        fn of<C: OwnFrames>(_: &C) -> bool {
            C::FITS_GRANTS
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// True if it waits for the link's allocation delay, although it has frames of its own.
    pub fn allocates(&self) -> bool {
        fn of<C: OwnFrames>(_: &C) -> bool {
            C::ALLOCATES
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// True if each of its own frames carries one packet or a part of one, and is as long as the entity likes.
    pub fn has_own_lengths(&self) -> bool {
        fn of<C: OwnFrames>(_: &C) -> bool {
            C::OWN_LENGTHS
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// True if the beginning of one of its own frames is of use.
    pub fn uses_beginnings(&self) -> bool {
        fn of<C: OwnFrames>(_: &C) -> bool {
            C::USES_BEGINNINGS
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// Errors in the parameters on slots of `bits` that last for `slot`, if any.
    pub fn slot_problems(&self, slot: Span, bits: u64) -> Vec<Problem> {
        let filling = dispatch_entity_config!(self, config => OwnFrames::filling_bits(config));
        if let Some(frame) = filling.filter(|frame| bits / frame > MOST_FRAMES_IN_SLOT) {
            let message = format!(
                "is {bits} bit; a frame of this entity has {frame} bits, and a slot holds {MOST_FRAMES_IN_SLOT} at most: \
                 write for example bits = \"{frame} bit\""
            );
            return vec![Problem::new("rate.bits", message)];
        }
        let Some(frame) = dispatch_entity_config!(self, config => OwnFrames::slot_bits(config)) else {
            return Vec::new();
        };
        if bits == 0 || !bits.is_multiple_of(frame) {
            let message = format!(
                "is {bits} bit; a radio block of this entity has {frame} bits: write bits = \"{frame} bit\" for one \
                 timeslot, {} bit for two, and so on",
                2 * frame
            );
            return vec![Problem::new("rate.bits", message)];
        }
        let timeslots = self.timeslots(slot, bits).unwrap_or(u64::MAX);
        if timeslots > TIMESLOTS {
            let message = format!(
                "is {bits} bit in {slot}, which takes {timeslots} timeslots; a TDMA frame has {TIMESLOTS}: write \
                 {} bit in {RADIO_BLOCK} at most",
                TIMESLOTS * frame
            );
            return vec![Problem::new("rate.bits", message)];
        }
        let problems = dispatch_entity_config!(self, config => OwnFrames::timeslot_problems(config, timeslots));
        problems.into_iter().map(|problem| problem.under("entity")).collect()
    }

    /// Number of timeslots of a TDMA frame that slots of `bits` lasting for `slot` stand for; none where frames have no
    /// fixed length, or the number is out of range.
    pub fn timeslots(&self, slot: Span, bits: u64) -> Option<u64> {
        let frame = dispatch_entity_config!(self, config => OwnFrames::slot_bits(config))?;
        // Durations of 0 are told elsewhere.
        let blocks = u128::from(bits / frame) * u128::from(RADIO_BLOCK.nanos());
        u64::try_from(blocks.div_ceil(slot.nanos().max(1).into())).ok()
    }

    /// Slots for one frame each, as they are written.
    pub fn slot_example(&self) -> String {
        let (slot, bits) = dispatch_entity_config!(self, config => OwnFrames::slot_example(config));
        format!("{{ type = \"slotted\", slot = \"{slot}\", bits = \"{bits} bit\" }}")
    }

    /// Keys of the parameters that a state may change although the frames are the entity's own.
    pub fn changes(&self) -> &'static [&'static str] {
        fn of<C: OwnFrames>(_: &C) -> &'static [&'static str] {
            C::CHANGES
        }
        dispatch_entity_config!(self, config => of(config))
    }

    /// Keys of the parameters of `other`, of the same kind, that differ.
    pub fn differences(&self, other: &EntityConfig) -> Vec<String> {
        let table = |config: &EntityConfig| match serde_json::to_value(config) {
            Ok(serde_json::Value::Object(table)) => table,
            _ => serde_json::Map::new(),
        };
        let (own, others) = (table(self), table(other));
        let keys: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        keys.into_iter().filter(|key| own.get(*key) != others.get(*key)).cloned().collect()
    }

    /// The framing for which escapes of packets that this end sends are to be counted, if they are.
    pub fn framing(&self) -> Option<Framing> {
        dispatch_entity_config!(self, config => OwnFrames::framing(config))
    }

    /// True if lengths depend on the headers of packets that this end sends.
    pub fn reads_headers(&self) -> bool {
        dispatch_entity_config!(self, config => OwnFrames::reads_headers(config))
    }

    /// Errors in the parameters of the client's end beside those of the server's end, if any.
    pub fn pair_problems(&self, other: &EntityConfig) -> Vec<Problem> {
        dispatch_entity_config!(self, config => OwnFrames::pair_problems(config, other))
    }
}

/// Surroundings of a link entity at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct EntityBeginning<'a> {
    /// The end at which it stands.
    pub end: End,
    /// The link in the direction in which the entity sends.
    pub sends: EntityParameters<'a>,
    /// The link in the direction in which it receives.
    pub receives: EntityParameters<'a>,
    /// The key of the draws of allocation delays.
    pub allocation: DrawKey,
    /// The key of the entity's other draws.
    pub key: DrawKey,
}

impl Default for EntityConfig {
    fn default() -> EntityConfig {
        EntityConfig::Simple(simple::SimpleConfig {})
    }
}

/// State of the link entity that an arriving packet finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing queued, nothing under transmission.
    MeetsEmptyLink,
    /// It was queued behind others, or meets some.
    FollowsOthers,
}

/// Message of a receiving link entity to the sending one that takes a fixed time and nothing of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Time from the arrival of the frame to that of the message.
    pub after: Span,
    /// The message, in words of the entities.
    pub word: u64,
}

/// Answer of a receiving link entity to a frame whose transmission has just ended, on a medium on which the sending one
/// hears it at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// True if the frame is acknowledged.
    pub is_received: bool,
    /// The rest of the answer, in words of the entities; 0 for none.
    pub word: u64,
}

/// Packet that a frame on its way will bring.
#[derive(Clone, Copy, Debug)]
pub enum Foresight<'a> {
    /// This packet, as it is.
    Packet(&'a Pdu),
    /// No packet.
    Nothing,
    /// That is not known before it arrives.
    Unknown,
}

/// A link entity at one end of a hop.
pub trait LinkEntity: Send {
    /// True if the send buffer takes `next` now.
    fn has_room(&self, next: &Pdu) -> bool;

    /// Takes a packet into the send buffer.
    fn accept(&mut self, pdu: Pdu, arrival: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>);

    /// Time from which `next_frame` has something to send; `Time::NEVER` if it has nothing. From then on it
    /// must return a frame for any sufficiently large grant, otherwise the medium polls forever.
    fn ready_at(&self) -> Time;

    /// The frame to send in `grant`.
    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame>;

    /// The transmission of `frame` has ended.
    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>);

    /// A frame of the other end arrives, or would have; packets that are complete go to `up`.
    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    );

    /// The packet that [`LinkEntity::receive`] will hand up for `frame`, if frames before it that are on their way were
    /// foreseen, too. An entity may foresee only frames that cause nothing else: no answer, no timer, no feedback.
    fn foresee<'a>(&self, _frame: &Frame, _outcome: &ChannelOutcome, _sdus: &'a Sdus) -> Foresight<'a> {
        Foresight::Unknown
    }

    /// The answer to `frame`, which the other end has sent and whose transmission has just ended with `outcome`: on a
    /// medium that acknowledges each frame at once. An entity that corrects errors acknowledges what it can decode.
    fn answer(&self, _frame: &Frame, outcome: &ChannelOutcome) -> Answer {
        let is_received = matches!(outcome, ChannelOutcome::Ok | ChannelOutcome::Delayed { .. });
        Answer { is_received, word: 0 }
    }

    /// The answer of the receiving end to `frame`, as its transmission ended: on a medium that acknowledges each frame
    /// at once.
    fn acknowledged(&mut self, _frame: &Frame, _answer: Answer) {}

    /// Errors of a radio channel of `quality` in `frame`, which the other end has sent; none if there are none. It is
    /// asked when the transmission ends. An entity that combines the copies of a frame knows the earlier ones.
    fn hit(&mut self, frame: &Frame, quality: &Quality) -> Option<ChannelOutcome> {
        quality.outcome(frame.bits.get(), self.error_positions())
    }

    /// Data in the send buffer at `at`; `since` of an empty one means nothing.
    fn backlog(&self, at: Time, _sdus: &Sdus) -> Backlog {
        Backlog { bits: u64::from(self.ready_at() <= at), since: at }
    }

    /// Packets in the send buffer of which no frame has been sent.
    fn waiting(&self) -> QueueLength {
        QueueLength::default()
    }

    /// Message to the sending entity about the frame that was just received, if there is one.
    fn feedback(&mut self) -> Option<Feedback> {
        None
    }

    /// A message of the receiving entity arrives. `stage` is that of the direction in which it sends.
    fn hear(&mut self, _word: u64, _sdus: &mut Sdus, _stage: &mut StageCx<'_, '_>) {}

    /// The bits in which it wants to be told of errors. All entities of a hop want the same.
    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfPacket
    }

    /// True if it sends also while there are no packets, so that its hop is never idle.
    fn never_idle(&self) -> bool {
        false
    }

    /// Minimum number of bits of a packet of `bytes` on the air, all its frames with their headers and padding
    /// together.
    fn bits_on_air(&self, _bytes: u32) -> Bits {
        Bits::ZERO
    }

    /// The framing of an idle entity that sends each packet in one frame without waiting for anything but the one
    /// before it, and hands up what a frame brings at once: a hop may then do without it.
    fn whole_packets(&self) -> Option<simple::Framing> {
        None
    }

    /// Notes that `allocations` packets have met an empty link while the hop did without the entity.
    fn note_allocations(&mut self, _allocations: u64) {}

    /// Next internal timer; `Time::NEVER` if there is none. Timers that count slots or blocks of the medium are
    /// better looked at in [`LinkEntity::next_frame`], where everything that arrived at the same instant is known:
    /// a timer runs before the arrivals of its instant.
    fn next_deadline(&self) -> Time;

    /// Does what is due by itself. `stage` is that of the direction in which it receives.
    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>);

    /// Drops the packets in the send buffer of which no frame has been sent yet: a blackout has begun.
    /// An entity that cannot do without them keeps them.
    fn abandon(&mut self, _sdus: &mut Sdus, _stage: &mut StageCx<'_, '_>) {}

    /// Changes the parameters of the direction in which it sends and of that in which it receives, at
    /// `at`.
    fn configure(&mut self, at: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>);
}

impl LinkEntity for EntityModel {
    #[inline(always)]
    fn has_room(&self, next: &Pdu) -> bool {
        dispatch_entity!(self, entity => entity.has_room(next))
    }
    #[inline(always)]
    fn accept(&mut self, pdu: Pdu, arrival: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        dispatch_entity!(self, entity => entity.accept(pdu, arrival, sdus, stage));
    }
    #[inline(always)]
    fn ready_at(&self) -> Time {
        dispatch_entity!(self, entity => entity.ready_at())
    }
    #[inline(always)]
    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        dispatch_entity!(self, entity => entity.next_frame(grant, sdus, stage))
    }
    #[inline(always)]
    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        dispatch_entity!(self, entity => entity.sent(frame, sdus, stage));
    }
    #[inline(always)]
    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        dispatch_entity!(self, entity => entity.receive(frame, outcome, sdus, stage, up));
    }
    fn foresee<'a>(&self, frame: &Frame, outcome: &ChannelOutcome, sdus: &'a Sdus) -> Foresight<'a> {
        dispatch_entity!(self, entity => entity.foresee(frame, outcome, sdus))
    }
    #[inline(always)]
    fn answer(&self, frame: &Frame, outcome: &ChannelOutcome) -> Answer {
        dispatch_entity!(self, entity => entity.answer(frame, outcome))
    }
    #[inline(always)]
    fn acknowledged(&mut self, frame: &Frame, answer: Answer) {
        dispatch_entity!(self, entity => entity.acknowledged(frame, answer));
    }
    #[inline(always)]
    fn hit(&mut self, frame: &Frame, quality: &Quality) -> Option<ChannelOutcome> {
        dispatch_entity!(self, entity => entity.hit(frame, quality))
    }
    fn backlog(&self, at: Time, sdus: &Sdus) -> Backlog {
        dispatch_entity!(self, entity => entity.backlog(at, sdus))
    }
    fn waiting(&self) -> QueueLength {
        dispatch_entity!(self, entity => entity.waiting())
    }
    #[inline(always)]
    fn feedback(&mut self) -> Option<Feedback> {
        dispatch_entity!(self, entity => entity.feedback())
    }
    fn hear(&mut self, word: u64, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        dispatch_entity!(self, entity => entity.hear(word, sdus, stage));
    }
    #[inline(always)]
    fn error_positions(&self) -> ErrorPositions {
        dispatch_entity!(self, entity => entity.error_positions())
    }
    fn never_idle(&self) -> bool {
        dispatch_entity!(self, entity => entity.never_idle())
    }
    #[inline(always)]
    fn bits_on_air(&self, bytes: u32) -> Bits {
        dispatch_entity!(self, entity => entity.bits_on_air(bytes))
    }
    fn whole_packets(&self) -> Option<simple::Framing> {
        dispatch_entity!(self, entity => entity.whole_packets())
    }
    fn note_allocations(&mut self, allocations: u64) {
        dispatch_entity!(self, entity => entity.note_allocations(allocations));
    }
    #[inline(always)]
    fn next_deadline(&self) -> Time {
        dispatch_entity!(self, entity => entity.next_deadline())
    }
    #[inline(always)]
    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        dispatch_entity!(self, entity => entity.advance(sdus, stage, up));
    }
    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        dispatch_entity!(self, entity => entity.abandon(sdus, stage));
    }
    fn configure(&mut self, at: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.reconfigure(sends.kind, at);
        dispatch_entity!(self, entity => entity.configure(at, sends, receives));
    }
}
