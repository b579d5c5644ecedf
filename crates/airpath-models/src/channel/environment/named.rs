// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The five environments by name.
//!
//! Source: loss, truncation, corruption and bit error rate are those of table 1 of Eckhardt and Steenkiste 2002.
//! Assumed: what the table calls “trivial” is 0.1 %, and the bit error rate of the office, which it gives as 0, is
//! 3e-7. The lengths of states are those of a telephone or a person in motion, “over seconds” (Eckhardt and Steenkiste
//! 1999), at the 6.1 ms that their packets of 1408 bytes took; what exactly they are, and how much milder the good
//! state is, is assumed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measured environment of a wireless LAN at 900 MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// No source of errors.
    Office,
    /// A cordless telephone that moves.
    Walking,
    /// A cordless telephone beside the receiver, switched on and off.
    Adjacent,
    /// A cordless telephone nearby.
    Table,
    /// Walls and distance.
    Walls,
}

/// Numbers that describe an environment, with what is not given yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Numbers {
    pub loss: f64,
    pub truncation: f64,
    pub corruption: f64,
    pub bit_error_rate: f64,
    /// None: as likely as in packets that are not truncated.
    pub truncated_corruption: Option<f64>,
    pub good_mean: Option<f64>,
    pub bad_mean: Option<f64>,
    pub good_severity: f64,
}

/// The share that table 1 calls trivial.
const TRIVIAL: f64 = 0.001;

/// An environment without errors, from which a user's own begins.
const NOTHING: Numbers = Numbers {
    loss: 0.0,
    truncation: 0.0,
    corruption: 0.0,
    bit_error_rate: 0.0,
    truncated_corruption: None,
    good_mean: None,
    bad_mean: None,
    good_severity: 1.0,
};

/// Numbers whose states have mean lengths of `good` and `bad` packets.
const fn with_states(good: f64, bad: f64, good_severity: f64) -> Numbers {
    Numbers { good_mean: Some(good), bad_mean: Some(bad), good_severity, ..NOTHING }
}

/// The numbers of `environment`.
pub(super) fn numbers(environment: Option<Environment>) -> Numbers {
    match environment {
        None => NOTHING,
        Some(Environment::Office) => Numbers { corruption: TRIVIAL, bit_error_rate: 3e-7, ..NOTHING },
        // The telephone is near for a second out of five.
        Some(Environment::Walking) => Numbers {
            loss: TRIVIAL,
            truncation: TRIVIAL,
            corruption: 0.05,
            bit_error_rate: 1.6e-4,
            ..with_states(640.0, 160.0, 0.02)
        },
        // On for two seconds out of three and a half. Nearly all errors are in truncated packets.
        Some(Environment::Adjacent) => Numbers {
            loss: 0.31,
            truncation: 0.23,
            corruption: TRIVIAL,
            bit_error_rate: 1e-3,
            truncated_corruption: Some(0.8),
            ..with_states(220.0, 330.0, 0.0)
        },
        Some(Environment::Table) => Numbers {
            loss: 0.05,
            truncation: 0.02,
            corruption: 0.94,
            bit_error_rate: 4.9e-3,
            ..with_states(160.0, 320.0, 0.9)
        },
        Some(Environment::Walls) => Numbers {
            loss: 0.01,
            truncation: 0.02,
            corruption: 0.27,
            bit_error_rate: 3.8e-4,
            ..with_states(320.0, 160.0, 0.1)
        },
    }
}
