// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading traces of every format.

use std::path::Path;

use airpath_core::{Span, bounded};
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
}

/// The trace in the file at `path`, and its format.
///
/// # Errors
/// When it cannot be read, or is none; the message names file and line.
pub fn read(path: &Path, format: Option<Format>) -> Result<(Trace, Format)> {
    let bytes = bounded::read(path, bounded::DATA_BYTES)
        .map_err(|error| Failure::usage(format!("cannot read the trace {}: {error}", path.display())))?;
    let format = format.unwrap_or_else(|| guess(&bytes));
    let trace = match format {
        Format::Mahimahi => MahimahiTrace::parse(&bytes).map(Trace::Opportunities),
        Format::Csv | Format::Json | Format::NetemTrace => RateTrace::parse(&bytes).map(Trace::Rates),
    };
    let told =
        |problem| Failure::usage(format!("{} is not a trace in format {}: {problem}", path.display(), format.name()));
    Ok((trace.map_err(told)?, format))
}

/// The format that the content looks like.
fn guess(bytes: &[u8]) -> Format {
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"{") || text.starts_with(b"[") {
        let is_model = String::from_utf8_lossy(&text[..text.len().min(200)]).contains("BwConfig")
            || String::from_utf8_lossy(&text[..text.len().min(200)]).contains("BwPatternConfig");
        return if is_model { Format::NetemTrace } else { Format::Json };
    }
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    if line.iter().all(u8::is_ascii_digit) { Format::Mahimahi } else { Format::Csv }
}

impl Trace {
    /// The trace as rates; opportunities are counted in bins of `bin`.
    ///
    /// # Errors
    /// When the bin is no whole number of milliseconds.
    pub fn rates(self, bin: Span) -> Result<RateTrace> {
        match self {
            Trace::Rates(trace) => Ok(trace),
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
        ] {
            assert_eq!(guess(text.as_bytes()), format, "{text}");
        }
    }
}
