// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lengths of the requests of a series. Every series gets the same lengths, as in Gurtov 1999, 3.5.1.

use std::fmt;
use std::str::FromStr;

use airpath_core::draw::{DrawKey, DrawScope, Seed};
use airpath_core::{Direction, Span};

/// No request may be longer: it could not be broken off.
const LONGEST: Span = Span::from_secs(10);
/// An exponential draw comes up to 37 times its mean.
const LONGEST_MEAN: Span = Span::from_secs(1);

/// A distribution of lengths of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every length between the two, both included, in ns.
    Uniform(u64, u64),
    /// Always the same, in ns.
    Constant(u64),
    /// Exponential of this mean in ns, cut at 10 s.
    Exponential(u64),
}

/// The key of everything that is drawn for a measurement, under the word `role`.
pub(crate) fn key(seed: u64, role: &str) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "timing", direction: Direction::Uplink, role, instance: 0 })
}

impl Pattern {
    /// The first `count` lengths under `seed`, in ns.
    pub fn lengths_ns(self, seed: u64, count: usize) -> Vec<u64> {
        self.draw(key(seed, "requests"), count)
    }

    /// Other lengths of the same kind, for learning before a series.
    pub fn trial_lengths_ns(self, seed: u64, count: usize) -> Vec<u64> {
        self.draw(key(seed, "trials"), count)
    }

    fn draw(self, key: DrawKey, count: usize) -> Vec<u64> {
        let one = |step: u64| match self {
            Pattern::Constant(length) => length,
            Pattern::Uniform(least, most) => least + key.below(step, 0, most - least + 1),
            Pattern::Exponential(mean) => ((mean as f64 * key.exponential(step, 0)) as u64).min(LONGEST.nanos()),
        };
        (0..count as u64).map(one).collect()
    }

    /// The mean length in ns.
    pub fn mean_ns(self) -> u64 {
        match self {
            Pattern::Uniform(least, most) => least.midpoint(most),
            Pattern::Constant(mean) | Pattern::Exponential(mean) => mean,
        }
    }
}

const EXAMPLE: &str = "write uniform:0ms..100ms, constant:10ms or exponential:20ms";

impl FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Pattern, String> {
        let wrong = |problem: String| format!("`{text}` is no distribution of lengths: {problem}; {EXAMPLE}");
        let (kind, values) = text.split_once(':').ok_or_else(|| wrong("it has no colon".into()))?;
        let span = |value: &str, most: Span| {
            let span: Span = value.parse().map_err(|problem| wrong(format!("{problem}")))?;
            if span > most { Err(wrong(format!("{span} is more than {most}"))) } else { Ok(span.nanos()) }
        };
        match kind.trim() {
            "constant" => Ok(Pattern::Constant(span(values, LONGEST)?)),
            "exponential" => match span(values, LONGEST_MEAN)? {
                0 => Err(wrong("its mean is nought".into())),
                mean => Ok(Pattern::Exponential(mean)),
            },
            "uniform" => {
                let (least, most) = values.split_once("..").ok_or_else(|| wrong("it has no `..`".into()))?;
                let (least, most) = (span(least, LONGEST)?, span(most, LONGEST)?);
                if least > most {
                    Err(wrong("it ends before it begins".into()))
                } else {
                    Ok(Pattern::Uniform(least, most))
                }
            }
            other => Err(wrong(format!("there is no kind `{other}`"))),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As it is typed: without spaces, and without a unit of nothing.
        let span = |nanos: u64| match nanos {
            0 => "0ms".to_string(),
            _ => Span::from_nanos(nanos).to_string().replace(' ', ""),
        };
        match self {
            Pattern::Uniform(least, most) => write!(f, "uniform:{}..{}", span(*least), span(*most)),
            Pattern::Constant(length) => write!(f, "constant:{}", span(*length)),
            Pattern::Exponential(mean) => write!(f, "exponential:{}", span(*mean)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for text in ["uniform:0ms..100ms", "constant:10ms", "exponential:1.5ms", "uniform:10us..10us"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for (text, problem) in [
            ("uniform", "no colon"),
            ("uniform:5ms", "no `..`"),
            ("uniform:5ms..1ms", "ends before"),
            ("constant:5", "no unit"),
            ("constant:1h", "more than 10 s"),
            ("exponential:2s", "more than 1 s"),
            ("normal:5ms", "no kind `normal`"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(error.contains(problem) && error.contains("uniform:0ms..100ms"), "{error}");
        }
    }

    #[test]
    fn lengths_depend_on_the_seed_alone_and_have_their_mean() {
        let pattern: Pattern = "uniform:0ms..100ms".parse().unwrap();
        let lengths = pattern.lengths_ns(1, 10_000);
        assert_eq!(lengths[..10], pattern.lengths_ns(1, 10)[..]);
        assert_ne!(lengths[..10], pattern.lengths_ns(2, 10)[..]);
        assert_ne!(lengths[..10], pattern.trial_lengths_ns(1, 10)[..]);
        assert!(lengths.iter().all(|length| *length <= 100_000_000));
        // The standard error of the mean is 100 ms / sqrt(12 * 10^4) = 0.29 ms; five of them.
        let mean = lengths.iter().sum::<u64>() / 10_000;
        assert!(mean.abs_diff(50_000_000) < 1_450_000, "{mean}");
        assert_eq!(Pattern::Constant(7).lengths_ns(1, 2), [7, 7]);
        let exponential = Pattern::Exponential(1_000_000).lengths_ns(1, 10_000);
        assert!((exponential.iter().sum::<u64>() / 10_000).abs_diff(1_000_000) < 50_000);
    }
}
