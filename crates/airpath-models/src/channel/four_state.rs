// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses in bursts and alone: the chain of four states of netem's `loss state`.
//!
//! Source: Salsano, Ludovici, Ordine and Giannuzzi 2009, "Definition of a general and intuitive loss
//! model for packet networks", section 4.1. State 1 is the gap between bursts, in which everything is
//! received; state 3 is a loss within a burst, state 2 a reception within one, state 4 a loss in the
//! gap, alone. At every step the chain first moves, then the state that it enters decides; it begins in
//! the gap. Any probability that the moves leave keeps the chain where it is, and one draw is compared
//! with the sums of the probabilities, so that there is no draw for which nothing happens: Linux before
//! 2026 had such gaps at the limits between two moves (Hemminger 2026).
//!
//! Per bit, the lengths of stays are drawn from geometric distributions instead of drawing every bit.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Parameters of the chain of four states, per packet, frame or bit; netem's names in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FourStateConfig {
    /// The probability that a burst begins (p13).
    pub gap_to_burst: Probability,
    /// The probability that a burst ends after a loss (p31); by default all that `gap_to_burst` leaves,
    /// which makes losses independent of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_to_gap: Option<Probability>,
    /// The probability that within a burst a reception follows a loss (p32).
    #[serde(default)]
    pub loss_to_reception: Probability,
    /// The probability that within a burst a loss follows a reception (p23).
    #[serde(default = "certain")]
    pub reception_to_loss: Probability,
    /// The probability of a loss in the gap, alone (p14).
    #[serde(default)]
    pub isolated_loss: Probability,
}

fn certain() -> Probability {
    Probability::ONE
}

impl FourStateConfig {
    fn burst_to_gap(&self) -> Probability {
        self.burst_to_gap.unwrap_or(self.gap_to_burst.complement())
    }

    /// The probability of leaving the gap.
    fn leaves_gap(&self) -> Option<Probability> {
        self.isolated_loss.checked_add(self.gap_to_burst)
    }

    /// The probability of leaving a loss within a burst.
    fn leaves_loss(&self) -> Option<Probability> {
        self.loss_to_reception.checked_add(self.burst_to_gap())
    }
}

impl Configured for FourStateConfig {
    type Model = FourState;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.leaves_gap().is_none() {
            let message = "and gap_to_burst are more than 1 together; both are moves out of the gap";
            problems.push(Problem::new("isolated_loss", message));
        }
        if self.leaves_loss().is_none() {
            let message = match self.burst_to_gap {
                Some(_) => "and burst_to_gap are more than 1 together; both are moves out of a loss".to_string(),
                None => format!(
                    "is more than is left beside burst_to_gap, which is {} where it is not given (1 - gap_to_burst)",
                    self.burst_to_gap()
                ),
            };
            problems.push(Problem::new("loss_to_reception", message));
        }
        problems
    }

    fn build(&self, key: DrawKey) -> FourState {
        FourState::new(self, key)
    }

    fn examples() -> Vec<FourStateConfig> {
        let read = |text: &str| text.parse().expect("an example is valid");
        let of = |[burst, gap, reception, loss, alone]: [&str; 5]| FourStateConfig {
            gap_to_burst: read(burst),
            burst_to_gap: (!gap.is_empty()).then(|| read(gap)),
            loss_to_reception: read(reception),
            reception_to_loss: read(loss),
            isolated_loss: read(alone),
        };
        [["0.02", "0.1", "0.3", "0.5", "0.01"], ["0.2", "", "0", "1", "0"], ["0.5", "1", "0", "1", "0.5"]]
            .map(of)
            .into()
    }
}

impl Reconfigured for FourStateConfig {
    fn configure(&self, model: &mut FourState, _at: Time) {
        model.configure(self);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Gap,
    Reception,
    Loss,
    Isolated,
}

impl State {
    fn is_loss(self) -> bool {
        matches!(self, State::Loss | State::Isolated)
    }
}

/// The process of losses in bursts and alone.
#[derive(Clone, Copy, Debug)]
pub struct FourState {
    config: FourStateConfig,
    key: DrawKey,
    state: State,
    /// Per bit: how many steps the chain still stays before it moves, where drawn already.
    left: Option<u64>,
    /// Per bit: the index of the present stay, the step of its draws.
    stay: u64,
}

/// Attempts: a unit's move, and per bit the length of a stay and where it leads.
const MOVE: u64 = 0;
const STAY: u64 = 1;
const BRANCH: u64 = 2;

impl FourState {
    pub(super) fn new(config: &FourStateConfig, key: DrawKey) -> FourState {
        FourState { config: *config, key, state: State::Gap, left: None, stay: 0 }
    }

    pub(super) fn configure(&mut self, config: &FourStateConfig) {
        if self.config != *config {
            // A stay is memoryless, so that the rest of it may be drawn anew.
            self.config = *config;
            self.left = None;
        }
    }

    /// True if `draw` is a hit of `probability`; a sum above 1 has been refused before.
    fn says(draw: u64, probability: Option<Probability>) -> bool {
        probability.unwrap_or(Probability::ONE).is_hit_by(draw)
    }

    /// The state after one move.
    fn moved(&self, draw: u64) -> State {
        let config = &self.config;
        match self.state {
            State::Gap if config.isolated_loss.is_hit_by(draw) => State::Isolated,
            State::Gap if Self::says(draw, config.leaves_gap()) => State::Loss,
            State::Reception if config.reception_to_loss.is_hit_by(draw) => State::Loss,
            State::Loss if config.loss_to_reception.is_hit_by(draw) => State::Reception,
            State::Loss if Self::says(draw, config.leaves_loss()) => State::Gap,
            State::Isolated => State::Gap,
            stays => stays,
        }
    }

    fn leaves(&self) -> Probability {
        let sum = match self.state {
            State::Gap => self.config.leaves_gap(),
            State::Reception => Some(self.config.reception_to_loss),
            State::Loss => self.config.leaves_loss(),
            State::Isolated => None,
        };
        sum.unwrap_or(Probability::ONE)
    }

    /// Leaves the present state, which is certain by now.
    fn leave(&mut self) {
        let share = |part: Probability, other: Probability| part.get() / (part.get() + other.get());
        let first = |probability: f64| self.key.unit(self.stay, BRANCH) < probability;
        let config = &self.config;
        self.state = match self.state {
            State::Gap if first(share(config.isolated_loss, config.gap_to_burst)) => State::Isolated,
            State::Loss if first(share(config.loss_to_reception, config.burst_to_gap())) => State::Reception,
            State::Gap | State::Reception => State::Loss,
            State::Loss | State::Isolated => State::Gap,
        };
    }

    fn draw_stay(&mut self) -> u64 {
        self.stay += 1;
        match self.leaves() {
            Probability::ZERO => u64::MAX,
            leaves => self.key.failures_before_success(self.stay, STAY, leaves),
        }
    }
}

impl ErrorProcess for FourState {
    fn hits(&mut self, step: u64) -> bool {
        self.state = self.moved(self.key.bits(step, MOVE));
        // Were the chain to go on per bit, the length of its stay would have to be drawn anew.
        self.left = None;
        self.state.is_loss()
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut done = false;
        while passed < bits {
            let left = self.left.take().unwrap_or_else(|| self.draw_stay());
            // The step of a move belongs to the state that it enters.
            let here = if left == 0 {
                self.leave();
                1
            } else {
                let here = left.min(bits - passed);
                self.left = Some(left - here);
                here
            };
            if self.state.is_loss() && !done {
                let hit = if only_first { 1 } else { here };
                positions.extend((passed..passed + hit).map(|position| position as u32));
                done = only_first;
            }
            passed += here;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn process(texts: [&str; 5]) -> FourState {
        let [burst, gap, reception, loss, alone] = texts.map(|text| text.parse().unwrap());
        let key =
            DrawKey::new(Seed(4), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 });
        let config = FourStateConfig {
            gap_to_burst: burst,
            burst_to_gap: Some(gap),
            loss_to_reception: reception,
            reception_to_loss: loss,
            isolated_loss: alone,
        };
        assert_eq!(config.problems(), []);
        FourState::new(&config, key)
    }

    /// Both ways of stepping the chain, `count` steps.
    fn both(texts: [&str; 5], count: usize) -> [Vec<bool>; 2] {
        let mut units = process(texts);
        let by_unit = (0..count as u64).map(|step| units.hits(step)).collect();
        let mut bits = process(texts);
        let mut by_bit = vec![false; count];
        for step in 0..count / 1_000 {
            let mut positions = Vec::new();
            bits.hit_bits(step as u64, 1_000, false, &mut positions);
            positions.iter().for_each(|position| by_bit[step * 1_000 + *position as usize] = true);
        }
        [by_unit, by_bit]
    }

    #[test]
    fn certain_moves_by_hand() {
        // Gap, loss, gap, …: the chain moves before the first packet.
        let mut chain = process(["1", "1", "0", "1", "0"]);
        assert_eq!((0..5).map(|step| chain.hits(step)).collect::<Vec<_>>(), [true, false, true, false, true]);
        // Gap to loss, loss to reception, reception to loss: the burst never ends.
        let mut chain = process(["1", "0", "1", "1", "0"]);
        let mut positions = Vec::new();
        chain.hit_bits(0, 5, false, &mut positions);
        chain.hit_bits(1, 4, false, &mut positions);
        assert_eq!(positions, [0, 2, 4, 1, 3]);
        // An isolated loss is always followed by a reception.
        let mut chain = process(["0", "1", "0", "1", "1"]);
        positions.clear();
        chain.hit_bits(0, 4, false, &mut positions);
        assert_eq!(positions, [0, 2]);
    }

    /// The share of losses, and how often a loss follows one at each distance, from the chain's own
    /// matrix: its stationary distribution by repeated multiplication.
    fn theory(texts: [&str; 5]) -> (f64, [f64; 3]) {
        let [p13, p31, p32, p23, p14] = texts.map(|text| text.parse::<f64>().unwrap());
        // Gap, reception in a burst, loss in a burst, loss alone.
        let matrix = [
            [1.0 - p13 - p14, 0.0, p13, p14],
            [0.0, 1.0 - p23, p23, 0.0],
            [p31, p32, 1.0 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ];
        let times = |row: [f64; 4]| -> [f64; 4] {
            std::array::from_fn(|to| (0..4).map(|from| row[from] * matrix[from][to]).sum())
        };
        let mut stationary = [0.25; 4];
        for _ in 0..100_000 {
            stationary = times(stationary);
        }
        let loss = |row: [f64; 4]| row[2] + row[3];
        let rate = loss(stationary);
        // What a loss is followed by after one, two and three steps.
        let mut row = [0.0, 0.0, stationary[2] / rate, stationary[3] / rate];
        let after = std::array::from_fn(|_| {
            row = times(row);
            loss(row)
        });
        (rate, after)
    }

    #[test]
    fn stationary_rate_and_runs_follow_theory() {
        const N: usize = 1_000_000;
        for texts in [
            ["0.02", "0.1", "0.3", "0.5", "0.01"],
            ["0.05", "0.4", "0", "1", "0"],
            ["0.1", "0.2", "0.2", "0.05", "0.2"],
        ] {
            let (rate, after) = theory(texts);
            for errors in both(texts, N) {
                let losses = errors.iter().filter(|hit| **hit).count() as f64;
                // The chains forget by a factor of at least 0.92 a step: the variance of the mean is below
                // rate (1 - rate) (1 + 0.92) / (1 - 0.92) / N, a standard deviation of 0.0025 at most; four.
                assert!((losses / N as f64 - rate).abs() < 0.01, "{texts:?}: {} {rate}", losses / N as f64);
                for (distance, expected) in (1..).zip(after) {
                    let pairs = errors.iter().zip(&errors[distance..]).filter(|(one, other)| **one && **other);
                    let share = pairs.count() as f64 / losses;
                    assert!((share - expected).abs() < 0.02, "{texts:?}, {distance}: {share} {expected}");
                }
                // Runs of losses: each ends with the probability of the complement of the first share, and
                // an isolated loss after one step; the mean run is the losses over the runs.
                let runs = errors.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
                let mean = 1.0 / (1.0 - after[0]);
                assert!((losses / runs / mean - 1.0).abs() < 0.03, "{texts:?}: {} {mean}", losses / runs);
            }
        }
    }

    #[test]
    fn run_lengths_within_a_burst_are_geometric() {
        // Without receptions and isolated losses a run ends with p31 = 0.25 after each loss. Of about
        // 45,000 runs, chi square over lengths 1 to 9 and longer: 9 degrees of freedom, level 1e-6: 45.
        for errors in both(["0.1", "0.25", "0", "1", "0"], 600_000) {
            let mut lengths = [0f64; 10];
            let mut run = 0;
            for hit in errors {
                if hit {
                    run += 1;
                } else if run > 0 {
                    lengths[std::cmp::min(run, 10) - 1] += 1.0;
                    run = 0;
                }
            }
            let runs: f64 = lengths.iter().sum();
            assert!(runs > 40_000.0, "{runs}");
            let expected =
                |length: i32| if length < 10 { 0.25 * 0.75f64.powi(length - 1) } else { 0.75f64.powi(9) } * runs;
            let chi: f64 =
                (1..).zip(lengths).map(|(length, count)| (count - expected(length)).powi(2) / expected(length)).sum();
            assert!(chi < 45.0, "{chi}");
        }
    }

    #[test]
    fn stopping_at_the_first_loss_leaves_the_chain_where_it_would_be() {
        let texts = ["0.02", "0.1", "0.3", "0.5", "0.01"];
        let (mut all, mut first) = (process(texts), process(texts));
        for step in 0..500 {
            let (mut a, mut f) = (Vec::new(), Vec::new());
            all.hit_bits(step, 77, false, &mut a);
            first.hit_bits(step, 77, true, &mut f);
            assert_eq!(a.first(), f.first());
            assert!(f.len() <= 1);
            assert_eq!((all.state, all.left, all.stay), (first.state, first.left, first.stay));
        }
    }

    #[test]
    fn moves_that_are_too_probable_together_are_refused() {
        let config = |gap: Option<&str>| FourStateConfig {
            gap_to_burst: "0.7".parse().unwrap(),
            burst_to_gap: gap.map(|text| text.parse().unwrap()),
            loss_to_reception: "0.8".parse().unwrap(),
            reception_to_loss: Probability::ONE,
            isolated_loss: "0.4".parse().unwrap(),
        };
        let told = |gap| config(gap).problems().into_iter().map(|problem| problem.key).collect::<Vec<_>>();
        assert_eq!(told(Some("0.3")), ["isolated_loss", "loss_to_reception"]);
        assert_eq!(told(Some("0.2")), ["isolated_loss"]);
        assert!(config(None).problems()[1].message.contains("which is 0.3"), "{:?}", config(None).problems());
    }
}
