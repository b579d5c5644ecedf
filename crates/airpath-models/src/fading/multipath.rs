// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Echoes: the frequency response of taps, each of which is a sum of sinusoids.
//!
//! H(f, x) = Σ √p e^(−j2πfτ) g(x), over taps of power p and delay τ, where x is the distance in wavelengths.
//!
//! The sum is in single precision, eight values at a time, always in the same order. A sinusoid at slot 8b + k of a
//! block is cos(β + kδ) = cos β cos kδ − sin β sin kδ: for each eight slots the sinusoid's weights are multiplied by
//! the phasor of β once, and the sum over sinusoids of a tap is one of vectors over k, which stay the same while the
//! speed does. Resources lie symmetrically around the carrier, so that the response at −f has the products of that
//! at f with other signs.

use airpath_core::DrawKey;
use std::f64::consts::TAU;

use super::phasor::phasor;
use super::spectrum::{Sinusoid, Tap};
use super::{BLOCK, Block, Grid, LANES, Response};

type Lanes = [f32; LANES];

/// A phasor at the beginning of eight slots, and the parts of it in the sum.
#[derive(Clone, Copy, Debug, Default)]
struct Turning {
    cos: f32,
    sin: f32,
    /// Its turn in eight slots.
    turn_cos: f32,
    turn_sin: f32,
}

/// Parts of cos kδ and sin kδ in the real and in the imaginary part of a tap.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    cos_re: f32,
    sin_re: f32,
    cos_im: f32,
    sin_im: f32,
}

/// The response of all taps.
#[derive(Clone, Debug)]
pub struct Multipath {
    /// Doppler frequencies relative to the greatest, and phases at the beginning in turns, tap by tap.
    factor: Vec<f64>,
    phase: Vec<f64>,
    weights: Vec<Parts>,
    turning: Vec<Turning>,
    parts: Vec<Parts>,
    /// cos kδ and sin kδ for k from 0 to 7.
    within: Vec<(Lanes, Lanes)>,
    /// Number of sinusoids up to the end of each tap.
    ends: Vec<usize>,
    gains: Vec<(Lanes, Lanes)>,
    /// √p e^(−j2πfτ): for each eight resources at the carrier and above it, all taps.
    steering: Vec<(Lanes, Lanes)>,
    /// Wavelengths by slot for which the turns are known.
    step: f64,
    grid: Grid,
}

impl Multipath {
    /// The response of `taps`, each with `sinusoids` sinusoids, at the resources of `grid`.
    pub(super) fn new(taps: &[Tap], sinusoids: usize, grid: &Grid) -> Multipath {
        let all: f64 = taps.iter().map(|tap| tap.power).sum();
        let one = |(number, tap): (usize, &Tap)| {
            let sinusoids = tap.sinusoids(tap_key(grid.key, number), sinusoids);
            (tap.delay, libm::sqrt(tap.power / all), sinusoids)
        };
        Multipath::of(&taps.iter().enumerate().map(one).collect::<Vec<_>>(), grid)
    }

    /// The response of sums of sinusoids, each with its delay in seconds and its amplitude.
    pub(super) fn of(taps: &[(f64, f64, Vec<Sinusoid>)], grid: &Grid) -> Multipath {
        let all = || taps.iter().flat_map(|(.., sinusoids)| sinusoids);
        let count = all().count();
        let mut steering = Vec::with_capacity(grid.half() / LANES * taps.len());
        for first in (0..grid.half()).step_by(LANES) {
            for (delay, amplitude, _) in taps {
                let at = |lane: usize| libm::sincos(-TAU * grid.upper_hz(first + lane) * delay);
                let angles: [(f64, f64); LANES] = std::array::from_fn(at);
                steering.push((
                    angles.map(|(_, cos)| (amplitude * cos) as f32),
                    angles.map(|(sin, _)| (amplitude * sin) as f32),
                ));
            }
        }
        let ends = taps.iter().scan(0, |end, (.., sinusoids)| {
            *end += sinusoids.len();
            Some(*end)
        });
        let weights = |sinusoid: &Sinusoid| Parts {
            cos_re: sinusoid.weights.cos_re as f32,
            sin_re: sinusoid.weights.sin_re as f32,
            cos_im: sinusoid.weights.cos_im as f32,
            sin_im: sinusoid.weights.sin_im as f32,
        };
        Multipath {
            factor: all().map(|sinusoid| sinusoid.factor).collect(),
            phase: all().map(|sinusoid| sinusoid.phase).collect(),
            weights: all().map(weights).collect(),
            turning: vec![Turning::default(); count],
            parts: vec![Parts::default(); count],
            within: vec![Default::default(); count],
            ends: ends.collect(),
            gains: vec![Default::default(); taps.len()],
            steering,
            step: f64::NAN,
            grid: *grid,
        }
    }

    /// Sets phasors to the beginning of `block`.
    fn begin(&mut self, block: &Block) {
        let begin = block.distance / self.grid.wavelength;
        let step = block.step / self.grid.wavelength;
        if step != self.step {
            self.step = step;
            for ((turning, within), factor) in self.turning.iter_mut().zip(&mut self.within).zip(&self.factor) {
                (turning.turn_cos, turning.turn_sin) = phasor(factor * (step * LANES as f64));
                for lane in 0..LANES {
                    (within.0[lane], within.1[lane]) = phasor(factor * (step * lane as f64));
                }
            }
        }
        for ((turning, factor), phase) in self.turning.iter_mut().zip(&self.factor).zip(&self.phase) {
            (turning.cos, turning.sin) = phasor(phase + factor * begin);
        }
    }

    /// Computes the gains of all taps in the next eight slots.
    fn gain(&mut self) {
        for ((turning, weights), parts) in self.turning.iter_mut().zip(&self.weights).zip(&mut self.parts) {
            let Turning { cos, sin, turn_cos, turn_sin } = *turning;
            *parts = Parts {
                cos_re: weights.cos_re * cos + weights.sin_re * sin,
                sin_re: weights.sin_re * cos - weights.cos_re * sin,
                cos_im: weights.cos_im * cos + weights.sin_im * sin,
                sin_im: weights.sin_im * cos - weights.cos_im * sin,
            };
            turning.cos = cos * turn_cos - sin * turn_sin;
            turning.sin = cos * turn_sin + sin * turn_cos;
        }
        let mut first = 0;
        for (gain, end) in self.gains.iter_mut().zip(&self.ends) {
            let (mut re, mut im): (Lanes, Lanes) = Default::default();
            for (parts, (cos, sin)) in self.parts[first..*end].iter().zip(&self.within[first..*end]) {
                for lane in 0..LANES {
                    re[lane] += parts.cos_re * cos[lane] + parts.sin_re * sin[lane];
                    im[lane] += parts.cos_im * cos[lane] + parts.sin_im * sin[lane];
                }
            }
            *gain = (re, im);
            first = *end;
        }
    }

    /// Writes the response in slot `slot` of the eight for which gains are known.
    #[inline]
    fn steer(&self, slot: usize, re: &mut [f32], im: &mut [f32]) {
        let half = self.grid.half();
        // The resource at the carrier, if there is one, is the first of both halves.
        let above = if self.grid.resources % 2 == 1 { half - 1 } else { half };
        for (group, steering) in self.steering.chunks_exact(self.gains.len()).enumerate() {
            let [mut re_cos, mut im_sin, mut re_sin, mut im_cos]: [Lanes; 4] = Default::default();
            for ((gain_re, gain_im), (cos, sin)) in self.gains.iter().zip(steering) {
                let (gain_re, gain_im) = (gain_re[slot], gain_im[slot]);
                for lane in 0..LANES {
                    re_cos[lane] += gain_re * cos[lane];
                    im_sin[lane] += gain_im * sin[lane];
                    re_sin[lane] += gain_re * sin[lane];
                    im_cos[lane] += gain_im * cos[lane];
                }
            }
            let near = group * LANES;
            let below = half - near - LANES..half - near;
            let (below_re, below_im) = (&mut re[below.clone()], &mut im[below]);
            for lane in 0..LANES {
                below_re[LANES - 1 - lane] = re_cos[lane] + im_sin[lane];
                below_im[LANES - 1 - lane] = im_cos[lane] - re_sin[lane];
            }
            let above = above + near..above + near + LANES;
            let (above_re, above_im) = (&mut re[above.clone()], &mut im[above]);
            for lane in 0..LANES {
                above_re[lane] = re_cos[lane] - im_sin[lane];
                above_im[lane] = im_cos[lane] + re_sin[lane];
            }
        }
    }
}

/// The key of a tap's draws.
pub(super) fn tap_key(key: DrawKey, number: usize) -> DrawKey {
    key.child("tap", number as u64)
}

impl Response for Multipath {
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]) {
        self.begin(block);
        let row = self.grid.lanes();
        for (re, im) in re.chunks_exact_mut(row * LANES).zip(im.chunks_exact_mut(row * LANES)) {
            self.gain();
            for (slot, (re, im)) in re.chunks_exact_mut(row).zip(im.chunks_exact_mut(row)).enumerate() {
                self.steer(slot, re, im);
            }
        }
    }
}

const _: () = assert!(BLOCK.is_multiple_of(LANES));

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawScope, Seed};

    use super::super::spectrum::exponential;
    use super::*;

    #[test]
    fn one_sinusoid_by_hand() {
        // One direct path of angle 60 degrees (factor 0.5), a wavelength of 2 m and 0.25 m by slot: phase
        // 2π·0.5·0.125 = 22.5 degrees by slot; delay 1 µs. Two resources at ∓125 kHz: ±45 degrees; three at ∓125 kHz and
        // at the carrier.
        let scope = DrawScope { hop: "radio", direction: Direction::Downlink, role: "fading", instance: 0 };
        for (resources, spacing_hz, steering) in
            [(2, 250e3, &[45.0, -45.0][..]), (3, 125e3, &[45.0, 0.0, -45.0]), (25, 62.5e3, &[270.0, 247.5, 225.0])]
        {
            let grid = Grid { key: DrawKey::new(Seed(1), &scope), resources, spacing_hz, wavelength: 2.0 };
            let mut multipath = Multipath::of(&[(1e-6, 1.0, vec![exponential(0.5, 0.0, 1.0)])], &grid);
            let (mut re, mut im) = (vec![0.0; BLOCK * grid.lanes()], vec![0.0; BLOCK * grid.lanes()]);
            multipath.respond(&Block { index: 0, distance: 0.0, step: 0.25 }, &mut re, &mut im);
            for slot in 0..BLOCK {
                for (resource, steering) in steering.iter().enumerate() {
                    let angle = (22.5 * slot as f64 + steering).to_radians();
                    let place = slot * grid.lanes() + grid.first() + resource;
                    assert!((f64::from(re[place]) - angle.cos()).abs() < 1e-6, "{slot} {resource}");
                    assert!((f64::from(im[place]) - angle.sin()).abs() < 1e-6, "{slot} {resource}");
                }
            }
        }
    }
}
