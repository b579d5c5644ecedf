// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets at a constant rate: the first one at once, each next one when the rate has carried the one
//! before.
//!
//! With packets of one size they are equally far apart; fractions of a nanosecond are carried on, so
//! that the rate is exact over any length of time.

use airpath_core::{Bits, Carry, DrawKey, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{self, PacketSizes};
use super::{Generator, LEAST_INTERVAL, Packet};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::Random;
use crate::registry::Configured;

/// Parameters of the load of constant rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CbrConfig {
    /// Bits of IP packets a second.
    pub rate: Rate,
    /// The IP length of a packet.
    pub packet_size: Random<Bits>,
}

impl Configured for CbrConfig {
    type Model = Cbr;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = size::problems(&self.packet_size, "packet_size");
        problems.extend(size::packets_per_second_problem(self.rate, &self.packet_size));
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.packet_size.files(&mut under("packet_size", visit));
    }

    fn build(&self, key: DrawKey) -> Cbr {
        Cbr::new(self, key)
    }

    fn examples() -> Vec<CbrConfig> {
        let config =
            |rate: &str, packet_size| CbrConfig { rate: rate.parse().expect("an example is valid"), packet_size };
        let mut all = vec![config("200 kbit/s", Random::Constant(Bits::from_bytes(125)))];
        all.extend(Random::examples(Bits::from_bytes(300)).into_iter().map(|size| config("333_333 bit/s", size)));
        all
    }
}

/// The load of constant rate.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    sizes: PacketSizes,
    carry: Carry,
    next: Span,
    sent: u64,
}

impl Cbr {
    pub(super) fn new(config: &CbrConfig, key: DrawKey) -> Cbr {
        let sizes = PacketSizes::new(&config.packet_size, key);
        Cbr { rate: config.rate, sizes, carry: Carry::NONE, next: Span::ZERO, sent: 0 }
    }
}

impl Generator for Cbr {
    fn next_packet(&mut self) -> Option<Packet> {
        let packet = Packet { after: self.next, bytes: self.sizes.next_bytes(), sender: self.sent };
        let carried = self.rate.tx(Bits::from_bytes(packet.bytes.into()), &mut self.carry);
        self.next = self.next + carried.max(LEAST_INTERVAL);
        self.sent += 1;
        Some(packet)
    }
}
