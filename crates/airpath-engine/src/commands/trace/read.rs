// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading traces of every format.

use std::path::Path;

use airpath_core::{Span, bounded};
use airpath_models::channel::PositionList;
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::file::FileFormat;
use airpath_models::medium::rate::curve::Point;
use airpath_models::medium::rate::mahimahi::{MahimahiTrace, OPPORTUNITY_BITS};
use airpath_models::medium::rate::trace::RateTrace;

use crate::cli::trace::Format;
use crate::error::{Failure, Result};

const MILLISECOND_NS: u64 = 1_000_000;

/// A trace as its file has it.
pub enum Trace {
    /// Opportunities.
    Opportunities(MahimahiTrace),
    /// Rates.
    Rates(RateTrace),
    /// Errors.
    Errors(ErrorTrace),
}

/// The trace in the file at `path`, and its format. `units` is the number of units of a list of positions, if
/// there are more than the list tells of.
///
/// # Errors
/// When it cannot be read, or is none; the message names file and line.
pub fn read(path: &Path, format: Option<Format>, units: Option<u64>) -> Result<(Trace, Format)> {
    let bytes = bounded::read(path, bounded::DATA_BYTES)
        .map_err(|error| Failure::usage(format!("cannot read the trace {}: {error}", path.display())))?;
    let format = format.unwrap_or_else(|| guess(&bytes));
    if units.is_some() && format != Format::Positions {
        return Err(Failure::usage(format!(
            "--units is for lists of positions (--from positions), not for {}",
            format.name()
        )));
    }
    let trace = match format {
        Format::Mahimahi => MahimahiTrace::parse(&bytes).map(Trace::Opportunities),
        Format::Csv | Format::Json | Format::NetemTrace => RateTrace::parse(&bytes).map(Trace::Rates),
        Format::Errors => ErrorTrace::parse(&bytes).map(Trace::Errors),
        Format::Compact => ErrorTrace::of_compact_pattern(&bytes).map(Trace::Errors),
        Format::Positions => PositionList::parse(&bytes).and_then(|list| {
            let units = units.unwrap_or_else(|| list.last().map_or(0, |last| last + 1));
            ErrorTrace::of_positions(&list, units).map(Trace::Errors)
        }),
    };
    let told =
        |problem| Failure::usage(format!("{} is not a trace in format {}: {problem}", path.display(), format.name()));
    Ok((trace.map_err(told)?, format))
}

/// The format that the content looks like.
fn guess(bytes: &[u8]) -> Format {
    if looks_like_errors(bytes) {
        return Format::Errors;
    }
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"{") || text.starts_with(b"[") {
        let is_model = String::from_utf8_lossy(&text[..text.len().min(200)]).contains("BwConfig")
            || String::from_utf8_lossy(&text[..text.len().min(200)]).contains("BwPatternConfig");
        return if is_model { Format::NetemTrace } else { Format::Json };
    }
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    if line.iter().all(u8::is_ascii_digit) { Format::Mahimahi } else { Format::Csv }
}

/// True of content that can be an error trace only.
fn looks_like_errors(bytes: &[u8]) -> bool {
    if matches!(bytes.first(), Some(0 | 1)) || ErrorTrace::is_pattern(bytes) {
        return true;
    }
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(b"#")) else { return false };
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let is_record = [&b"ok"[..], b"hit", b"lost", b"truncated", b"flipped", b"at"].contains(&word);
    // Digits with blanks between them, a nought before others, or more than a number of milliseconds has.
    let are_digits = line.iter().all(|byte| matches!(byte, b'0' | b'1' | b' ' | b'\t'))
        && (line.len() > word.len() || word.len() > 19 || word.len() > 1 && word.starts_with(b"0"));
    is_record || are_digits
}

impl Trace {
    /// The trace as rates; opportunities are counted in bins of `bin`.
    ///
    /// # Errors
    /// When the bin is no whole number of milliseconds, or it is a trace of errors.
    pub fn rates(self, bin: Span) -> Result<RateTrace> {
        match self {
            Trace::Rates(trace) => Ok(trace),
            Trace::Errors(_) => {
                Err(Failure::usage("this is a trace of errors, which has no rates; write --to errors or positions"))
            }
            Trace::Opportunities(trace) => {
                let bin_ms = bin.nanos() / MILLISECOND_NS;
                if bin_ms == 0 || !bin.nanos().is_multiple_of(MILLISECOND_NS) {
                    let message = format!("--bin {bin} must be a whole number of milliseconds, the unit of mm-link");
                    return Err(Failure::usage(message));
                }
                RateTrace::new(binned(&trace, bin_ms), Some(trace.period_ms() * MILLISECOND_NS), true)
                    .map_err(|problem| Failure::usage(format!("the trace has no rates: {problem}")))
            }
        }
    }
}

/// Rates whose integral at the end of every bin is what the trace has granted by then. The opportunity
/// at the end of a millisecond is what that millisecond carries; those at 0 belong to the first.
fn binned(trace: &MahimahiTrace, bin_ms: u64) -> Vec<Point> {
    let period = trace.period_ms();
    let mut points: Vec<Point> = Vec::new();
    let mut put = |at_ms: u64, bits: u64| {
        let length = bin_ms.min(period - at_ms);
        let rate = (u128::from(bits) * 1_000 / u128::from(length)) as u64;
        if points.last().is_none_or(|last| last.rate != rate) {
            points.push(Point { at_ns: at_ms * MILLISECOND_NS, rate });
        }
    };
    let (mut bin, mut bits) = (0, 0);
    for (ms, count) in trace.opportunities() {
        let own = ms.saturating_sub(1) / bin_ms;
        if own != bin {
            put(bin * bin_ms, bits);
            if own > bin + 1 {
                put((bin + 1) * bin_ms, 0);
            }
            (bin, bits) = (own, 0);
        }
        bits += u64::from(*count) * OPPORTUNITY_BITS;
    }
    put(bin * bin_ms, bits);
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_counted_at_the_end_of_their_millisecond() {
        let trace = MahimahiTrace::parse(b"0\n1\n1\n5\n6\n").unwrap();
        let points = |bin| {
            binned(&trace, bin).iter().map(|point| (point.at_ns / MILLISECOND_NS, point.rate)).collect::<Vec<_>>()
        };
        assert_eq!(points(1), [(0, 36_000_000), (1, 0), (4, 12_000_000)]);
        // Four milliseconds with three, then two with two.
        assert_eq!(points(4), [(0, 9_000_000), (4, 12_000_000)]);
    }

    #[test]
    fn formats_are_known_by_their_content() {
        for (text, format) in [
            ("12\n13\n", Format::Mahimahi),
            ("0,1 Mbit/s\n", Format::Csv),
            ("time,rate\n", Format::Csv),
            ("[[0, 1]]", Format::Json),
            ("{\"points\": []}", Format::Json),
            ("{\"StaticBwConfig\": {}}", Format::NetemTrace),
            ("# drawn\n\n0010\n", Format::Errors),
            ("1 0 1\n", Format::Errors),
            ("11111111111111111111\n", Format::Errors),
            ("# a walk\nlost 3\n", Format::Errors),
            ("!! !", Format::Errors),
            ("\u{0}\u{1}", Format::Errors),
            ("0\n1\n", Format::Mahimahi),
            ("101\n", Format::Mahimahi),
        ] {
            assert_eq!(guess(text.as_bytes()), format, "{text}");
        }
    }
}
