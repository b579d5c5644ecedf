// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Traces of errors, converted and shown.

use std::fmt::Write;

use airpath_models::channel::trace_file::ErrorTrace;
use serde::Serialize;

use super::outcomes::{Outcomes, outcomes};
use super::records::{Records, span};
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
    /// Losses, truncations and corruptions, if the trace has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<Outcomes>,
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
        outcomes: None,
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
    let bits = args.length.get();
    if bits == 0 || !bits.is_multiple_of(8) {
        return Err(Failure::usage(format!("--length {} must be whole bytes, at least one", args.length)));
    }
    summary.outcomes = trace.has_outcomes().then(|| outcomes(trace, bits / 8));
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
    if let Some(outcomes) = &summary.outcomes {
        show_outcomes(outcomes);
    }
    Ok(0)
}

/// The columns of a table of environments, and bursts.
fn show_outcomes(found: &Outcomes) {
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    show!("loss          {} of all packets\n", percent(found.loss));
    show!("truncation    {} of those not lost\n", percent(found.truncation));
    show!("corruption    {} of those neither lost nor truncated\n", percent(found.corruption));
    show!("bit errors    {:.3e} of all bits of packets of {} bytes\n", found.bit_error_rate, found.length_bytes);
    if found.hit > 0 {
        show!("hits          {} packets whose damage the scenario decides\n", found.hit);
    }
    if found.loss_bursts > 0 {
        let mean = found.lost as f64 / found.loss_bursts as f64;
        show!("lost in a row {mean:.2} on average, {} at most\n", found.longest_loss_burst);
    }
    let packets = found.corrupted + found.truncated_corrupted;
    if packets > 0 {
        let mean = found.flipped_bits as f64 / packets as f64;
        let row = found.flipped_bits as f64 / found.bit_bursts as f64;
        show!("flipped bits  {mean:.1} in a packet that has any, {row:.2} in a row");
        show!(" on average, {} at most\n", found.longest_bit_burst);
    }
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
    let (mut text, mut begin, mut records) = (String::new(), 0, Records::default());
    for index in 0.. {
        let Some(end) = trace.end(index) else { break };
        text += &records.add(trace.record(index), end - begin);
        begin = end;
    }
    text + &records.end()
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
