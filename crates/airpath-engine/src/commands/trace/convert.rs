// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath trace convert`.

use std::path::Path;

use airpath_core::Span;
use airpath_core::quantity;
use airpath_core::rate::RATE_UNITS;
use airpath_models::medium::rate::curve::Point;
use airpath_models::medium::rate::mahimahi::OPPORTUNITY_BITS;
use airpath_models::medium::rate::trace::RateTrace;

use super::errors;
use super::read::{Trace, read};
use super::write::{opportunities, put, write};
use crate::cli::trace::{ConvertArgs, Format};
use crate::error::{Failure, Result};
use crate::terminal::say;

const MILLISECOND_NS: u64 = 1_000_000;
/// The most opportunities with which a constant rate is made exact.
const EXACT_LIMIT: u64 = 1_000_000;
/// Duration of a constant rate that cannot be made exact, or is no matter of opportunities.
const CONSTANT: Span = Span::from_secs(60);
/// The longest trace of opportunities that is written.
const LONGEST: Span = Span::from_secs(7 * 86_400);

/// Converts.
///
/// # Errors
/// When the input cannot be read, is no trace, or has nothing that could be written.
pub fn run(args: &ConvertArgs) -> Result<i32> {
    let to = args.to.unwrap_or_else(|| by_name(&args.output));
    let of_rates = |hint: &str| match to.is_of_errors() {
        true => Err(Failure::usage(format!("{} has rates, and --to {} is for errors{hint}", args.input, to.name()))),
        false => Ok(()),
    };
    let (trace, natural) = match constant(&args.input) {
        Some(rate) if !Path::new(&args.input).exists() => {
            of_rates("")?;
            of_constant(rate.map_err(Failure::usage)?, args.duration)?
        }
        _ => match read(Path::new(&args.input), args.from, args.units)?.0 {
            Trace::Errors(trace) => return errors::convert(&trace, args),
            trace => {
                of_rates("; if its lines of 0 and 1 are errors, write --from errors")?;
                let trace = trace.rates(args.bin)?;
                let period = Span::from_nanos(trace.period_ns());
                (trace, period)
            }
        },
    };
    let duration = args.duration.unwrap_or(natural);
    let trace = if duration == Span::from_nanos(trace.period_ns()) || to == Format::Mahimahi {
        trace
    } else {
        cut(&trace, duration)?
    };
    if to == Format::Mahimahi {
        if duration > LONGEST {
            return Err(Failure::usage(format!(
                "{duration} is too long for an mm-link trace; use a shorter \
                --duration"
            )));
        }
        let times = opportunities(&trace, duration);
        let Some(last) = times.last() else {
            let message = format!(
                "{} carries less than one packet of 1500 bytes in {duration}; write a longer --duration",
                args.input
            );
            return Err(Failure::usage(message));
        };
        if last * MILLISECOND_NS != duration.nanos() {
            say!(
                "airpath: an mm-link trace repeats at its last opportunity, so this one lasts {last} ms, not {duration}"
            );
        }
    }
    put(&write(&trace, to, duration), &args.output)
}

fn by_name(path: &Path) -> Format {
    let name = path.to_string_lossy();
    if name.ends_with(".netem.json") {
        Format::NetemTrace
    } else if name.ends_with(".json") {
        Format::Json
    } else if name.ends_with(".csv") {
        Format::Csv
    } else {
        Format::Mahimahi
    }
}

/// The rate that `text` is, if it begins with a number and has a unit.
fn constant(text: &str) -> Option<std::result::Result<u64, String>> {
    let (number, unit) = quantity::split(text);
    if number.is_empty() || unit.is_empty() || unit.contains(['.', '/']) && !unit.ends_with("/s") {
        return None;
    }
    Some(quantity::parse(text, "rate", RATE_UNITS, "\"5 Mbit/s\"").map_err(|error| error.to_string()))
}

/// A constant rate, and how long it has to last to be a whole number of opportunities.
fn of_constant(rate: u64, duration: Option<Span>) -> Result<(RateTrace, Span)> {
    let divisor = gcd(OPPORTUNITY_BITS * 1_000, rate);
    let exact = Some(OPPORTUNITY_BITS * 1_000 / divisor.max(1))
        .filter(|_| rate > 0 && rate / divisor <= EXACT_LIMIT)
        .map(Span::from_millis);
    let period = duration.or(exact).unwrap_or(CONSTANT);
    let trace = RateTrace::new(vec![Point { at_ns: 0, rate }], Some(period.nanos().max(1)), true)
        .map_err(|problem| Failure::usage(format!("no trace can have that rate: {problem}")))?;
    Ok((trace, period))
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// The first `duration` of the trace, repeated if it is shorter.
fn cut(trace: &RateTrace, duration: Span) -> Result<RateTrace> {
    let rounds = duration.nanos().div_ceil(trace.period_ns());
    if rounds.saturating_mul(trace.points().len() as u64) > 10_000_000 {
        return Err(Failure::usage(format!("{duration} of this trace are more than 10000000 rates")));
    }
    let mut points: Vec<Point> = Vec::new();
    for point in (0..rounds).flat_map(|round| {
        trace.points().iter().map(move |point| Point { at_ns: round * trace.period_ns() + point.at_ns, ..*point })
    }) {
        if point.at_ns < duration.nanos() && points.last().is_none_or(|last| last.rate != point.rate) {
            points.push(point);
        }
    }
    RateTrace::new(points, Some(duration.nanos()), trace.repeats())
        .map_err(|problem| Failure::usage(format!("the remaining part is not a valid trace: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_becomes_exactly_as_many_opportunities() {
        let lines = |rate| {
            let (trace, period) = of_constant(rate, None).unwrap();
            (opportunities(&trace, period), period)
        };
        // 12 Mbit/s: one a millisecond; 5 Mbit/s: five in 12 ms.
        assert_eq!(lines(12_000_000), (vec![1], Span::from_millis(1)));
        assert_eq!(lines(5_000_000), (vec![3, 5, 8, 10, 12], Span::from_millis(12)));
        assert_eq!(lines(24_000_000).0, [1, 1]);
        assert_eq!(lines(9_600), (vec![1_250], Span::from_millis(1_250)));
        let (times, period) = lines(1_234_500);
        assert_eq!((times.len() as u64 * 12_000_000).checked_div(period.nanos() / MILLISECOND_NS), Some(1_234_500));
    }

    #[test]
    fn what_is_a_rate_and_what_is_a_file() {
        assert_eq!(constant("5 Mbit/s"), Some(Ok(5_000_000)));
        assert!(constant("5 Mb/s").is_some_and(|rate| rate.is_err()));
        assert_eq!(constant("up.trace"), None);
        assert_eq!(constant("5mbit.trace"), None);
    }
}
