// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fair queueing of flows with queue management in each, for FQ-CoDel and FQ-PIE.
//!
//! Source: RFC 8290, section 4. Packets are put into one of `flows` queues by a hash of their flow,
//! keyed by the run's seed; queues take turns by deficit round robin in bytes, those that have just
//! begun to hold something before the others; a new queue that becomes empty goes behind the old ones
//! first, so that it cannot come back as a new one at once. When the limit is exceeded, half the
//! packets of the queue with the most bytes, 64 at most, are dropped at its head.
//!
//! A packet that finds no room downstream waits, and the turns return to where they were. A flow is
//! what the packet says it is: a hash of its five-tuple where it has one. Two flows may share a queue.
//!
//! What differs from other readings of the RFC:
//!
//! - The link asks once more when the last packet of all flows has gone into the send buffer, and all flows
//!   are off the lists then, as under Linux, whose drivers drain the queue; with a link of one packet it would
//!   be at the end of that transmission. A paced flow is new more often, and gets a fresh quantum: one a busy
//!   period at most.
//! - Overflow drops half the *packets*, as in the RFC; Linux drops half the bytes, and raises CoDel's count.
//! - CoDel's test for less than an MTU looks at the flow's own queue, as in the RFC; Linux looks at all flows.

use std::collections::VecDeque;
use std::fmt::Debug;

use airpath_core::{Bits, Cause, DrawKey, EventKind, Pdu, QueueLimit, Span, Time};

use super::management::{AqmDecision, is_ecn_capable, mark};
use crate::problem::Problem;
use crate::stage::{QueueLength, StageCx};

/// The most packets that one overflow drops.
const BATCH: usize = 64;
/// The most queues: hundreds of thousands would only cost memory.
const MOST_FLOWS: u32 = 65_536;
/// Less would make a long packet wait for thousands of turns, each of which costs time.
const LEAST_QUANTUM: Bits = Bits::from_bytes(64);
const LARGEST_QUANTUM: Bits = Bits::from_bytes(1_000_000_000);

/// Management of each flow's queue.
pub(super) trait FlowManagement {
    /// State of one queue.
    type State: Clone + Debug;

    /// Of a queue that has been empty since the run began.
    fn begin(&self) -> Self::State;

    /// Decision on a packet that arrives while `queued_bytes` are in its queue; draws are those of `key` for
    /// `step`.
    fn arrival(
        &self,
        state: &mut Self::State,
        at: Time,
        draw: (DrawKey, u64),
        queued_bytes: u64,
        can_mark: bool,
    ) -> AqmDecision;

    /// Decision on a packet that goes after it `waited`, with `left_bytes` behind it.
    fn departure(
        &self,
        state: &mut Self::State,
        at: Time,
        waited: Span,
        left_bytes: u64,
        can_mark: bool,
    ) -> AqmDecision;

    /// Packets have been dropped because the limit was exceeded, and `left_bytes` are left.
    fn dropped(&self, state: &mut Self::State, at: Time, left_bytes: u64);

    /// `self` gives way to `next` at `at`.
    fn change(&self, next: &Self, state: &mut Self::State, at: Time);
}

/// Common parameters of all fair queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairParameters {
    pub limit: QueueLimit,
    pub flows: u32,
    pub quantum: Bits,
    pub ecn: bool,
}

impl FairParameters {
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.limit.age.is_some() {
            let message = "has a limit in time, which a fair queue has not: its management keeps waits short";
            problems.push(Problem::new("limit", message));
        }
        if self.flows == 0 || self.flows > MOST_FLOWS {
            let message = format!("is {}; there may be from 1 to {MOST_FLOWS} queues for flows", self.flows);
            problems.push(Problem::new("flows", message));
        }
        if !(LEAST_QUANTUM..=LARGEST_QUANTUM).contains(&self.quantum) {
            let range = format!("it must be from {LEAST_QUANTUM} to {LARGEST_QUANTUM}");
            problems.push(Problem::new("quantum", format!("is {}; {range}", self.quantum)));
        }
        problems
    }
}

/// List that a queue is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
    None,
}

#[derive(Clone, Debug)]
struct Flow<S> {
    packets: VecDeque<(Time, Pdu)>,
    bytes: u64,
    /// Bits that it may send before its turn is over; below zero what it has sent too many.
    credit: i64,
    list: List,
    state: S,
}

/// A queue's way from the head of one list to the end of the old ones, or off the lists.
#[derive(Clone, Copy, Debug)]
struct Move {
    flow: usize,
    from: List,
    to: List,
    credit: i64,
}

/// Queues for flows.
#[derive(Clone, Debug)]
pub(super) struct FairQueue<M: FlowManagement> {
    parameters: FairParameters,
    management: M,
    hash_key: DrawKey,
    arrival_key: DrawKey,
    /// For each value of the hash the number of its queue, from 1; 0 while there is none.
    buckets: Vec<u32>,
    flows: Vec<Flow<M::State>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    length: QueueLength,
    arrivals: u64,
    /// Moves of the present turn, in case it comes to nothing.
    moves: Vec<Move>,
}

impl<M: FlowManagement> FairQueue<M> {
    pub fn new(parameters: FairParameters, management: M, key: DrawKey) -> FairQueue<M> {
        FairQueue {
            parameters,
            management,
            hash_key: key.child("flow", 0),
            arrival_key: key.child("arrival", 0),
            buckets: vec![0; parameters.flows as usize],
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            length: QueueLength::default(),
            arrivals: 0,
            moves: Vec::new(),
        }
    }

    pub fn configure(&mut self, parameters: FairParameters, management: M, at: Time) {
        let is_rehashed = parameters.flows != self.parameters.flows;
        for flow in &mut self.flows {
            self.management.change(&management, &mut flow.state, at);
        }
        (self.parameters, self.management) = (parameters, management);
        if is_rehashed {
            let packets = self.hand_over();
            self.buckets = vec![0; parameters.flows as usize];
            self.flows.clear();
            self.take_over(packets, at);
        }
    }

    /// The number of the queue that `pdu` joins.
    fn flow_of(&mut self, pdu: &Pdu) -> usize {
        let bucket = self.hash_key.below(u64::from(pdu.flow), 0, self.buckets.len() as u64) as usize;
        if self.buckets[bucket] == 0 {
            self.flows.push(Flow {
                packets: VecDeque::new(),
                bytes: 0,
                credit: 0,
                list: List::None,
                state: self.management.begin(),
            });
            self.buckets[bucket] = self.flows.len() as u32;
        }
        self.buckets[bucket] as usize - 1
    }

    fn push(&mut self, number: usize, since: Time, pdu: Pdu) {
        let flow = &mut self.flows[number];
        let part = QueueLength { packets: 1, bytes: u64::from(pdu.len) };
        self.length = self.length + part;
        flow.bytes += part.bytes;
        flow.packets.push_back((since, pdu));
        if flow.list == List::None {
            flow.list = List::New;
            flow.credit = self.parameters.quantum.get() as i64;
            self.new.push_back(number);
        }
    }

    fn pop(&mut self, number: usize) -> Option<Pdu> {
        let flow = &mut self.flows[number];
        let (_, pdu) = flow.packets.pop_front()?;
        let part = QueueLength { packets: 1, bytes: u64::from(pdu.len) };
        flow.bytes -= part.bytes;
        self.length = self.length - part;
        Some(pdu)
    }

    pub fn enqueue(&mut self, mut pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        let number = self.flow_of(&pdu);
        let draw = (self.arrival_key, self.arrivals);
        self.arrivals += 1;
        let can_mark = self.parameters.ecn && is_ecn_capable(&pdu);
        let flow = &mut self.flows[number];
        match self.management.arrival(&mut flow.state, stage.at, draw, flow.bytes, can_mark) {
            AqmDecision::Drop => return stage.dropped(Cause::QueueManagement, &pdu, self.length),
            AqmDecision::Mark => mark(&mut pdu, self.length, stage),
            AqmDecision::Pass => {}
        }
        let after = self.length + QueueLength { packets: 1, bytes: u64::from(pdu.len) };
        stage.record(EventKind::Enqueued, Cause::None, &pdu, pdu.bits().get(), after);
        self.push(number, stage.at, pdu);
        while let Some(cause) = self.excess() {
            self.drop_from_fattest(cause, stage);
        }
    }

    /// The limit that is exceeded.
    fn excess(&self) -> Option<Cause> {
        let limit = &self.parameters.limit;
        if limit.packets.is_some_and(|limit| self.length.packets > limit) {
            Some(Cause::QueuePackets)
        } else if limit.bytes.is_some_and(|limit| self.length.bytes > limit) {
            Some(Cause::QueueBytes)
        } else {
            None
        }
    }

    #[cold]
    fn drop_from_fattest(&mut self, cause: Cause, stage: &mut StageCx<'_, '_>) {
        let longer = |best: Option<usize>, number: usize| match best {
            Some(best) if self.flows[best].bytes >= self.flows[number].bytes => Some(best),
            _ => Some(number),
        };
        // A queue of packets without bytes is not empty either.
        let holding = (0..self.flows.len()).filter(|number| !self.flows[*number].packets.is_empty());
        let Some(fattest) = holding.fold(None, longer) else { return };
        for _ in 0..self.flows[fattest].packets.len().div_ceil(2).min(BATCH) {
            if let Some(pdu) = self.pop(fattest) {
                stage.dropped(cause, &pdu, self.length);
            }
        }
        let flow = &mut self.flows[fattest];
        self.management.dropped(&mut flow.state, stage.at, flow.bytes);
    }

    /// Takes the first queue off its list, and puts it behind the old ones or on none.
    fn shift(&mut self, number: usize, to: List) {
        let flow = &mut self.flows[number];
        self.moves.push(Move { flow: number, from: flow.list, to, credit: flow.credit });
        match flow.list {
            List::New => self.new.pop_front(),
            _ => self.old.pop_front(),
        };
        flow.list = to;
        if to == List::Old {
            self.old.push_back(number);
        }
    }

    fn undo(&mut self) {
        while let Some(Move { flow: number, from, to, credit }) = self.moves.pop() {
            if to == List::Old {
                self.old.pop_back();
            }
            match from {
                List::New => self.new.push_front(number),
                _ => self.old.push_front(number),
            }
            (self.flows[number].list, self.flows[number].credit) = (from, credit);
        }
    }

    pub fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.moves.clear();
        while let Some(number) = self.new.front().or_else(|| self.old.front()).copied() {
            if self.flows[number].credit <= 0 {
                self.shift(number, List::Old);
                self.flows[number].credit += self.parameters.quantum.get() as i64;
                continue;
            }
            while let Some((since, head)) = self.flows[number].packets.front() {
                if !fits(head) {
                    self.undo();
                    return None;
                }
                let waited = stage.at.since(*since);
                let can_mark = self.parameters.ecn && is_ecn_capable(head);
                let flow = &mut self.flows[number];
                let left_bytes = flow.bytes - flow.packets.front().map_or(0, |(_, head)| u64::from(head.len));
                let verdict = self.management.departure(&mut flow.state, stage.at, waited, left_bytes, can_mark);
                let before = self.length;
                let mut pdu = self.pop(number)?;
                if verdict == AqmDecision::Drop {
                    stage.dropped(Cause::QueueManagement, &pdu, self.length);
                    continue;
                }
                if verdict == AqmDecision::Mark {
                    mark(&mut pdu, before, stage);
                }
                self.flows[number].credit -= pdu.bits().get() as i64;
                stage.record(EventKind::Dequeued, Cause::None, &pdu, pdu.bits().get(), self.length);
                return Some(pdu);
            }
            let to = if self.flows[number].list == List::New { List::Old } else { List::None };
            self.shift(number, to);
        }
        None
    }

    pub fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        (self.length, self.new, self.old) = (QueueLength::default(), VecDeque::new(), VecDeque::new());
        let take = |flow: &mut Flow<M::State>| {
            (flow.bytes, flow.list) = (0, List::None);
            std::mem::take(&mut flow.packets)
        };
        super::by_arrival(self.flows.iter_mut().map(take).collect())
    }

    pub fn emptied(&mut self, at: Time) {
        for flow in &mut self.flows {
            self.management.dropped(&mut flow.state, at, 0);
        }
    }

    pub fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        debug_assert!(packets.iter().all(|(since, _)| *since <= at));
        for (since, pdu) in packets {
            let number = self.flow_of(&pdu);
            self.push(number, since, pdu);
        }
    }

    pub fn length(&self) -> QueueLength {
        self.length
    }
}

/// A queue that is a [`FairQueue`], by what its file defines: `config.parameters()` and
/// `config.management()`.
macro_rules! fair_queue {
    ($Queue:ident, $Config:ident) => {
        impl $Queue {
            pub(super) fn new(config: &$Config, key: DrawKey) -> $Queue {
                $Queue(FairQueue::new(config.parameters(), config.management(), key))
            }

            pub(super) fn configure(&mut self, config: &$Config, at: Time) {
                self.0.configure(config.parameters(), config.management(), at);
            }
        }

        impl Queueing for $Queue {
            fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
                self.0.enqueue(pdu, stage);
            }
            fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
                self.0.dequeue(fits, stage)
            }
            fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
                self.0.hand_over()
            }
            fn emptied(&mut self, at: Time) {
                self.0.emptied(at);
            }
            fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
                self.0.take_over(packets, at);
            }
            fn length(&self) -> QueueLength {
                self.0.length()
            }
            fn next_deadline(&self) -> Time {
                Time::NEVER
            }
            fn advance(&mut self, _: &mut StageCx<'_, '_>) {}
        }
    };
}
pub(super) use fair_queue;
