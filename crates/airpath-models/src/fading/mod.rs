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

mod constant;
mod jakes;
mod motion;
mod multipath;
mod path_loss;
mod profile;
pub mod quantity;
mod recorded;
mod shadowing;
mod tables;
mod taps;

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use constant::{Constant, ConstantConfig};
pub use jakes::JakesConfig;
pub use motion::SpeedConfig;
pub use multipath::Multipath;
pub use path_loss::{Law, PathLossConfig};
pub use profile::ProfileConfig;
pub use recorded::{AtEnd, Recorded, RecordedConfig, SnrTable};
pub use shadowing::ShadowingConfig;
pub use tables::Profile;
pub use taps::TapsConfig;

use crate::file::VisitFile;
use crate::problem::Problem;
use crate::registry::registry;
use motion::Motion;
use quantity::{Decibels, Frequency};
use shadowing::Shadowing;

/// Slots that are computed together.
pub const BLOCK: usize = 64;

/// Resources, and sinusoids, that are computed together.
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
    /// Number of resources that are computed.
    fn lanes(&self) -> usize {
        usize::from(self.resources).next_multiple_of(LANES)
    }

    /// Frequency of a resource relative to the carrier, which is in the middle.
    fn offset_hz(&self, resource: usize) -> f64 {
        (resource as f64 - (f64::from(self.resources) - 1.0) / 2.0) * self.spacing_hz
    }
}

/// The complex frequency response of a channel, of mean power one.
pub trait Response {
    /// Writes the response in each slot of `block`, at each resource (as many as `Grid` computes, slot by slot).
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
    Jakes = jakes::{JakesConfig, Multipath},
    /// A delay profile of a standard.
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

/// A radio channel: `{ type = "profile", profile = "eva", speed = "75 km/h", carrier = "1900 MHz", snr = "16 dB" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FadingConfig {
    /// The model.
    #[serde(flatten)]
    pub model: FadingModelConfig,
    /// Mean signal-to-noise ratio.
    #[serde(default)]
    pub snr: Decibels,
    /// Carrier frequency.
    #[serde(default = "carrier")]
    pub carrier: Frequency,
    /// Speed, or a list of times and speeds.
    #[serde(default)]
    pub speed: SpeedConfig,
    /// Number of resources, side by side in frequency around the carrier.
    #[serde(default = "one")]
    pub resources: u16,
    /// Distance between the middles of two resources.
    #[serde(default = "spacing")]
    pub spacing: Frequency,
    /// Number of slots in a second.
    #[serde(default = "slots_per_second")]
    pub slots_per_second: u32,
    /// Normalised mean square error of the prediction: 0 for a perfect one.
    #[serde(default)]
    pub prediction_error: f64,
    /// Slow variations of the mean over the distance travelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<ShadowingConfig>,
    /// Variation of the mean over the distance from the base station.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_loss: Option<PathLossConfig>,
}

fn carrier() -> Frequency {
    Frequency(1.9e9)
}

fn spacing() -> Frequency {
    Frequency(200e3)
}

fn one() -> u16 {
    1
}

fn slots_per_second() -> u32 {
    1500
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

impl FadingConfig {
    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.model.files(visit);
    }

    /// Errors in the parameters, if any. Files are loaded.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.model.problems();
        let mut check = |key: &str, fits: bool, message: String| {
            if !fits {
                problems.push(Problem::new(key, message));
            }
        };
        check("snr", (-100.0..=100.0).contains(&self.snr.0), format!("is {}; it must be within 100 dB", self.snr));
        let carrier = self.carrier.0;
        check("carrier", (1e6..=1e12).contains(&carrier), format!("is {}; it must be 1 MHz to 1 THz", self.carrier));
        let spacing = self.spacing.0;
        check("spacing", (0.0..=1e9).contains(&spacing), format!("is {}; it must be up to 1 GHz", self.spacing));
        let resources = self.resources;
        check("resources", (1..=1024).contains(&resources), format!("are {resources}; there must be 1 to 1024"));
        let slots = self.slots_per_second;
        check("slots_per_second", (1..=100_000).contains(&slots), format!("is {slots}; it must be 1 to 100000"));
        let error = self.prediction_error;
        let message = format!(
            "is {error}; it must be from 0 to below 1 (whoever always predicts the mean of the complex channel has 1)"
        );
        check("prediction_error", (0.0..1.0).contains(&error), message);
        if let FadingModelConfig::Recorded(config) = &self.model {
            let message = "has no meaning for recorded ratios, which have no phase";
            check("prediction_error", error == 0.0, message.into());
            problems.extend(config.problems_of(self.resources));
        }
        problems.extend(self.speed.problems());
        let shadowing = self.shadowing.iter().flat_map(ShadowingConfig::problems);
        problems.extend(shadowing.map(|problem| problem.under("shadowing")));
        let path_loss = self.path_loss.iter().flat_map(PathLossConfig::problems);
        problems.extend(path_loss.map(|problem| problem.under("path_loss")));
        problems
    }

    /// Channels of every registered model, and with everything else that a channel can have.
    pub fn examples() -> Vec<FadingConfig> {
        let plain = |model: FadingModelConfig| FadingConfig {
            model,
            snr: Decibels(16.0),
            carrier: carrier(),
            speed: SpeedConfig::Constant(quantity::Speed(75.0 / 3.6)),
            resources: 3,
            spacing: spacing(),
            slots_per_second: slots_per_second(),
            prediction_error: 0.0,
            shadowing: None,
            path_loss: None,
        };
        let mut all: Vec<FadingConfig> = FadingModelConfig::examples().into_iter().map(plain).collect();
        let (seconds, speed) = (quantity::Seconds, quantity::Speed);
        all.push(FadingConfig {
            prediction_error: 0.1,
            resources: 25,
            speed: SpeedConfig::Profile(vec![(seconds(0.0), speed(0.0)), (seconds(1.0), speed(30.0))]),
            shadowing: Some(ShadowingConfig { deviation: Decibels(4.0), pole: 0.74, every: quantity::Distance(2.0) }),
            path_loss: Some(PathLossConfig {
                law: Law::LogDistance { exponent: 3.5 },
                reference: quantity::Distance(500.0),
                ahead: quantity::Distance(20.0),
                aside: quantity::Distance(50.0),
            }),
            ..plain(FadingModelConfig::Profile(ProfileConfig {
                profile: Profile::Tu12At5Mhz,
                delay_spread: None,
                sinusoids: tap_sinusoids(),
            }))
        });
        all
    }
}

/// The radio channel of a station.
#[derive(Clone, Debug)]
pub struct Fading {
    model: FadingModel,
    motion: Motion,
    mean: f64,
    shadowing: Option<Shadowing>,
    path_loss: Option<PathLossConfig>,
    prediction: Option<Prediction>,
    resources: usize,
    lanes: usize,
    slots_per_second: u32,
    /// Number of the block that is computed.
    block: Option<u64>,
    re: Vec<f32>,
    im: Vec<f32>,
    snr: Vec<f32>,
}

/// The prediction ĥ = (1 − e) h + √(e (1 − e)) w of the channel h, where e is the normalised mean square error and w an
/// independent channel of the same kind.
///
/// The error h − ĥ has the power e and no correlation with ĥ, as that of a linear predictor of least mean square
/// error (Sternad and Falahati 2004); ĥ has the power 1 − e.
#[derive(Clone, Debug)]
struct Prediction {
    of_channel: f32,
    of_other: f32,
    other: FadingModel,
    re: Vec<f32>,
    im: Vec<f32>,
    snr: Vec<f32>,
}

impl Fading {
    /// The channel that `config` describes, without problems; its draws are those of `key`.
    pub fn new(config: &FadingConfig, key: DrawKey) -> Fading {
        let grid = |role| Grid {
            key: key.child(role, 0),
            resources: config.resources,
            spacing_hz: config.spacing.0,
            wavelength: LIGHT_METRES_PER_SECOND / config.carrier.0,
        };
        let lanes = grid("channel").lanes();
        let values = || vec![0.0; lanes * BLOCK];
        let error = config.prediction_error;
        let prediction = (error > 0.0).then(|| Prediction {
            of_channel: (1.0 - error) as f32,
            of_other: libm::sqrt(error * (1.0 - error)) as f32,
            other: FadingModel::new(&config.model, grid("prediction")),
            re: values(),
            im: values(),
            snr: values(),
        });
        Fading {
            model: FadingModel::new(&config.model, grid("channel")),
            motion: Motion::new(&config.speed, config.slots_per_second),
            mean: config.snr.0,
            shadowing: config.shadowing.as_ref().map(|config| Shadowing::new(config, key.child("shadowing", 0))),
            path_loss: config.path_loss.clone(),
            prediction,
            resources: config.resources.into(),
            lanes,
            slots_per_second: config.slots_per_second,
            block: None,
            re: values(),
            im: values(),
            snr: values(),
        }
    }

    /// Beginning of slot number `slot`.
    pub fn slot_start(&self, slot: u64) -> Time {
        let nanos = u128::from(slot) * 1_000_000_000 / u128::from(self.slots_per_second);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Number of resources.
    pub fn resources(&self) -> u16 {
        self.resources as u16
    }

    /// Signal-to-noise ratios of all resources in slot number `slot`, as ratios of powers.
    #[inline]
    pub fn snr(&mut self, slot: u64) -> &[f32] {
        let places = self.at(slot);
        &self.snr[places]
    }

    /// The same, as the receiver predicted them.
    #[inline]
    pub fn predicted(&mut self, slot: u64) -> &[f32] {
        let places = self.at(slot);
        self.prediction.as_ref().map_or(&self.snr[..], |prediction| &prediction.snr)[places].as_ref()
    }

    #[inline]
    fn at(&mut self, slot: u64) -> std::ops::Range<usize> {
        let block = slot / BLOCK as u64;
        if self.block != Some(block) {
            self.compute(block);
        }
        let first = (slot % BLOCK as u64) as usize * self.lanes;
        first..first + self.resources
    }

    fn compute(&mut self, index: u64) {
        let block = self.motion.block(index);
        self.block = Some(index);
        self.model.respond(&block, &mut self.re, &mut self.im);
        let mut means = [0.0; BLOCK];
        let changes = self.shadowing.is_some() || self.path_loss.is_some();
        for (slot, mean) in means.iter_mut().enumerate() {
            if slot > 0 && !changes {
                break;
            }
            let distance = block.distance + block.step * slot as f64;
            let shadowing = self.shadowing.as_mut().map_or(0.0, |shadowing| shadowing.decibels(distance));
            let path = self.path_loss.as_ref().map_or(0.0, |path_loss| path_loss.decibels(distance));
            *mean = Decibels(self.mean + shadowing + path).ratio() as f32;
        }
        if !changes {
            means = [means[0]; BLOCK];
        }
        powers(&self.re, &self.im, &means, &mut self.snr);
        if let Some(prediction) = &mut self.prediction {
            let Prediction { of_channel, of_other, other, re, im, snr } = prediction;
            other.respond(&block, re, im);
            for (part, channel) in [(&mut *re, &self.re), (&mut *im, &self.im)] {
                for (part, channel) in part.iter_mut().zip(channel) {
                    *part = *of_channel * channel + *of_other * *part;
                }
            }
            powers(re, im, &means, snr);
        }
    }
}

fn powers(re: &[f32], im: &[f32], means: &[f32; BLOCK], snr: &mut [f32]) {
    let lanes = snr.len() / BLOCK;
    let slots = snr.chunks_exact_mut(lanes).zip(re.chunks_exact(lanes).zip(im.chunks_exact(lanes)));
    for ((snr, (re, im)), mean) in slots.zip(means) {
        for ((snr, re), im) in snr.iter_mut().zip(re).zip(im) {
            *snr = (re * re + im * im) * mean;
        }
    }
}
