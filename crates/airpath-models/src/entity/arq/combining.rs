// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hybrid ARQ: the receiving end keeps what it has received of a frame with errors, and adds later copies to it.
//!
//! Source: Caire and Tuninetti 2001, "The throughput of hybrid-ARQ protocols for the Gaussian collision channel".
//! Copies with the signal-to-noise ratios γ₁, γ₂, … are worth one copy of the ratio Σγ where each repeats the same bits
//! (chase combining), and of Π(1 + γ) − 1 where each brings new bits of the code, so that the information Σ log₂(1 + γ)
//! adds up (incremental redundancy). The error rate of the mode at that ratio is that of the combined copies.
//!
//! Idealised: all copies have the mode of the first; inputs are Gaussian, so that the information of a copy is not
//! bounded by the bits of its symbols; the code never runs out of new bits. What fewer copies leave right stays right
//! with more: an error of the copies so far stays with the ratio of the error rates after and before. Uncoded modes
//! have no further bits to send, and their copies are always added up symbol by symbol.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::air::Frame;
use crate::channel::ChannelOutcome;
use crate::entity::ErrorPositions;
use crate::quality::{ErrorUnit, Quality};

/// Use of the copies of a frame that had errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Combining {
    /// Each copy is received alone.
    #[default]
    None,
    /// Copies add up symbol by symbol: their signal-to-noise ratios add up.
    Chase,
    /// Each copy brings new bits of the code: the information in them adds up.
    Incremental,
}

impl Combining {
    /// The signal-to-noise ratio of one copy that is worth what was received so far and a further copy.
    fn sum(self, unit: ErrorUnit, so_far: f32, copy: f32) -> f32 {
        match (self, unit) {
            (Combining::Incremental, ErrorUnit::Frame) => so_far + copy + so_far * copy,
            _ => so_far + copy,
        }
    }
}

/// Copies of a frame so far, all of them with errors.
#[derive(Clone, Debug)]
struct Copies {
    mode: usize,
    /// The signal-to-noise ratio of one copy that is worth them all.
    snr: f32,
    /// Probability of an error at it.
    error: f64,
    outcome: ChannelOutcome,
}

/// Frames of which copies with errors are kept, by number.
#[derive(Clone, Debug)]
pub struct Combiner {
    combining: Combining,
    kept: BTreeMap<u64, Copies>,
}

impl Combiner {
    /// A receiver that keeps nothing yet.
    pub fn new(combining: Combining) -> Combiner {
        Combiner { combining, kept: BTreeMap::new() }
    }

    /// Changes the use of copies from now on.
    pub fn configure(&mut self, combining: Combining) {
        self.combining = combining;
    }

    /// Forgets a frame of which no more copies come.
    pub fn forget(&mut self, number: u64) {
        if !self.kept.is_empty() {
            self.kept.remove(&number);
        }
    }

    /// Errors of `frame` behind what was received of it before, if there are any.
    pub fn hit(&mut self, frame: &Frame, quality: &Quality) -> Option<ChannelOutcome> {
        let alone = || quality.outcome(frame.bits.get(), ErrorPositions::OfFrame);
        let Some(reception) = quality.reception.as_ref().filter(|_| self.combining != Combining::None) else {
            return alone();
        };
        let earlier = self.kept.remove(&frame.number).filter(|copies| copies.mode == reception.mode);
        let (snr, error, outcome) = match earlier {
            None => (reception.snr, quality.probability, alone()),
            Some(copies) => {
                let snr = self.combining.sum(quality.unit, copies.snr, reception.snr);
                let error = reception.errors_at(snr).1.min(copies.error);
                (snr, error, quality.left_of(&copies.outcome, error / copies.error))
            }
        };
        if let Some(outcome) = &outcome {
            let copies = Copies { mode: reception.mode, snr, error, outcome: outcome.clone() };
            self.kept.insert(frame.number, copies);
        }
        outcome
    }
}
