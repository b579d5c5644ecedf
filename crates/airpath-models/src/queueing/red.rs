// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RED: arriving packets are dropped with a probability that grows with the average queue.
//!
//! Source: Floyd and Jacobson 1993, Figure 2: the average moves by `weight` towards the queue at each
//! arrival; over idle time it decays as if m = idle time / `packet_time` packets had met an empty
//! queue. Between `min` and `max` packets are hit with a probability that grows up to `probability`,
//! spread evenly by counting those that are not (after a hit the count begins with 1, as there);
//! above `max` all are. `gentle` (Floyd 2000) lets the probability grow on, up to 1 at twice `max`.
//! `adaptive` (Floyd, Gummadi and Shenker 2001) moves the largest probability each half second so
//! that the average stays in the middle of its range; the weight and thresholds are as they are
//! written.
//!
//! The queue that is averaged is this one: what the send buffer holds is not in it, and idle time
//! begins when this queue is empty. The probability does not depend on the packet's length. Adaptation
//! is due at whole half seconds since the run began and depends only on the average, which is known
//! for every instant, so that it is made up for at the next arrival.

use std::collections::VecDeque;

use airpath_core::{BufferLimit, Cause, DrawKey, Pdu, Probability, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::Fifo;
use super::management::{AqmDecision, is_ecn_capable, mark};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the RED queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedConfig {
    /// Capacity of the queue; a packet that arrives at a full queue is dropped. Smaller limits in packets and
    /// bytes apply to the packets that arrive from then on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
    /// The average below which nothing is dropped, in packets or bytes.
    pub min: BufferLimit,
    /// The average up to which the probability grows, in the same unit.
    pub max: BufferLimit,
    /// The probability at `max`.
    #[serde(default = "default_probability")]
    pub probability: Probability,
    /// The weight of the present queue in the average.
    #[serde(default = "default_weight")]
    pub weight: Probability,
    /// Transmission time of a typical packet: the average decays by it over idle time.
    pub packet_time: Span,
    /// True: the probability grows on between `max` and twice `max`, instead of jumping to 1.
    #[serde(default)]
    pub gentle: bool,
    /// True: the probability at `max` adapts itself.
    #[serde(default)]
    pub adaptive: bool,
    /// True: ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: whether ECN-capable packets are dropped where every packet is hit.
    #[serde(default)]
    pub hard_drop: bool,
}

fn default_probability() -> Probability {
    "0.1".parse().unwrap_or(Probability::ONE)
}

fn default_weight() -> Probability {
    "0.002".parse().unwrap_or(Probability::ONE)
}

/// The unit of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Packets,
    Bytes,
}

fn threshold(limit: BufferLimit) -> Option<(Unit, f64)> {
    match limit {
        BufferLimit::Packets(packets) => Some((Unit::Packets, f64::from(packets))),
        BufferLimit::Bytes(bytes) => Some((Unit::Bytes, bytes as f64)),
        BufferLimit::Frames(_) | BufferLimit::Unlimited => None,
    }
}

impl Configured for RedConfig {
    type Model = Red;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, limit) in [("min", self.min), ("max", self.max)] {
            if threshold(limit).is_none() {
                let message = format!("is {limit}; write packets or bytes, for example \"5 packets\"");
                problems.push(Problem::new(key, message));
            }
        }
        if let (Some((min_unit, min)), Some((max_unit, max))) = (threshold(self.min), threshold(self.max)) {
            if min_unit != max_unit {
                let message = format!("is {}, while `min` is {}; both need the same unit", self.max, self.min);
                problems.push(Problem::new("max", message));
            } else if max <= min {
                let message = format!("is {}, which is not more than `min`, {}", self.max, self.min);
                problems.push(Problem::new("max", message));
            }
        }
        for (key, value) in [("probability", self.probability), ("weight", self.weight)] {
            if value == Probability::ZERO {
                problems.push(Problem::new(key, "is 0, so that nothing is ever dropped; write for example 0.02"));
            }
        }
        if self.packet_time == Span::ZERO {
            let message = "is 0 s; write what a typical packet takes at the rate of the link, for example \"1 ms\"";
            problems.push(Problem::new("packet_time", message));
        }
        if self.hard_drop && !self.ecn {
            problems.push(Problem::new("hard_drop", "concerns marks, which need `ecn = true`"));
        }
        problems
    }

    fn build(&self, key: DrawKey) -> Red {
        Red::new(self, key)
    }

    fn examples() -> Vec<RedConfig> {
        let plain = RedConfig {
            limit: super::DEFAULT_LIMIT,
            min: BufferLimit::Packets(2),
            max: BufferLimit::Packets(6),
            probability: default_probability(),
            weight: "0.2".parse().unwrap_or(Probability::ONE),
            packet_time: Span::from_millis(1),
            gentle: false,
            adaptive: false,
            ecn: false,
            hard_drop: false,
        };
        let bytes = RedConfig { min: BufferLimit::Bytes(500), max: BufferLimit::Bytes(3_000), gentle: true, ..plain };
        vec![
            plain,
            RedConfig { ecn: true, adaptive: true, limit: "30 packets, 70 ms".parse().unwrap_or_default(), ..bytes },
            RedConfig { ecn: true, hard_drop: true, weight: Probability::ONE, probability: Probability::ONE, ..plain },
        ]
    }
}

impl Reconfigured for RedConfig {
    fn configure(&self, model: &mut Red, at: Time) {
        model.configure(self, at);
    }
}

/// Interval of adaptations of an adaptive probability.
const ADAPTATION: Span = Span::from_millis(500);

/// The RED queue.
#[derive(Clone, Debug)]
pub struct Red {
    fifo: Fifo,
    config: RedConfig,
    unit: Unit,
    min: f64,
    max: f64,
    weight: f64,
    key: DrawKey,
    arrivals: u64,
    average: f64,
    /// Since when the queue has been empty and the average decays; none while packets are queued.
    empty_since: Option<Time>,
    /// Packets since the last hit; -1 while the average is below `min`.
    count: i64,
    probability: f64,
    /// Number of adaptations that were due since the run began, and have been made.
    adaptations: u64,
}

impl Red {
    pub(super) fn new(config: &RedConfig, key: DrawKey) -> Red {
        let mut red = Red {
            fifo: Fifo::new(config.limit),
            config: *config,
            unit: Unit::Packets,
            min: 0.0,
            max: 0.0,
            weight: 0.0,
            key,
            arrivals: 0,
            average: 0.0,
            empty_since: Some(Time::ZERO),
            count: -1,
            probability: config.probability.get(),
            adaptations: 0,
        };
        red.apply(config);
        red
    }

    fn apply(&mut self, config: &RedConfig) {
        // A configuration without problems has thresholds of one unit.
        let (unit, min) = threshold(config.min).unwrap_or((Unit::Packets, 0.0));
        (self.unit, self.min) = (unit, min);
        self.max = threshold(config.max).map_or(0.0, |(_, max)| max);
        self.weight = config.weight.get();
        self.config = *config;
    }

    pub(super) fn configure(&mut self, config: &RedConfig, at: Time) {
        self.adapt(at);
        self.fifo.set_limit(config.limit, at);
        if *config == self.config {
            return;
        }
        if config.probability != self.config.probability || !config.adaptive {
            self.probability = config.probability.get();
        }
        self.average = self.average_at(at);
        self.empty_since = self.empty_since.map(|_| at);
        let unit = self.unit;
        self.apply(config);
        if self.unit != unit {
            self.average = self.queued();
        }
    }

    /// The queue, in the unit of the thresholds.
    fn queued(&self) -> f64 {
        let length = self.fifo.length();
        match self.unit {
            Unit::Packets => f64::from(length.packets),
            Unit::Bytes => length.bytes as f64,
        }
    }

    /// The average at an instant before anything happens then.
    fn average_at(&self, at: Time) -> f64 {
        match self.empty_since {
            // A link that is hardly used has an average of zero, and needs no power.
            Some(since) if self.average > 0.0 => {
                let packets = at.since(since).nanos() as f64 / self.config.packet_time.nanos() as f64;
                self.average * libm::pow(1.0 - self.weight, packets)
            }
            _ => self.average,
        }
    }

    /// Makes the adaptations that are due at or before `at`.
    fn adapt(&mut self, at: Time) {
        let due = at.nanos() / ADAPTATION.nanos();
        if !self.config.adaptive {
            self.adaptations = due;
        }
        let range = self.max - self.min;
        let (low, high) = (self.min + 0.4 * range, self.min + 0.6 * range);
        while self.adaptations < due {
            self.adaptations += 1;
            let average = self.average_at(Time::from_nanos(self.adaptations * ADAPTATION.nanos()));
            if average > high && self.probability <= 0.5 {
                self.probability += (self.probability / 4.0).min(0.01);
            } else if average < low && self.probability >= 0.01 {
                self.probability *= 0.9;
            } else if self.empty_since.is_none() || average < low {
                // So it is with all that follow: the average stays, or goes on to fall.
                self.adaptations = due;
            }
        }
    }

    /// The probability of a hit on a packet, if it were not for the count; 1 above the range.
    fn base_probability(&self) -> f64 {
        if self.average < self.max {
            self.probability * (self.average - self.min) / (self.max - self.min)
        } else if self.config.gentle && self.average < 2.0 * self.max {
            self.probability + (1.0 - self.probability) * (self.average - self.max) / self.max
        } else {
            1.0
        }
    }

    fn judge(&mut self, step: u64, can_mark: bool) -> AqmDecision {
        if self.average < self.min {
            self.count = -1;
            return AqmDecision::Pass;
        }
        self.count += 1;
        let base = self.base_probability();
        if base < 1.0 {
            let left = 1.0 - self.count as f64 * base;
            if left > 0.0 && self.key.unit(step, 0) >= base / left {
                return AqmDecision::Pass;
            }
        }
        self.count = 0;
        if can_mark && (base < 1.0 || !self.config.hard_drop) { AqmDecision::Mark } else { AqmDecision::Drop }
    }

    fn note_empty(&mut self, at: Time) {
        if self.fifo.length().packets == 0 && self.empty_since.is_none() {
            self.empty_since = Some(at);
        }
    }
}

impl Queueing for Red {
    fn enqueue(&mut self, mut pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.adapt(stage.at);
        let step = self.arrivals;
        self.arrivals += 1;
        if self.empty_since.is_some() {
            self.average = self.average_at(stage.at);
            self.empty_since = Some(stage.at);
        } else {
            self.average = (1.0 - self.weight) * self.average + self.weight * self.queued();
        }
        if let Some(cause) = self.fifo.overflow(pdu.len) {
            return stage.dropped(cause, &pdu, self.fifo.length());
        }
        match self.judge(step, self.config.ecn && is_ecn_capable(&pdu)) {
            AqmDecision::Drop => return stage.dropped(Cause::QueueManagement, &pdu, self.fifo.length()),
            AqmDecision::Mark => mark(&mut pdu, self.fifo.length(), stage),
            AqmDecision::Pass => {}
        }
        self.empty_since = None;
        self.fifo.push(pdu, stage);
    }

    fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        if !self.fifo.first().is_some_and(|(_, head)| fits(head)) {
            return None;
        }
        self.adapt(stage.at);
        let pdu = self.fifo.pop(stage);
        self.note_empty(stage.at);
        pdu
    }

    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        self.fifo.hand_over()
    }

    fn emptied(&mut self, at: Time) {
        self.adapt(at);
        self.note_empty(at);
    }

    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        self.empty_since = packets.is_empty().then_some(at);
        self.adaptations = at.nanos() / ADAPTATION.nanos();
        self.fifo.take_over(packets, at);
    }

    fn length(&self) -> QueueLength {
        self.fifo.length()
    }

    fn next_deadline(&self) -> Time {
        self.fifo.next_deadline()
    }

    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        self.adapt(stage.at);
        self.fifo.drop_aged(stage);
        self.note_empty(stage.at);
    }
}
