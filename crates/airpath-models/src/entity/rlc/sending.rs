// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end of RLC: temporary block flows, the transmit window, and what goes into each radio block, for
//! information of any kind.
//!
//! Source: 3GPP TS 44.060, clauses 9.1 (V(S), V(A), V(B), stall) and 9.3 (countdown, release). A radio block carries,
//! in this order: the oldest block that is negatively acknowledged, a new one, or, where nothing else may be sent,
//! the block whose transmission is the oldest of all that are not acknowledged. Where the standard leaves room:
//!
//! - A negative acknowledgement counts if it was made with knowledge of the block's last transmission. The standard
//!   has the frame number of the poll for that, or BS_CV_MAX.
//! - An end that waits for an acknowledgement longer than `gives_up` releases the flow (T3182 in the uplink; N3105
//!   polls without an answer in the downlink).

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::schemes::Schemes;

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug)]
pub struct SenderOptions {
    /// Coding schemes.
    pub schemes: &'static Schemes,
    /// Number of block sequence numbers.
    pub modulus: u16,
    /// Window: blocks that may be sent and not acknowledged.
    pub window: u16,
    /// True if blocks are acknowledged.
    pub acknowledged: bool,
    /// True if it asks for acknowledgements itself: the network's end.
    pub polls: bool,
    /// Number of blocks from poll to poll.
    pub poll_every: u16,
    /// Blocks before the last one from which on nothing new joins the flow (BS_CV_MAX); 0 for the network's end.
    pub countdown: u32,
    /// Time for which a flow stays where nothing is to be sent; without it each flow ends with its last block.
    pub release_delay: Span,
    /// Time without an acknowledgement after which the flow is given up.
    pub gives_up: Span,
    /// True if a block may be repeated in halves.
    pub resegments: bool,
}

/// Source of the sending end's information.
pub trait Source {
    /// Information of one block.
    type Payload: Clone;
    /// True if there is nothing more for this flow.
    fn is_empty(&self) -> bool;
    /// Information of a block of `octets`; `ends` says that the flow ends with the last of it.
    fn cut(&mut self, octets: u32, ends: bool) -> Option<Self::Payload>;
    /// Number of blocks of `octets` that are left; none if it is above `most`.
    fn blocks_left(&self, octets: u32, ends: bool, most: u32) -> Option<u32>;
    /// Nothing new joins the flow.
    fn close(&mut self);
    /// The next flow begins with whatever is there.
    fn reopen(&mut self);
}

/// Part of an RLC block in a radio block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its first half.
    First,
    /// Its second half.
    Second,
}

/// An RLC block of a radio block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Block<P> {
    /// Its number, BSN.
    pub bsn: u16,
    /// The part that is sent.
    pub part: Part,
    /// True if it is the last one so far (CV or FBI).
    pub is_last: bool,
    /// Its information.
    pub payload: P,
}

/// A radio block with data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Outgoing<P> {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the radio block among all of this end.
    pub number: u64,
    /// Place of the coding scheme in the table.
    pub scheme: usize,
    /// True if an acknowledgement is asked for (RRBP).
    pub poll: bool,
    /// True if the window is full (SI).
    pub is_stalled: bool,
    /// True if all its blocks were sent before.
    pub repeated: bool,
    /// Its RLC blocks.
    pub blocks: SmallVec<[Block<P>; 2]>,
}

/// Consequence for the user of the sending end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal<P> {
    /// The oldest information is acknowledged.
    Acknowledged(P),
    /// A flow has begun.
    Began,
    /// The flow has ended.
    Released,
    /// The flow was given up: information that is not acknowledged is lost.
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    /// The flow begins at the given time.
    Allocating(Time),
    Active,
    /// The last block has been sent.
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Pending,
    Nacked,
    Acked,
}

/// A block in the window, with its V(B).
#[derive(Clone, Debug)]
struct Sent<P> {
    payload: P,
    /// The scheme in which it was sent first.
    home: usize,
    state: State,
    /// Number of the radio block that carried it last.
    number: u64,
    /// True if its first half has been sent and its second has not.
    is_half: bool,
    is_last: bool,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender<P> {
    /// Its parameters.
    pub options: SenderOptions,
    /// The coding scheme of new blocks.
    pub scheme: usize,
    /// The coding scheme that is commanded for repetitions.
    pub repetition: usize,
    phase: Phase,
    flow: u32,
    v_a: u16,
    window: VecDeque<Sent<P>>,
    nacked: u16,
    number: u64,
    since_poll: u16,
    /// Time at which the flow is given up; `Time::NEVER` if no acknowledgement is due.
    waits_until: Time,
    /// Time from which an open flow has had nothing to send.
    idle_since: Time,
}

impl<P: Clone> Sender<P> {
    /// An end without a flow.
    pub fn new(options: SenderOptions, scheme: usize, repetition: usize) -> Sender<P> {
        Sender {
            options,
            scheme,
            repetition,
            phase: Phase::Idle,
            flow: 0,
            v_a: 0,
            window: VecDeque::new(),
            nacked: 0,
            number: 0,
            since_poll: 0,
            waits_until: Time::NEVER,
            idle_since: Time::NEVER,
        }
    }

    /// V(S), V(A), and the number of blocks that are not acknowledged.
    pub fn variables(&self) -> (u16, u16, u16) {
        (self.v_s(), self.v_a, self.window.len() as u16)
    }

    /// Time at which the flow is given up, if it waits for an acknowledgement.
    pub fn waits_until(&self) -> Option<Time> {
        (self.waits_until != Time::NEVER).then_some(self.waits_until)
    }

    fn v_s(&self) -> u16 {
        (self.v_a + self.window.len() as u16) % self.options.modulus
    }

    fn is_stalled(&self) -> bool {
        self.window.len() >= usize::from(self.options.window)
    }

    /// A flow ends with its last block, and is not kept for more.
    fn closes(&self) -> bool {
        self.options.release_delay == Span::ZERO
    }

    /// True if information that comes at `now` has to wait for a flow to be set up.
    pub fn needs_flow(&self, now: Time) -> bool {
        match self.phase {
            Phase::Idle => true,
            Phase::Allocating(_) | Phase::Closing => false,
            Phase::Active => self.idle_since != Time::NEVER && self.idle_since + self.options.release_delay < now,
        }
    }

    /// A flow is being set up and begins at `at`.
    pub fn allocate(&mut self, at: Time) {
        self.phase = Phase::Allocating(at);
        self.idle_since = Time::NEVER;
    }

    /// Time from which there is a block to send; `Time::NEVER` if there is none.
    pub fn ready_at(&self, source: &impl Source) -> Time {
        let ready = match self.phase {
            Phase::Idle => false,
            Phase::Allocating(at) => return if source.is_empty() { Time::NEVER } else { at },
            Phase::Active => !self.window.is_empty() || !source.is_empty(),
            Phase::Closing => !self.window.is_empty(),
        };
        if ready { Time::ZERO } else { Time::NEVER }
    }

    /// Information of this flow was dropped before it was sent.
    pub fn abandon(&mut self, now: Time, source: &mut impl Source) {
        if self.phase == Phase::Active && source.is_empty() {
            if !self.closes() {
                self.idle_since = if self.window.is_empty() { now } else { Time::NEVER };
            } else if self.window.is_empty() {
                self.end();
                source.reopen();
            } else {
                self.phase = Phase::Closing;
            }
        }
    }

    /// The radio block that begins at `now`; none if there is nothing to send.
    pub fn next_frame<S: Source<Payload = P>>(
        &mut self,
        now: Time,
        source: &mut S,
        signals: &mut Vec<Signal<P>>,
    ) -> Option<Outgoing<P>> {
        match self.phase {
            Phase::Idle => return None,
            Phase::Allocating(at) if at > now => return None,
            Phase::Allocating(_) if source.is_empty() => {
                self.phase = Phase::Idle;
                return None;
            }
            Phase::Allocating(_) => self.begin(signals),
            Phase::Active | Phase::Closing if self.waits_until <= now => {
                self.end();
                signals.push(Signal::Reset);
                return None;
            }
            Phase::Active | Phase::Closing => {}
        }
        let (blocks, scheme, repeated, is_anew) = self.choose(source)?;
        let has_more = self.nacked > 0 || self.may_send_new(source);
        let is_stalled = self.options.acknowledged && self.is_stalled();
        // The uplink and unacknowledged flows never poll, however long they are.
        self.since_poll = self.since_poll.saturating_add(blocks.len() as u16);
        let poll = self.options.acknowledged
            && self.options.polls
            && (self.since_poll >= self.options.poll_every || is_anew && !has_more);
        if poll {
            self.since_poll = 0;
        }
        // T3182 begins with the window full, and with the last block (CV of 0) where none is left to repeat. A flow that
        // stays sends that block as one that ends does.
        let waits = if self.options.polls { poll } else { is_stalled || !has_more };
        if self.options.acknowledged && waits && self.waits_until == Time::NEVER {
            self.waits_until = now + self.options.gives_up;
        }
        if !self.options.acknowledged && source.is_empty() {
            if self.phase == Phase::Closing {
                self.end();
                signals.push(Signal::Released);
            } else {
                self.idle_since = now;
            }
        }
        let (flow, number) = (self.flow, self.number);
        Some(Outgoing { flow, number, scheme, poll, is_stalled, repeated, blocks })
    }

    fn begin(&mut self, signals: &mut Vec<Signal<P>>) {
        self.phase = Phase::Active;
        self.flow = self.flow.wrapping_add(1);
        (self.v_a, self.since_poll) = (0, 0);
        signals.push(Signal::Began);
    }

    fn end(&mut self) {
        self.phase = Phase::Idle;
        self.window.clear();
        self.nacked = 0;
        (self.waits_until, self.idle_since) = (Time::NEVER, Time::NEVER);
    }

    fn may_send_new(&self, source: &impl Source) -> bool {
        self.phase == Phase::Active && !self.is_stalled() && !source.is_empty()
    }

    /// The blocks of the next radio block, its scheme, and whether they were all sent before and whether that was
    /// asked for.
    #[allow(clippy::type_complexity, reason = "used once")]
    fn choose<S: Source<Payload = P>>(
        &mut self,
        source: &mut S,
    ) -> Option<(SmallVec<[Block<P>; 2]>, usize, bool, bool)> {
        let schemes = self.options.schemes;
        let mut blocks = SmallVec::new();
        self.number += 1;
        let (mut repeated, mut is_anew) = (true, true);
        let scheme = if let Some(place) = self.oldest_nacked(None) {
            let scheme = self.repetition_of(place);
            blocks.push(self.repeat(place, scheme));
            scheme
        } else if self.may_send_new(source) {
            self.count_down(source);
            repeated = false;
            blocks.push(self.send_new(source, self.scheme)?);
            self.scheme
        } else {
            is_anew = false;
            let place = self.oldest_pending(None)?;
            let scheme = self.repetition_of(place);
            blocks.push(self.repeat_pending(place, scheme));
            scheme
        };
        if schemes.table[scheme].blocks == 1 {
            return Some((blocks, scheme, repeated, is_anew));
        }
        if let Some(place) = self.oldest_nacked(Some(scheme)) {
            blocks.push(self.repeat(place, scheme));
        } else if self.may_send_new(source) && scheme == self.scheme {
            self.count_down(source);
            repeated = false;
            blocks.extend(self.send_new(source, scheme));
        } else if !is_anew && let Some(place) = self.oldest_pending(Some(scheme)) {
            blocks.push(self.repeat_pending(place, scheme));
        }
        let scheme = if blocks.len() == 1 { (schemes.single)(scheme) } else { scheme };
        Some((blocks, scheme, repeated, is_anew))
    }

    fn repetition_of(&self, place: usize) -> usize {
        (self.options.schemes.repetition)(self.window[place].home, self.repetition, self.options.resegments)
    }

    /// The oldest block that is negatively acknowledged, of those that go in `scheme`.
    fn oldest_nacked(&self, scheme: Option<usize>) -> Option<usize> {
        if self.nacked == 0 {
            return None;
        }
        let fits = |place: usize| scheme.is_none_or(|scheme| self.repetition_of(place) == scheme);
        let nacked = |(place, sent): (usize, &Sent<P>)| (sent.state == State::Nacked && fits(place)).then_some(place);
        self.window.iter().enumerate().find_map(nacked)
    }

    /// The block that has not been sent for the longest time, of those that go in `scheme` and have not just been
    /// sent.
    fn oldest_pending(&self, scheme: Option<usize>) -> Option<usize> {
        let fits = |place: usize| scheme.is_none_or(|scheme| self.repetition_of(place) == scheme);
        let pending = self
            .window
            .iter()
            .enumerate()
            .filter(|(place, sent)| sent.state == State::Pending && sent.number < self.number && fits(*place));
        pending.min_by_key(|(_, sent)| sent.number).map(|(place, _)| place)
    }

    /// Sends a block that may have arrived. Its halves are sent as if they were asked for.
    fn repeat_pending(&mut self, place: usize, scheme: usize) -> Block<P> {
        self.window[place].state = State::Nacked;
        self.nacked += 1;
        self.repeat(place, scheme)
    }

    fn repeat(&mut self, place: usize, scheme: usize) -> Block<P> {
        let table = self.options.schemes.table;
        let bsn = (self.v_a + place as u16) % self.options.modulus;
        let sent = &mut self.window[place];
        let splits = table[scheme].octets < table[sent.home].octets;
        let part = match (splits, sent.is_half) {
            (false, _) => Part::Whole,
            (true, false) => Part::First,
            (true, true) => Part::Second,
        };
        sent.is_half = part == Part::First;
        sent.number = self.number;
        if !sent.is_half {
            sent.state = State::Pending;
            self.nacked -= 1;
        }
        Block { bsn, part, is_last: sent.is_last, payload: sent.payload.clone() }
    }

    /// Lets nothing new join a flow that has come to its last blocks.
    fn count_down(&self, source: &mut impl Source) {
        let most = self.options.countdown;
        let octets = self.options.schemes.table[self.scheme].octets;
        if most > 0 && self.closes() && source.blocks_left(octets, true, most + 1).is_some() {
            source.close();
        }
    }

    fn send_new<S: Source<Payload = P>>(&mut self, source: &mut S, scheme: usize) -> Option<Block<P>> {
        let closes = self.closes();
        let payload = source.cut(self.options.schemes.table[scheme].octets, closes)?;
        self.idle_since = Time::NEVER;
        let is_last = source.is_empty();
        if is_last && closes {
            self.phase = Phase::Closing;
        }
        let bsn = self.v_s();
        if self.options.acknowledged {
            self.window.push_back(Sent {
                payload: payload.clone(),
                home: scheme,
                state: State::Pending,
                number: self.number,
                is_half: false,
                is_last,
            });
        } else {
            self.v_a = (self.v_a + 1) % self.options.modulus;
        }
        Some(Block { bsn, part: Part::Whole, is_last, payload })
    }

    /// An acknowledgement arrives at `now`.
    pub fn acknowledge(
        &mut self,
        now: Time,
        acknowledgement: &Acknowledgement,
        source: &impl Source,
        signals: &mut Vec<Signal<P>>,
    ) {
        let modulus = self.options.modulus;
        if acknowledgement.flow != self.flow || !matches!(self.phase, Phase::Active | Phase::Closing) {
            return;
        }
        let before = (acknowledgement.v_q + modulus - self.v_a) % modulus;
        if usize::from(before) > self.window.len() {
            return;
        }
        self.waits_until = Time::NEVER;
        for (place, sent) in self.window.iter_mut().enumerate() {
            let received = match place.checked_sub(before.into()) {
                None => true,
                Some(place) if place < acknowledgement.count.into() => acknowledgement.has(place),
                Some(_) => break,
            };
            let was_nacked = sent.state == State::Nacked;
            if received {
                sent.state = State::Acked;
                sent.is_half = false;
            } else if sent.state == State::Pending && sent.number <= acknowledgement.seen {
                sent.state = State::Nacked;
            }
            self.nacked += u16::from(sent.state == State::Nacked);
            self.nacked -= u16::from(was_nacked);
        }
        while self.window.front().is_some_and(|sent| sent.state == State::Acked) {
            if let Some(sent) = self.window.pop_front() {
                self.v_a = (self.v_a + 1) % modulus;
                signals.push(Signal::Acknowledged(sent.payload));
            }
        }
        if !self.window.is_empty() {
            return;
        }
        if self.phase == Phase::Closing {
            self.end();
            signals.push(Signal::Released);
        } else if source.is_empty() {
            self.idle_since = now;
        }
    }
}
