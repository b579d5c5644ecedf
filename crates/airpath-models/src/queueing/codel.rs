// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! CoDel: packets that have waited too long, for too long, are dropped at the head of the queue.
//!
//! Source: RFC 8289; names of the state as in its section 5. As long as packets that leave have waited
//! for `target` or more, for at least an `interval` on end, one is dropped, and then one more each
//! `interval / sqrt(count)`. With `ecn` a packet that is ECN-capable is marked instead, and goes.
//! `ce_threshold` marks besides every ECN-capable packet that has waited for longer.
//!
//! The law decides about a packet when it goes to the send buffer: what waits there is not seen, so
//! that a send buffer should be small. Times are whole nanoseconds; `interval / sqrt(count)` is
//! rounded down exactly.
//!
//! `first_above_time` is not reset by a look into an empty queue, as the RFC's is: the last packet of a
//! queue, behind which less than an MTU is left, resets it always, so that nothing differs.

use std::collections::VecDeque;

use airpath_core::{Bits, Cause, DrawKey, Pdu, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use super::management::{AqmDecision, is_ecn_capable};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the CoDel queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodelConfig {
    /// Capacity of the queue; a packet that arrives at a full queue is dropped. Smaller limits in packets and
    /// bytes apply to the packets that arrive from then on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
    /// Target (RFC 8289): acceptable standing delay of the queue.
    #[serde(default = "default_target")]
    pub target: Span,
    /// Interval (RFC 8289) for which every packet has to exceed the target before one is dropped: a worst-case round
    /// trip.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// True: ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: packets that have waited longer than this are always marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Span>,
    /// A queue with at most this much left in it never drops.
    #[serde(default = "default_mtu")]
    pub mtu: Bits,
}

pub(super) fn default_target() -> Span {
    Span::from_millis(5)
}

pub(super) fn default_interval() -> Span {
    Span::from_millis(100)
}

pub(super) fn default_mtu() -> Bits {
    Bits::from_bytes(1500)
}

/// Far above any round trip; its square has to fit into 128 bits.
const LONGEST_INTERVAL: Span = Span::from_secs(3_600);

impl CodelConfig {
    fn law(&self) -> CodelLaw {
        CodelLaw {
            target: self.target,
            interval: self.interval,
            mtu_bytes: self.mtu.get() / 8,
            ce_threshold: self.ce_threshold,
        }
    }
}

impl Configured for CodelConfig {
    type Model = Codel;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.law().problems();
        if self.ce_threshold.is_some() && !self.ecn {
            problems.push(Problem::new("ce_threshold", "marks nothing without `ecn = true`"));
        }
        problems
    }

    fn build(&self, _key: DrawKey) -> Codel {
        Codel::new(self)
    }

    fn examples() -> Vec<CodelConfig> {
        let plain = CodelConfig {
            limit: super::DEFAULT_LIMIT,
            target: default_target(),
            interval: default_interval(),
            ecn: false,
            ce_threshold: None,
            mtu: default_mtu(),
        };
        vec![
            plain,
            CodelConfig { target: Span::from_millis(1), interval: Span::from_millis(10), mtu: Bits::ZERO, ..plain },
            CodelConfig {
                limit: "20 packets, 8 kB, 60 ms".parse().expect("an example is valid"),
                target: Span::from_millis(2),
                interval: Span::from_millis(5),
                ecn: true,
                ce_threshold: Some(Span::from_millis(4)),
                mtu: Bits::from_bytes(125),
            },
        ]
    }
}

impl Reconfigured for CodelConfig {
    fn configure(&self, model: &mut Codel, at: Time) {
        model.configure(self, at);
    }
}

/// The parameters of the control law alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelLaw {
    /// The acceptable standing wait.
    pub target: Span,
    /// Time for which it has to be exceeded; above zero.
    pub interval: Span,
    /// A queue with at most this much left in it never drops.
    pub mtu_bytes: u64,
    /// ECN-capable packets that waited for longer are marked in any case.
    pub ce_threshold: Option<Span>,
}

impl CodelLaw {
    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        if self.interval == Span::ZERO || self.interval > LONGEST_INTERVAL {
            let message = format!(
                "is {}; it has to be more than 0 s and at most {LONGEST_INTERVAL}, such as a worst-case round trip, \
                 \"100 ms\"",
                self.interval
            );
            return vec![Problem::new("interval", message)];
        }
        if self.target > self.interval {
            let message = format!(
                "is {}, which is longer than `interval`, {}; 5 % to 10 % of it is usual",
                self.target, self.interval
            );
            return vec![Problem::new("target", message)];
        }
        Vec::new()
    }

    /// Time of the drop after `count` drops, the last one having been due at `at`.
    fn next(&self, at: Time, count: u32) -> Time {
        let interval = u128::from(self.interval.nanos());
        let square = interval * interval / u128::from(count.max(1));
        at + Span::from_nanos(square.isqrt() as u64)
    }
}

/// The state of the control law, for one queue or one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodelState {
    /// Time at which waits will have been too long for an interval; none while they are not.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
    /// A packet was dropped at `drop_next`; when the next one is due depends on the packet behind it.
    owed: bool,
}

impl CodelState {
    /// Decision on the packet that leaves the queue at `at` after it has `waited`, with `left_bytes` behind it;
    /// `can_mark` says that it would be marked instead of dropped. After a drop it is asked about the next
    /// packet, at the same instant or later.
    pub fn judge(&mut self, law: &CodelLaw, at: Time, waited: Span, left_bytes: u64, can_mark: bool) -> AqmDecision {
        let verdict = self.control(law, at, waited, left_bytes, can_mark);
        if verdict == AqmDecision::Pass && can_mark && law.ce_threshold.is_some_and(|threshold| waited > threshold) {
            return AqmDecision::Mark;
        }
        verdict
    }

    fn control(&mut self, law: &CodelLaw, at: Time, waited: Span, left_bytes: u64, can_mark: bool) -> AqmDecision {
        let too_long = self.is_too_long(law, at, waited, left_bytes);
        let owed = std::mem::take(&mut self.owed);
        if !too_long {
            self.dropping = false;
            return AqmDecision::Pass;
        }
        if self.dropping {
            if owed {
                self.drop_next = law.next(self.drop_next, self.count);
            }
            if at < self.drop_next {
                return AqmDecision::Pass;
            }
            self.count = self.count.saturating_add(1);
            if can_mark {
                self.drop_next = law.next(self.drop_next, self.count);
                return AqmDecision::Mark;
            }
            self.owed = true;
            return AqmDecision::Drop;
        }
        self.dropping = true;
        // Shortly after the last time, it begins with the rate of drops that was right then.
        let drops = self.count - self.last_count;
        let recently = at.since(self.drop_next).nanos() < 16 * law.interval.nanos();
        self.count = if drops > 1 && recently { drops } else { 1 };
        self.drop_next = law.next(at, self.count);
        self.last_count = self.count;
        if can_mark { AqmDecision::Mark } else { AqmDecision::Drop }
    }

    fn is_too_long(&mut self, law: &CodelLaw, at: Time, waited: Span, left_bytes: u64) -> bool {
        if waited < law.target || left_bytes <= law.mtu_bytes {
            self.first_above = None;
            return false;
        }
        at >= *self.first_above.get_or_insert(at + law.interval)
    }
}

/// The CoDel queue.
#[derive(Clone, Debug)]
pub struct Codel {
    fifo: Fifo,
    law: CodelLaw,
    ecn: bool,
    state: CodelState,
}

impl Codel {
    pub(super) fn new(config: &CodelConfig) -> Codel {
        Codel { fifo: Fifo::new(config.limit), law: config.law(), ecn: config.ecn, state: CodelState::default() }
    }

    pub(super) fn configure(&mut self, config: &CodelConfig, at: Time) {
        self.fifo.set_limit(config.limit, at);
        self.law = config.law();
        self.ecn = config.ecn;
    }
}

impl Queueing for Codel {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        match self.fifo.overflow(pdu.len) {
            Some(cause) => stage.dropped(cause, &pdu, self.fifo.length()),
            None => self.fifo.push(pdu, stage),
        }
    }

    fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        loop {
            let (since, head) = self.fifo.first()?;
            if !fits(head) {
                return None;
            }
            let left_bytes = self.fifo.length().bytes - u64::from(head.len);
            let can_mark = self.ecn && is_ecn_capable(head);
            match self.state.judge(&self.law, stage.at, stage.at.since(since), left_bytes, can_mark) {
                AqmDecision::Drop => {
                    self.fifo.drop_head(Cause::QueueManagement, stage);
                    continue;
                }
                AqmDecision::Mark => self.fifo.mark_head(stage),
                AqmDecision::Pass => {}
            }
            return self.fifo.pop(stage);
        }
    }

    keeps_packets_in_fifo!(fifo);
}
