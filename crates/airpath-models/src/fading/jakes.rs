// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Flat fading with equal power from all directions, without (Rayleigh) or with a direct path (Rice).
//!
//! Source: Clarke 1968, Jakes 1974; sum of sinusoids after Zheng and Xiao 2003 (`multipath.rs`). The autocorrelation
//! is J₀(2πf_d τ), the power exponential around its mean. A Rician channel has a direct path of
//! K times the scattered power, whose Doppler frequency is f_d times the cosine of its angle to the movement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::multipath::Multipath;
use super::quantity::Decibels;
use super::spectrum::{Spectrum, Tap};
use super::{Grid, check_sinusoids};
use crate::problem::Problem;
use crate::registry::Configured;

/// Parameters of flat fading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JakesConfig {
    /// Number of sinusoids.
    #[serde(default = "sinusoids")]
    pub sinusoids: u32,
    /// Power of the direct path over that of all others (Rician K factor); without it there is no direct path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k_factor: Option<Decibels>,
    /// Angle between the direct path and the movement, in degrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub angle: Option<f64>,
}

fn sinusoids() -> u32 {
    16
}

impl JakesConfig {
    pub(super) fn tap(&self) -> Tap {
        let direct = |k: Decibels| (k.ratio(), libm::cos(self.angle.unwrap_or(0.0).to_radians()));
        Tap { delay: 0.0, power: 1.0, spectrum: Spectrum::Classical, direct: self.k_factor.map(direct) }
    }
}

impl Configured<Grid> for JakesConfig {
    type Model = Multipath;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = check_sinusoids(self.sinusoids);
        if let Some(k) = self.k_factor
            && !(-40.0..=60.0).contains(&k.0)
        {
            problems.push(Problem::new("k_factor", format!("is {k}; it must be from -40 to 60 dB")));
        }
        match self.angle {
            Some(_) if self.k_factor.is_none() => {
                problems.push(Problem::new("angle", "is that of the direct path, which needs a k_factor"));
            }
            Some(angle) if !(-360.0..=360.0).contains(&angle) => {
                problems.push(Problem::new("angle", format!("is {angle}; it must be from -360 to 360")));
            }
            _ => {}
        }
        problems
    }

    fn build(&self, grid: Grid) -> Multipath {
        Multipath::new(&[self.tap()], self.sinusoids as usize, &grid)
    }

    fn examples() -> Vec<JakesConfig> {
        vec![
            JakesConfig { sinusoids: 16, k_factor: None, angle: None },
            JakesConfig { sinusoids: 5, k_factor: Some(Decibels(6.0)), angle: Some(45.0) },
        ]
    }
}
