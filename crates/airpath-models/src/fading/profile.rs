// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Named delay profiles of the standards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::multipath::Multipath;
use super::quantity::Seconds;
use super::spectrum::Tap;
use super::tables::{self, Profile};
use super::{Grid, check_sinusoids, tap_sinusoids};
use crate::problem::Problem;
use crate::registry::Configured;

/// A delay profile: `{ type = "profile", profile = "eva" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileConfig {
    /// Its name.
    pub profile: Profile,
    /// Delay spread by which the delays of `tdl_a` to `tdl_e` are multiplied; the others have delays of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_spread: Option<Seconds>,
    /// Number of sinusoids of each tap.
    #[serde(default = "tap_sinusoids")]
    pub sinusoids: u32,
}

impl ProfileConfig {
    pub(super) fn taps(&self) -> Vec<Tap> {
        tables::taps(self.profile, self.delay_spread.map_or(0.0, |spread| spread.0))
    }
}

impl Configured<Grid> for ProfileConfig {
    type Model = Multipath;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = check_sinusoids(self.sinusoids);
        match self.delay_spread {
            None if self.profile.is_normalised() => {
                problems.push(Problem::new("delay_spread", "is missing: this profile has no delays of its own"));
            }
            Some(_) if !self.profile.is_normalised() => {
                problems.push(Problem::new("delay_spread", "has no meaning: this profile has delays of its own"));
            }
            Some(spread) if !(0.0..=1e-4).contains(&spread.0) => {
                problems.push(Problem::new("delay_spread", format!("is {spread}; it must be from 0 to 100 us")));
            }
            _ => {}
        }
        problems
    }

    fn build(&self, grid: Grid) -> Multipath {
        Multipath::new(&self.taps(), self.sinusoids as usize, &grid)
    }

    fn examples() -> Vec<ProfileConfig> {
        let example = |profile: &Profile| ProfileConfig {
            profile: *profile,
            delay_spread: profile.is_normalised().then_some(Seconds(300e-9)),
            sinusoids: tap_sinusoids(),
        };
        Profile::ALL.iter().map(example).collect()
    }
}
