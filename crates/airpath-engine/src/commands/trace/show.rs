// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath trace show`.

use airpath_core::Span;
use airpath_log::show::{bit_rate, span};
use airpath_models::medium::rate::trace::RateTrace;
use serde::Serialize;

use super::errors;
use super::read::{Trace, read};
use crate::cli::trace::{Format, ShowArgs};
use crate::error::{Failure, Result};
use crate::terminal::show;

/// Summary of a trace. Rates are in bit/s, and each counts for as long as it holds.
#[derive(Serialize)]
struct Summary {
    format: &'static str,
    /// Duration; after that it begins anew.
    duration_ns: u64,
    repeats: bool,
    /// Number of opportunities, if it is a trace of mm-link.
    #[serde(skip_serializing_if = "Option::is_none")]
    opportunities: Option<u64>,
    /// Number of times at which the rate changes, the first included.
    points: usize,
    mean_bps: f64,
    least_bps: u64,
    most_bps: u64,
    percentiles_bps: Vec<(u32, u64)>,
    /// Times without any rate.
    outages: usize,
    outages_ns: u64,
    longest_outage_ns: u64,
    /// Times in nanoseconds, and the rates from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Vec<(u64, u64)>>,
}

const PERCENTILES: [u32; 5] = [5, 25, 50, 75, 95];

/// Shows it.
///
/// # Errors
/// When the file cannot be read or is no trace.
pub fn run(args: &ShowArgs) -> Result<i32> {
    // Runs are asked for of errors only, so that digits need not look like anything else.
    let is_plain = args.runs && args.from.is_none();
    let (trace, format) = read(&args.input, if is_plain { Some(Format::Errors) } else { args.from }, args.units)?;
    if let Trace::Errors(trace) = &trace {
        return errors::show(trace, format, args);
    }
    if args.runs {
        return Err(Failure::usage("--runs is for traces of errors"));
    }
    let opportunities = match &trace {
        Trace::Opportunities(trace) => Some(trace.opportunities().iter().map(|(_, count)| u64::from(*count)).sum()),
        Trace::Rates(_) | Trace::Errors(_) => None,
    };
    let rates = trace.rates(args.bin)?;
    let mut summary = Summary { format: format.name(), opportunities, ..summary(&rates) };
    if args.points {
        summary.rates = Some(rates.points().iter().map(|point| (point.at_ns, point.rate)).collect());
    }
    if args.json {
        show!("{}\n", serde_json::to_string(&summary).expect("numbers and words are JSON"));
    } else {
        print(&summary, args.bin);
    }
    Ok(0)
}

fn summary(trace: &RateTrace) -> Summary {
    let points = trace.points();
    let ends = points.iter().skip(1).map(|point| point.at_ns).chain([trace.period_ns()]);
    let mut lengths: Vec<(u64, u64)> =
        points.iter().zip(ends).map(|(point, end)| (point.rate, end - point.at_ns)).collect();
    let (mut outages, mut outages_ns, mut longest, mut now) = (0, 0, 0, 0);
    for (rate, length) in &lengths {
        if *rate > 0 {
            now = 0;
            continue;
        }
        outages += usize::from(now == 0);
        outages_ns += length;
        now += length;
        longest = longest.max(now);
    }
    let work: u128 = lengths.iter().map(|(rate, length)| u128::from(*rate) * u128::from(*length)).sum();
    lengths.sort_unstable();
    let percentile = |percent: u32| {
        let wanted = u128::from(trace.period_ns()) * u128::from(percent) / 100;
        let mut gone = 0;
        let found = lengths.iter().find(|(_, length)| {
            gone += u128::from(*length);
            gone >= wanted
        });
        (percent, found.or(lengths.last()).map_or(0, |(rate, _)| *rate))
    };
    Summary {
        format: "",
        duration_ns: trace.period_ns(),
        repeats: trace.repeats(),
        opportunities: None,
        points: points.len(),
        mean_bps: work as f64 / trace.period_ns() as f64,
        least_bps: lengths.first().map_or(0, |(rate, _)| *rate),
        most_bps: lengths.last().map_or(0, |(rate, _)| *rate),
        percentiles_bps: PERCENTILES.map(percentile).into(),
        outages,
        outages_ns,
        longest_outage_ns: longest,
        rates: None,
    }
}

fn print(summary: &Summary, bin: Span) {
    let after = if summary.repeats { "repeats" } else { "then keeps its last rate" };
    show!("format     {}\n", summary.format);
    show!("duration   {}, {after}\n", span(summary.duration_ns));
    match summary.opportunities {
        Some(count) => show!("content    {count} opportunities of 1500 bytes; rates below are means over {bin}\n"),
        None => show!("content    {} rates\n", summary.points),
    }
    show!("mean       {}\n", bit_rate(summary.mean_bps));
    show!("range      {} to {}\n", bit_rate(summary.least_bps as f64), bit_rate(summary.most_bps as f64));
    for (percent, rate) in &summary.percentiles_bps {
        show!("{percent:>2} %       {}\n", bit_rate(*rate as f64));
    }
    match summary.outages {
        0 => show!("outages    none\n"),
        count => show!(
            "outages    {count}, {} in all, the longest {}\n",
            span(summary.outages_ns),
            span(summary.longest_outage_ns)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_models::file::FileFormat;

    #[test]
    fn rates_count_for_as_long_as_they_hold() {
        let trace =
            RateTrace::parse(br#"{"period": 10, "points": [[0, 100], [1, 0], [2, 0.0], [4, 300], [9, 0]]}"#).unwrap();
        let found = summary(&trace);
        // 100 bit in the first second, 1500 in the five from 4 s on.
        assert_eq!((found.mean_bps, found.least_bps, found.most_bps), (160.0, 0, 300));
        assert_eq!((found.outages, found.outages_ns, found.longest_outage_ns), (2, 4_000_000_000, 3_000_000_000));
        assert_eq!(found.percentiles_bps, [(5, 0), (25, 0), (50, 100), (75, 300), (95, 300)]);
    }
}
