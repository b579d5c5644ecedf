// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Effect of an error on a transmission: drop, corrupt, truncate or delay.
//!
//! Source: Kojo et al. 2001, section 4.3 (error modes).

use airpath_core::{DrawKey, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChannelOutcome, Per, Transmission};
use crate::problem::Problem;
use crate::random::{Distribution, Random, Uniform};

/// Effect of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The receiving end detects the error and discards the hit unit; a packet that lost a frame is lost.
    #[default]
    Drop,
    /// The packet goes on with flipped bits.
    Corrupt,
    /// The packet goes on after a delay, as after a retransmission by the link.
    Delay,
    /// Only the beginning of the packet goes on.
    Truncate,
}

/// Corruption of the packet's own headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Headers {
    /// Any bit of the packet may be flipped.
    #[default]
    Included,
    /// Only bits behind the network and transport headers are flipped.
    Spared,
}

/// The effect of errors and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectConfig {
    /// Effect of an error.
    #[serde(default)]
    pub effect: Effect,
    /// With `effect = "delay"`: delay of a hit unit; drawn for each hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Random<Span>>,
    /// With `effect = "delay"`: true if later packets wait behind it.
    #[serde(default = "yes")]
    pub keep_order: bool,
    /// With `effect = "corrupt"` per packet or frame: number of flipped bits.
    #[serde(default = "one")]
    pub flips: u32,
    /// With `effect = "corrupt"`: protection of the packet's own headers.
    #[serde(default)]
    pub headers: Headers,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

impl Default for EffectConfig {
    fn default() -> EffectConfig {
        EffectConfig { effect: Effect::Drop, delay: None, keep_order: true, flips: 1, headers: Headers::Included }
    }
}

/// The most bits that one error may flip.
const FLIPS_LIMIT: u32 = 65_536;

impl EffectConfig {
    pub(super) fn problems(&self, per: Per) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: &str| problems.push(Problem::new(key, message));
        match (self.effect, &self.delay) {
            (Effect::Delay, None) => {
                problem("delay", "is missing: effect = \"delay\" needs it, for example delay = \"300 ms\"")
            }
            (Effect::Drop | Effect::Corrupt | Effect::Truncate, Some(_)) => {
                problem("delay", "has no meaning without effect = \"delay\"")
            }
            (Effect::Delay, Some(delay)) => {
                problems.extend(delay.problems().into_iter().map(|problem| problem.under("delay")));
            }
            _ => {}
        }
        let mut problem = |key: &str, message: &str| problems.push(Problem::new(key, message));
        if self.effect != Effect::Delay && !self.keep_order {
            problem("keep_order", "has no meaning without effect = \"delay\"");
        }
        if self.flips == 0 || self.flips > FLIPS_LIMIT {
            problem("flips", "must be from 1 to 65536");
        }
        if self.flips != 1 && (self.effect != Effect::Corrupt || per == Per::Bit) {
            problem("flips", "has a meaning only with effect = \"corrupt\" and per = \"packet\" or \"frame\"");
        }
        if self.headers == Headers::Spared && self.effect != Effect::Corrupt {
            problem("headers", "has no meaning without effect = \"corrupt\"");
        }
        problems
    }

    pub(super) fn examples(per: Per) -> Vec<EffectConfig> {
        let default = EffectConfig::default();
        let flips = if per == Per::Bit { 1 } else { 3 };
        let delay = |delay: Random<Span>, keep_order| EffectConfig {
            effect: Effect::Delay,
            delay: Some(delay),
            keep_order,
            ..default.clone()
        };
        let constant = Span::from_millis(35);
        let uniform = Uniform { from: Span::ZERO, to: Span::from_millis(70), ..Uniform::default() };
        let drawn = Random::Drawn(Distribution::Uniform(uniform));
        vec![
            default.clone(),
            EffectConfig { effect: Effect::Corrupt, flips, ..default.clone() },
            EffectConfig { effect: Effect::Corrupt, headers: Headers::Spared, ..default.clone() },
            EffectConfig { effect: Effect::Truncate, ..default.clone() },
            delay(constant.into(), true),
            delay(constant.into(), false),
            delay(drawn.clone(), true),
            delay(drawn, false),
        ]
    }

    /// The outcome of a hit: `flips` are the positions of flipped bits, `delay` draws how long it waits.
    pub(super) fn outcome(&self, flips: &[u32], delay: impl FnOnce() -> Span) -> ChannelOutcome {
        match self.effect {
            // Where something is cut is not decided here.
            Effect::Drop | Effect::Truncate => ChannelOutcome::Lost,
            Effect::Corrupt if flips.is_empty() => ChannelOutcome::Ok,
            Effect::Corrupt => ChannelOutcome::Flipped(flips.to_vec()),
            Effect::Delay => ChannelOutcome::Delayed { by: delay(), keep_order: self.keep_order },
        }
    }

    /// Chooses `flips` different bits of the transmission, or all it has if they are fewer, each set
    /// equally likely (Floyd's algorithm, Bentley 1987).
    pub(super) fn choose_flips(&self, key: DrawKey, step: u64, unit: &Transmission, positions: &mut Vec<u32>) {
        let from = match self.headers {
            Headers::Included => unit.first_bit,
            Headers::Spared => unit.first_bit.max(unit.header_bits),
        };
        let room = (unit.first_bit + unit.packet_bits).saturating_sub(from);
        let wanted = self.flips.min(room);
        for (attempt, last) in (room - wanted..room).enumerate() {
            let candidate = from + key.below(step, attempt as u64, u64::from(last) + 1) as u32;
            match positions.binary_search(&candidate) {
                // Already chosen: `last` cannot have been, and keeps the choice uniform.
                Ok(_) => positions.push(from + last),
                Err(index) => positions.insert(index, candidate),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn key() -> DrawKey {
        DrawKey::new(Seed(5), &DrawScope { hop: "h", direction: Direction::Uplink, role: "flips", instance: 0 })
    }

    #[test]
    fn exactly_the_wanted_number_of_different_bits_is_flipped() {
        let unit = Transmission { bits: 500, first_bit: 400, packet_bits: 100, header_bits: 320 };
        for flips in [1, 7, 99, 100, 1000] {
            let config = EffectConfig { effect: Effect::Corrupt, flips, ..EffectConfig::default() };
            for step in 0..200 {
                let mut positions = Vec::new();
                config.choose_flips(key(), step, &unit, &mut positions);
                assert!(positions.windows(2).all(|pair| pair[0] < pair[1]), "{positions:?}");
                assert_eq!(positions.len() as u32, flips.min(100));
                assert!(positions.iter().all(|position| (400..500).contains(position)));
            }
        }
    }

    #[test]
    fn spared_headers_are_spared() {
        let unit = Transmission { bits: 400, first_bit: 0, packet_bits: 400, header_bits: 320 };
        let config =
            EffectConfig { effect: Effect::Corrupt, flips: 20, headers: Headers::Spared, ..EffectConfig::default() };
        let mut positions = Vec::new();
        config.choose_flips(key(), 0, &unit, &mut positions);
        assert_eq!(positions.len(), 20);
        assert!(positions.iter().all(|position| *position >= 320));
        let headers_only = Transmission { packet_bits: 320, ..unit };
        positions.clear();
        config.choose_flips(key(), 0, &headers_only, &mut positions);
        assert!(positions.is_empty());
    }

    #[test]
    fn every_bit_is_equally_likely() {
        let unit = Transmission { bits: 64, first_bit: 0, packet_bits: 64, header_bits: 0 };
        let config = EffectConfig { effect: Effect::Corrupt, flips: 8, ..EffectConfig::default() };
        let mut counts = [0f64; 64];
        for step in 0..16_000 {
            let mut positions = Vec::new();
            config.choose_flips(key(), step, &unit, &mut positions);
            positions.iter().for_each(|position| counts[*position as usize] += 1.0);
        }
        // 63 degrees of freedom, level 1e-6: 130; sampling without replacement only narrows it.
        let chi: f64 = counts.iter().map(|count| (count - 2_000.0).powi(2) / 2_000.0).sum();
        assert!(chi < 130.0, "{chi}");
    }
}
