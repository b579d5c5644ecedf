// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fading: the radio channel of a station, as a signal-to-noise ratio by resource and slot.
//!
//! A channel is a pure function of its key, the resource and the slot: whichever slots are asked for, in whatever
//! order, a value is the same bit for bit, on every machine. Models therefore compute whole blocks of [`BLOCK`]
//! slots from keyed draws, in a fixed order of operations, with transcendental functions of the `libm` crate and without
//! fused multiplications.
//!
//! Slots are a grid by number: slot n begins ⌊n·10⁹/`slots_per_second`⌋ ns after the beginning.

mod cdl;
mod cdl_tables;
mod channel;
mod config;
mod constant;
mod filtered_noise;
mod jakes;
mod motion;
mod multipath;
mod path_loss;
mod phasor;
mod prediction;
mod profile;
pub mod quantity;
mod recorded;
mod shadowing;
mod spectrum;
mod tables;
mod taps;
mod theory;
mod track;

use airpath_core::DrawKey;

pub use cdl::{ArrayConfig, CdlConfig};
pub use cdl_tables::CdlProfile;
pub use channel::Fading;
pub use config::FadingConfig;
pub use constant::{Constant, ConstantConfig};
pub use filtered_noise::FilteredNoiseConfig;
pub use jakes::JakesConfig;
pub use motion::SpeedConfig;
pub use multipath::Multipath;
pub use path_loss::{Heights, Law, PathLossConfig};
pub use profile::ProfileConfig;
pub use recorded::{Recorded, RecordedConfig, SnrTable};
pub use shadowing::ShadowingConfig;
pub use tables::Profile;
pub use taps::TapsConfig;
pub use theory::Theory;
pub use track::{Position, Track};

use crate::problem::Problem;
use crate::registry::registry;

/// Slots that are computed together.
pub const BLOCK: usize = 64;

/// Resources, and slots, that are computed together.
const LANES: usize = 8;

const LIGHT_METRES_PER_SECOND: f64 = 299_792_458.0;

/// A block of slots, and where the station is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its number.
    pub index: u64,
    /// Distance travelled at its beginning, in metres.
    pub distance: f64,
    /// Distance from slot to slot.
    pub step: f64,
}

/// Surroundings of a model at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Key of the draws.
    pub key: DrawKey,
    /// Number of resources.
    pub resources: u16,
    /// Distance between the middles of two resources, in hertz.
    pub spacing_hz: f64,
    /// Wavelength of the carrier, in metres.
    pub wavelength: f64,
}

impl Grid {
    /// Number of resources from the carrier upwards that are computed; as many are computed downwards.
    fn half(&self) -> usize {
        usize::from(self.resources).div_ceil(2).next_multiple_of(LANES)
    }

    /// Number of values of a slot.
    fn lanes(&self) -> usize {
        2 * self.half()
    }

    /// Place of the first resource among the values of a slot.
    fn first(&self) -> usize {
        let below = usize::from(self.resources) / 2;
        self.half() - below - usize::from(self.resources) % 2
    }

    /// Frequency relative to the carrier of a resource from the carrier upwards.
    fn upper_hz(&self, resource: usize) -> f64 {
        (resource as f64 + if self.resources.is_multiple_of(2) { 0.5 } else { 0.0 }) * self.spacing_hz
    }
}

/// The complex frequency response of a channel, of mean power one.
pub trait Response {
    /// Writes the response in each slot of `block`, slot by slot: for each slot as many values as the grid has, those of
    /// the resources from its first place on.
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]);
}

registry! {
    /// The model of a channel's fast variations.
    config FadingModelConfig,
    /// A channel of any registered kind.
    model FadingModel,
    dispatch dispatch_fading, dispatch_fading_config,
    built from crate::fading::Grid,
    reconfigured no,
    /// No fading.
    Constant = constant::{ConstantConfig, Constant},
    /// Flat fading: Rayleigh, or Rice with a direct path.
    /// Source: Clarke 1968; Jakes 1974.
    Jakes = jakes::{JakesConfig, Multipath},
    /// Flat Rayleigh fading by filtered noise.
    /// Source: Jakes 1974, section 1.7; Young and Beaulieu 2000.
    FilteredNoise = filtered_noise::{FilteredNoiseConfig, FilteredNoise},
    /// A clustered delay line of 3GPP, with directions.
    /// Source: 3GPP TR 38.901, clause 7.7.1.
    Cdl = cdl::{CdlConfig, Multipath},
    /// A delay profile of a standard.
    /// Source: 3GPP TS 36.101, 45.005 and TR 38.901.
    Profile = profile::{ProfileConfig, Multipath},
    /// Echoes of given delays and powers.
    Taps = taps::{TapsConfig, Multipath},
    /// Signal-to-noise ratios of a file.
    Recorded = recorded::{RecordedConfig, Recorded},
}

impl Response for FadingModel {
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]) {
        dispatch_fading!(self, model => model.respond(block, re, im));
    }
}

/// Sinusoids of a tap among others, unless said otherwise.
fn tap_sinusoids() -> u32 {
    8
}

fn check_sinusoids(sinusoids: u32) -> Vec<Problem> {
    if (1..=1000).contains(&sinusoids) {
        return Vec::new();
    }
    vec![Problem::new("sinusoids", format!("are {sinusoids}; there must be 1 to 1000 (8 or more look like Rayleigh)"))]
}
