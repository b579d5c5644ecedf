// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Transmissions of which only the beginning arrives.
//!
//! Source: Eckhardt and Steenkiste 2002, section 4 (packets that a receiver loses in the middle). What
//! is left is a whole number of bytes; a packet of which none is left is lost. Where a frame is cut, its
//! packet ends, and what later frames bring of it is of no use.

use airpath_core::{Bits, DrawKey};

use super::{ChannelOutcome, Transmission};
use crate::random::{Random, Sampler};

/// Remaining length of a truncated unit.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The length that is left, if it is given.
    kept: Option<Sampler<Bits>>,
    key: DrawKey,
}

impl Cut {
    pub(super) fn new(kept: Option<&Random<Bits>>, key: DrawKey) -> Cut {
        Cut { kept: kept.map(|kept| Sampler::new(kept, key)), key }
    }

    pub(super) fn configure(&mut self, kept: Option<&Random<Bits>>) {
        match (&mut self.kept, kept) {
            (Some(sampler), Some(kept)) => {
                sampler.configure(kept);
            }
            (sampler, kept) => *sampler = kept.map(|kept| Sampler::new(kept, self.key)),
        }
    }

    /// Cuts `unit` to the length that is given, or to any shorter one, each equally likely.
    pub(super) fn outcome(&mut self, step: u64, unit: &Transmission) -> ChannelOutcome {
        let bits = match &mut self.kept {
            Some(kept) => kept.draw(step).get(),
            None => {
                let shorter = u64::from(unit.packet_bits).div_ceil(8).saturating_sub(1);
                if shorter == 0 { 0 } else { 8 * (1 + self.key.below(step, 0, shorter)) }
            }
        };
        kept(bits, Vec::new(), unit)
    }
}

/// `unit` of which the first `bits` are left, with bits flipped at `flips` (counted from the packet's
/// first).
pub(super) fn kept(bits: u64, mut flips: Vec<u32>, unit: &Transmission) -> ChannelOutcome {
    if bits >= u64::from(unit.packet_bits) {
        return if flips.is_empty() { ChannelOutcome::Ok } else { ChannelOutcome::Flipped(flips) };
    }
    let bytes = (unit.first_bit + bits as u32) / 8;
    if bytes == 0 {
        return ChannelOutcome::Lost;
    }
    flips.retain(|position| *position < bytes * 8);
    ChannelOutcome::Truncated { bytes, flips }
}
