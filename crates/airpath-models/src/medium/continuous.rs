// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A medium that is always there: each direction transmits one frame after the other at a rate.
//!
//! Source: Kojo et al. 2001, section 4.3 (transmission delay): a frame of b bits takes b / rate.
//! The fraction of a nanosecond left over by one frame is carried into the next one if that follows
//! without a gap, so that the rate is exact over any busy period. A frame under transmission keeps
//! the rate at which it began. Rates that vary over time have transmitters of their own ([`rate`]).
//!
//! [`rate`]: super::rate

use std::collections::VecDeque;

use airpath_core::{Bits, Carry, Direction, DrawKey, LinkRate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate::{InFlight, RateConfig, Transmit, Varying, VaryingConfig};
use super::{Medium, MediumBeginning, MediumParameters};
use crate::air::{Air, Frame, Grant};
use crate::registry::{Configured, Reconfigured};

/// A medium that is always there. All its parameters are those of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContinuousConfig {}

impl Configured<MediumBeginning<'_>> for ContinuousConfig {
    type Model = Continuous;

    fn build(&self, beginning: MediumBeginning<'_>) -> Continuous {
        Continuous::new(beginning.links.map(|link| link.rate), beginning.rates)
    }

    fn examples() -> Vec<ContinuousConfig> {
        vec![ContinuousConfig {}]
    }
}

impl Reconfigured<MediumBeginning<'_>> for ContinuousConfig {
    fn configure(&self, _medium: &mut Continuous, _at: Time) {}
}

/// Both directions of a continuous medium with a single user.
#[derive(Clone, Debug)]
pub struct Continuous {
    directions: [Transmitter; 2],
}

/// A transmitter at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    rate: LinkRate,
    /// End of the last frame, and the rest of a nanosecond that it left.
    ended: Time,
    carry: Carry,
}

impl Steady {
    /// Duration of a frame of `bits` that begins at `start`.
    #[inline]
    pub(crate) fn duration(&mut self, start: Time, bits: Bits) -> Span {
        // A gap ends a busy period, and what it left of a nanosecond.
        if start != self.ended {
            self.carry = Carry::NONE;
        }
        match self.rate {
            LinkRate::Unlimited => Span::ZERO,
            LinkRate::Fixed(rate) => rate.tx(bits, &mut self.carry),
        }
    }

    /// Notes that a frame has ended at `at`.
    #[inline]
    pub(crate) fn note_end(&mut self, at: Time) {
        self.ended = at;
    }
}

#[derive(Clone, Debug)]
struct Transmitter {
    /// The transmitter at a constant rate, in force where no other is.
    steady: Steady,
    /// Transmitter at a varying rate, if there is one, and its parameters. A box, so that the usual link stays
    /// small.
    varying: Option<Box<(VaryingConfig, Varying)>>,
    on_air: Option<(Grant, Frame)>,
    /// End of the frame on the air, or time from which an idle transmitter has something to ask for.
    due: Time,
    /// Frames that have begun at another rate, with what is left of them.
    begun: VecDeque<InFlight>,
    /// The key of the draws of rates that vary at random.
    key: DrawKey,
    /// Number of times that such a rate has begun: one that comes back must not repeat its draws.
    generation: u64,
}

impl Continuous {
    /// An idle medium; `keys` are those of the draws of rates that vary at random.
    pub fn new(rates: [&RateConfig; 2], keys: [DrawKey; 2]) -> Continuous {
        let idle = |direction: Direction| {
            let mut transmitter = Transmitter {
                steady: Steady { rate: LinkRate::Unlimited, ended: Time::ZERO, carry: Carry::NONE },
                varying: None,
                on_air: None,
                due: Time::NEVER,
                begun: VecDeque::new(),
                key: keys[direction as usize],
                generation: 0,
            };
            transmitter.configure(rates[direction as usize], Time::ZERO);
            transmitter
        };
        Continuous { directions: Direction::ALL.map(idle) }
    }
}

impl Transmitter {
    #[inline]
    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        let ended = self.on_air.take();
        let constant_until_now = ended.is_some();
        if let Some((grant, frame)) = ended {
            self.steady.note_end(at);
            air.sent(at, &grant, frame);
        }
        if self.varying.is_some() || !self.begun.is_empty() {
            return self.step_otherwise(at, constant_until_now, direction, air);
        }
        let grant = Grant { resource: 0, bearer: 0, direction, bits: None, start: at };
        match air.next_frame(&grant) {
            Some(frame) => {
                self.due = at + self.steady.duration(at, frame.bits);
                self.on_air = Some((grant, frame));
            }
            None => self.due = Time::NEVER,
        }
    }

    /// Step of a rate that varies, or did when the next frame began.
    #[inline(never)]
    fn step_otherwise<A: Air>(&mut self, at: Time, constant_until_now: bool, direction: Direction, air: &mut A) {
        if let Some(varying) = &mut self.varying {
            let varying = &mut varying.1;
            if constant_until_now {
                // The frame that has ended was the last one at the rate before.
                varying.take_over(at, std::mem::take(&mut self.begun));
                varying.request(at);
            } else {
                varying.step(at, direction, air);
            }
            self.due = varying.next_deadline();
        } else if let Some(InFlight { grant, frame, bits_left }) = self.begun.pop_front() {
            self.due = at + self.steady.duration(at, Bits::new(bits_left));
            self.on_air = Some((grant, frame));
        }
    }

    /// Something may be ready at `at`.
    #[inline]
    fn request(&mut self, at: Time) {
        if self.on_air.is_some() {
            return;
        }
        match &mut self.varying {
            None => self.due = self.due.min(at),
            Some(varying) => {
                varying.1.request(at);
                self.due = varying.1.next_deadline();
            }
        }
    }

    fn configure(&mut self, rate: &RateConfig, at: Time) {
        let now = self.varying.as_deref().map(|(config, _)| config);
        let then = match rate {
            RateConfig::Constant(_) => None,
            RateConfig::Varying(varying) => Some(varying),
        };
        if now != then {
            if let Some(mut old) = self.varying.take() {
                self.begun.append(&mut old.1.hand_over(at));
            }
            let key = self.key.child("generation", self.generation);
            self.generation += u64::from(then.is_some());
            self.varying = then.map(|config| Box::new((config.clone(), Varying::new(config, key))));
            // A frame that began at a constant rate keeps it. Otherwise the hop asks again.
            if self.on_air.is_none() {
                self.due = if self.begun.is_empty() { Time::NEVER } else { at };
                if let Some(varying) = &mut self.varying {
                    varying.1.take_over(at, std::mem::take(&mut self.begun));
                    self.due = varying.1.next_deadline();
                }
            }
        }
        if let RateConfig::Constant(rate) = rate {
            self.steady.rate = *rate;
        }
    }
}

impl Medium for Continuous {
    fn request(&mut self, at: Time, _bearer: u16, direction: Direction) {
        self.directions[direction as usize].request(at);
    }

    fn next_deadline(&self) -> Time {
        self.directions[0].due.min(self.directions[1].due)
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        for direction in Direction::ALL {
            let transmitter = &mut self.directions[direction as usize];
            if transmitter.due <= at {
                transmitter.step(at, direction, air);
            }
        }
    }

    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        let transmitter = &self.directions[direction as usize];
        match (&transmitter.varying, transmitter.steady.rate) {
            (Some(varying), _) => varying.1.least_time(at, bits),
            (None, LinkRate::Unlimited) => Span::ZERO,
            // Rounded down, as by a busy link that has a part of a nanosecond left.
            (None, LinkRate::Fixed(rate)) => rate.tx(bits, &mut { Carry::NONE }),
        }
    }

    fn steady(&self, direction: Direction) -> Option<Steady> {
        let transmitter = &self.directions[direction as usize];
        let is_steady = transmitter.varying.is_none() && transmitter.begun.is_empty();
        (is_steady && transmitter.on_air.is_none() && transmitter.due == Time::NEVER).then_some(transmitter.steady)
    }

    fn go_on(&mut self, direction: Direction, steady: Steady, on_air: Option<(Grant, Frame)>, due: Time) {
        let transmitter = &mut self.directions[direction as usize];
        (transmitter.steady, transmitter.on_air, transmitter.due) = (steady, on_air, due);
    }

    fn configure(&mut self, at: Time, links: [MediumParameters<'_>; 2]) {
        for (transmitter, link) in self.directions.iter_mut().zip(links) {
            transmitter.configure(link.rate, at);
        }
    }
}
