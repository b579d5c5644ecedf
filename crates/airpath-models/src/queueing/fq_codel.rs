// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! FQ-CoDel: flows in queues of their own that take turns, with CoDel in each.
//!
//! Source: RFC 8290; the queues and their turns are in `fair.rs`, CoDel in `codel.rs`. A queue's own
//! bytes decide whether it is too short to drop from. The default quantum is the MTU without the 14
//! bytes of an Ethernet header that the RFC counts, as lengths here are those of IP packets.

use std::collections::VecDeque;

use airpath_core::{Bits, DrawKey, Pdu, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::codel::{CodelLaw, CodelState, default_interval, default_mtu, default_target};
use super::fair::{FairParameters, FairQueue, FlowManagement, fair_queue};
use super::management::AqmDecision;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the FQ-CoDel queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FqCodelConfig {
    /// Capacity of all flows together, in packets and bytes; beyond it packets are dropped at the head of the
    /// flow with the most bytes. A change takes effect with the next arrival.
    #[serde(default = "default_limit")]
    pub limit: QueueLimit,
    /// Number of queues for flows. A change puts what is queued into the new queues.
    #[serde(default = "default_flows")]
    #[schemars(range(min = 1, max = 65_536))]
    pub flows: u32,
    /// Bits of a flow in its turn. A change takes effect with the next turns.
    #[serde(default = "default_quantum")]
    pub quantum: Bits,
    /// Target (RFC 8289): acceptable standing delay of the queue.
    #[serde(default = "default_target")]
    pub target: Span,
    /// Interval (RFC 8289) for which every packet of a flow has to exceed the target before one is dropped: a
    /// worst-case round trip.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// True: ECN-capable packets are marked instead of dropped.
    #[serde(default = "yes")]
    pub ecn: bool,
    /// With `ecn`: packets that have waited longer than this are always marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Span>,
    /// A flow with at most this much left in its queue never drops.
    #[serde(default = "default_mtu")]
    pub mtu: Bits,
}

pub(super) fn default_limit() -> QueueLimit {
    QueueLimit { packets: Some(10_240), bytes: None, age: None }
}

pub(super) fn default_flows() -> u32 {
    1_024
}

pub(super) fn default_quantum() -> Bits {
    Bits::from_bytes(1_500)
}

fn yes() -> bool {
    true
}

impl FqCodelConfig {
    fn parameters(&self) -> FairParameters {
        FairParameters { limit: self.limit, flows: self.flows, quantum: self.quantum, ecn: self.ecn }
    }

    fn management(&self) -> PerFlow {
        let FqCodelConfig { target, interval, ce_threshold, .. } = *self;
        PerFlow(CodelLaw { target, interval, ce_threshold, mtu_bytes: self.mtu.get() / 8 })
    }
}

impl Configured for FqCodelConfig {
    type Model = FqCodel;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.parameters().problems();
        problems.extend(self.management().0.problems());
        if self.ce_threshold.is_some() && !self.ecn {
            problems.push(Problem::new("ce_threshold", "marks nothing without `ecn = true`"));
        }
        problems
    }

    fn build(&self, key: DrawKey) -> FqCodel {
        FqCodel::new(self, key)
    }

    fn examples() -> Vec<FqCodelConfig> {
        let plain = FqCodelConfig {
            limit: default_limit(),
            flows: default_flows(),
            quantum: default_quantum(),
            target: default_target(),
            interval: default_interval(),
            ecn: true,
            ce_threshold: None,
            mtu: default_mtu(),
        };
        vec![
            plain,
            FqCodelConfig {
                limit: "9 packets, 4 kB".parse().expect("an example is valid"),
                flows: 3,
                quantum: Bits::from_bytes(100),
                target: Span::from_millis(2),
                interval: Span::from_millis(5),
                ce_threshold: Some(Span::from_millis(4)),
                mtu: Bits::from_bytes(125),
                ..plain
            },
            FqCodelConfig { flows: 2, interval: Span::from_millis(10), ecn: false, mtu: Bits::ZERO, ..plain },
        ]
    }
}

impl Reconfigured for FqCodelConfig {
    fn configure(&self, model: &mut FqCodel, at: Time) {
        model.configure(self, at);
    }
}

/// The FQ-CoDel queue.
#[derive(Clone, Debug)]
pub struct FqCodel(FairQueue<PerFlow>);

fair_queue!(FqCodel, FqCodelConfig);

/// CoDel in each flow's queue.
#[derive(Clone, Copy, Debug)]
struct PerFlow(CodelLaw);

impl FlowManagement for PerFlow {
    type State = CodelState;

    fn begin(&self) -> CodelState {
        CodelState::default()
    }

    fn arrival(&self, _: &mut CodelState, _: Time, _: (DrawKey, u64), _: u64, _: bool) -> AqmDecision {
        AqmDecision::Pass
    }

    fn departure(
        &self,
        state: &mut CodelState,
        at: Time,
        waited: Span,
        left_bytes: u64,
        can_mark: bool,
    ) -> AqmDecision {
        state.judge(&self.0, at, waited, left_bytes, can_mark)
    }

    fn dropped(&self, _: &mut CodelState, _: Time, _: u64) {}

    fn change(&self, _: &PerFlow, _: &mut CodelState, _: Time) {}
}
