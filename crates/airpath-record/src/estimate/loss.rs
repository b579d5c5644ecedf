// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses: their share, and whether they come in bursts.

use serde::Serialize;

use super::share::{Share, share};

/// Least number of bursts for a chain of two states.
pub const LEAST_BURSTS: u64 = 20;
/// Losses count as bursty if the probability of a loss behind a loss differs from that behind an arrival by more
/// than so many standard errors.
const BURSTY: f64 = 3.0;

/// A model of losses, as a scenario has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Model {
    /// No loss was seen.
    None,
    /// Independent losses.
    Bernoulli {
        /// Probability of a loss.
        probability: f64,
    },
    /// Losses in bursts: each packet of the bad state is lost.
    GilbertElliott {
        /// Probability of a change from good to bad.
        good_to_bad: f64,
        /// Probability of a change from bad to good.
        bad_to_good: f64,
    },
}

/// Losses of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Share of lost packets.
    #[serde(flatten)]
    pub share: Share,
    /// Number of bursts: runs of lost packets.
    pub bursts: u64,
    /// Mean length of a burst in packets; 0 without any.
    pub mean_burst: f64,
    /// Correlation of the losses of neighbouring packets.
    pub correlation: f64,
    /// True if losses are more frequent, or less, behind a loss than behind an arrival.
    pub bursty: bool,
    /// The model.
    pub model: Model,
}

/// Measures losses: `lost` says of each packet in the order of sending whether it was lost.
pub fn loss(lost: &[bool]) -> Option<Loss> {
    // Transitions: from (arrival, loss) to (arrival, loss).
    let mut pairs = [[0u64; 2]; 2];
    for pair in lost.windows(2) {
        pairs[usize::from(pair[0])][usize::from(pair[1])] += 1;
    }
    let hits = lost.iter().filter(|lost| **lost).count() as u64;
    let bursts = pairs[0][1] + u64::from(lost.first() == Some(&true));
    let behind = |state: usize| (pairs[state][1] as f64, (pairs[state][0] + pairs[state][1]) as f64);
    let ((after_arrival, arrivals), (after_loss, losses)) = (behind(0), behind(1));
    let (mut correlation, mut bursty) = (0.0, false);
    if arrivals > 0.0 && losses > 0.0 {
        correlation = after_loss / losses - after_arrival / arrivals;
        let pooled = (after_arrival + after_loss) / (arrivals + losses);
        let error = (pooled * (1.0 - pooled) * (1.0 / arrivals + 1.0 / losses)).sqrt();
        bursty = error > 0.0 && correlation / error > BURSTY;
    }
    let found = share(hits, lost.len() as u64, if bursty { correlation } else { 0.0 })?;
    let model = match hits {
        0 => Model::None,
        _ if bursty && bursts >= LEAST_BURSTS => {
            Model::GilbertElliott { good_to_bad: after_arrival / arrivals, bad_to_good: 1.0 - after_loss / losses }
        }
        _ => Model::Bernoulli { probability: found.share },
    };
    let mean_burst = if bursts > 0 { hits as f64 / bursts as f64 } else { 0.0 };
    Some(Loss { share: found, bursts, mean_burst, correlation, bursty, model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_losses_are_independent() {
        let lost: Vec<bool> = (0..1_000).map(|number| number % 100 == 50).collect();
        let found = loss(&lost).unwrap();
        assert_eq!((found.share.hits, found.bursts, found.mean_burst, found.bursty), (10, 10, 1.0, false));
        assert_eq!(found.model, Model::Bernoulli { probability: 0.01 });
    }

    #[test]
    fn bursts_become_a_chain_of_two_states() {
        // 25 bursts of 4 in 1000 packets, which begins and ends with arrivals: 900 arrivals, the last of which
        // nothing follows, 25 changes to bad in 899; 100 losses, 25 changes to good.
        let lost: Vec<bool> = (0..1_000).map(|number| (10..14).contains(&(number % 40))).collect();
        let found = loss(&lost).unwrap();
        assert_eq!((found.share.hits, found.bursts, found.mean_burst, found.bursty), (100, 25, 4.0, true));
        assert_eq!(found.model, Model::GilbertElliott { good_to_bad: 25.0 / 899.0, bad_to_good: 0.25 });
        assert!((found.correlation - (0.75 - 25.0 / 899.0)).abs() < 1e-12);
        // The interval is that of 1000 (1 − ρ) / (1 + ρ) = 161 events.
        assert!(found.share.interval[0] < 0.065 && found.share.interval[1] > 0.15, "{:?}", found.share);
    }

    #[test]
    fn few_bursts_make_no_chain_and_no_loss_no_model() {
        let lost: Vec<bool> = (0..1_000).map(|number| (100..110).contains(&number)).collect();
        let found = loss(&lost).unwrap();
        assert_eq!((found.bursts, found.bursty), (1, true));
        assert_eq!(found.model, Model::Bernoulli { probability: 0.01 });
        assert_eq!(loss(&[false; 50]).unwrap().model, Model::None);
        assert_eq!(loss(&[]), None);
    }
}
