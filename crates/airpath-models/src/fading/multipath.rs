// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Echoes: the frequency response of taps, each of which is a sum of sinusoids.
//!
//! H(f, x) = Σ √p e^(−j2πfτ) g(x), over taps of power p and delay τ, where x is the distance in wavelengths.
//!
//! A tap with the classical Doppler spectrum is the model of Zheng and Xiao 2003 (Simulation models with correct
//! statistical properties for Rayleigh fading channels): g(x) = √(2/M) Σ (cos ψₙ + j sin ψₙ) cos(2πx cos αₙ + φₙ),
//! αₙ = (2πn − π + θ)/4M, with θ, φₙ, ψₙ uniform from −π to π. The paper has one φ for all; then all sinusoids are in
//! phase at the beginning, where the channel would not be Rayleigh. The autocorrelation is J₀ over many keys. A tap
//! with another spectrum is a sum of M complex exponentials of random phase, whose Doppler frequencies are one draw
//! from each M-th of the spectrum's power. A direct path is one more exponential.
//!
//! Sinusoids turn by complex multiplication from the beginning of a block of slots, in single precision, which loses
//! some 10⁻⁵ over a block. All loops are over arrays of eight, in a fixed order.

use airpath_core::DrawKey;
use std::f64::consts::{PI, TAU};

use super::{BLOCK, Block, Grid, LANES, Response};
use crate::random::standard_normal;

/// The Doppler spectrum of a tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spectrum {
    /// Equal power from all directions.
    Classical,
    /// Two bell curves over the Doppler frequency relative to the greatest: share of the first, then centre and
    /// standard deviation of each.
    Gaussian(f64, [f64; 2], [f64; 2]),
}

/// A tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tap {
    /// Delay in seconds.
    pub delay: f64,
    /// Power; that of all taps is scaled to one.
    pub power: f64,
    /// The spectrum of its scattered part.
    pub spectrum: Spectrum,
    /// Ratio of the direct path's power to the scattered power, and its Doppler frequency relative to the greatest.
    pub direct: Option<(f64, f64)>,
}

type Group = [f32; LANES];

/// Eight sinusoids of one tap.
#[derive(Clone, Debug)]
struct Sinusoids {
    /// Doppler frequencies relative to the greatest.
    factor: [f64; LANES],
    /// Phases at the beginning, in turns.
    phase: [f64; LANES],
    /// Parts of the cosine and of the sine in the real and in the imaginary part.
    cos_re: Group,
    cos_im: Group,
    sin_re: Group,
    sin_im: Group,
    /// The present phasor, and by what it turns from slot to slot.
    cos: Group,
    sin: Group,
    turn_cos: Group,
    turn_sin: Group,
}

/// The response of all taps.
#[derive(Clone, Debug)]
pub struct Multipath {
    /// Sinusoids, by tap.
    taps: Vec<Vec<Sinusoids>>,
    /// √p e^(−j2πfτ): for each eight resources all taps.
    steering: Vec<(Group, Group)>,
    /// Wavelengths by slot for which the turns are known.
    step: f64,
    lanes: usize,
    wavelength: f64,
    gains: Vec<(f32, f32)>,
}

/// Sinusoids before they are grouped: factor, phase, and the four weights.
type Line = (f64, f64, [f64; 4]);

fn scattered(tap: &Tap, key: DrawKey, count: usize, power: f64) -> Vec<Line> {
    let m = count as f64;
    let between = |step, attempt| (2.0 * key.unit(step, attempt) - 1.0) * PI;
    match tap.spectrum {
        Spectrum::Classical => {
            let theta = between(0, 0);
            let amplitude = libm::sqrt(2.0 * power / m);
            let line = |n: usize| {
                let alpha = (TAU * n as f64 - PI + theta) / (4.0 * m);
                let psi = between(n as u64, 2);
                (
                    libm::cos(alpha),
                    key.unit(n as u64, 1),
                    [amplitude * libm::cos(psi), amplitude * libm::sin(psi), 0.0, 0.0],
                )
            };
            (1..=count).map(line).collect()
        }
        Spectrum::Gaussian(share, first, second) => {
            let amplitude = libm::sqrt(power / m);
            let line = |n: usize| {
                let place = (n as f64 + key.unit(n as u64, 3)) / m;
                let (part, [centre, deviation]) =
                    if place < share { (place / share, first) } else { ((place - share) / (1.0 - share), second) };
                let tail = part.clamp(1e-12, 1.0 - 1e-12);
                // A Doppler frequency cannot exceed the greatest.
                let factor = (centre + deviation * standard_normal::quantile(tail)).clamp(-1.0, 1.0);
                exponential(factor, key.unit(n as u64, 4), amplitude)
            };
            (0..count).map(line).collect()
        }
    }
}

fn exponential(factor: f64, phase: f64, amplitude: f64) -> Line {
    (factor, phase, [amplitude, 0.0, 0.0, amplitude])
}

fn group(lines: &[Line]) -> Sinusoids {
    let line = |lane: usize| lines.get(lane).copied().unwrap_or_default();
    let weight = |part: usize| std::array::from_fn(|lane| line(lane).2[part] as f32);
    Sinusoids {
        factor: std::array::from_fn(|lane| line(lane).0),
        phase: std::array::from_fn(|lane| line(lane).1),
        cos_re: weight(0),
        cos_im: weight(1),
        sin_re: weight(2),
        sin_im: weight(3),
        cos: [0.0; LANES],
        sin: [0.0; LANES],
        turn_cos: [0.0; LANES],
        turn_sin: [0.0; LANES],
    }
}

/// Cosine and sine of a number of turns.
fn phasor(turns: f64) -> (f32, f32) {
    let (sin, cos) = libm::sincos((turns - libm::floor(turns)) * TAU);
    (cos as f32, sin as f32)
}

/// The sum of a group, in a fixed order.
fn total(group: &Group) -> f32 {
    ((group[0] + group[4]) + (group[1] + group[5])) + ((group[2] + group[6]) + (group[3] + group[7]))
}

impl Multipath {
    /// The response of `taps`, each with `sinusoids` sinusoids, at the resources of `grid`.
    pub(super) fn new(taps: &[Tap], sinusoids: usize, grid: &Grid) -> Multipath {
        let all: f64 = taps.iter().map(|tap| tap.power).sum();
        let lines = |(number, tap): (usize, &Tap)| {
            let key = grid.key.child("tap", number as u64);
            let k = tap.direct.map_or(0.0, |(k, _)| k);
            let mut lines = scattered(tap, key, sinusoids, 1.0 / (k + 1.0));
            if let Some((k, factor)) = tap.direct {
                lines.push(exponential(factor, key.unit(0, 5), libm::sqrt(k / (k + 1.0))));
            }
            lines.chunks(LANES).map(group).collect()
        };
        let mut steering = Vec::new();
        for first in (0..grid.lanes()).step_by(LANES) {
            for tap in taps {
                let amplitude = libm::sqrt(tap.power / all);
                let at = |lane: usize| {
                    let angle = -TAU * grid.offset_hz(first + lane) * tap.delay;
                    (amplitude * libm::cos(angle), amplitude * libm::sin(angle))
                };
                steering.push((
                    std::array::from_fn(|lane| at(lane).0 as f32),
                    std::array::from_fn(|lane| at(lane).1 as f32),
                ));
            }
        }
        Multipath {
            taps: taps.iter().enumerate().map(lines).collect(),
            steering,
            step: f64::NAN,
            lanes: grid.lanes(),
            wavelength: grid.wavelength,
            gains: vec![(0.0, 0.0); taps.len()],
        }
    }

    fn begin(&mut self, block: &Block) {
        let begin = block.distance / self.wavelength;
        let step = block.step / self.wavelength;
        let turns_known = step == self.step;
        self.step = step;
        for sinusoids in self.taps.iter_mut().flatten() {
            for lane in 0..LANES {
                let factor = sinusoids.factor[lane];
                (sinusoids.cos[lane], sinusoids.sin[lane]) = phasor(sinusoids.phase[lane] + factor * begin);
                if !turns_known {
                    (sinusoids.turn_cos[lane], sinusoids.turn_sin[lane]) = phasor(factor * step);
                }
            }
        }
    }
}

impl Sinusoids {
    /// Adds the present values to `re` and `im`, and turns on to the next slot.
    #[inline]
    fn add(&mut self, re: &mut Group, im: &mut Group) {
        for lane in 0..LANES {
            let (cos, sin) = (self.cos[lane], self.sin[lane]);
            re[lane] += self.cos_re[lane] * cos + self.sin_re[lane] * sin;
            im[lane] += self.cos_im[lane] * cos + self.sin_im[lane] * sin;
            self.cos[lane] = cos * self.turn_cos[lane] - sin * self.turn_sin[lane];
            self.sin[lane] = cos * self.turn_sin[lane] + sin * self.turn_cos[lane];
        }
    }
}

impl Response for Multipath {
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]) {
        self.begin(block);
        for slot in 0..BLOCK {
            for (tap, gain) in self.taps.iter_mut().zip(&mut self.gains) {
                let (mut tap_re, mut tap_im) = ([0.0; LANES], [0.0; LANES]);
                for sinusoids in tap {
                    sinusoids.add(&mut tap_re, &mut tap_im);
                }
                *gain = (total(&tap_re), total(&tap_im));
            }
            let places = slot * self.lanes..(slot + 1) * self.lanes;
            let out = re[places.clone()].chunks_exact_mut(LANES).zip(im[places].chunks_exact_mut(LANES));
            for ((re, im), steering) in out.zip(self.steering.chunks_exact(self.gains.len())) {
                let (mut sum_re, mut sum_im): (Group, Group) = ([0.0; LANES], [0.0; LANES]);
                for ((gain_re, gain_im), (steer_re, steer_im)) in self.gains.iter().zip(steering) {
                    for lane in 0..LANES {
                        sum_re[lane] += gain_re * steer_re[lane] - gain_im * steer_im[lane];
                        sum_im[lane] += gain_re * steer_im[lane] + gain_im * steer_re[lane];
                    }
                }
                re.copy_from_slice(&sum_re);
                im.copy_from_slice(&sum_im);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawScope, Seed};

    use super::*;

    #[test]
    fn one_sinusoid_by_hand() {
        // One direct path of angle 60 degrees (factor 0.5), a wavelength of 2 m and 0.25 m by slot: phase
        // 2π·0.5·0.125 = 22.5 degrees by slot; delay 1 µs and resources at ∓125 kHz: ±45 degrees.
        let scope = DrawScope { hop: "radio", direction: Direction::Downlink, role: "fading", instance: 0 };
        let grid = Grid { key: DrawKey::new(Seed(1), &scope), resources: 2, spacing_hz: 250e3, wavelength: 2.0 };
        let tap = Tap { delay: 1e-6, power: 7.0, spectrum: Spectrum::Classical, direct: None };
        let mut multipath = Multipath::new(&[tap], 8, &grid);
        multipath.taps[0] = vec![group(&[exponential(0.5, 0.0, 1.0)])];
        let (mut re, mut im) = (vec![0.0; BLOCK * LANES], vec![0.0; BLOCK * LANES]);
        multipath.respond(&Block { index: 0, distance: 0.0, step: 0.25 }, &mut re, &mut im);
        for slot in 0..BLOCK {
            for (resource, steering) in [(0, 45.0), (1, -45.0)] {
                let angle = (22.5 * slot as f64 + steering).to_radians();
                let place = slot * LANES + resource;
                assert!((f64::from(re[place]) - angle.cos()).abs() < 1e-5, "{slot} {resource}");
                assert!((f64::from(im[place]) - angle.sin()).abs() < 1e-5, "{slot} {resource}");
            }
        }
    }
}
