// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Traces of errors, converted and shown.

use std::fmt::Write;

use airpath_models::channel::trace_file::{ErrorTrace, Record};
use serde::Serialize;

use super::write::put;
use crate::cli::trace::{ConvertArgs, Format, ShowArgs};
use crate::error::{Failure, Result};
use crate::terminal::show;

/// Summary of a trace of errors: whatever is not `ok` is an error.
#[derive(Serialize)]
struct Summary {
    format: &'static str,
    /// Number of packets, frames, bits or blocks.
    units: u64,
    errors: u64,
    error_rate: f64,
    bursts: u64,
    longest_burst: u64,
    longest_good: u64,
    /// Lengths of the runs without errors and of errors, in turn; the first is 0 if the trace begins with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<u64>>,
}

fn summary(trace: &ErrorTrace, format: Format) -> Summary {
    let runs = trace.run_lengths();
    let of = |first: usize| runs.iter().skip(first).step_by(2).copied();
    let errors: u64 = of(1).sum();
    Summary {
        format: format.name(),
        units: trace.units(),
        errors,
        error_rate: errors as f64 / trace.units() as f64,
        bursts: of(1).count() as u64,
        longest_burst: of(1).max().unwrap_or(0),
        longest_good: of(0).max().unwrap_or(0),
        runs: Some(runs),
    }
}

/// Shows it.
pub fn show(trace: &ErrorTrace, format: Format, args: &ShowArgs) -> Result<i32> {
    if args.points {
        return Err(Failure::usage("--points is for traces of rates; this is one of errors, write --runs"));
    }
    let mut summary = summary(trace, format);
    if !args.runs {
        summary.runs = None;
    }
    if args.json {
        show!("{}\n", serde_json::to_string(&summary).expect("numbers and words are JSON"));
        return Ok(0);
    }
    let Summary { units, errors, error_rate, bursts, longest_burst, longest_good, .. } = summary;
    show!("format        {}\n", summary.format);
    show!("units         {units}\n");
    show!("errors        {errors} ({:.4} %)\n", error_rate * 100.0);
    match bursts {
        0 => show!("bursts        none\n"),
        _ => {
            let mean = errors as f64 / bursts as f64;
            show!("bursts        {bursts}, {mean:.2} units on average, the longest of {longest_burst}\n");
            show!("longest gap   {longest_good} units without errors\n");
        }
    }
    Ok(0)
}

/// Converts to another format of errors.
pub fn convert(trace: &ErrorTrace, args: &ConvertArgs) -> Result<i32> {
    if args.duration.is_some() {
        return Err(Failure::usage("--duration is for traces of rates; this is one of errors"));
    }
    let text = match args.to.unwrap_or(Format::Errors) {
        Format::Errors => records(trace),
        Format::Positions => positions(trace)?,
        other => {
            let message = "errors are written --to errors or --to positions";
            return Err(Failure::usage(format!(
                "{} is a trace of errors, not for {}; {message}",
                args.input,
                other.name()
            )));
        }
    };
    put(&text, &args.output)
}

fn records(trace: &ErrorTrace) -> String {
    let (mut text, mut begin) = (String::new(), 0);
    for index in 0.. {
        let Some(end) = trace.end(index) else { break };
        let count = end - begin;
        begin = end;
        let word = match trace.record(index) {
            Record::Ok => "ok",
            Record::Hit => "hit",
            Record::Lost => "lost",
            Record::Damaged { kept_bytes, flips } => {
                // Each has a run of its own.
                let mut words = kept_bytes.map(|bytes| format!("truncated {bytes}")).into_iter().collect::<Vec<_>>();
                if !flips.is_empty() {
                    words.push(format!("flipped {}", spans(flips.iter().map(|flip| u64::from(*flip)))));
                }
                let _ = writeln!(text, "{}", words.join(" "));
                continue;
            }
        };
        let _ = writeln!(text, "{word} {count}");
    }
    text
}

/// Ascending numbers, those that follow each other as first and last.
fn spans(numbers: impl Iterator<Item = u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let words = found.iter().map(|(first, last)| span(*first, *last));
    words.collect::<Vec<_>>().join(" ")
}

fn span(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn positions(trace: &ErrorTrace) -> Result<String> {
    if trace.has_outcomes() {
        let message = "a list of positions cannot tell losses, cuts and flips apart; this trace has such records";
        return Err(Failure::usage(message));
    }
    let (mut text, mut position) = (format!("# of {} units\n", trace.units()), 0);
    for (index, length) in trace.run_lengths().into_iter().enumerate() {
        if index % 2 == 1 {
            let _ = writeln!(text, "{}", span(position, position + length - 1));
        }
        position += length;
    }
    if trace.run_lengths().len() < 2 {
        return Err(Failure::usage("there is no error in it, and a list of positions needs one"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_models::file::FileFormat;

    #[test]
    fn records_are_read_as_they_were() {
        let text = "ok 3\nlost 2\nhit 1\ntruncated 40 flipped 3 5-7\nflipped 0 9\ntruncated 7\nok 4\n";
        let trace = ErrorTrace::parse(text.as_bytes()).unwrap();
        assert_eq!(records(&trace), text);
        let digits = ErrorTrace::parse(b"0110 0001").unwrap();
        assert_eq!(ErrorTrace::parse(records(&digits).as_bytes()).unwrap(), digits);
    }

    #[test]
    fn positions_are_those_of_the_errors() {
        let trace = |text: &str| ErrorTrace::parse(text.as_bytes()).unwrap();
        assert_eq!(positions(&trace("1001 1100")).unwrap(), "# of 8 units\n0\n3-5\n");
        assert!(positions(&trace("lost")).is_err());
        assert!(positions(&trace("000")).is_err());
    }

    #[test]
    fn a_summary_counts_errors_and_bursts() {
        let trace = ErrorTrace::parse(b"hit 2\nok 5\nlost\nflipped 3\nhit\nok 2").unwrap();
        let found = summary(&trace, Format::Errors);
        assert_eq!((found.units, found.errors, found.bursts), (12, 5, 2));
        assert_eq!((found.longest_burst, found.longest_good, found.runs), (3, 5, Some(vec![0, 2, 5, 3, 2])));
    }
}
