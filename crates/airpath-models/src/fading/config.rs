// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a radio channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filtered_noise::FilteredNoiseConfig;
use super::motion::SpeedConfig;
use super::path_loss::{Heights, Law, PathLossConfig};
use super::profile::ProfileConfig;
use super::quantity::{self, Decibels, Frequency};
use super::shadowing::ShadowingConfig;
use super::tables::Profile;
use super::track::{Position, Track};
use super::{FadingModelConfig, tap_sinusoids};
use crate::file::{FileRef, VisitFile};
use crate::problem::Problem;

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
    /// Speed, or a list of times and speeds; by default the station stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedConfig>,
    /// Positions with times along which the station moves, instead of a speed: a GPX file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<FileRef<Track>>,
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

impl FadingConfig {
    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.model.files(visit);
        if let Some(route) = &mut self.route {
            visit("route", route);
        }
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
        let is_right = spacing > 0.0 && spacing <= 1e9;
        check("spacing", is_right, format!("is {}; it must be above 0 and up to 1 GHz", self.spacing));
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
        if self.route.is_some() && self.speed.is_some() {
            problems.push(Problem::new("speed", "has no meaning with a route, whose times say how fast it is"));
        }
        problems.extend(self.speed.iter().flat_map(SpeedConfig::problems));
        let shadowing = self.shadowing.iter().flat_map(ShadowingConfig::problems);
        problems.extend(shadowing.map(|problem| problem.under("shadowing")));
        let path_loss = self.path_loss.iter().flat_map(|path_loss| path_loss.problems(self.route.is_some()));
        problems.extend(path_loss.map(|problem| problem.under("path_loss")));
        problems
    }

    /// Channels of every registered model, and with everything else that a channel can have.
    pub fn examples() -> Vec<FadingConfig> {
        let plain = |model: FadingModelConfig| FadingConfig {
            model,
            snr: Decibels(16.0),
            carrier: carrier(),
            speed: Some(SpeedConfig::Constant(quantity::Speed(75.0 / 3.6))),
            route: None,
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
            speed: Some(SpeedConfig::Profile(vec![(seconds(0.0), speed(0.0)), (seconds(1.0), speed(30.0))])),
            shadowing: Some(ShadowingConfig { deviation: Decibels(4.0), pole: 0.74, every: quantity::Distance(2.0) }),
            path_loss: Some(PathLossConfig {
                law: Law::LogDistance { exponent: 3.5 },
                reference: quantity::Distance(500.0),
                ahead: Some(quantity::Distance(20.0)),
                aside: Some(quantity::Distance(50.0)),
                latitude: None,
                longitude: None,
            }),
            ..plain(FadingModelConfig::Profile(ProfileConfig {
                profile: Profile::Tu12At5Mhz,
                delay_spread: None,
                sinusoids: tap_sinusoids(),
            }))
        });
        let at = |time, latitude| (time, Position { latitude, longitude: 24.94 });
        let track = Track { points: vec![at(0.0, 60.17), at(0.4, 60.1701), at(0.5, 60.1702)] };
        all.push(FadingConfig {
            speed: None,
            route: Some(FileRef::with_data("drive.gpx", track)),
            path_loss: Some(PathLossConfig {
                law: Law::UmaNlos(Heights {
                    height: quantity::Distance(25.0),
                    station_height: quantity::Distance(1.5),
                }),
                reference: quantity::Distance(500.0),
                ahead: None,
                aside: None,
                latitude: Some(60.175),
                longitude: Some(24.94),
            }),
            ..plain(FadingModelConfig::FilteredNoise(FilteredNoiseConfig {}))
        });
        all
    }
}
