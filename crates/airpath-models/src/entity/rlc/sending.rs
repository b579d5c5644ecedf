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
//! - An end that waits for an acknowledgement longer than `gives_up` releases the flow: T3182 in the uplink. In the
//!   downlink N3105 polls without an answer do so; without messages it is the time `gives_up` there too.
//! - A mobile that has sent blocks since ignores a final acknowledgement. In the standard the network gives it no
//!   block any more by then.
//! - A mobile whose contention is not resolved after N3104_MAX blocks begins anew with the same blocks, four times at
//!   most (clause 7.1.2.3). T3166 is longer.

use airpath_core::{Span, Time};
use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::flow::{Block, Outgoing, SenderOptions, Signal, Source};
use super::window::{Part, Sent, Window};

/// Octets of the TLLI in a block of a mobile whose contention is not resolved (clause 10.4.9).
const TLLI_OCTETS: u32 = 4;
/// Greatest number of accesses of a mobile (clause 7.1.4).
pub const ACCESSES: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    /// The flow begins at the given time.
    Allocating(Time),
    Active,
    /// The last block has been sent.
    Closing,
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
    window: Window<P>,
    number: u64,
    since_poll: u16,
    /// Time at which the flow is given up; `Time::NEVER` if no acknowledgement is due.
    waits_until: Time,
    /// Time from which an open flow has had nothing to send.
    idle_since: Time,
    /// N3104: blocks sent while contention is not resolved; none if it is, or where there is none.
    n3104: Option<u32>,
    /// Accesses whose contention was not resolved.
    contended: u8,
    /// True if the flow that begins has had its last block cut.
    closes_again: bool,
    /// Polls without an answer, and the time of the last poll.
    unanswered: (u8, Time),
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
            window: Window::default(),
            number: 0,
            since_poll: 0,
            waits_until: Time::NEVER,
            idle_since: Time::NEVER,
            n3104: None,
            contended: 0,
            closes_again: false,
            unanswered: (0, Time::ZERO),
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

    /// True if a flow is there.
    pub fn has_flow(&self) -> bool {
        matches!(self.phase, Phase::Active | Phase::Closing)
    }

    /// True if blocks wait for a flow, that of an access whose contention was not resolved.
    pub fn has_unsent(&self) -> bool {
        self.phase == Phase::Idle && !self.window.is_empty()
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
            // The network releases a flow by a message.
            Phase::Active if self.options.messages.is_some() => false,
            Phase::Active => self.idle_since != Time::NEVER && self.idle_since + self.options.release_delay < now,
        }
    }

    /// A flow is being set up and begins at `at`, with contention if `contends`.
    pub fn allocate(&mut self, at: Time, contends: bool) {
        self.phase = Phase::Allocating(at);
        self.idle_since = Time::NEVER;
        self.n3104 = contends.then_some(0);
    }

    /// Time from which there is a block to send; `Time::NEVER` if there is none.
    pub fn ready_at(&self, source: &impl Source) -> Time {
        let waits = !source.is_empty();
        match self.phase {
            Phase::Idle => Time::NEVER,
            Phase::Allocating(at) if waits || !self.window.is_empty() => at,
            Phase::Allocating(_) => Time::NEVER,
            Phase::Active if waits => Time::ZERO,
            Phase::Active | Phase::Closing if self.window.is_empty() => self.idle_poll_at(),
            Phase::Active | Phase::Closing => match self.options.messages {
                Some(polls) if !self.window.has_nacked() && !self.window.has_information() => {
                    (self.unanswered.1 + polls.timeout).min(self.waits_until)
                }
                _ => Time::ZERO,
            },
        }
    }

    /// Time of the next block of an idle downlink flow, which polls, and ends the flow in the end.
    fn idle_poll_at(&self) -> Time {
        match self.options.messages {
            Some(polls) if self.options.polls && self.phase == Phase::Active && self.idle_since != Time::NEVER => {
                let next = self.idle_since.max(self.unanswered.1) + polls.idle;
                next.min(self.idle_since + self.options.release_delay)
            }
            _ => Time::NEVER,
        }
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
            Phase::Allocating(_) if source.is_empty() && self.window.is_empty() => {
                self.phase = Phase::Idle;
                return None;
            }
            Phase::Allocating(_) => self.begin(now, signals),
            Phase::Active | Phase::Closing if self.waits_until <= now => {
                self.end();
                signals.push(Signal::Reset);
                return None;
            }
            Phase::Active | Phase::Closing if self.n3104.is_some_and(|blocks| blocks >= self.n3104_max()) => {
                self.contend(signals);
                return None;
            }
            Phase::Active | Phase::Closing => {}
        }
        let Choice { blocks, scheme, repeated, is_anew } = self.choose(now, source)?;
        let has_more = self.window.has_nacked() || self.may_send_new(source);
        let is_stalled = self.options.acknowledged && self.is_stalled();
        // The uplink and unacknowledged flows never poll, however long they are.
        self.since_poll = self.since_poll.saturating_add(blocks.len() as u16);
        let is_due = self.since_poll >= self.options.poll_every || is_anew && !has_more || self.asks_again(now);
        let poll = self.options.acknowledged && self.options.polls && is_due;
        self.supervise(now, poll, is_stalled || !has_more);
        if !self.options.acknowledged && source.is_empty() {
            if self.phase == Phase::Closing {
                self.end();
                signals.push(Signal::Released);
            } else {
                self.idle_since = now;
            }
        }
        let (flow, number, ends) = (self.flow, self.number, self.phase == Phase::Closing);
        let tlli = self.n3104.is_some();
        if let Some(blocks) = &mut self.n3104 {
            *blocks += 1;
        }
        Some(Outgoing { flow, number, scheme, poll, is_stalled, repeated, ends, tlli, blocks })
    }

    /// N3104_MAX (clause 13.3). A BS_CV_MAX of 0 counts as 1.
    fn n3104_max(&self) -> u32 {
        3 * (self.options.bs_cv_max.max(1) + 3) * u32::from(self.options.timeslots)
    }

    /// True if the last poll, in a flow with messages, was not answered in time, or the answer leaves nothing but
    /// blocks without information.
    fn asks_again(&self, now: Time) -> bool {
        let (count, at) = self.unanswered;
        let is_open = || count > 0 || !self.window.is_empty() && !self.window.has_information();
        self.options.messages.is_some_and(|polls| at + polls.timeout <= now && is_open())
    }

    /// Begins the time after which the flow is given up. In the uplink it is T3182, which begins with the window full,
    /// and with the last block (CV of 0) where none is left to repeat: `waits`. A flow that stays sends that block as
    /// one that ends does.
    fn supervise(&mut self, now: Time, poll: bool, waits: bool) {
        if poll {
            self.since_poll = 0;
            self.unanswered = (self.unanswered.0.saturating_add(1), now);
        }
        let begins = match self.options.messages {
            Some(polls) if self.options.polls => (poll && self.unanswered.0 >= polls.most).then_some(polls.timeout),
            _ => (if self.options.polls { poll } else { waits }).then_some(self.options.gives_up),
        };
        if let Some(wait) = begins
            && self.options.acknowledged
            && self.waits_until == Time::NEVER
        {
            self.waits_until = now + wait;
        }
    }

    fn begin(&mut self, now: Time, signals: &mut Vec<Signal<P>>) {
        self.phase = if std::mem::take(&mut self.closes_again) { Phase::Closing } else { Phase::Active };
        self.flow = self.flow.wrapping_add(1);
        (self.v_a, self.since_poll, self.unanswered) = (0, 0, (0, now));
        signals.push(Signal::Began);
    }

    /// Contention was not resolved: nothing has been acknowledged, so that all blocks go again.
    fn contend(&mut self, signals: &mut Vec<Signal<P>>) {
        self.contended += 1;
        if self.contended >= ACCESSES {
            self.end();
            return signals.push(Signal::Reset);
        }
        self.closes_again = self.phase == Phase::Closing;
        (self.phase, self.n3104) = (Phase::Idle, None);
        (self.waits_until, self.idle_since) = (Time::NEVER, Time::NEVER);
        self.window.reject_all();
        signals.push(Signal::Contended);
    }

    fn end(&mut self) {
        self.phase = Phase::Idle;
        self.window.clear();
        (self.waits_until, self.idle_since) = (Time::NEVER, Time::NEVER);
        (self.n3104, self.contended, self.closes_again) = (None, 0, false);
    }

    fn may_send_new(&self, source: &impl Source) -> bool {
        self.phase == Phase::Active && !self.is_stalled() && !source.is_empty()
    }

    /// The blocks of the next radio block.
    fn choose<S: Source<Payload = P>>(&mut self, now: Time, source: &mut S) -> Option<Choice<P>> {
        let schemes = self.options.schemes;
        let mut blocks = SmallVec::new();
        self.number += 1;
        let (mut repeated, mut is_anew) = (true, true);
        let scheme = if let Some(place) = self.window.oldest_nacked(|_| true) {
            let scheme = self.repetition_of(self.window.block(place));
            blocks.push(self.repeat(place, scheme, source));
            scheme
        } else if self.may_send_new(source) {
            self.count_down(source);
            repeated = false;
            blocks.push(self.send_new(source, self.scheme)?);
            self.scheme
        } else if self.window.is_empty() {
            repeated = false;
            blocks.push(self.send_nothing(now, source)?);
            self.scheme
        } else {
            is_anew = false;
            let asks_again = self.asks_again(now);
            let place = self.window.oldest_pending(self.number, |sent| sent.payload.is_some() || asks_again)?;
            let scheme = self.repetition_of(self.window.block(place));
            self.window.reject(place);
            blocks.push(self.repeat(place, scheme, source));
            scheme
        };
        if schemes.table[scheme].blocks == 1 {
            return Some(Choice { blocks, scheme, repeated, is_anew });
        }
        let fits = |sent: &Sent<P>| self.repetition_of(sent) == scheme;
        if let Some(place) = self.window.oldest_nacked(fits) {
            blocks.push(self.repeat(place, scheme, source));
        } else if self.may_send_new(source) && scheme == self.scheme {
            self.count_down(source);
            repeated = false;
            blocks.extend(self.send_new(source, scheme));
        } else if !is_anew
            && let Some(place) = self.window.oldest_pending(self.number, |sent| sent.payload.is_some() && fits(sent))
        {
            self.window.reject(place);
            blocks.push(self.repeat(place, scheme, source));
        }
        let scheme = if blocks.len() == 1 { (schemes.single)(scheme) } else { scheme };
        Some(Choice { blocks, scheme, repeated, is_anew })
    }

    fn repetition_of(&self, sent: &Sent<P>) -> usize {
        (self.options.schemes.repetition)(sent.home, self.repetition, self.options.resegments)
    }

    fn repeat<S: Source<Payload = P>>(&mut self, place: usize, scheme: usize, source: &S) -> Block<P> {
        let table = self.options.schemes.table;
        let bsn = (self.v_a + place as u16) % self.options.modulus;
        let splits = table[scheme].octets < table[self.window.block(place).home].octets;
        let part = self.window.repeat(place, self.number, splits);
        let sent = self.window.block(place);
        let payload = sent.payload.clone().unwrap_or_else(|| source.nothing());
        Block { bsn, part, is_last: sent.is_last, payload }
    }

    /// Octets of packets in a new block of `scheme`.
    fn octets(&self, scheme: usize) -> u32 {
        let tlli = if self.n3104.is_some() { TLLI_OCTETS } else { 0 };
        self.options.schemes.table[scheme].octets - tlli
    }

    /// Lets nothing new join a flow that has come to its last blocks: the countdown value of the next block is the
    /// number of rounds behind it (clause 9.3.1.1).
    fn count_down(&self, source: &mut impl Source) {
        let rounds = self.options.bs_cv_max;
        let round = u32::from(self.options.timeslots) * self.options.schemes.table[self.scheme].blocks;
        if rounds > 0
            && self.closes()
            && source.blocks_left(self.octets(self.scheme), true, rounds * round + 1).is_some()
        {
            source.close();
        }
    }

    fn send_new<S: Source<Payload = P>>(&mut self, source: &mut S, scheme: usize) -> Option<Block<P>> {
        let closes = self.closes();
        let payload = source.cut(self.octets(scheme), closes)?;
        self.idle_since = Time::NEVER;
        let is_last = source.is_empty();
        if is_last && closes {
            self.phase = Phase::Closing;
        }
        let bsn = self.v_s();
        if self.options.acknowledged {
            self.window.push(Some(payload.clone()), scheme, self.number, is_last);
        } else {
            self.v_a = (self.v_a + 1) % self.options.modulus;
        }
        Some(Block { bsn, part: Part::Whole, is_last, payload })
    }

    /// A block without information, for its poll: an idle downlink flow keeps the mobile, or ends.
    fn send_nothing<S: Source<Payload = P>>(&mut self, now: Time, source: &S) -> Option<Block<P>> {
        if self.idle_poll_at() > now {
            return None;
        }
        if self.idle_since + self.options.release_delay <= now {
            self.phase = Phase::Closing;
        }
        let bsn = self.v_s();
        self.window.push(None, self.scheme, self.number, true);
        Some(Block { bsn, part: Part::Whole, is_last: true, payload: source.nothing() })
    }

    /// An acknowledgement arrives at `now`; true if it is one of this flow.
    pub fn acknowledge(
        &mut self,
        now: Time,
        acknowledgement: &Acknowledgement,
        source: &impl Source,
        signals: &mut Vec<Signal<P>>,
    ) -> bool {
        let modulus = self.options.modulus;
        if acknowledgement.flow != self.flow || !self.has_flow() {
            return false;
        }
        let before = (acknowledgement.v_q + modulus - self.v_a) % modulus;
        if usize::from(before) > self.window.len() {
            return false;
        }
        self.waits_until = Time::NEVER;
        (self.n3104, self.contended, self.unanswered.0) = (None, 0, 0);
        self.window.acknowledge(acknowledgement, before.into());
        while let Some(sent) = self.window.pop_acknowledged() {
            self.v_a = (self.v_a + 1) % modulus;
            signals.extend(sent.payload.map(Signal::Acknowledged));
        }
        if !self.window.is_empty() {
            return true;
        }
        let by_messages = self.options.messages.is_some();
        let is_released = by_messages && !self.options.polls && acknowledgement.is_final;
        if self.phase == Phase::Closing || is_released {
            self.end();
            signals.push(Signal::Released);
        } else if source.is_empty() && (!by_messages || self.idle_since == Time::NEVER) {
            self.idle_since = now;
        }
        true
    }
}

/// Blocks of a radio block.
struct Choice<P> {
    blocks: SmallVec<[Block<P>; 2]>,
    scheme: usize,
    /// True if they were all sent before.
    repeated: bool,
    /// False if none of them is new or was asked for.
    is_anew: bool,
}
