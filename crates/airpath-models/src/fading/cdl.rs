// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Clustered delay lines: echoes with directions.
//!
//! Source: 3GPP TR 38.901, clause 7.7.1, steps 1 to 4. A cluster is 20 rays of equal power whose angles are those of
//! the cluster plus c α, with α of table 7.5-3 (equation 7.7-0a); the four angles of a cluster's rays are coupled at
//! random. A ray has a random phase, and the Doppler frequency r·v/λ of its arrival angle and the travel direction
//! (equation 7.5-22). Profiles D and E have a direct path of one ray.
//!
//! Limits: all antennas are isotropic, with vertical polarisation, so that the cross-polarisation ratio has no
//! effect. An array is a uniform line across azimuth 0 whose elements are weighted for one beam at the horizon, so
//! that both sides together have one gain for each ray. The direct path has a random phase, too.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

use super::Grid;
use super::cdl_tables::{CdlProfile, Cluster, RAY_OFFSETS};
pub use super::multipath::Multipath;
use super::multipath::tap_key;
use super::quantity::{Decibels, Seconds};
use super::spectrum::{Sinusoid, Tap, exponential, scattered};
use crate::problem::Problem;
use crate::registry::Configured;

/// A clustered delay line: `{ type = "cdl", profile = "c", delay_spread = "300 ns" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CdlConfig {
    /// Its table.
    pub profile: CdlProfile,
    /// Delay spread by which the delays of the table are multiplied.
    pub delay_spread: Seconds,
    /// Azimuth of the travel direction, in degrees.
    #[serde(default)]
    pub direction: f64,
    /// The base station's antennas.
    #[serde(default)]
    pub transmit: ArrayConfig,
    /// The station's antennas.
    #[serde(default)]
    pub receive: ArrayConfig,
}

/// A line of antennas: `{ elements = 4, azimuth = 10.0 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// Number of elements.
    #[serde(default = "one")]
    pub elements: u16,
    /// Distance between two elements, in wavelengths.
    #[serde(default = "half")]
    pub spacing: f64,
    /// Azimuth of the beam, in degrees.
    #[serde(default)]
    pub azimuth: f64,
}

fn one() -> u16 {
    1
}

fn half() -> f64 {
    0.5
}

impl Default for ArrayConfig {
    fn default() -> ArrayConfig {
        ArrayConfig { elements: one(), spacing: half(), azimuth: 0.0 }
    }
}

impl ArrayConfig {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = angle_problem("azimuth", self.azimuth);
        if !(1..=256).contains(&self.elements) {
            problems.push(Problem::new("elements", format!("are {}; there must be 1 to 256", self.elements)));
        }
        if !(0.0..=100.0).contains(&self.spacing) {
            let message = format!("is {}; it must be from 0 to 100 wavelengths", self.spacing);
            problems.push(Problem::new("spacing", message));
        }
        problems
    }

    /// Gain for a ray of these angles, as an amplitude: one for a single element, √N in the middle of the beam of N.
    fn gain(&self, azimuth: f64, zenith: f64) -> f64 {
        let across =
            libm::sin(zenith.to_radians()) * libm::sin(azimuth.to_radians()) - libm::sin(self.azimuth.to_radians());
        let middle = (f64::from(self.elements) - 1.0) / 2.0;
        let element = |number| libm::cos(TAU * self.spacing * (f64::from(number) - middle) * across);
        (0..self.elements).map(element).sum::<f64>() / libm::sqrt(f64::from(self.elements))
    }
}

fn angle_problem(key: &str, angle: f64) -> Vec<Problem> {
    if (-360.0..=360.0).contains(&angle) {
        return Vec::new();
    }
    vec![Problem::new(key, format!("is {angle}; it must be from -360 to 360 degrees"))]
}

impl Configured<Grid> for CdlConfig {
    type Model = Multipath;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = angle_problem("direction", self.direction);
        if !(0.0..=1e-4).contains(&self.delay_spread.0) {
            let message = format!("is {}; it must be from 0 to 100 us", self.delay_spread);
            problems.push(Problem::new("delay_spread", message));
        }
        for (key, array) in [("transmit", &self.transmit), ("receive", &self.receive)] {
            problems.extend(array.problems().into_iter().map(|problem| problem.under(key)));
        }
        problems
    }

    fn build(&self, grid: Grid) -> Multipath {
        Multipath::of(&self.taps(grid.key), &grid)
    }

    fn examples() -> Vec<CdlConfig> {
        let example = |profile: &CdlProfile| CdlConfig {
            profile: *profile,
            delay_spread: Seconds(300e-9),
            direction: 30.0,
            transmit: ArrayConfig { elements: 4, spacing: 0.5, azimuth: -20.0 },
            receive: ArrayConfig::default(),
        };
        CdlProfile::ALL.iter().map(example).collect()
    }
}

impl CdlConfig {
    /// Delay, amplitude and rays of each cluster, and of the direct path.
    fn taps(&self, key: DrawKey) -> Vec<(f64, f64, Vec<Sinusoid>)> {
        let table = self.profile.table();
        let clusters = table.clusters.iter().chain(table.direct);
        let all: f64 = clusters.clone().map(|cluster| Decibels(cluster.power).ratio()).sum();
        let tap = |(number, cluster): (usize, &Cluster)| {
            let key = tap_key(key, number);
            let is_direct = number >= table.clusters.len();
            let rays = if is_direct { vec![self.ray(key, 0, cluster.angles, 1)] } else { self.rays(key, cluster) };
            (cluster.delay * self.delay_spread.0, libm::sqrt(Decibels(cluster.power).ratio() / all), rays)
        };
        clusters.enumerate().map(tap).collect()
    }

    /// Delays and powers alone, the direct path as part of the first tap.
    pub(super) fn outline(&self) -> Vec<Tap> {
        let table = self.profile.table();
        let tap = |cluster: &Cluster| scattered(cluster.delay * self.delay_spread.0, cluster.power);
        let mut taps: Vec<Tap> = table.clusters.iter().map(tap).collect();
        if let (Some(direct), Some(first)) = (table.direct, taps.first_mut()) {
            let power = Decibels(direct.power).ratio();
            first.direct = Some((power / first.power, 0.0));
            first.power += power;
        }
        taps
    }

    fn rays(&self, key: DrawKey, cluster: &Cluster) -> Vec<Sinusoid> {
        let spreads = self.profile.table().ray_spreads;
        // The rays of the other three angles in random order, beside those of the departure azimuth as they are.
        let orders: [Vec<usize>; 4] = std::array::from_fn(|angle| match angle {
            0 => (0..RAY_OFFSETS.len()).collect(),
            _ => order(key, angle as u64),
        });
        let angles = |ray: usize| {
            std::array::from_fn(|angle| cluster.angles[angle] + spreads[angle] * RAY_OFFSETS[orders[angle][ray]])
        };
        (0..RAY_OFFSETS.len()).map(|ray| self.ray(key, ray as u64, angles(ray), RAY_OFFSETS.len())).collect()
    }

    /// Ray number `number` of `among` with the angles of the table.
    fn ray(&self, key: DrawKey, number: u64, angles: [f64; 4], among: usize) -> Sinusoid {
        let [azimuth_out, azimuth_in, zenith_out, zenith_in] = angles;
        let gain = self.transmit.gain(azimuth_out, zenith_out) * self.receive.gain(azimuth_in, zenith_in);
        let along = libm::cos((azimuth_in - self.direction).to_radians());
        let factor = libm::sin(zenith_in.to_radians()) * along;
        exponential(factor, key.unit(number, 0), gain / libm::sqrt(among as f64))
    }
}

/// A random order of the rays (Fisher and Yates, after Durstenfeld 1964).
fn order(key: DrawKey, stream: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..RAY_OFFSETS.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, key.below(last as u64, stream, last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawScope, Seed};

    use super::super::{BLOCK, Block, Response};
    use super::*;

    fn key(seed: u64) -> DrawKey {
        DrawKey::new(Seed(seed), &DrawScope { hop: "r", direction: Direction::Downlink, role: "fading", instance: 0 })
    }

    fn plain(profile: CdlProfile, direction: f64) -> CdlConfig {
        let one = ArrayConfig::default();
        CdlConfig { profile, delay_spread: Seconds(100e-9), direction, transmit: one, receive: one }
    }

    /// Power and delay of each cluster and the direct path, from the table alone.
    fn powers(profile: CdlProfile) -> Vec<(f64, f64)> {
        let table = profile.table();
        let all = table.clusters.iter().chain(table.direct);
        let powers: Vec<(f64, f64)> =
            all.map(|cluster| (10f64.powf(cluster.power / 10.0), cluster.delay * 100e-9)).collect();
        let sum: f64 = powers.iter().map(|(power, _)| power).sum();
        powers.into_iter().map(|(power, delay)| (power / sum, delay)).collect()
    }

    /// E h*(0) h(x) at a distance of `x` wavelengths: the mean over all pairs of azimuths and zeniths.
    fn autocorrelation(profile: CdlProfile, direction: f64, x: f64) -> (f64, f64) {
        let table = profile.table();
        let at =
            |azimuth: f64, zenith: f64| TAU * x * zenith.to_radians().sin() * (azimuth - direction).to_radians().cos();
        let (mut re, mut im) = (0.0, 0.0);
        for (number, (cluster, (power, _))) in
            table.clusters.iter().chain(table.direct).zip(powers(profile)).enumerate()
        {
            let [_, azimuth, _, zenith] = cluster.angles;
            let [_, of_azimuth, _, of_zenith] = table.ray_spreads;
            let offsets = if number < table.clusters.len() { &RAY_OFFSETS[..] } else { &[0.0] };
            let part = power / (offsets.len() * offsets.len()) as f64;
            for one in offsets {
                for two in offsets {
                    let angle = at(azimuth + of_azimuth * one, zenith + of_zenith * two);
                    re += part * angle.cos();
                    im += part * angle.sin();
                }
            }
        }
        (re, im)
    }

    #[test]
    fn delay_doppler_and_fading_are_those_of_the_tables() {
        // Over N keys: complex correlations with standard errors of at most 1/√N = 0.032, powers with as much, and
        // the normalised variance of powers, at most 1 with a standard error of about √(20/N) = 0.14 at Rayleigh. The
        // bounds are four of them.
        const N: u64 = 1000;
        for (profile, direction) in CdlProfile::ALL.iter().zip([0.0, 90.0, 30.0, 180.0, 120.0]) {
            let config = plain(*profile, direction);
            let (mut power, mut square) = (0.0, 0.0);
            let (mut over_time, mut over_band) = ([(0.0, 0.0); 3], [(0.0, 0.0); 3]);
            for seed in 0..N {
                let grid = Grid { key: key(seed), resources: 25, spacing_hz: 1e6, wavelength: 1.0 };
                let mut model = config.build(grid);
                let (mut re, mut im) = (vec![0.0; BLOCK * grid.lanes()], vec![0.0; BLOCK * grid.lanes()]);
                model.respond(&Block { index: 0, distance: 0.0, step: 0.02 }, &mut re, &mut im);
                let at = |slot: usize, resource: usize| {
                    let place = slot * grid.lanes() + grid.first() + resource;
                    (f64::from(re[place]), f64::from(im[place]))
                };
                let (a, b) = at(0, 0);
                let here = a * a + b * b;
                power += here / N as f64;
                square += here * here / N as f64;
                let product = |(c, d): (f64, f64)| ((a * c + b * d) / N as f64, (a * d - b * c) / N as f64);
                for (sum, (slot, resource)) in over_time
                    .iter_mut()
                    .zip([(5, 0), (15, 0), (40, 0)])
                    .chain(over_band.iter_mut().zip([(0, 1), (0, 4), (0, 20)]))
                {
                    let (re, im) = product(at(slot, resource));
                    *sum = (sum.0 + re, sum.1 + im);
                }
            }
            assert!((power - 1.0).abs() < 0.127, "{profile:?}: {power}");
            for (measured, slot) in over_time.iter().zip([5.0, 15.0, 40.0]) {
                let theory = autocorrelation(*profile, direction, slot * 0.02);
                let apart = (measured.0 - theory.0).hypot(measured.1 - theory.1);
                assert!(apart < 0.127, "{profile:?} {slot}: {measured:?} for {theory:?}");
            }
            for (measured, apart) in over_band.iter().zip([1e6, 4e6, 20e6]) {
                let angle = |delay: f64| -TAU * apart * delay;
                let (re, im) = powers(*profile).iter().fold((0.0, 0.0), |(re, im), (power, delay)| {
                    (re + power * angle(*delay).cos(), im + power * angle(*delay).sin())
                });
                assert!(
                    (measured.0 - re).hypot(measured.1 - im) < 0.127,
                    "{profile:?} {apart}: {measured:?} {re} {im}"
                );
            }
            // Rice 1948: the variance of the power over its squared mean is (2K + 1)/(K + 1)².
            let k = profile.table().direct.map_or(0.0, |_| {
                let direct = powers(*profile).last().expect("a profile has clusters").0;
                direct / (1.0 - direct)
            });
            let variance = square / (power * power) - 1.0;
            let theory = (2.0 * k + 1.0) / ((k + 1.0) * (k + 1.0));
            assert!((variance - theory).abs() < 0.56 * theory.sqrt(), "{profile:?}: {variance} for {theory}");
        }
    }

    #[test]
    fn the_doppler_spectrum_has_the_first_moments_of_the_angles() {
        // Powers and Doppler frequencies of the rays themselves; only the order of a cluster's zeniths is random. By
        // hand for D moving away from the base station: the direct path comes from azimuth −180, zenith 81.5, so that
        // its factor in direction 180 is sin 81.5 = 0.989.
        for (profile, direction) in CdlProfile::ALL.iter().zip([0.0, 90.0, 30.0, 180.0, 120.0]) {
            let (mut first, mut second, mut all) = (0.0, 0.0, 0.0);
            for (_, amplitude, rays) in plain(*profile, direction).taps(key(1)) {
                for ray in rays {
                    let power = (amplitude * ray.weights.cos_re).powi(2);
                    all += power;
                    first += power * ray.factor;
                    second += power * ray.factor * ray.factor;
                }
            }
            // Moments from the autocorrelation at a small distance.
            let (re, im) = autocorrelation(*profile, direction, 1e-4);
            assert!((all - 1.0).abs() < 1e-12, "{all}");
            assert!((first - im / (TAU * 1e-4)).abs() < 2e-3, "{profile:?} {first}");
            assert!((second - 2.0 * (1.0 - re) / (TAU * 1e-4).powi(2)).abs() < 4e-3, "{profile:?} {second}");
        }
        let direct = plain(CdlProfile::D, 180.0).taps(key(1)).pop().expect("D has a direct path");
        assert!((direct.2[0].factor - 0.989_016).abs() < 1e-6, "{}", direct.2[0].factor);
    }

    #[test]
    fn an_array_has_its_gain_in_its_beam_alone() {
        let array = ArrayConfig { elements: 4, spacing: 0.5, azimuth: 30.0 };
        // In the beam √4; at azimuth 0 the phases of ±0.5 and ±1.5 times π/2 cancel: (2 cos 45° + 2 cos 135°)/2 = 0.
        assert!((array.gain(30.0, 90.0) - 2.0).abs() < 1e-12);
        assert!(array.gain(0.0, 90.0).abs() < 1e-12);
        assert_eq!(ArrayConfig::default().gain(77.0, 12.0), 1.0);
    }
}
