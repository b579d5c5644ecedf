// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A Poisson process of packets: intervals are independent and exponentially distributed.
//!
//! With packets of one size on a link of constant rate this is the arrival process of the M/D/1 queue,
//! whose mean wait is ρ/(2(1-ρ)) service times (Pollaczek-Khinchine formula).

use airpath_core::{Bits, DrawKey, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{self, PacketSizes};
use super::{Generator, LEAST_INTERVAL, Packet};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::Random;
use crate::registry::Configured;

/// Parameters of the Poisson load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoissonConfig {
    /// Bits of IP packets a second, on average; instead of `mean_interval`, for packets of one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The mean time between two packets; instead of `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<Span>,
    /// The IP length of a packet.
    pub packet_size: Random<Bits>,
}

impl Configured for PoissonConfig {
    type Model = Poisson;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = size::problems(&self.packet_size, "packet_size");
        match (self.rate, self.mean_interval) {
            (Some(_), Some(_)) => {
                problems.push(Problem::new("mean_interval", "says what `rate` says; write one of them"));
            }
            (None, None) => {
                let message = "is missing, and so is `mean_interval`: write one of them, for example \"1 Mbit/s\"";
                problems.push(Problem::new("rate", message));
            }
            (Some(_), None) if self.packet_size.constant().is_none() => {
                let message = "is for packets of one size; where sizes are random, write `mean_interval`";
                problems.push(Problem::new("rate", message));
            }
            (None, Some(mean)) if mean < LEAST_INTERVAL => {
                let message = format!("is {mean}, less than {LEAST_INTERVAL}; write for example \"10 ms\"");
                problems.push(Problem::new("mean_interval", message));
            }
            (Some(rate), None) => problems.extend(size::packets_per_second_problem(rate, &self.packet_size)),
            _ => {}
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.packet_size.files(&mut under("packet_size", visit));
    }

    fn build(&self, key: DrawKey) -> Poisson {
        Poisson::new(self, key)
    }

    fn examples() -> Vec<PoissonConfig> {
        let rate = Some("300 kbit/s".parse().expect("an example is valid"));
        let of_one_size = PoissonConfig { rate, mean_interval: None, packet_size: Bits::from_bytes(200).into() };
        let of_many =
            |packet_size| PoissonConfig { rate: None, mean_interval: Some(Span::from_millis(7)), packet_size };
        let mut all = vec![of_one_size];
        all.extend(Random::examples(Bits::from_bytes(250)).into_iter().map(of_many));
        all
    }
}

/// The Poisson load.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean_ns: f64,
    key: DrawKey,
    sizes: PacketSizes,
    last: Span,
    sent: u64,
}

impl Poisson {
    pub(super) fn new(config: &PoissonConfig, key: DrawKey) -> Poisson {
        let mean_ns = match (config.rate, config.mean_interval) {
            (Some(rate), _) => {
                let bits = config.packet_size.constant().unwrap_or_default();
                bits.get() as f64 * 1e9 / rate.bits_per_second() as f64
            }
            (None, interval) => interval.unwrap_or_default().nanos() as f64,
        };
        let sizes = PacketSizes::new(&config.packet_size, key);
        Poisson { mean_ns, key: key.child("interval", 0), sizes, last: Span::ZERO, sent: 0 }
    }
}

impl Generator for Poisson {
    fn next_packet(&mut self) -> Option<Packet> {
        // A cast from a floating-point number keeps to the range of the integer.
        let interval = libm::round(self.mean_ns * self.key.exponential(self.sent, 0)) as u64;
        self.last = self.last + Span::from_nanos(interval).max(LEAST_INTERVAL);
        let packet = Packet { after: self.last, bytes: self.sizes.next_bytes(), sender: self.sent };
        self.sent += 1;
        Some(packet)
    }
}
