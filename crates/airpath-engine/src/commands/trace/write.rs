// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Writing traces in every format.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use airpath_core::{Rate, Span, Time};
use airpath_log::place;
use airpath_models::medium::rate::curve::{Curve, WORK_PER_BIT, Work};
use airpath_models::medium::rate::mahimahi::OPPORTUNITY_BITS;
use airpath_models::medium::rate::trace::RateTrace;
use serde_json::json;

use crate::cli::trace::Format;
use crate::error::{Failure, Result};
use crate::terminal::show;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// `trace` as text in `format`. Opportunities are those of the first `duration`.
pub fn write(trace: &RateTrace, format: Format, duration: Span) -> String {
    match format {
        Format::Mahimahi => opportunities(trace, duration).iter().fold(String::new(), |mut text, ms| {
            let _ = writeln!(text, "{ms}");
            text
        }),
        Format::Csv => csv(trace),
        Format::Json => json(trace),
        Format::NetemTrace => netem_trace(trace),
        Format::Errors | Format::Positions | Format::Compact => unreachable!("rates are written as rates only"),
    }
}

/// Writes `text` to a file, or for `-` to standard output.
///
/// # Errors
/// When the file cannot be written.
pub fn put(text: &str, output: &Path) -> Result<i32> {
    if output.as_os_str() == "-" {
        show!("{text}");
        return Ok(0);
    }
    place::output(output)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::unwritable(format!("cannot write {}: {error}", output.display())))?;
    Ok(0)
}

/// The milliseconds by which there is another opportunity's worth of bits, up to `duration`.
pub fn opportunities(trace: &RateTrace, duration: Span) -> Vec<u64> {
    let curve: &Curve = trace.curve(false);
    let (mut times, mut granted, mut hint) = (Vec::new(), 0, 0);
    for ms in 1..=duration.nanos() / MILLISECOND_NS {
        let done = curve.done(Time::from_nanos(ms * MILLISECOND_NS), true, &mut hint);
        let by_now = done / (Work::from(OPPORTUNITY_BITS) * WORK_PER_BIT);
        times.extend((granted..by_now).map(|_| ms));
        granted = by_now;
    }
    times
}

/// A number of nanoseconds as seconds, exactly and without needless noughts.
fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / SECOND_NS, nanos % SECOND_NS);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The interval that the last rate lasts for without saying so.
fn implied_period(trace: &RateTrace) -> u64 {
    match trace.points() {
        [.., before, last] => last.at_ns + (last.at_ns - before.at_ns),
        _ => SECOND_NS,
    }
}

fn csv(trace: &RateTrace) -> String {
    let mut text = String::from("time_s,rate_bps\n");
    for point in trace.points() {
        let _ = writeln!(text, "{},{}", seconds(point.at_ns), point.rate);
    }
    if let (true, Some(last)) = (trace.period_ns() != implied_period(trace), trace.points().last()) {
        // CSV knows no period: the last rate once more, half way to the end, so that it lasts to there.
        let missing = trace.period_ns() - last.at_ns;
        let _ = writeln!(text, "{},{}", seconds(last.at_ns + missing / 2), last.rate);
    }
    text
}

fn json(trace: &RateTrace) -> String {
    let rate = |rate| Rate::new(rate).map_or_else(|| "0 bit/s".to_string(), |rate| rate.to_string());
    let points: Vec<String> = trace
        .points()
        .iter()
        .map(|point| format!("    [\"{}\", \"{}\"]", Span::from_nanos(point.at_ns), rate(point.rate)))
        .collect();
    let repeat = if trace.repeats() { "" } else { "  \"repeat\": false,\n" };
    let period = Span::from_nanos(trace.period_ns());
    format!("{{\n  \"period\": \"{period}\",\n{repeat}  \"points\": [\n{}\n  ]\n}}\n", points.join(",\n"))
}

fn netem_trace(trace: &RateTrace) -> String {
    let points = trace.points();
    let ends = points.iter().skip(1).map(|point| point.at_ns).chain([trace.period_ns()]);
    let pattern: Vec<_> = points
        .iter()
        .zip(ends)
        .map(|(point, end)| {
            let length = end - point.at_ns;
            json!({ "StaticBwConfig": {
                "bw": { "gbps": point.rate / SECOND_NS, "bps": point.rate % SECOND_NS },
                "duration": { "secs": length / SECOND_NS, "nanos": length % SECOND_NS },
            }})
        })
        .collect();
    let count = u64::from(!trace.repeats());
    let mut text = json!({ "RepeatedBwPatternConfig": { "pattern": pattern, "count": count } }).to_string();
    text.push('\n');
    text
}
