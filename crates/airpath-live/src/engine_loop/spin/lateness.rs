// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Memory of a timer's lateness: a histogram that forgets.

/// Bins of equal width from 0.
const LINEAR: usize = 32;
/// Their width in ns.
const WIDTH_NS: u64 = 2_000;
/// Above, so many bins each time the lateness doubles.
const EACH_OCTAVE: usize = 8;
/// Number of times that the width doubles.
const OCTAVES: usize = 4;
/// End of the bins of equal width.
const LINEAR_END_NS: u64 = LINEAR as u64 * WIDTH_NS;
/// All bins; the last holds everything that no margin covers.
const BINS: usize = LINEAR + EACH_OCTAVE * OCTAVES + 1;

/// Exponentially decayed histogram of wake-up lateness. Each weighs 1 when it is noted, and less as time goes
/// on.
#[derive(Clone, Debug)]
pub struct Lateness {
    weights: [f32; BINS],
    total: f32,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { weights: [0.0; BINS], total: 0.0 }
    }
}

/// The bin that holds `late_ns`.
fn bin(late_ns: u64) -> usize {
    if late_ns < LINEAR_END_NS {
        return (late_ns / WIDTH_NS) as usize;
    }
    let octave = (late_ns / LINEAR_END_NS).ilog2() as usize;
    let part = (late_ns - (LINEAR_END_NS << octave)) * EACH_OCTAVE as u64 / (LINEAR_END_NS << octave);
    (LINEAR + octave * EACH_OCTAVE + part as usize).min(BINS - 1)
}

/// End of the bin, in ns; the last has no end.
fn end_ns(bin: usize) -> u64 {
    if bin < LINEAR {
        return (bin as u64 + 1) * WIDTH_NS;
    }
    if bin == BINS - 1 {
        return u64::MAX;
    }
    let (octave, part) = ((bin - LINEAR) / EACH_OCTAVE, (bin - LINEAR) % EACH_OCTAVE);
    (LINEAR_END_NS << octave) + (LINEAR_END_NS << octave) * (part as u64 + 1) / EACH_OCTAVE as u64
}

/// Expected effect of a margin, from the histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prospect {
    /// The margin in ns.
    pub margin_ns: u64,
    /// The share of deadlines that would be met.
    pub met: f64,
    /// Expected time of watching the clock for each deadline, in ns.
    pub cost_ns: f64,
}

impl Lateness {
    /// A timer was so late.
    pub fn note(&mut self, late_ns: u64) {
        self.weights[bin(late_ns)] += 1.0;
        self.total += 1.0;
    }

    /// Everything weighs `factor` of what it did.
    pub fn fade(&mut self, factor: f32) {
        self.weights.iter_mut().for_each(|weight| *weight *= factor);
        self.total = self.weights.iter().sum();
    }

    /// Total weight of the histogram, in wake-ups.
    pub fn total(&self) -> f32 {
        self.total
    }

    /// Expected effects of margins from 0 to `most_ns` where a deadline counts as met up to `slack_ns` after
    /// it. Lateness counts as that of its bin's end for meeting, and as that of its beginning for cost: who
    /// errs here spends a little more.
    pub fn prospects(&self, slack_ns: u64, most_ns: u64) -> impl Iterator<Item = Prospect> + '_ {
        let total = f64::from(self.total.max(1.0));
        let margins = std::iter::once(0).chain((0..BINS).map(end_ns)).take_while(move |margin| *margin <= most_ns);
        let (mut within, mut bins_within) = (0.0, 0);
        // Of the bins that begin below the margin: their weight, and their moment.
        let (mut below, mut moment, mut bins_below) = (0.0, 0.0, 0);
        margins.map(move |margin_ns| {
            while bins_within < BINS - 1 && end_ns(bins_within) <= margin_ns.saturating_add(slack_ns) {
                within += f64::from(self.weights[bins_within]);
                bins_within += 1;
            }
            while bins_below < BINS && begin_ns(bins_below) < margin_ns {
                let weight = f64::from(self.weights[bins_below]);
                below += weight;
                moment += weight * begin_ns(bins_below) as f64;
                bins_below += 1;
            }
            let cost_ns = (margin_ns as f64 * below - moment) / total;
            Prospect { margin_ns, met: within / total, cost_ns }
        })
    }
}

/// Beginning of the bin, in ns.
fn begin_ns(bin: usize) -> u64 {
    if bin == 0 { 0 } else { end_ns(bin - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_order_and_hold_what_belongs_to_them() {
        for late_ns in (0..1_500_000).step_by(171) {
            let bin = bin(late_ns);
            assert!(begin_ns(bin) <= late_ns && late_ns < end_ns(bin), "{late_ns} in {bin}");
        }
        assert!((1..BINS).all(|bin| end_ns(bin - 1) < end_ns(bin)));
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn prospects_are_those_of_a_plain_count() {
        let mut lateness = Lateness::default();
        let samples: Vec<u64> = (0..500u64).map(|index| index * index % 90_000).collect();
        samples.iter().for_each(|late_ns| lateness.note(*late_ns));
        for prospect in lateness.prospects(10_000, 150_000) {
            let margin_ns = prospect.margin_ns;
            let met = samples.iter().filter(|late_ns| end_ns(bin(**late_ns)) <= margin_ns + 10_000).count();
            assert_eq!((prospect.met * 500.0).round() as usize, met, "{prospect:?}");
            let cost: u64 = samples.iter().map(|late_ns| margin_ns.saturating_sub(begin_ns(bin(*late_ns)))).sum();
            assert!((prospect.cost_ns * 500.0 - cost as f64).abs() < 1.0, "{prospect:?}");
        }
    }

    #[test]
    fn what_fades_weighs_less() {
        let mut lateness = Lateness::default();
        (0..100).for_each(|_| lateness.note(500_000));
        lateness.fade(0.01);
        (0..100).for_each(|_| lateness.note(1_000));
        assert!((lateness.total() - 101.0).abs() < 0.01);
        let met = lateness.prospects(0, 2_000).last().unwrap().met;
        assert!((met - 100.0 / 101.0).abs() < 1e-4, "{met}");
    }
}
