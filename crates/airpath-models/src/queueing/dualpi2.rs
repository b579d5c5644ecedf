// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! DualPI2: a queue for scalable congestion controls (L4S) and one for all others, coupled.
//!
//! Source: RFC 9332, Appendix A, with its second pass (overload). ECT(1) and CE go to the L queue,
//! everything else to the C queue (RFC 9331, section 5.1). A controller moves a probability p' each
//! `update` by the longer of the two queues' waits; C packets are dropped, or marked if they are
//! ECT(0), with probability p'², L packets marked with `coupling` p' or with what the wait of the L
//! queue itself asks for, whichever is more. From `coupling` p' = 1 on it is overload: L packets are
//! dropped with p'² before they are marked, and C packets dropped rather than marked. Hits are spread
//! evenly, by adding up probabilities, and need no draws; drops and marks of a queue share one sum, as in the
//! RFC. (That the controller looks at the longer wait, and not at that of the C queue alone, is as in Linux.)
//!
//! The RFC's threshold is for links on which a packet takes much less. Where a packet of the MTU alone takes
//! longer, nearly every L packet that finds another before it is marked, and L4S flows get less than their
//! share: on a link of 5 Mbit/s with the default, one such flow 0.8 Mbit/s beside one of Reno's 3.7. A
//! threshold of two packets' time or more is the user's to set.
//!
//! The scheduler is a weighted round robin by bytes, in which the C queue gets `classic_share` while
//! both have packets, or a time-shifted FIFO. The wait of a packet is taken when it goes; the native
//! L4S ramp leaves a packet alone that is one of no more than `threshold_packets` in the L queue. Both
//! queues share the limit. Without `ecn` there is only the C queue, and everything is dropped (PI2).
//!
//! Updates are due at whole multiples of `update` since the run began, each before anything else at
//! its instant; what they depend on changes only when packets come and go, so that they are made up
//! for at such an instant, and wake nobody.

use std::collections::VecDeque;

use airpath_core::{Cause, DrawKey, Ecn, EventKind, Pdu, Probability, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::management::mark;
use super::pie::controller_problems;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the DualPI2 queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dualpi2Config {
    /// Capacity of both queues together; a packet that arrives at full queues is dropped. Smaller limits in
    /// packets and bytes apply to the packets that arrive from then on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
    /// The delay of the C queue that the controller aims at.
    #[serde(default = "default_time")]
    pub target: Span,
    /// Interval of updates of the probability.
    #[serde(default = "default_time")]
    pub update: Span,
    /// The weight of the delay's distance from the target, in hertz.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// The weight of the delay's change, in hertz.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Coupling factor (k): ratio of the marking probability of L packets to the base probability.
    #[serde(default = "default_coupling")]
    pub coupling: f64,
    /// Delay from which L packets are marked.
    #[serde(default = "default_threshold")]
    pub threshold: Span,
    /// Range of delay above the threshold in which the marking probability grows to 1; 0 s for a step.
    #[serde(default = "default_range")]
    pub range: Span,
    /// An L queue of at most this many packets adds no marks of its own.
    #[serde(default = "default_threshold_packets")]
    pub threshold_packets: u32,
    /// The C queue's share of the bytes while both queues have packets.
    #[serde(default = "default_share")]
    pub classic_share: Probability,
    /// Takes the packet with the longest delay instead, with this time added for L packets (time-shifted FIFO).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_shift: Option<Span>,
    /// True: packets are classified by their ECN field, and marked.
    #[serde(default = "yes")]
    pub ecn: bool,
}

fn default_time() -> Span {
    Span::from_millis(15)
}

/// 0.1 × update / RTT² for the largest round trip of 100 ms.
fn default_alpha() -> f64 {
    0.15
}

/// 0.3 / RTT.
fn default_beta() -> f64 {
    3.0
}

fn default_coupling() -> f64 {
    2.0
}

fn default_threshold() -> Span {
    Span::from_micros(800)
}

fn default_range() -> Span {
    Span::from_micros(400)
}

fn default_threshold_packets() -> u32 {
    1
}

fn default_share() -> Probability {
    "0.1".parse().unwrap_or(Probability::ONE)
}

fn yes() -> bool {
    true
}

impl Configured for Dualpi2Config {
    type Model = Dualpi2;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = controller_problems(self.target, self.update, self.alpha, self.beta);
        // Below 1 classic packets would never be dropped, whatever the load.
        if !(1.0..=100.0).contains(&self.coupling) {
            let message = format!("is {}; it has to be from 1 to 100, and 2 is usual", self.coupling);
            problems.push(Problem::new("coupling", message));
        }
        problems
    }

    fn build(&self, _key: DrawKey) -> Dualpi2 {
        Dualpi2::new(self)
    }

    fn examples() -> Vec<Dualpi2Config> {
        let plain = Dualpi2Config {
            limit: super::DEFAULT_LIMIT,
            target: default_time(),
            update: default_time(),
            alpha: default_alpha(),
            beta: default_beta(),
            coupling: default_coupling(),
            threshold: default_threshold(),
            range: default_range(),
            threshold_packets: default_threshold_packets(),
            classic_share: default_share(),
            time_shift: None,
            ecn: true,
        };
        vec![
            plain,
            Dualpi2Config {
                limit: "30 packets, 20 kB, 200 ms".parse().expect("an example is valid"),
                alpha: 15.0,
                beta: 100.0,
                range: Span::ZERO,
                time_shift: Some(Span::from_millis(30)),
                ..plain
            },
            Dualpi2Config {
                target: Span::from_millis(1),
                update: Span::from_millis(1),
                alpha: 500.0,
                beta: 900.0,
                ecn: false,
                ..plain
            },
        ]
    }
}

impl Reconfigured for Dualpi2Config {
    fn configure(&self, model: &mut Dualpi2, at: Time) {
        model.configure(self, at);
    }
}

/// The greatest probability with which L packets are marked.
const MOST_MARKS: f64 = 1.0;
/// Parts of a packet's share, for exact sums.
const SHARES: i128 = 1_000_000_000_000;

/// One of the two queues.
#[derive(Clone, Debug, Default)]
struct Lane {
    packets: VecDeque<(Time, Pdu)>,
    bytes: u64,
    /// The sum of probabilities since the last hit.
    count: f64,
}

impl Lane {
    /// Wait of the first packet at `at`.
    fn wait(&self, at: Time) -> Span {
        self.packets.front().map_or(Span::ZERO, |(since, _)| at.since(*since))
    }

    fn push(&mut self, since: Time, pdu: Pdu) {
        self.bytes += u64::from(pdu.len);
        self.packets.push_back((since, pdu));
    }

    fn pop(&mut self) -> Option<Pdu> {
        let (_, pdu) = self.packets.pop_front()?;
        self.bytes -= u64::from(pdu.len);
        Some(pdu)
    }

    /// True if a hit of this likelihood comes now.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let hit = self.count > 1.0;
        if hit {
            self.count -= 1.0;
        }
        hit
    }
}

const L: usize = 0;
const C: usize = 1;

/// The shares of the L queue and of the C queue while both have packets.
fn shares(config: &Dualpi2Config) -> [i128; 2] {
    let classic = libm::round(config.classic_share.get() * SHARES as f64) as i128;
    [SHARES - classic, classic]
}

/// The DualPI2 queue.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    config: Dualpi2Config,
    shares: [i128; 2],
    /// Start of the limit: no packet is too old before that.
    limited_since: Time,
    lanes: [Lane; 2],
    /// Bytes that the C queue has earned while it waited for L packets, in shares.
    earned: i128,
    updates: u64,
    /// The base probability p'.
    base: f64,
    wait_before: Span,
}

impl Dualpi2 {
    pub(super) fn new(config: &Dualpi2Config) -> Dualpi2 {
        Dualpi2 {
            config: *config,
            shares: shares(config),
            limited_since: Time::ZERO,
            lanes: Default::default(),
            earned: 0,
            updates: 0,
            base: 0.0,
            wait_before: Span::ZERO,
        }
    }

    pub(super) fn configure(&mut self, config: &Dualpi2Config, at: Time) {
        self.catch_up(at);
        self.config = *config;
        self.shares = shares(config);
        self.limited_since = at;
        self.updates = at.nanos() / config.update.nanos();
    }

    /// Makes the updates that are due at or before `at`.
    fn catch_up(&mut self, at: Time) {
        let update = self.config.update.nanos();
        let due = at.nanos() / update;
        let is_empty = self.lanes.iter().all(|lane| lane.packets.is_empty());
        while self.updates < due {
            self.updates += 1;
            let before = (self.base.to_bits(), self.wait_before);
            self.update(Time::from_nanos(self.updates * update));
            if is_empty && before == (self.base.to_bits(), self.wait_before) {
                // So it would be with every further one.
                self.updates = due;
            }
        }
    }

    fn update(&mut self, at: Time) {
        let seconds = Span::as_secs_f64;
        let wait = self.lanes[L].wait(at).max(self.lanes[C].wait(at));
        let error = seconds(wait) - seconds(self.config.target);
        let change = seconds(wait) - seconds(self.wait_before);
        self.base = (self.base + self.config.alpha * error + self.config.beta * change).clamp(0.0, 1.0);
        self.wait_before = wait;
    }

    fn lane_of(&self, pdu: &Pdu) -> usize {
        if self.config.ecn && matches!(pdu.ecn, Ecn::Ect1 | Ecn::Ce) { L } else { C }
    }

    fn overflow(&self, len: u32) -> Option<Cause> {
        let (limit, length) = (&self.config.limit, self.length());
        if limit.packets.is_some_and(|limit| length.packets >= limit) {
            Some(Cause::QueuePackets)
        } else if limit.bytes.is_some_and(|limit| length.bytes + u64::from(len) > limit) {
            Some(Cause::QueueBytes)
        } else {
            None
        }
    }

    /// The queue whose turn it is.
    fn turn(&self, at: Time) -> Option<usize> {
        let [l, c] = &self.lanes;
        let (Some(_), Some((_, classic))) = (l.packets.front(), c.packets.front()) else {
            return [L, C].into_iter().find(|lane| !self.lanes[*lane].packets.is_empty());
        };
        let is_classic = match self.config.time_shift {
            Some(shift) => l.wait(at) + shift < c.wait(at),
            None => self.earned >= i128::from(classic.len) * self.shares[L],
        };
        Some(if is_classic { C } else { L })
    }

    /// A packet of `len` bytes has gone from `lane`. While the other queue is empty it is nobody's loss;
    /// what an empty C queue has earned is forgotten.
    fn served(&mut self, lane: usize, len: u32) {
        if !self.lanes[1 - lane].packets.is_empty() {
            self.earned += i128::from(len) * if lane == L { self.shares[C] } else { -self.shares[L] };
        }
        self.forget_what_an_empty_queue_earned();
    }

    fn forget_what_an_empty_queue_earned(&mut self) {
        if self.lanes[C].packets.is_empty() {
            self.earned = 0;
        }
    }

    /// The probability of the native L4S ramp for the first L packet.
    fn native(&self, at: Time) -> f64 {
        let lane = &self.lanes[L];
        let (wait, threshold) = (lane.wait(at).nanos(), self.config.threshold.nanos());
        if lane.packets.len() as u64 <= u64::from(self.config.threshold_packets) || wait < threshold {
            0.0
        } else if wait - threshold >= self.config.range.nanos() {
            1.0
        } else {
            (wait - threshold) as f64 / self.config.range.nanos() as f64
        }
    }

    /// Drops or marks the packet at the head of `lane` as needed; true if it is dropped.
    fn manage(&mut self, lane: usize, stage: &mut StageCx<'_, '_>) -> bool {
        let classic = self.base * self.base;
        let coupled = self.config.coupling * self.base;
        let overload = coupled >= MOST_MARKS;
        let hit = if lane == L && self.config.ecn {
            if overload && self.lanes[L].recurs(classic) {
                return true;
            }
            let likelihood = if overload { MOST_MARKS } else { self.native(stage.at).max(coupled) };
            self.lanes[L].recurs(likelihood)
        } else {
            self.lanes[lane].recurs(classic)
        };
        if !hit {
            return false;
        }
        let length = self.length();
        let Some((_, pdu)) = self.lanes[lane].packets.front_mut() else { return false };
        if !self.config.ecn || (lane == C && (pdu.ecn == Ecn::NotEct || overload)) {
            return true;
        }
        mark(pdu, length, stage);
        false
    }

    fn drop_head(&mut self, lane: usize, cause: Cause, stage: &mut StageCx<'_, '_>) {
        if let Some(pdu) = self.lanes[lane].pop() {
            stage.dropped(cause, &pdu, self.length());
        }
        self.forget_what_an_empty_queue_earned();
    }
}

impl Queueing for Dualpi2 {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.catch_up(stage.at);
        if let Some(cause) = self.overflow(pdu.len) {
            return stage.dropped(cause, &pdu, self.length());
        }
        let length = self.length();
        let queue = QueueLength { packets: length.packets + 1, bytes: length.bytes + u64::from(pdu.len) };
        stage.record(EventKind::Enqueued, Cause::None, &pdu, pdu.bits().get(), queue);
        let lane = self.lane_of(&pdu);
        self.lanes[lane].push(stage.at, pdu);
    }

    fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        loop {
            let lane = self.turn(stage.at)?;
            if !self.lanes[lane].packets.front().is_some_and(|(_, pdu)| fits(pdu)) {
                return None;
            }
            self.catch_up(stage.at);
            if self.manage(lane, stage) {
                self.drop_head(lane, Cause::QueueManagement, stage);
                continue;
            }
            let pdu = self.lanes[lane].pop()?;
            self.served(lane, pdu.len);
            stage.record(EventKind::Dequeued, Cause::None, &pdu, pdu.bits().get(), self.length());
            return Some(pdu);
        }
    }

    /// In the order in which they came.
    fn emptied(&mut self, at: Time) {
        self.catch_up(at);
        self.forget_what_an_empty_queue_earned();
    }

    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        let [l, c] = std::mem::take(&mut self.lanes);
        super::by_arrival(vec![l.packets, c.packets])
    }

    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        for (since, pdu) in packets {
            let lane = self.lane_of(&pdu);
            self.lanes[lane].push(since, pdu);
        }
        self.limited_since = at;
        self.updates = at.nanos() / self.config.update.nanos();
    }

    fn length(&self) -> QueueLength {
        let [l, c] = &self.lanes;
        QueueLength { packets: (l.packets.len() + c.packets.len()) as u32, bytes: l.bytes + c.bytes }
    }

    fn next_deadline(&self) -> Time {
        let Some(age) = self.config.limit.age else { return Time::NEVER };
        let first = self.lanes.iter().filter_map(|lane| lane.packets.front()).map(|(since, _)| *since + age).min();
        first.map_or(Time::NEVER, |first| first.max(self.limited_since))
    }

    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        self.catch_up(stage.at);
        let Some(age) = self.config.limit.age else { return };
        for lane in [L, C] {
            while self.lanes[lane].packets.front().is_some_and(|(since, _)| *since + age <= stage.at) {
                self.drop_head(lane, Cause::QueueAge, stage);
            }
        }
    }
}
