// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A constant rate that comes and goes: on for a time, off for a time, both from any distribution.
//!
//! It begins with an on period. The first packet of one goes at its beginning, and none at or after its
//! end. With heavy-tailed periods many such sources make self-similar traffic (Willinger et al. 1997).

use airpath_core::{Bits, Carry, DrawKey, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{self, PacketSizes};
use super::{Generator, LEAST_INTERVAL, Packet};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::{Random, Sampler};
use crate::registry::Configured;

/// Parameters of the load that comes and goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnOffConfig {
    /// Bits of IP packets a second while it is on.
    pub rate: Rate,
    /// The IP length of a packet.
    pub packet_size: Random<Bits>,
    /// Duration of on periods.
    pub on: Random<Span>,
    /// Duration of off periods.
    pub off: Random<Span>,
}

impl Configured for OnOffConfig {
    type Model = OnOff;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = size::problems(&self.packet_size, "packet_size");
        problems.extend(size::packets_per_second_problem(self.rate, &self.packet_size));
        for (key, period) in [("on", &self.on), ("off", &self.off)] {
            problems.extend(period.problems().into_iter().map(|problem| problem.under(key)));
            if period.constant() == Some(Span::ZERO) {
                problems.push(Problem::new(key, "is zero; write for example \"500 ms\", or use type \"cbr\""));
            }
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.packet_size.files(&mut under("packet_size", visit));
        self.on.files(&mut under("on", visit));
        self.off.files(&mut under("off", visit));
    }

    fn build(&self, key: DrawKey) -> OnOff {
        OnOff::new(self, key)
    }

    fn examples() -> Vec<OnOffConfig> {
        let periods = Random::examples(Span::from_millis(30));
        let config = |(on, off): (&Random<Span>, &Random<Span>)| OnOffConfig {
            rate: "500 kbit/s".parse().expect("an example is valid"),
            packet_size: Bits::from_bytes(250).into(),
            on: on.clone(),
            off: off.clone(),
        };
        periods.iter().zip(periods.iter().rev()).map(config).collect()
    }
}

/// The load that comes and goes.
#[derive(Clone, Debug)]
pub struct OnOff {
    rate: Rate,
    sizes: PacketSizes,
    on: Sampler<Span>,
    off: Sampler<Span>,
    /// The number of the on period.
    period: u64,
    on_ends: Span,
    carry: Carry,
    next: Span,
    sent: u64,
}

impl OnOff {
    pub(super) fn new(config: &OnOffConfig, key: DrawKey) -> OnOff {
        let mut load = OnOff {
            rate: config.rate,
            sizes: PacketSizes::new(&config.packet_size, key),
            on: Sampler::new(&config.on, key.child("on", 0)),
            off: Sampler::new(&config.off, key.child("off", 0)),
            period: 0,
            on_ends: Span::ZERO,
            carry: Carry::NONE,
            next: Span::ZERO,
            sent: 0,
        };
        load.on_ends = load.on.draw(0).max(LEAST_INTERVAL);
        load
    }
}

impl Generator for OnOff {
    fn next_packet(&mut self) -> Option<Packet> {
        if self.next >= self.on_ends {
            self.next = self.on_ends + self.off.draw(self.period);
            self.period += 1;
            // However short an on period is, it has its first packet: this ends.
            self.on_ends = self.next + self.on.draw(self.period).max(LEAST_INTERVAL);
            self.carry = Carry::NONE;
        }
        let packet = Packet { after: self.next, bytes: self.sizes.next_bytes(), sender: self.sent };
        let carried = self.rate.tx(Bits::from_bytes(packet.bytes.into()), &mut self.carry);
        self.next = self.next + carried.max(LEAST_INTERVAL);
        self.sent += 1;
        Some(packet)
    }
}
