// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rate control: the mode of each transmission, from the outcomes of those before.
//!
//! A control is that of one sending end towards one receiving end. It is asked for a mode before a transmission, also
//! where there turns out to be nothing to send, and hears of the outcome of each.

mod fixed;
mod minstrel_ht;

use airpath_core::{DrawKey, Span, Time};

pub use fixed::{Fixed, FixedConfig};
pub use minstrel_ht::{MinstrelHt, MinstrelHtConfig};

use crate::registry::registry;

registry! {
    /// The choice of rates: `{ type = "minstrel_ht" }`.
    config RateControlConfig,
    /// A rate control of any registered kind.
    model RateControl,
    dispatch dispatch_rate_control, dispatch_rate_control_config,
    built from RateBeginning<'_>,
    reconfigured no,
    /// The same rate always.
    Fixed = fixed::{FixedConfig, Fixed},
    /// The rate that has brought most, as Linux chooses it.
    /// Source: minstrel_ht of Linux (Fietkau 2010).
    MinstrelHt = minstrel_ht::{MinstrelHtConfig, MinstrelHt},
}

impl Default for RateControlConfig {
    fn default() -> RateControlConfig {
        RateControlConfig::Fixed(FixedConfig {})
    }
}

/// Surroundings of a rate control at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct RateBeginning<'a> {
    /// Times of the modes, the slowest first.
    pub modes: &'a [ModeTimes],
    /// The mode without rate control.
    pub usual: usize,
    /// Key of the draws.
    pub key: DrawKey,
}

/// Times of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeTimes {
    /// Time of a packet of 1200 octets in an aggregate, without preamble.
    pub packet: Span,
    /// Time of preamble, header and acknowledgement of a transmission.
    pub overhead: Span,
}

/// A choice of modes.
trait Choose {
    /// Number of the mode for the transmission that is next.
    fn choose(&mut self) -> usize;

    /// Hears that `received` of the `sent` packets of the transmission in the mode that was chosen last were
    /// acknowledged.
    fn heard(&mut self, at: Time, sent: u32, received: u32);
}

impl RateControlConfig {
    /// True if it chooses by itself, so that rates that are given mean nothing.
    pub(super) fn adapts(&self) -> bool {
        !matches!(self, RateControlConfig::Fixed(_))
    }
}

impl RateControl {
    /// Number of the mode for the transmission that is next.
    pub fn choose(&mut self) -> usize {
        dispatch_rate_control!(self, control => control.choose())
    }

    /// Hears of the outcome of the transmission in the mode that was chosen last: `received` of `sent` packets.
    pub fn heard(&mut self, at: Time, sent: u32, received: u32) {
        dispatch_rate_control!(self, control => control.heard(at, sent, received));
    }
}
