// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files with rates at given times: CSV, JSON, and the JSON of netem-trace.
//!
//! CSV: a time and a rate a line, each with its unit or as a bare number (seconds, bit/s). A heading
//! may name the columns and their units: `time_ms,rate_mbps`. JSON: `{"points": [[0, 1e6], …]}`, or
//! the list alone; `"period"` says when the trace begins anew. Times count from the first one. The
//! last rate lasts as long as the one before it, unless there is a period.

use airpath_core::Span;
use airpath_core::quantity;
use airpath_core::rate::RATE_UNITS;
use serde_json::Value;

use super::curve::{HIGHEST_RATE, Point};
use super::netem_trace;
use super::rate_trace::{POINTS_LIMIT, RateTrace};
use crate::file::FileFormat;

impl FileFormat for RateTrace {
    const WHAT: &'static str = "rate trace";

    fn parse(bytes: &[u8]) -> Result<RateTrace, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line}: not text in UTF-8")
        })?;
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with(['{', '[']) { json(text) } else { csv(text) }
    }
}

/// A number without a unit, in whole units of 1 / `factor`, rounded to the nearest; or why not.
fn bare(text: &str, factor: u64) -> Result<u64, String> {
    // Exactly, where that is possible.
    if let Ok(value) = quantity::scale(text, factor) {
        return Ok(value);
    }
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    let scaled = libm::round(value * factor as f64);
    if !scaled.is_finite() || scaled < 0.0 || scaled >= u64::MAX as f64 {
        return Err(format!("`{text}` is negative or too large"));
    }
    Ok(scaled as u64)
}

fn has_unit(text: &str) -> bool {
    text.parse::<f64>().is_err() && text.contains(|c: char| c.is_alphabetic())
}

fn time(text: &str, factor: u64) -> Result<u64, String> {
    if has_unit(text) {
        text.parse::<Span>().map(Span::nanos).map_err(|error| error.to_string())
    } else {
        bare(text, factor)
    }
}

fn rate(text: &str, factor: u64) -> Result<u64, String> {
    if has_unit(text) {
        quantity::parse(text, "rate", RATE_UNITS, "\"12 Mbit/s\"").map_err(|error| error.to_string())
    } else {
        bare(text, factor)
    }
}

/// Positions of the columns, and the factors of bare numbers in them.
struct Columns {
    time: (usize, u64),
    rate: (usize, u64),
}

const TIME_UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const RATE_SUFFIXES: [(&str, u64); 4] = [("bps", 1), ("kbps", 1_000), ("mbps", 1_000_000), ("gbps", 1_000_000_000)];

impl Columns {
    fn of_heading(cells: &[&str]) -> Result<Columns, String> {
        let find = |words: &[&str], units: &[(&str, u64)], default: u64| {
            cells.iter().enumerate().find_map(|(index, cell)| {
                let name = cell.trim_matches('"').to_lowercase();
                let (word, unit) = name.split_once(['_', ' ', '(', '[']).unwrap_or((&name, ""));
                let unit = unit.trim_matches(['(', ')', '[', ']', ' ']).replace("bit/s", "bps");
                let factor = units.iter().find(|(known, _)| *known == unit).map(|(_, factor)| *factor);
                let factor = if unit.is_empty() { Some(default) } else { factor };
                words.contains(&word).then_some(()).and(factor).map(|factor| (index, factor))
            })
        };
        let missing = |what: &str, example: &str| format!("no column of the heading is a {what}; call it `{example}`");
        Ok(Columns {
            time: find(&["time", "t", "timestamp"], &TIME_UNITS, 1_000_000_000)
                .ok_or_else(|| missing("time", "time_s"))?,
            rate: find(&["rate", "bandwidth", "bw", "throughput"], &RATE_SUFFIXES, 1)
                .ok_or_else(|| missing("rate", "rate_bps"))?,
        })
    }
}

fn csv(text: &str) -> Result<RateTrace, String> {
    let mut columns = Columns { time: (0, 1_000_000_000), rate: (1, 1) };
    let mut points: Vec<Point> = Vec::new();
    let (mut origin, mut headed) = (0, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |problem: String| format!("line {}: {problem}", number + 1);
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
        let is_heading = |cell: &str| cell.trim_matches('"').starts_with(|c: char| c.is_ascii_alphabetic());
        if points.is_empty() && !headed && cells.first().is_some_and(|cell| is_heading(cell)) {
            columns = Columns::of_heading(&cells).map_err(wrong)?;
            headed = true;
            continue;
        }
        let cell = |index: usize, what: &str| {
            let missing = || wrong(format!("`{line}` has no {what}; write for example `0.5, 12 Mbit/s`"));
            cells.get(index).copied().filter(|cell| !cell.is_empty()).ok_or_else(missing)
        };
        let at_ns = time(cell(columns.time.0, "time")?, columns.time.1).map_err(wrong)?;
        let rate = rate(cell(columns.rate.0, "rate")?, columns.rate.1).map_err(wrong)?;
        match points.last() {
            None => origin = at_ns,
            Some(last) if at_ns <= origin + last.at_ns => {
                return Err(wrong("its time is not later than that of the line before".into()));
            }
            Some(_) if points.len() >= POINTS_LIMIT => return Err(wrong(format!("more than {POINTS_LIMIT} lines"))),
            Some(_) => {}
        }
        if rate > HIGHEST_RATE {
            return Err(wrong("its rate is above 1000 Gbit/s".into()));
        }
        points.push(Point { at_ns: at_ns - origin, rate });
    }
    RateTrace::new(points, None, true)
}

/// A number or text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn json(text: &str) -> Result<RateTrace, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("line {}: {error}", error.line()))?;
    if netem_trace::is_one(&value) {
        return netem_trace::expand(&value);
    }
    let list = value.as_array().or_else(|| value.get("points")?.as_array());
    let list = list.ok_or(
        "it is neither a list of points, nor has it a key `points`, nor is it a model of netem-trace such as \
         `StaticBwConfig`",
    )?;
    let period = value.get("period").and_then(scalar).map(|period| time(&period, 1_000_000_000)).transpose()?;
    let repeats = value.get("repeat").is_none_or(|repeat| repeat.as_bool() != Some(false));
    let mut points = Vec::with_capacity(list.len());
    let mut origin = 0;
    for (index, point) in list.iter().enumerate() {
        let part = |place: usize, key: &str| point.get(place).or_else(|| point.get(key)).and_then(scalar);
        let read = || {
            let missing = "it is no pair of time and rate, as in [0.5, \"12 Mbit/s\"]";
            let at = time(&part(0, "time").ok_or(missing)?, 1_000_000_000)?;
            Ok((at, rate(&part(1, "rate").ok_or(missing)?, 1)?))
        };
        let wrong = |problem: String| format!("point {}: {problem}", index + 1);
        let (at_ns, rate) = read().map_err(wrong)?;
        if index == 0 {
            origin = at_ns;
        }
        let at_ns = at_ns.checked_sub(origin).ok_or_else(|| wrong("its time is before that of the first".into()))?;
        points.push(Point { at_ns, rate });
    }
    RateTrace::new(points, period, repeats)
}
