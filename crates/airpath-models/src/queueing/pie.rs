// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! PIE: arriving packets are dropped with a probability that a controller adjusts to the delay.
//!
//! Source: RFC 8033, sections 4 and 5 (ECN, derandomisation, cap of the adjustment). Every `update`
//! the probability moves by `alpha (delay - target) + beta (delay - delay before)`, scaled down while
//! it is small; bursts are let through for `max_burst` after a calm time.
//!
//! The delay is that of the packet which left the queue last, by its time stamp, and zero once the
//! queue is empty (the RFC's alternative to estimating the rate of departures). PIE is always active:
//! the optional switch of the RFC's section 5.3 is left out. The burst allowance is filled up at the
//! updates at which the queue is calm. The sum of probabilities that spreads hits evenly begins anew after
//! each hit, whether it drops or marks; Linux begins anew after drops only.
//!
//! Updates are due at whole multiples of `update` since the run began, each before anything else at
//! its instant. What they depend on changes only when packets come and go, so that they are made up
//! for at such an instant, and wake nobody.

use std::collections::VecDeque;

use airpath_core::{Bits, Cause, DrawKey, Pdu, Probability, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::Fifo;
use super::management::{AqmDecision, is_ecn_capable, mark};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the PIE queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PieConfig {
    /// Capacity of the queue; a packet that arrives at a full queue is dropped. Smaller limits in packets and
    /// bytes apply to the packets that arrive from then on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
    /// The delay that the controller aims at.
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
    /// Burst allowance: duration for which a burst passes after a calm period.
    #[serde(default = "default_burst")]
    pub max_burst: Span,
    /// True: ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: from this probability on even ECN-capable packets are dropped.
    #[serde(default = "default_mark_threshold")]
    pub mark_ecnth: Probability,
    /// Packet size: a queue of at most two such packets drops nothing.
    #[serde(default = "super::codel::default_mtu")]
    pub mtu: Bits,
}

pub(super) fn default_time() -> Span {
    Span::from_millis(15)
}

pub(super) fn default_alpha() -> f64 {
    0.125
}

pub(super) fn default_beta() -> f64 {
    1.25
}

pub(super) fn default_burst() -> Span {
    Span::from_millis(150)
}

pub(super) fn default_mark_threshold() -> Probability {
    "0.1".parse().unwrap_or(Probability::ONE)
}

/// Updates that are made up for one by one must not be too many.
const SHORTEST_UPDATE: Span = Span::from_micros(100);

/// Errors in the times and gains of a controller, if any.
pub(super) fn controller_problems(target: Span, update: Span, alpha: f64, beta: f64) -> Vec<Problem> {
    let mut problems = Vec::new();
    if target == Span::ZERO {
        problems.push(Problem::new("target", "is 0 s, which no queue keeps to; write for example \"15 ms\""));
    }
    if update < SHORTEST_UPDATE {
        let message = format!("is {update}; it has to be {SHORTEST_UPDATE} or longer, such as \"15 ms\"");
        problems.push(Problem::new("update", message));
    }
    for (key, gain) in [("alpha", alpha), ("beta", beta)] {
        if !(0.0..=1_000.0).contains(&gain) {
            problems.push(Problem::new(key, format!("is {gain}; it has to be from 0 to 1000 (hertz)")));
        }
    }
    problems
}

impl PieConfig {
    fn law(&self) -> PieLaw {
        PieLaw {
            target: self.target,
            update: self.update,
            alpha: self.alpha,
            beta: self.beta,
            max_burst: self.max_burst,
            mark_ecnth: self.mark_ecnth.get(),
            mtu_bytes: self.mtu.get() / 8,
        }
    }
}

impl Configured for PieConfig {
    type Model = Pie;

    fn problems(&self) -> Vec<Problem> {
        controller_problems(self.target, self.update, self.alpha, self.beta)
    }

    fn build(&self, key: DrawKey) -> Pie {
        Pie::new(self, key)
    }

    fn examples() -> Vec<PieConfig> {
        let plain = PieConfig {
            limit: super::DEFAULT_LIMIT,
            target: default_time(),
            update: default_time(),
            alpha: default_alpha(),
            beta: default_beta(),
            max_burst: default_burst(),
            ecn: false,
            mark_ecnth: default_mark_threshold(),
            mtu: super::codel::default_mtu(),
        };
        vec![
            plain,
            PieConfig {
                limit: "30 packets, 20 kB, 200 ms".parse().expect("an example is valid"),
                target: Span::from_millis(3),
                update: Span::from_millis(5),
                alpha: 12.5,
                beta: 125.0,
                max_burst: Span::from_millis(5),
                ecn: true,
                mark_ecnth: Probability::ONE,
                mtu: Bits::from_bytes(20),
            },
            // Even the first packets may meet a probability.
            PieConfig {
                target: Span::from_micros(10),
                update: Span::from_millis(1),
                alpha: 100.0,
                beta: 900.0,
                max_burst: Span::ZERO,
                mtu: Bits::ZERO,
                ..plain
            },
        ]
    }
}

impl Reconfigured for PieConfig {
    fn configure(&self, model: &mut Pie, at: Time) {
        model.configure(self, at);
    }
}

/// The parameters of the controller alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieLaw {
    /// The delay aimed at.
    pub target: Span,
    /// Interval of updates of the probability; 100 µs or more.
    pub update: Span,
    /// The weight of the delay's distance from the target, in hertz.
    pub alpha: f64,
    /// The weight of the delay's change, in hertz.
    pub beta: f64,
    /// Burst allowance: duration for which a burst passes after a calm period.
    pub max_burst: Span,
    /// From this probability on even ECN-capable packets are dropped.
    pub mark_ecnth: f64,
    /// Packet size: a queue of at most two such packets drops nothing.
    pub mtu_bytes: u64,
}

/// The state of the controller, for one queue or one flow.
#[derive(Clone, Copy, Debug)]
pub struct PieState {
    /// Number of updates that were due since the run began, and have been made.
    updates: u64,
    probability: f64,
    /// The sum of the probabilities since the last drop.
    accumulated: f64,
    delay: Span,
    delay_before: Span,
    burst_left: Span,
}

impl PieState {
    /// The state of a queue that has been empty since the run began.
    pub fn new(law: &PieLaw) -> PieState {
        PieState {
            updates: 0,
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left: law.max_burst,
        }
    }

    /// Makes the updates that are due at or before `at`; to be called before anything else at that
    /// instant, and with the old law before it changes.
    pub fn catch_up(&mut self, law: &PieLaw, at: Time) {
        let due = at.nanos() / law.update.nanos();
        while self.updates < due {
            let before = (self.probability.to_bits(), self.delay_before, self.burst_left);
            self.update(law);
            self.updates += 1;
            if before == (self.probability.to_bits(), self.delay_before, self.burst_left) {
                // So it would be with every further one.
                self.updates = due;
            }
        }
    }

    /// Puts the grid of another law in force at `at`, before which everything has been caught up with.
    pub fn change(&mut self, law: &PieLaw, at: Time) {
        self.updates = at.nanos() / law.update.nanos();
        self.burst_left = self.burst_left.min(law.max_burst);
    }

    fn update(&mut self, law: &PieLaw) {
        let seconds = Span::as_secs_f64;
        let delay = seconds(self.delay);
        let mut step = law.alpha * (delay - seconds(law.target)) + law.beta * (delay - seconds(self.delay_before));
        step /= match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        self.probability += step;
        if self.delay == Span::ZERO && self.delay_before == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_left = self.burst_left - law.update;
        let is_low = |delay: Span| delay.nanos() < law.target.nanos() / 2;
        if self.probability == 0.0 && is_low(self.delay) && is_low(self.delay_before) {
            self.burst_left = law.max_burst;
        }
        self.delay_before = self.delay;
    }

    /// Decision on a packet that arrives while `queued_bytes` are queued; `can_mark` says that it is marked
    /// rather than dropped. The draw is that of `key` for `step`, a number of its own for each arrival.
    pub fn judge(&mut self, law: &PieLaw, key: DrawKey, step: u64, queued_bytes: u64, can_mark: bool) -> AqmDecision {
        if self.burst_left > Span::ZERO {
            return AqmDecision::Pass;
        }
        let is_low = self.delay_before.nanos() < law.target.nanos() / 2;
        if (is_low && self.probability < 0.2) || queued_bytes <= 2 * law.mtu_bytes {
            return AqmDecision::Pass;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 || (self.accumulated < 8.5 && key.unit(step, 0) >= self.probability) {
            return AqmDecision::Pass;
        }
        self.accumulated = 0.0;
        if can_mark && self.probability < law.mark_ecnth { AqmDecision::Mark } else { AqmDecision::Drop }
    }

    /// A packet has been dropped because the queue was full: the next one that management drops is as
    /// far away as after any other drop.
    pub fn dropped_at_the_limit(&mut self) {
        self.accumulated = 0.0;
    }

    /// A packet has left the queue after it `waited`, and `left_bytes` are still in it. To be told also
    /// of what has been dropped after it was queued, without a wait.
    pub fn departed(&mut self, waited: Option<Span>, left_bytes: u64) {
        if left_bytes == 0 {
            self.delay = Span::ZERO;
        } else if let Some(waited) = waited {
            self.delay = waited;
        }
    }
}

/// The PIE queue.
#[derive(Clone, Debug)]
pub struct Pie {
    fifo: Fifo,
    law: PieLaw,
    ecn: bool,
    state: PieState,
    key: DrawKey,
    arrivals: u64,
}

impl Pie {
    pub(super) fn new(config: &PieConfig, key: DrawKey) -> Pie {
        let law = config.law();
        let state = PieState::new(&law);
        Pie { fifo: Fifo::new(config.limit), law, ecn: config.ecn, state, key, arrivals: 0 }
    }

    pub(super) fn configure(&mut self, config: &PieConfig, at: Time) {
        self.state.catch_up(&self.law, at);
        self.fifo.set_limit(config.limit, at);
        self.law = config.law();
        self.ecn = config.ecn;
        self.state.change(&self.law, at);
    }
}

impl Queueing for Pie {
    fn enqueue(&mut self, mut pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.state.catch_up(&self.law, stage.at);
        let step = self.arrivals;
        self.arrivals += 1;
        if let Some(cause) = self.fifo.overflow(pdu.len) {
            self.state.dropped_at_the_limit();
            return stage.dropped(cause, &pdu, self.fifo.length());
        }
        let can_mark = self.ecn && is_ecn_capable(&pdu);
        match self.state.judge(&self.law, self.key, step, self.fifo.length().bytes, can_mark) {
            AqmDecision::Drop => return stage.dropped(Cause::QueueManagement, &pdu, self.fifo.length()),
            AqmDecision::Mark => mark(&mut pdu, self.fifo.length(), stage),
            AqmDecision::Pass => {}
        }
        self.fifo.push(pdu, stage);
    }

    fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        let (since, head) = self.fifo.first()?;
        if !fits(head) {
            return None;
        }
        self.state.catch_up(&self.law, stage.at);
        let pdu = self.fifo.pop(stage);
        self.state.departed(Some(stage.at.since(since)), self.fifo.length().bytes);
        pdu
    }

    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        self.fifo.hand_over()
    }

    fn emptied(&mut self, at: Time) {
        self.state.catch_up(&self.law, at);
        self.state.departed(None, 0);
    }

    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        self.fifo.take_over(packets, at);
    }

    fn length(&self) -> QueueLength {
        self.fifo.length()
    }

    fn next_deadline(&self) -> Time {
        self.fifo.next_deadline()
    }

    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        self.state.catch_up(&self.law, stage.at);
        self.fifo.drop_aged(stage);
        self.state.departed(None, self.fifo.length().bytes);
    }
}
