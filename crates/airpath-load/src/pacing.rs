// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Send times of datagrams: at equal distances, or as a Poisson process.

use airpath_core::draw::{DrawKey, DrawScope, Seed};
use airpath_core::{Bits, Carry, Direction, Rate};

use crate::plan::{Arrivals, Datagrams};

/// The sending times of one stream, in ns since its beginning.
pub struct Pacer {
    rate: Rate,
    bits: Bits,
    carry: Carry,
    key: Option<DrawKey>,
    number: u64,
    next_ns: u64,
}

impl Pacer {
    /// The times of stream `index` of several alike.
    pub fn new(plan: &Datagrams, index: u32) -> Pacer {
        let key = match plan.arrivals {
            Arrivals::Constant => None,
            Arrivals::Poisson { seed } => {
                let role = "arrivals";
                let scope = DrawScope { hop: "load", direction: Direction::Uplink, role, instance: u64::from(index) };
                Some(DrawKey::new(Seed(seed), &scope))
            }
        };
        let mut pacer = Pacer {
            // The plan's rate is not zero; the slowest one stands for a plan that breaks its word.
            rate: Rate::new(plan.rate_bits_per_second.max(1)).unwrap_or_else(|| unreachable!("at least 1")),
            bits: Bits::from_bytes(u64::from(plan.length_bytes)),
            carry: Carry::NONE,
            key,
            number: 0,
            next_ns: 0,
        };
        if pacer.key.is_some() {
            // A Poisson process begins with a gap; equal distances begin with a datagram.
            pacer.advance();
        }
        pacer
    }

    /// Send time of the next datagram.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Goes on to the datagram after it.
    pub fn advance(&mut self) {
        let mean_ns = self.rate.tx(self.bits, &mut self.carry).nanos();
        let gap_ns = match self.key {
            None => mean_ns,
            // Inversion of the exponential distribution.
            Some(key) => (-libm::log(key.unit(self.number, 0)) * mean_ns as f64).round() as u64,
        };
        self.number += 1;
        self.next_ns = self.next_ns.saturating_add(gap_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Extent, Transport};

    fn pacer(arrivals: Arrivals, index: u32) -> Pacer {
        let plan = Datagrams {
            transport: Transport::Udp,
            extent: Extent::Bytes(0),
            rate_bits_per_second: 9_600,
            length_bytes: 100,
            arrivals,
        };
        Pacer::new(&plan, index)
    }

    fn times(mut pacer: Pacer, count: usize) -> Vec<u64> {
        let next = std::iter::repeat_with(|| {
            let at = pacer.next_ns();
            pacer.advance();
            at
        });
        next.take(count).collect()
    }

    #[test]
    fn equal_distances_do_not_drift() {
        // 800 bit at 9600 bit/s: a twelfth of a second, so that the twelfth gap ends a whole second.
        let times = times(pacer(Arrivals::Constant, 0), 13);
        assert_eq!(times[..3], [0, 83_333_333, 166_666_666]);
        assert_eq!(times[12], 1_000_000_000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = times(pacer(Arrivals::Poisson { seed: 5 }, 0), 20_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 83_333_333.0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let above = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
        // Standard errors: 1/sqrt(20000) = 0.0071 and sqrt(e^-1 (1 - e^-1)/20000) = 0.0034; four of each.
        assert!((mean - 1.0).abs() < 0.028, "{mean}");
        assert!((above - (-1f64).exp()).abs() < 0.014, "{above}");
    }

    #[test]
    fn streams_and_seeds_differ_and_repeat() {
        let draw = |seed, index| times(pacer(Arrivals::Poisson { seed }, index), 3);
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }
}
