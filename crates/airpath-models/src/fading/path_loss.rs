// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Path loss: the mean power over the distance from the base station.
//!
//! The station moves along a straight road that passes the base station at the distance `aside`; at the
//! beginning it is `ahead` before the nearest point (below zero: behind it). Or it moves along a route, and the base
//! station has a latitude and a longitude. The mean signal-to-noise ratio of the configuration is that at the
//! distance `reference`: terms that are the same at every distance are part of it.
//!
//! Sources: log-distance, 10 n log₁₀(r / reference), of which n = 2 is free space (Friis 1946); COST231-Hata
//! (COST 231 1999, section 4.4.1), whose slope over the distance is 44.9 − 6.55 log₁₀(height of the base station in m)
//! dB per decade; UMa with and without line of sight, 3GPP TR 38.901, table 7.4.1-1, with an effective environment
//! height of 1 m, which the standard has for stations below 13 m.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LIGHT_METRES_PER_SECOND;
use super::quantity::Distance;
use super::track::Position;
use crate::problem::Problem;

/// Loss over distance: `{ type = "log_distance", exponent = 3.5, reference = "500 m", ahead = "1 km", aside = "50 m" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLossConfig {
    /// The law.
    #[serde(flatten)]
    pub law: Law,
    /// Distance from the base station at which the mean signal-to-noise ratio holds.
    pub reference: Distance,
    /// Distance along the road to the point nearest to the base station, at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Distance>,
    /// Distance of the road from the base station.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<Distance>,
    /// Latitude of the base station in degrees, with a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latitude: Option<f64>,
    /// Longitude of the base station in degrees, with a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longitude: Option<f64>,
}

/// A law of path loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Law {
    /// A power of the distance.
    LogDistance {
        /// The power: 2 in free space, about 3.5 in towns.
        exponent: f64,
    },
    /// COST231-Hata, for 1500 to 2000 MHz and 1 to 20 km.
    Cost231Hata {
        /// Height of the base station's antenna.
        height: Distance,
    },
    /// Urban macro cell of 3GPP with line of sight, for 0.5 to 100 GHz and 10 m to 5 km.
    UmaLos(Heights),
    /// Urban macro cell of 3GPP without line of sight.
    UmaNlos(Heights),
}

/// Heights of the antennas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heights {
    /// Height of the base station's antenna.
    #[serde(default = "base_height")]
    pub height: Distance,
    /// Height of the station's antenna.
    #[serde(default = "station_height")]
    pub station_height: Distance,
}

fn base_height() -> Distance {
    Distance(25.0)
}

fn station_height() -> Distance {
    Distance(1.5)
}

impl Heights {
    /// Loss in decibels at a distance over ground, in metres.
    fn decibels(self, ground: f64, carrier_hz: f64, is_line_of_sight: bool) -> f64 {
        let (base, station) = (self.height.0, self.station_height.0);
        let ground = ground.max(10.0);
        let above = base - station;
        let distance = libm::log10(libm::sqrt(ground * ground + above * above));
        let carrier = 20.0 * libm::log10(carrier_hz / 1e9);
        let break_point = 4.0 * (base - 1.0) * (station - 1.0) * carrier_hz / LIGHT_METRES_PER_SECOND;
        let in_sight = if ground <= break_point {
            28.0 + 22.0 * distance + carrier
        } else {
            28.0 + 40.0 * distance + carrier - 9.0 * libm::log10(break_point * break_point + above * above)
        };
        if is_line_of_sight {
            return in_sight;
        }
        in_sight.max(13.54 + 39.08 * distance + carrier - 0.6 * (station - 1.5))
    }
}

impl PathLossConfig {
    pub(super) fn problems(&self, has_route: bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        match &self.law {
            Law::LogDistance { exponent } if !(0.0..=10.0).contains(exponent) => {
                problems.push(Problem::new("exponent", format!("is {exponent}; it must be from 0 to 10")));
            }
            Law::Cost231Hata { height } if !(30.0..=200.0).contains(&height.0) => {
                problems.push(Problem::new("height", format!("is {height}; the model holds from 30 to 200 m")));
            }
            Law::UmaLos(heights) | Law::UmaNlos(heights) => {
                let Heights { height, station_height } = heights;
                if !(10.0..=150.0).contains(&height.0) {
                    problems.push(Problem::new("height", format!("is {height}; it must be from 10 to 150 m")));
                }
                if !(1.5..13.0).contains(&station_height.0) {
                    let message = format!("is {station_height}; the model holds from 1.5 to below 13 m");
                    problems.push(Problem::new("station_height", message));
                }
            }
            _ => {}
        }
        for (key, distance) in [("reference", Some(self.reference)), ("aside", self.aside)] {
            if let Some(distance) = distance
                && !(1.0..=1e5).contains(&distance.0)
            {
                problems.push(Problem::new(key, format!("is {distance}; it must be from 1 m to 100 km")));
            }
        }
        if let Some(ahead) = self.ahead
            && !(-1e6..=1e6).contains(&ahead.0)
        {
            problems.push(Problem::new("ahead", format!("is {ahead}; it must be within 1000 km")));
        }
        for (key, angle, most) in [("latitude", self.latitude, 90.0), ("longitude", self.longitude, 180.0)] {
            if let Some(angle) = angle
                && !(-most..=most).contains(&angle)
            {
                problems.push(Problem::new(key, format!("is {angle}; it must be from -{most} to {most} degrees")));
            }
        }
        let road = [("ahead", self.ahead.is_some()), ("aside", self.aside.is_some())];
        let place = [("latitude", self.latitude.is_some()), ("longitude", self.longitude.is_some())];
        let (needed, refused, why) = if has_route {
            (place, road, "has no meaning with a route; give latitude and longitude of the base station")
        } else {
            (road, place, "has no meaning without a route; give `ahead` and `aside`")
        };
        let missing = needed.into_iter().filter(|(_, given)| !given);
        problems.extend(missing.map(|(key, _)| Problem::new(key, "is missing: it says where the base station is")));
        problems.extend(refused.into_iter().filter(|(_, given)| *given).map(|(key, _)| Problem::new(key, why)));
        problems
    }
}

/// Loss along a movement.
#[derive(Clone, Debug)]
pub(super) struct PathLoss {
    law: Law,
    carrier_hz: f64,
    /// Loss at the reference.
    reference: f64,
    base: Base,
}

/// Place of the base station.
#[derive(Clone, Copy, Debug)]
enum Base {
    Road { ahead: f64, aside: f64 },
    At(Position),
}

impl PathLoss {
    /// The path loss that `config` describes, without problems, with or without a route.
    pub(super) fn new(config: &PathLossConfig, carrier_hz: f64) -> PathLoss {
        let base = match (config.latitude, config.longitude) {
            (Some(latitude), Some(longitude)) => Base::At(Position { latitude, longitude }),
            _ => Base::Road { ahead: config.ahead.unwrap_or_default().0, aside: config.aside.unwrap_or_default().0 },
        };
        let mut loss = PathLoss { law: config.law.clone(), carrier_hz, reference: 0.0, base };
        loss.reference = loss.at(config.reference.0);
        loss
    }

    /// Loss at a distance over ground in metres, in decibels, but for terms that are the same at every distance.
    fn at(&self, distance: f64) -> f64 {
        match &self.law {
            Law::LogDistance { exponent } => 10.0 * exponent * libm::log10(distance),
            Law::Cost231Hata { height } => (44.9 - 6.55 * libm::log10(height.0)) * libm::log10(distance),
            Law::UmaLos(heights) => heights.decibels(distance, self.carrier_hz, true),
            Law::UmaNlos(heights) => heights.decibels(distance, self.carrier_hz, false),
        }
    }

    /// Gain after `travelled` metres, at `position` on a route, in decibels; 0 at the reference.
    pub(super) fn decibels(&self, travelled: f64, position: Option<Position>) -> f64 {
        let distance = match (self.base, position) {
            (Base::At(base), Some(position)) => base.metres_to(position),
            (Base::Road { ahead, aside }, _) => {
                let along = ahead - travelled;
                libm::sqrt(along * along + aside * aside)
            }
            (Base::At(_), None) => return 0.0,
        };
        // Nearer than a metre no law holds.
        self.reference - self.at(distance.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn road(law: Law) -> PathLossConfig {
        PathLossConfig {
            law,
            reference: Distance(100.0),
            ahead: Some(Distance(800.0)),
            aside: Some(Distance(600.0)),
            latitude: None,
            longitude: None,
        }
    }

    fn near(one: f64, two: f64) {
        assert!((one - two).abs() < 1e-6, "{one} for {two}");
    }

    #[test]
    fn computed_by_hand() {
        // At 1000 m, ten times the reference: 35 dB; at the nearest point, 600 m: 35 log10 6 = 27.235 dB.
        let log = PathLoss::new(&road(Law::LogDistance { exponent: 3.5 }), 1.9e9);
        near(log.decibels(0.0, None), -35.0);
        near(log.decibels(800.0, None), -27.235_293_763);
        // 44.9 - 6.55 log10 100 = 31.8 dB per decade.
        let hata = PathLoss::new(&road(Law::Cost231Hata { height: Distance(100.0) }), 1.9e9);
        near(hata.decibels(0.0, None), -31.8);
    }

    #[test]
    fn urban_macro_cells_by_hand() {
        // Equations of table 7.4.1-1 in another language, at 2 GHz with 25 and 1.5 m: break point 320.22 m.
        let heights = Heights { height: Distance(25.0), station_height: Distance(1.5) };
        for (ground, los, nlos) in UMA {
            near(heights.decibels(ground, 2e9, true), los);
            near(heights.decibels(ground, 2e9, false), nlos);
        }
        // Nearer than 10 m the loss is that at 10 m.
        assert_eq!(heights.decibels(1.0, 2e9, true), heights.decibels(10.0, 2e9, true));
        let loss = PathLoss::new(&road(Law::UmaNlos(heights)), 2e9);
        near(loss.decibels(0.0, None), UMA[1].2 - UMA[3].2);
    }

    #[rustfmt::skip]
    const UMA: [(f64, f64, f64); 4] = [
        (10.0, 64.979154879, 74.554251188),
        (100.0, 78.277395703, 98.176762616),
        (400.0, 93.013824323, 121.278344295),
        (1000.0, 108.906291857, 136.805285076),
    ];

    #[test]
    fn the_base_station_is_on_the_road_or_on_the_map() {
        let keys = |config: &PathLossConfig, has_route| -> Vec<String> {
            config.problems(has_route).into_iter().map(|problem| problem.key).collect()
        };
        let config = road(Law::LogDistance { exponent: 2.0 });
        assert!(keys(&config, false).is_empty());
        assert_eq!(keys(&config, true), ["latitude", "longitude", "ahead", "aside"]);
        let map = PathLossConfig { ahead: None, aside: None, latitude: Some(60.0), longitude: Some(200.0), ..config };
        assert_eq!(keys(&map, true), ["longitude"]);
        assert_eq!(keys(&map, false), ["longitude", "ahead", "aside", "latitude", "longitude"]);
    }
}
