// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The rate of a link: always the same, or varying over time.
//!
//! A constant rate is the medium's own business. What varies is a transmitter of its own for each
//! direction: a curve of rates ([`piecewise`]), opportunities of a trace ([`mahimahi`]), slots
//! ([`slotted`]). All of them are functions of the time since the run began, whichever state is in
//! force and whenever it began, and however often they are asked.
//!
//! What a change of the rate does to a frame that is under transmission: one that began at a constant
//! rate keeps that; of one that began on anything else, the bits that have not been sent yet are sent
//! at the new rate from the change on (an outage would hold it for ever otherwise). A change to the
//! very same parameters is none.

pub mod cellreplay;
pub mod curve;
pub mod mahimahi;
mod netem_trace;
pub mod piecewise;
mod rate_trace;
pub mod slotted;
pub mod steps;
pub mod trace;
mod trace_file;

use std::collections::VecDeque;

use airpath_core::quantity::QuantityError;
use airpath_core::{Bits, Direction, LinkRate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::air::{Air, Frame, Grant};
use crate::file::VisitFile;
use crate::problem::Problem;
use crate::registry::registry;

/// The rate of one direction of a link: a quantity, or a table that says how it varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RateConfig {
    /// Always the same, or unlimited.
    Constant(LinkRate),
    /// Varying over time.
    Varying(VaryingConfig),
}

registry! {
    /// A rate that varies over time: `{ type = "mahimahi", file = "up.trace" }`.
    config VaryingConfig,
    /// Transmitter at a varying rate.
    model Varying,
    dispatch dispatch_varying, dispatch_varying_config,
    built from airpath_core::DrawKey,
    reconfigured no,
    /// Rates at given times.
    Steps = steps::{StepsConfig, Piecewise},
    /// Rates at given times, from a file.
    Trace = trace::{TraceConfig, Piecewise},
    /// Opportunities to send, from a file of mm-link.
    /// Source: Netravali et al. 2015.
    Mahimahi = mahimahi::{MahimahiConfig, Opportunities},
    /// Fixed slots that carry fixed numbers of bits.
    Slotted = slotted::{SlottedConfig, Slots},
    /// Light and heavy load of a cellular link, from files of CellReplay.
    /// Source: Sentosa et al. 2025.
    Cellreplay = cellreplay::{CellReplayConfig, CellReplay},
}

/// A frame whose transmission has begun.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// Grant of the frame.
    pub grant: Grant,
    /// The frame.
    pub frame: Frame,
    /// Number of its bits that have yet to be sent.
    pub bits_left: u64,
}

/// Transmitter of one direction's frames.
pub trait Transmit {
    /// Something may be ready at `at` or later.
    fn request(&mut self, at: Time);

    /// Next internal timer; `Time::NEVER` if nothing is under way.
    fn next_deadline(&self) -> Time;

    /// Does what is due at `at`.
    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A);

    /// Minimum time of `bits` of one packet that come at `at`; later packets never get there earlier.
    fn least_time(&self, at: Time, bits: Bits) -> Span;

    /// Gives up the frames under transmission at `at`, in order, with what is left of them.
    fn hand_over(&mut self, at: Time) -> VecDeque<InFlight>;

    /// Goes on at `at` with frames that another has given up; it has none of its own yet.
    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>);
}

/// The next frame to send: one whose transmission has begun already, or a new one.
fn next_frame<A: Air>(begun: &mut VecDeque<InFlight>, at: Time, direction: Direction, air: &mut A) -> Option<InFlight> {
    begun.pop_front().or_else(|| {
        let grant = Grant { resource: 0, bearer: 0, direction, bits: None, start: at };
        let frame = air.next_frame(&grant)?;
        let bits_left = frame.bits.get();
        Some(InFlight { grant, frame, bits_left })
    })
}

impl RateConfig {
    /// The rate, if it is always the same.
    pub fn constant(&self) -> Option<LinkRate> {
        match self {
            RateConfig::Constant(rate) => Some(*rate),
            RateConfig::Varying(_) => None,
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            RateConfig::Constant(_) => Vec::new(),
            RateConfig::Varying(varying) => varying.problems(),
        }
    }

    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let RateConfig::Varying(varying) = self {
            varying.files(visit);
        }
    }
}

impl Transmit for Varying {
    fn request(&mut self, at: Time) {
        dispatch_varying!(self, transmitter => transmitter.request(at));
    }
    fn next_deadline(&self) -> Time {
        dispatch_varying!(self, transmitter => transmitter.next_deadline())
    }
    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        dispatch_varying!(self, transmitter => transmitter.step(at, direction, air));
    }
    fn least_time(&self, at: Time, bits: Bits) -> Span {
        dispatch_varying!(self, transmitter => transmitter.least_time(at, bits))
    }
    fn hand_over(&mut self, at: Time) -> VecDeque<InFlight> {
        dispatch_varying!(self, transmitter => transmitter.hand_over(at))
    }
    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>) {
        dispatch_varying!(self, transmitter => transmitter.take_over(at, frames));
    }
}

impl From<LinkRate> for RateConfig {
    fn from(rate: LinkRate) -> RateConfig {
        RateConfig::Constant(rate)
    }
}

impl From<VaryingConfig> for RateConfig {
    fn from(varying: VaryingConfig) -> RateConfig {
        RateConfig::Varying(varying)
    }
}

impl Default for RateConfig {
    fn default() -> RateConfig {
        RateConfig::Constant(LinkRate::Unlimited)
    }
}

impl std::str::FromStr for RateConfig {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<RateConfig, QuantityError> {
        text.parse().map(RateConfig::Constant)
    }
}

impl std::fmt::Display for RateConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RateConfig::Constant(rate) => rate.fmt(f),
            RateConfig::Varying(varying) => dispatch_varying_config!(varying, config => config.fmt(f)),
        }
    }
}
