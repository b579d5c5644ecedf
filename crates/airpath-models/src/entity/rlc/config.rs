// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters that GPRS and EGPRS have in common: those of flows, and those of the messages that set them up and
//! release them.
//!
//! Source: 3GPP TS 44.060, clauses 12.24 (T3168, T3192, BS_CV_MAX, PAN_DEC, PAN_INC, PAN_MAX) and 13 (timers and
//! counters). The standard leaves N3103 and N3105 to the network; their defaults are those of OsmoPCU.

use airpath_core::{End, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow::{Polls, SenderOptions};
use super::receiving::{ReceiverOptions, Releases};
use super::schemes::Schemes;
use crate::entity::RADIO_BLOCK;
use crate::problem::Problem;

/// Delivery of RLC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Blocks that are lost are repeated.
    #[default]
    Acknowledged,
    /// Nothing is acknowledged or repeated.
    Unacknowledged,
}

/// Set-up and release of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signalling {
    /// Requests, assignments, final acknowledgements and their answers take radio blocks where the standard has them
    /// on the link's own channel, and may be lost.
    #[default]
    Messages,
    /// A flow is there after the link's allocation delay, and ends with its last acknowledgement.
    Ideal,
}

/// Random access of the mobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The assignment on the common channel is that of the flow. Blocks carry the mobile's TLLI of 4 octets until the
    /// network acknowledges one.
    #[default]
    OnePhase,
    /// It is that of a radio block, in which the mobile asks for the flow.
    TwoPhase,
}

/// Parameters of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowConfig {
    /// Acknowledged or unacknowledged mode.
    pub mode: Mode,
    /// Number of blocks from one acknowledgement to the next: sent blocks from poll to poll in the downlink, received
    /// ones in the uplink.
    #[schemars(range(min = 1))]
    pub acknowledge_every: u16,
    /// Time from the end of a polled block to the beginning of the block that is reserved for the answer (RRBP):
    /// 40, 60, 80 or 100 ms.
    pub rrbp: Span,
    /// BS_CV_MAX: an uplink flow takes no new packets once no more than this many rounds of blocks are left behind the
    /// next block, a round being one radio block on each timeslot; 0 lets them in until the last block.
    #[schemars(range(max = 15))]
    pub bs_cv_max: u8,
    /// Time without an acknowledgement after which a flow is given up: T3182 in the uplink. With `signalling =
    /// "ideal"` it holds in the downlink too.
    pub t3182: Span,
    /// Time for which a flow stays when it has nothing more to send (delayed release, extended uplink flow); 0 ends
    /// each flow with its last block.
    pub release_delay: Span,
    /// Share of the mutual information of coded bits that the decoder makes use of; 1 is what theory allows.
    pub efficiency: Probability,
    /// Messages that set up and release flows.
    #[serde(flatten)]
    pub set_up: SetUpConfig,
}

impl Default for FlowConfig {
    fn default() -> FlowConfig {
        FlowConfig {
            mode: Mode::Acknowledged,
            acknowledge_every: 20,
            rrbp: Span::from_millis(40),
            bs_cv_max: 15,
            t3182: Span::from_secs(5),
            release_delay: Span::ZERO,
            efficiency: Probability::ONE,
            set_up: SetUpConfig::default(),
        }
    }
}

/// Parameters of set-up and release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetUpConfig {
    /// Set-up and release of flows.
    pub signalling: Signalling,
    /// Random access of the mobile.
    pub access: Access,
    /// Probability that an exchange on the common channels (request, immediate assignment) is lost.
    pub access_loss: Probability,
    /// Time after which a lost exchange on the common channels is tried again.
    pub access_retry: Span,
    /// T3168: time for which the mobile waits for the assignment that it has asked for in a radio block; a multiple of
    /// 500 ms, up to 4 s.
    pub t3168: Span,
    /// T3190: time without a block of a downlink flow after which the mobile leaves it.
    pub t3190: Span,
    /// T3192: time for which the mobile listens to the channel of a downlink flow that has ended: 0, 80, 120, 160,
    /// 200, 500, 1000 or 1500 ms.
    pub t3192: Span,
    /// N3103: number of times that the network asks for the answer to a final acknowledgement.
    #[schemars(range(min = 1))]
    pub n3103: u8,
    /// N3105: number of polls, one after the other, without an answer after which the network gives up.
    #[schemars(range(min = 1))]
    pub n3105: u8,
    /// Time after which a poll counts as unanswered; longer than RRBP and a round trip of the link.
    pub poll_timeout: Span,
    /// Time from poll to poll in a downlink flow that has nothing to send. The mobile asks for an uplink flow in the
    /// answer.
    pub idle_poll: Span,
    /// PAN_DEC: number by which N3102 falls when T3182 expires.
    #[schemars(range(max = 7))]
    pub pan_dec: u8,
    /// PAN_INC: number by which N3102 rises with an acknowledgement of new blocks.
    #[schemars(range(max = 7))]
    pub pan_inc: u8,
    /// PAN_MAX: greatest value of N3102, with which it begins: a multiple of 4, up to 32. At 0 the mobile selects
    /// another cell. With 0 in one of the three there is no N3102.
    #[schemars(range(max = 32))]
    pub pan_max: u8,
    /// Time that the selection of another cell takes.
    pub reselection_delay: Span,
}

impl Default for SetUpConfig {
    fn default() -> SetUpConfig {
        SetUpConfig {
            signalling: Signalling::Messages,
            access: Access::OnePhase,
            access_loss: Probability::ZERO,
            access_retry: Span::from_millis(500),
            t3168: Span::from_millis(500),
            t3190: Span::from_secs(5),
            t3192: Span::from_millis(1_500),
            n3103: 4,
            n3105: 8,
            poll_timeout: Span::from_millis(300),
            idle_poll: Span::from_millis(200),
            pan_dec: 1,
            pan_inc: 1,
            pan_max: 8,
            reselection_delay: Span::from_secs(1),
        }
    }
}

impl SetUpConfig {
    /// Settings with which the laws are tested: the plain ones, and two in which much is lost and little waited for.
    pub fn examples() -> Vec<SetUpConfig> {
        let plain = SetUpConfig::default();
        let hasty = SetUpConfig {
            access_loss: Probability::new(0.3).unwrap_or_default(),
            access_retry: Span::from_millis(50),
            t3190: Span::from_millis(400),
            t3192: Span::from_millis(80),
            n3103: 2,
            n3105: 2,
            poll_timeout: Span::from_millis(120),
            idle_poll: Span::from_millis(60),
            pan_dec: 7,
            pan_max: 4,
            reselection_delay: Span::from_millis(150),
            ..plain.clone()
        };
        let in_two_phases = SetUpConfig { access: Access::TwoPhase, pan_max: 0, t3192: Span::ZERO, ..hasty.clone() };
        vec![plain, hasty, in_two_phases]
    }
}

impl FlowConfig {
    /// Flows that nothing sets up and releases but time.
    pub fn ideal() -> FlowConfig {
        let set_up = SetUpConfig { signalling: Signalling::Ideal, ..SetUpConfig::default() };
        FlowConfig { set_up, ..FlowConfig::default() }
    }

    /// Flows in which nothing is acknowledged.
    pub fn unacknowledged() -> FlowConfig {
        FlowConfig { mode: Mode::Unacknowledged, ..FlowConfig::default() }
    }
}

/// Facts of a system that flows need.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// Its coding schemes.
    pub schemes: &'static Schemes,
    /// Number of block sequence numbers.
    pub modulus: u16,
    /// True if blocks may be repeated in halves.
    pub resegments: bool,
    /// True if copies of a block add up.
    pub combines: bool,
}

impl FlowConfig {
    /// True if flows are set up and released by messages on the link.
    pub fn exchanges_messages(&self) -> bool {
        self.set_up.signalling == Signalling::Messages
    }

    /// Parameters of the sending end of flows with a window of `window`, on `timeslots`.
    pub fn sends(&self, end: End, system: System, window: u16, timeslots: u16) -> SenderOptions {
        let acknowledged = self.mode == Mode::Acknowledged;
        SenderOptions {
            schemes: system.schemes,
            modulus: system.modulus,
            window,
            acknowledged,
            polls: end == End::Server,
            poll_every: self.acknowledge_every,
            bs_cv_max: if end == End::Client { self.bs_cv_max.into() } else { 0 },
            timeslots,
            release_delay: self.release_delay,
            gives_up: self.t3182,
            resegments: system.resegments,
            messages: (self.exchanges_messages() && acknowledged).then_some(Polls {
                timeout: self.set_up.poll_timeout,
                most: self.set_up.n3105,
                idle: self.set_up.idle_poll,
            }),
        }
    }

    /// Parameters of the receiving end, where the other end sends as `self` says.
    pub fn receives(&self, end: End, system: System, window: u16) -> ReceiverOptions {
        let acknowledged = self.mode == Mode::Acknowledged;
        ReceiverOptions {
            modulus: system.modulus,
            window,
            answers_after: (end == End::Client).then_some(self.rrbp),
            acknowledges_every: self.acknowledge_every,
            efficiency: self.efficiency.get(),
            combines: system.combines,
            messages: (self.exchanges_messages() && acknowledged).then_some(Releases {
                delay: self.release_delay,
                timeout: self.set_up.poll_timeout,
                most: self.set_up.n3103,
                silence: self.set_up.t3190,
                listens: self.set_up.t3192,
            }),
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.acknowledge_every == 0 {
            problem("acknowledge_every", "is 0; write for example 20".into());
        }
        if ![40, 60, 80, 100].map(Span::from_millis).contains(&self.rrbp) {
            problem("rrbp", format!("is {}; it is 40 ms, 60 ms, 80 ms or 100 ms", self.rrbp));
        }
        if self.bs_cv_max > 15 {
            problem("bs_cv_max", format!("is {}; it is from 0 to 15", self.bs_cv_max));
        }
        if self.t3182 < RADIO_BLOCK {
            let message = format!(
                "is {}, less than a radio block of {RADIO_BLOCK}, so that every flow would be given up; write for \
                 example \"5 s\"",
                self.t3182
            );
            problem("t3182", message);
        }
        if self.efficiency == Probability::ZERO {
            let message = "is 0, so that no block with an error would be decoded; write for example 0.7";
            problem("efficiency", message.into());
        }
        problems.extend(self.set_up.problems(self.rrbp));
        problems
    }
}

impl SetUpConfig {
    fn problems(&self, rrbp: Span) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.access_loss.get() > 0.9 {
            let message =
                format!("is {}; with more than 0.9 hardly a flow would be set up: write 0.9 or less", self.access_loss);
            problem("access_loss", message);
        }
        if self.access_retry < RADIO_BLOCK {
            let message = format!("is {}, less than {RADIO_BLOCK}; write for example \"500 ms\"", self.access_retry);
            problem("access_retry", message);
        }
        if !(1..=8).any(|step| self.t3168 == Span::from_millis(step * 500)) {
            problem("t3168", format!("is {}; it is a multiple of 500 ms, from 500 ms to 4 s", self.t3168));
        }
        if ![0, 80, 120, 160, 200, 500, 1_000, 1_500].map(Span::from_millis).contains(&self.t3192) {
            let message = format!("is {}; it is 0, 80, 120, 160, 200, 500, 1000 or 1500 ms", self.t3192);
            problem("t3192", message);
        }
        for (key, span, example) in [("t3190", self.t3190, "5 s"), ("idle_poll", self.idle_poll, "200 ms")] {
            if span < RADIO_BLOCK {
                problem(
                    key,
                    format!("is {span}, less than a radio block of {RADIO_BLOCK}; write for example \"{example}\""),
                );
            }
        }
        for (key, count, example) in [("n3103", self.n3103, 4), ("n3105", self.n3105, 8)] {
            if count == 0 {
                problem(key, format!("is 0; write for example {example}"));
            }
        }
        let least = rrbp + RADIO_BLOCK + RADIO_BLOCK;
        if self.poll_timeout < least {
            let message = format!(
                "is {}, less than rrbp, the block with the poll and that with the answer, {least} together; write for \
                 example \"300 ms\"",
                self.poll_timeout
            );
            problem("poll_timeout", message);
        }
        for (key, value) in [("pan_dec", self.pan_dec), ("pan_inc", self.pan_inc)] {
            if value > 7 {
                problem(key, format!("is {value}; it is from 0 to 7"));
            }
        }
        if self.pan_max > 32 || !self.pan_max.is_multiple_of(4) {
            problem("pan_max", format!("is {}; it is 0, 4, 8 and so on up to 32", self.pan_max));
        }
        problems
    }
}
