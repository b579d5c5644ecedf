// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Policy of meeting deadlines, as requested and recorded.

use std::fmt;
use std::str::FromStr;

use airpath_core::{Span, quantity};

/// The whole of a core.
pub const WHOLE_CORE_PPM: u64 = 1_000_000;

/// Goal and cost limit of the adaptive margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoSpin {
    /// The share of a core that may be spent watching the clock, in millionths.
    pub budget_ppm: u64,
    /// 99 in 100 packets are to leave no later than this, in ns.
    pub bound_ns: u64,
    /// The margin before anything is known, in ns.
    pub start_ns: u64,
}

impl AutoSpin {
    /// Default for a machine that nobody has measured.
    pub const USUAL: AutoSpin = AutoSpin { budget_ppm: WHOLE_CORE_PPM / 10, bound_ns: 20_000, start_ns: 57_000 };
}

impl Default for AutoSpin {
    fn default() -> AutoSpin {
        AutoSpin::USUAL
    }
}

/// Policy of the loop for meeting deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinPolicy {
    /// Wakes early and watches the clock, by a margin that it learns, within a budget.
    Auto(AutoSpin),
    /// Sleeps until the deadline and is as late as the kernel makes it.
    Off,
    /// Sleeps at least half a millisecond between two looks where packets bear stamps: what falls due
    /// meanwhile leaves together, late by up to that. For machines on which a timer costs much.
    Batch,
    /// Wakes so many nanoseconds early and watches the clock, whatever that costs.
    Margin(u64),
    /// Polls the ports and watches the clock all the time, except for the rest that other programs need.
    Always,
}

impl SpinPolicy {
    /// Default for a machine that nobody has measured.
    pub const USUAL: SpinPolicy = SpinPolicy::Auto(AutoSpin::USUAL);
}

impl Default for SpinPolicy {
    fn default() -> SpinPolicy {
        SpinPolicy::USUAL
    }
}

/// A share of a core in percent, such as `3%`, in millionths.
///
/// # Errors
/// When it is no percentage, or not between 0 and 100.
pub fn share_of_a_core(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a share of a core; write for example 3%");
    let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim();
    match quantity::scale(number, WHOLE_CORE_PPM / 100) {
        Ok(ppm) if ppm <= WHOLE_CORE_PPM => Ok(ppm),
        Ok(_) => Err(format!("`{text}` is more than a core; write for example 3%")),
        Err(_) => Err(wrong()),
    }
}

/// A share of a core in millionths, for people.
pub fn show_share(ppm: u64) -> String {
    format!("{}%", ppm as f64 * 100.0 / WHOLE_CORE_PPM as f64)
}

impl FromStr for SpinPolicy {
    type Err = String;
    fn from_str(text: &str) -> Result<SpinPolicy, String> {
        match text {
            "auto" => Ok(SpinPolicy::USUAL),
            "off" => Ok(SpinPolicy::Off),
            "batch" => Ok(SpinPolicy::Batch),
            "always" => Ok(SpinPolicy::Always),
            _ if text.starts_with("auto:") => {
                let words = &text["auto:".len()..];
                let (budget, bound) =
                    words.split_once(',').map_or((words, None), |(budget, bound)| (budget, Some(bound)));
                let bound_ns = match bound.map(str::trim).map(str::parse::<Span>).transpose() {
                    Ok(bound) => bound.map_or(AutoSpin::USUAL.bound_ns, Span::nanos),
                    Err(problem) => return Err(format!("the bound of auto: {problem}")),
                };
                Ok(SpinPolicy::Auto(AutoSpin { budget_ppm: share_of_a_core(budget)?, bound_ns, ..AutoSpin::USUAL }))
            }
            margin => margin
                .parse::<Span>()
                .map(|span| SpinPolicy::Margin(span.nanos()))
                .map_err(|problem| format!("{problem}, or auto, auto:3%, auto:3%,50us, always, off or batch")),
        }
    }
}

impl fmt::Display for SpinPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpinPolicy::Auto(auto) => {
                f.write_str("auto")?;
                let usual = AutoSpin::USUAL;
                if (auto.budget_ppm, auto.bound_ns) != (usual.budget_ppm, usual.bound_ns) {
                    write!(f, ":{}", show_share(auto.budget_ppm))?;
                }
                if auto.bound_ns != usual.bound_ns {
                    write!(f, ",{}", Span::from_nanos(auto.bound_ns))?;
                }
                Ok(())
            }
            SpinPolicy::Off => f.write_str("off"),
            SpinPolicy::Batch => f.write_str("batch"),
            SpinPolicy::Always => f.write_str("always"),
            SpinPolicy::Margin(nanos) => Span::from_nanos(*nanos).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_read_and_print() {
        assert_eq!("80 us".parse(), Ok(SpinPolicy::Margin(80_000)));
        for text in ["auto", "off", "batch", "always", "auto:3%", "auto:2.5%,50 us", "auto:10%,1 ms"] {
            assert_eq!(text.parse::<SpinPolicy>().unwrap().to_string(), text);
        }
        let SpinPolicy::Auto(auto) = "auto:3%,50us".parse().unwrap() else { panic!("it is auto") };
        assert_eq!((auto.budget_ppm, auto.bound_ns), (30_000, 50_000));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_an_example() {
        for (text, told) in [
            ("sometimes", "or auto"),
            ("auto:3", "write for example 3%"),
            ("auto:300%", "more than a core"),
            ("auto:-1%", "write for example 3%"),
            ("auto:3%,soon", "the bound of auto"),
        ] {
            let error = text.parse::<SpinPolicy>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
