// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a medium with poll and response.

use airpath_core::{Bits, Carry, Direction, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Poll;
use crate::cell::medium::{SharedBeginning, Shares};
use crate::config::HopConfig;
use crate::problem::Problem;
use crate::registry::Configured;
use crate::serve::{InTurnConfig, Nominal, PacketSchedulerConfig};

/// Longest fixed cost of an exchange.
const OVERHEAD_LIMIT: Span = Span::from_secs(10);

/// Longest frame by which the capacity may be stated.
const FRAME_LIMIT: Bits = Bits::from_bytes(1_000_000);

/// A medium on which an access point polls stations, and each frame is acknowledged at once: `{ type = "poll" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PollConfig {
    /// Rate on the air, in both directions.
    pub rate: Rate,
    /// Fixed cost of an exchange: medium access, headers, acknowledgements, and what the two ends do in between.
    pub overhead: Span,
    /// Length of the frame by which the capacity is stated: reservations are parts of the rate that such frames have
    /// without errors, one after the other.
    pub frame: Bits,
    /// The scheduler, which chooses the bearer of each exchange.
    pub scheduler: PacketSchedulerConfig,
}

/// The packet radio of Eckhardt and Steenkiste 2002: 5 blocks of 255 bytes take 5.1 ms at 2 Mbit/s and, at an effective
/// 0.8 Mbit/s, 12.75 ms in all.
impl Default for PollConfig {
    fn default() -> PollConfig {
        PollConfig {
            rate: Rate::new(2_000_000).unwrap_or_else(|| unreachable!("the rate is not 0")),
            overhead: Span::from_micros(7650),
            frame: Bits::from_bytes(5 * 255),
            scheduler: PacketSchedulerConfig::RoundRobin(InTurnConfig {}),
        }
    }
}

impl PollConfig {
    /// Time on the air of `bits`.
    pub(super) fn air_time(&self, bits: Bits) -> Span {
        self.rate.tx(bits, &mut { Carry::NONE })
    }

    /// An exchange by which the capacity is stated.
    pub(super) fn nominal(&self) -> Nominal {
        Nominal { frame: self.frame, exchange: self.air_time(self.frame) + self.overhead }
    }
}

impl Shares for PollConfig {
    fn carries(&self, _: Direction) -> bool {
        true
    }

    fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<Problem> {
        let link = hop.link(direction);
        let mut problems = Vec::new();
        if link.fading.is_some() {
            let message = "has no meaning on this medium, which has no radio channels; write errors, or a medium of \
                           type \"ofdm\"";
            problems.push(Problem::new("fading", message));
        }
        if link.entity.has_own_frames() && !link.entity.has_own_lengths() {
            let message = "has frames that need slots of their length, and this medium has none; write entity = { type \
                           = \"persistent\" }, or leave it out";
            problems.push(Problem::new("entity", message));
        }
        problems
    }

    fn bearer_problems(&self, bearers: &[&str]) -> Vec<Problem> {
        self.scheduler.problems_of(bearers).into_iter().map(|problem| problem.under("scheduler")).collect()
    }
}

impl Configured<SharedBeginning<'_>> for PollConfig {
    type Model = Poll;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.overhead > OVERHEAD_LIMIT {
            let message = format!("is {}; it may be {OVERHEAD_LIMIT} at most", self.overhead);
            problems.push(Problem::new("overhead", message));
        }
        let is_frame = self.frame > Bits::ZERO && self.frame <= FRAME_LIMIT;
        if !is_frame {
            let message = format!("is {}; it must be longer than 0 and at most {FRAME_LIMIT}", self.frame);
            problems.push(Problem::new("frame", message));
        } else if self.nominal().exchange == Span::ZERO {
            problems.push(Problem::new("rate", format!("is {}: a frame would take no time; write less", self.rate)));
        }
        let mut own = self.scheduler.problems();
        if own.is_empty() && problems.is_empty() {
            own = self.scheduler.problems_on(&self.nominal());
        }
        problems.extend(own.into_iter().map(|problem| problem.under("scheduler")));
        problems
    }

    fn build(&self, beginning: SharedBeginning<'_>) -> Poll {
        Poll::new(self, &beginning)
    }

    fn examples() -> Vec<PollConfig> {
        let plain = PollConfig::default();
        let fast = Rate::new(11_000_000).unwrap_or(plain.rate);
        let with = |scheduler| PollConfig { scheduler, ..PollConfig::default() };
        let mut all: Vec<PollConfig> = PacketSchedulerConfig::examples().into_iter().map(with).collect();
        all.push(PollConfig { rate: fast, overhead: Span::ZERO, frame: Bits::from_bytes(1500), ..plain.clone() });
        all.push(PollConfig { overhead: Span::from_micros(300), ..plain });
        all
    }
}
