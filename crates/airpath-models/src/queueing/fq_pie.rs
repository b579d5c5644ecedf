// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! FQ-PIE: flows in queues of their own that take turns, with PIE in each.
//!
//! Source: Ramakrishnan et al. 2019 ("FQ-PIE Queue Discipline in the Linux Kernel"); the queues and
//! their turns are those of RFC 8290, in `fair.rs`, the overflow included; PIE is in `pie.rs`. Each
//! flow has a controller of its own, whose updates are due at the same instants for all.

use std::collections::VecDeque;

use airpath_core::{Bits, DrawKey, Pdu, Probability, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fair::{FairParameters, FairQueue, FlowManagement, fair_queue};
use super::fq_codel::{default_flows, default_limit, default_quantum};
use super::management::AqmDecision;
use super::pie::{
    PieLaw, PieState, controller_problems, default_alpha, default_beta, default_burst, default_mark_threshold,
    default_time,
};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the FQ-PIE queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FqPieConfig {
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
    /// Packet size: a flow of at most two such packets drops nothing.
    #[serde(default = "super::codel::default_mtu")]
    pub mtu: Bits,
}

impl FqPieConfig {
    fn parameters(&self) -> FairParameters {
        FairParameters { limit: self.limit, flows: self.flows, quantum: self.quantum, ecn: self.ecn }
    }

    fn management(&self) -> PerFlow {
        let FqPieConfig { target, update, alpha, beta, max_burst, .. } = *self;
        let (mark_ecnth, mtu_bytes) = (self.mark_ecnth.get(), self.mtu.get() / 8);
        PerFlow(PieLaw { target, update, alpha, beta, max_burst, mark_ecnth, mtu_bytes })
    }
}

impl Configured for FqPieConfig {
    type Model = FqPie;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.parameters().problems();
        problems.extend(controller_problems(self.target, self.update, self.alpha, self.beta));
        problems
    }

    fn build(&self, key: DrawKey) -> FqPie {
        FqPie::new(self, key)
    }

    fn examples() -> Vec<FqPieConfig> {
        let plain = FqPieConfig {
            limit: default_limit(),
            flows: default_flows(),
            quantum: default_quantum(),
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
            FqPieConfig {
                limit: "9 packets, 4 kB".parse().expect("an example is valid"),
                flows: 3,
                quantum: Bits::from_bytes(100),
                target: Span::from_micros(10),
                update: Span::from_millis(1),
                alpha: 100.0,
                beta: 900.0,
                max_burst: Span::ZERO,
                ecn: true,
                mark_ecnth: Probability::ONE,
                mtu: Bits::ZERO,
            },
        ]
    }
}

impl Reconfigured for FqPieConfig {
    fn configure(&self, model: &mut FqPie, at: Time) {
        model.configure(self, at);
    }
}

/// The FQ-PIE queue.
#[derive(Clone, Debug)]
pub struct FqPie(FairQueue<PerFlow>);

fair_queue!(FqPie, FqPieConfig);

/// PIE in each flow's queue.
#[derive(Clone, Copy, Debug)]
struct PerFlow(PieLaw);

impl FlowManagement for PerFlow {
    type State = PieState;

    fn begin(&self) -> PieState {
        PieState::new(&self.0)
    }

    fn arrival(
        &self,
        state: &mut PieState,
        at: Time,
        draw: (DrawKey, u64),
        queued_bytes: u64,
        can_mark: bool,
    ) -> AqmDecision {
        state.catch_up(&self.0, at);
        state.judge(&self.0, draw.0, draw.1, queued_bytes, can_mark)
    }

    fn departure(&self, state: &mut PieState, at: Time, waited: Span, left_bytes: u64, _: bool) -> AqmDecision {
        state.catch_up(&self.0, at);
        state.departed(Some(waited), left_bytes);
        AqmDecision::Pass
    }

    fn dropped(&self, state: &mut PieState, at: Time, left_bytes: u64) {
        state.catch_up(&self.0, at);
        state.departed(None, left_bytes);
    }

    fn change(&self, next: &PerFlow, state: &mut PieState, at: Time) {
        state.catch_up(&self.0, at);
        state.change(&next.0, at);
    }
}
