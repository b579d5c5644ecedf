// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of a wireless LAN in an environment: packets that are lost, cut in the middle, or arrive with flipped bits.
//!
//! Source: Eckhardt and Steenkiste 2002, section 4 and table 1. Its columns are cumulative: truncation is that of
//! packets that are not lost, corruption that of packets neither lost nor truncated. The bit error rate is taken as
//! the share of flipped bits among all bits that arrive, those of truncated packets included: only so can the phone
//! beside the receiver flip one bit in a thousand and corrupt hardly any packet that is whole. The four hold for
//! packets of `length`, by default the 1408 bytes of the traces behind the table. Shorter packets suffer what lies
//! within them, longer ones, up to 2304 bytes, as much for each byte.
//!
//! The paper has no figures of bursts. These are assumptions:
//! - Successive packets: a chain of a good and a bad state (as Gilbert 1960), whose lengths are geometric. In the good
//!   state all three probabilities are `good_severity` times those of the bad one. The chain begins in its stationary
//!   distribution.
//! - A packet that is truncated is cut at any byte with the same probability.
//! - Flipped bits: a corrupted packet has a burst that begins at any bit of `length` with the same probability, and
//!   others that begin at every bit with one probability. A burst has a geometric number of errors, at geometric
//!   distances. By default these are 3 errors with 3.5 bits from one to the next, as in the record that Eckhardt
//!   and Steenkiste published with their traces.
//!
//! The state of packet n is a function of the key and n, and so is what happens to it. Per millisecond or block the
//! chain takes a step each interval, whatever is sent, and each frame of an interval has draws of its own.

mod damage;
mod fitted;
mod named;

use airpath_core::{Bits, DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use named::Environment;

use super::ErrorProcess;
use super::trace_file::Record;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use damage::Damage;
use fitted::{Fitted, fitted};

/// An environment by name, by numbers of its own, or both; per packet, frame, millisecond or block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentConfig {
    /// The environment whose numbers hold where none is given here; without it there are no errors but those that
    /// are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// The share of packets that are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// The share of packets that are truncated among those that are not lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Probability>,
    /// The share of packets with flipped bits among those that are neither lost nor truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corruption: Option<Probability>,
    /// The share of flipped bits among all bits that arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<Probability>,
    /// The share of truncated packets that may have flipped bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_corruption: Option<Probability>,
    /// Length of the packets for which these shares hold.
    #[serde(default = "default_length")]
    pub length: Bits,
    /// Mean length of the good state in packets, frames, milliseconds or blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_mean: Option<f64>,
    /// Mean length of the bad state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_mean: Option<f64>,
    /// Probabilities of loss, truncation and corruption in the good state as a share of those in the bad one; 1: the
    /// states are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_severity: Option<Probability>,
    /// Mean number of errors in a burst within a packet.
    #[serde(default = "default_burst_errors")]
    pub burst_errors: f64,
    /// Mean distance of the errors of a burst in bits; 1: they follow each other.
    #[serde(default = "default_burst_spacing")]
    pub burst_spacing: f64,
}

fn default_length() -> Bits {
    Bits::from_bytes(1408)
}

fn default_burst_errors() -> f64 {
    3.0
}

fn default_burst_spacing() -> f64 {
    3.5
}

impl Default for EnvironmentConfig {
    fn default() -> EnvironmentConfig {
        EnvironmentConfig {
            environment: None,
            loss: None,
            truncation: None,
            corruption: None,
            bit_error_rate: None,
            truncated_corruption: None,
            length: default_length(),
            good_mean: None,
            bad_mean: None,
            good_severity: None,
            burst_errors: default_burst_errors(),
            burst_spacing: default_burst_spacing(),
        }
    }
}

impl EnvironmentConfig {
    /// The environment of this name.
    pub fn named(environment: Environment) -> EnvironmentConfig {
        EnvironmentConfig { environment: Some(environment), ..EnvironmentConfig::default() }
    }
}

impl Configured for EnvironmentConfig {
    type Model = Environments;

    fn problems(&self) -> Vec<Problem> {
        fitted(self).err().unwrap_or_default()
    }

    fn build(&self, key: DrawKey) -> Environments {
        Environments::new(self, key)
    }

    fn examples() -> Vec<EnvironmentConfig> {
        let of = |text: &str| Some(text.parse().expect("an example is valid"));
        let named = EnvironmentConfig::named;
        vec![
            named(Environment::Adjacent),
            EnvironmentConfig {
                length: Bits::from_bytes(100),
                loss: of("0.2"),
                bad_mean: Some(4.0),
                good_mean: Some(2.0),
                ..named(Environment::Table)
            },
            // A user's own, whose states change at every packet, with long bursts.
            EnvironmentConfig {
                truncation: of("0.3"),
                corruption: of("0.4"),
                bit_error_rate: of("0.01"),
                truncated_corruption: of("1"),
                length: Bits::from_bytes(200),
                good_mean: Some(1.0),
                bad_mean: Some(1.0),
                good_severity: of("0.5"),
                burst_errors: 40.0,
                burst_spacing: 1.0,
                ..EnvironmentConfig::default()
            },
        ]
    }
}

impl Reconfigured for EnvironmentConfig {
    fn configure(&self, model: &mut Environments, _at: Time) {
        model.configure(self);
    }
}

/// The process of errors in an environment.
#[derive(Clone, Debug)]
pub struct Environments {
    /// In boxes, as other processes are small.
    config: Box<EnvironmentConfig>,
    fitted: Box<Fitted>,
    key: DrawKey,
    bad: bool,
    /// Steps that are left of the present stay, the next one included; none where not drawn yet.
    left: u64,
    /// Number of the present stay, the step of the draw of its length.
    stay: u64,
    /// The last step that was taken, and whether its state was the bad one.
    last: (u64, bool),
    damage: Damage,
}

/// Attempts of a stay's number, beyond those of damage.
const STAY: u64 = (1 << 20) - 1;
const BEGINNING: u64 = (1 << 20) - 2;

impl Environments {
    pub(super) fn new(config: &EnvironmentConfig, key: DrawKey) -> Environments {
        let fitted = Box::new(fitted(config).expect("parameters have been checked"));
        Environments {
            config: Box::new(*config),
            key,
            bad: key.hit(0, BEGINNING, fitted.bad_share),
            fitted,
            left: 0,
            stay: 0,
            last: (0, false),
            damage: Damage::default(),
        }
    }

    pub(super) fn configure(&mut self, config: &EnvironmentConfig) {
        if *self.config != *config {
            // A stay is memoryless, so that the rest of it may be drawn anew.
            *self.config = *config;
            *self.fitted = fitted(config).expect("parameters have been checked");
            self.left = 0;
        }
    }

    /// Takes up to `most` steps of the chain that are in one state, the first of them number `step`, and returns how
    /// many.
    fn take(&mut self, step: u64, most: u64) -> u64 {
        if self.left == 0 {
            let leaves = self.fitted.states[usize::from(self.bad)].leaves;
            self.left = match leaves {
                Probability::ZERO => u64::MAX,
                leaves => self.key.failures_before_success(self.stay, STAY, leaves).saturating_add(1),
            };
            self.stay += 1;
        }
        let taken = self.left.min(most);
        self.last = (step + taken - 1, self.bad);
        self.left -= taken;
        if self.left == 0 {
            self.bad = !self.bad;
        }
        taken
    }

    /// Draws what happens to frame number `frame` of the last step.
    fn draw(&mut self, frame: u64) {
        let (step, bad) = self.last;
        let key = if frame == 0 { self.key } else { self.key.child("frame", frame) };
        self.damage.draw(&self.fitted, &self.fitted.states[usize::from(bad)], key, step);
    }
}

impl ErrorProcess for Environments {
    fn hits(&mut self, step: u64) -> bool {
        self.record(step) != Record::Ok
    }

    fn record(&mut self, step: u64) -> Record<'_> {
        self.take(step, 1);
        self.draw(0);
        self.damage.record()
    }

    fn frame_record(&mut self, frame: u64) -> Option<Record<'_>> {
        self.draw(frame);
        Some(self.damage.record())
    }

    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let (mut passed, mut done) = (0, false);
        while passed < bits {
            if done {
                passed += self.take(step + passed, bits - passed);
            } else {
                if self.record(step + passed) != Record::Ok {
                    positions.push(passed as u32);
                    done = only_first;
                }
                passed += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
