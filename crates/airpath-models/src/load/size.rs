// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sizes of a load's packets: whole bytes of an IP packet.

use airpath_core::{Bits, Carry, DrawKey, Rate};

use super::LEAST_INTERVAL;
use crate::problem::Problem;
use crate::random::{Random, Sampler};

/// The longest IP packet.
pub(super) const LONGEST_BYTES: u64 = airpath_core::limits::LONGEST_PACKET_BYTES as u64;

/// Errors in packet sizes under `key`, if any.
pub(super) fn problems(size: &Random<Bits>, key: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = size.problems().into_iter().map(|problem| problem.under(key)).collect();
    if let Some(bits) = size.constant()
        && (!bits.get().is_multiple_of(8) || !(1..=LONGEST_BYTES).contains(&(bits.get() / 8)))
    {
        let message =
            format!("is {bits}; a packet has from 1 to {LONGEST_BYTES} whole bytes, for example \"1500 bytes\"");
        problems.push(Problem::new(key, message));
    }
    problems
}

/// Errors in sending packets of `size` at `rate`, if any.
pub(super) fn packets_per_second_problem(rate: Rate, size: &Random<Bits>) -> Option<Problem> {
    // A size that is wrong has been told.
    let bits = size.constant().filter(|bits| *bits != Bits::ZERO)?;
    (rate.tx(bits, &mut Carry::default()) < LEAST_INTERVAL).then(|| {
        let message = format!("is {rate}: packets of {bits} would be less than {LEAST_INTERVAL} apart");
        Problem::new("rate", message)
    })
}

/// Draws sizes. What is drawn is rounded up to whole bytes and kept to those of an IP packet.
#[derive(Clone, Debug)]
pub(super) struct PacketSizes {
    sampler: Sampler<Bits>,
    drawn: u64,
}

impl PacketSizes {
    pub fn new(size: &Random<Bits>, key: DrawKey) -> PacketSizes {
        PacketSizes { sampler: Sampler::new(size, key.child("size", 0)), drawn: 0 }
    }

    /// The size of the next packet in bytes.
    #[inline]
    pub fn next_bytes(&mut self) -> u32 {
        let bits = self.sampler.draw(self.drawn);
        self.drawn += 1;
        bits.get().div_ceil(8).clamp(1, LONGEST_BYTES) as u32
    }
}
