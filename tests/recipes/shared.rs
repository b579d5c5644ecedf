// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A medium made by the recipe: the continuous one, under another name.

use airpath_core::{Bits, Direction, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Continuous, Medium, MediumBeginning, MediumParameters};
use crate::air::Air;
use crate::registry::{Configured, Reconfigured};

/// No parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedConfig {}

impl Configured<MediumBeginning<'_>> for SharedConfig {
    type Model = Shared;

    fn build(&self, beginning: MediumBeginning<'_>) -> Shared {
        Shared(Continuous::new(beginning.links.map(|link| link.rate), beginning.rates))
    }

    fn examples() -> Vec<SharedConfig> {
        vec![SharedConfig {}]
    }
}

impl Reconfigured<MediumBeginning<'_>> for SharedConfig {
    fn configure(&self, _medium: &mut Shared, _at: Time) {}
}

/// The medium.
#[derive(Clone, Debug)]
pub struct Shared(Continuous);

impl Medium for Shared {
    fn request(&mut self, at: Time, user: u16, direction: Direction) {
        self.0.request(at, user, direction);
    }

    fn next_deadline(&self) -> Time {
        self.0.next_deadline()
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        self.0.step(at, air);
    }

    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        self.0.least_time(at, direction, bits)
    }

    fn configure(&mut self, at: Time, links: [MediumParameters<'_>; 2]) {
        self.0.configure(at, links);
    }
}
