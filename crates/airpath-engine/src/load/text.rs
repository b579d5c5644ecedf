// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The report of a transfer as people read it.

use airpath_load::{Extent, Interval, Report, StreamReport, Work};
use airpath_log::show;

/// One line for an interval, of all streams together.
pub fn interval(interval: &Interval, datagrams: bool) -> String {
    let sum = |part: fn(&airpath_load::IntervalStream) -> u64| interval.streams.iter().map(part).sum::<u64>();
    let span_ns = interval.to_ns - interval.from_ns;
    let bytes = sum(|stream| stream.bytes);
    let (from, to) = (interval.from_ns as f64 / 1e9, interval.to_ns as f64 / 1e9);
    let mut line = format!(
        "{from:8.1} - {to:.1} s {:>9} {:>12}",
        show::bytes(bytes),
        show::rate(bytes.saturating_mul(8), span_ns)
    );
    if datagrams {
        line.push_str(&format!("   {}", show::counted(sum(|stream| stream.packets), "datagram")));
        if sum(|stream| stream.lost) > 0 {
            line.push_str(&format!(", {} missing", sum(|stream| stream.lost)));
        }
    }
    if interval.streams.iter().any(|stream| stream.tcp.is_some()) {
        line.push_str(&format!("   {}", show::counted(sum(|stream| stream.retransmits), "retransmit")));
    }
    if let [only] = interval.streams.as_slice()
        && let Some(tcp) = only.tcp
    {
        let (window, rtt) = (show::bytes(tcp.congestion_window_bytes), show::span(tcp.rtt_us * 1_000));
        line.push_str(&format!("   cwnd {window}   rtt {rtt}"));
    }
    line
}

/// The lines of the end.
pub fn end(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for stream in &report.streams {
        let alone = report.streams.len() == 1;
        let who = if alone { String::new() } else { format!("{}: ", stream.endpoints.local.port()) };
        match report.plan.work {
            Work::Requests { request_bytes, response_bytes, .. } => {
                lines.extend(requests(stream, request_bytes, response_bytes).map(|line| format!("{who}{line}")));
            }
            work => {
                let datagrams = matches!(work, Work::Datagrams(_));
                lines.extend(transfer(stream, datagrams).into_iter().map(|line| format!("{who}{line}")));
            }
        }
    }
    lines
}

fn transfer(stream: &StreamReport, datagrams: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(sent) = &stream.sent {
        let count = match datagrams {
            true => show::counted(sent.packets, "datagram"),
            false => show::counted(sent.retransmits, "retransmit"),
        };
        lines.push(format!("sent      {}, {count}", amount(sent.bytes, sent.elapsed_ns)));
    }
    if let Some(received) = &stream.received {
        let mut line = format!("received  {}", amount(received.bytes, received.elapsed_ns));
        if datagrams {
            let all = received.packets + received.lost;
            line.push_str(&format!(", {}", show::counted(received.packets, "datagram")));
            match received.lost {
                0 => line.push_str(", none lost"),
                lost => line.push_str(&format!(", {} lost ({})", show::count(lost), show::percent(lost, all))),
            }
            for (number, what) in [(received.out_of_order, "out of order"), (received.duplicates, "twice")] {
                if number > 0 {
                    line.push_str(&format!(", {} {what}", show::count(number)));
                }
            }
            line.push_str(&format!(", jitter {}", show::span(received.jitter_ns)));
        }
        lines.push(line);
    }
    lines
}

fn amount(bytes: u64, elapsed_ns: u64) -> String {
    let rate = show::rate(bytes.saturating_mul(8), elapsed_ns);
    format!("{} in {}, {rate}", show::bytes(bytes), show::span(elapsed_ns))
}

fn requests(stream: &StreamReport, request_bytes: u64, response_bytes: u64) -> Option<String> {
    let sent = stream.sent.as_ref()?;
    let sizes = format!("{} out, {} back", show::bytes(request_bytes), show::bytes(response_bytes));
    let done =
        format!("answered  {} ({sizes}) in {}", show::counted(sent.packets, "request"), show::span(sent.elapsed_ns));
    let Some(times) = ResponseTimes::of(&stream.response_times_ns) else { return Some(done) };
    let [p50, p99, max] = [times.p50_ns, times.p99_ns, times.max_ns].map(show::span);
    Some(format!("{done}: p50 {p50}, p99 {p99}, max {max}, {}", show::counted(sent.retransmits, "retransmit")))
}

/// The distribution of response times; quantiles are times that occurred (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseTimes {
    /// Shortest, in ns.
    pub min_ns: u64,
    /// Arithmetic mean, in ns.
    pub mean_ns: f64,
    /// Median, in ns.
    pub p50_ns: u64,
    /// 99 of 100 took no longer, in ns.
    pub p99_ns: u64,
    /// Longest, in ns.
    pub max_ns: u64,
}

impl ResponseTimes {
    /// Of these times; none if there are none.
    pub fn of(times_ns: &[u64]) -> Option<ResponseTimes> {
        let mut sorted = times_ns.to_vec();
        sorted.sort_unstable();
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        let mean_ns = sorted.iter().map(|time| *time as f64).sum::<f64>() / sorted.len() as f64;
        Some(ResponseTimes { min_ns, mean_ns, p50_ns: rank(50), p99_ns: rank(99), max_ns })
    }
}

/// Description of a plan, in words.
pub fn plan(work: Work, reverse: bool) -> String {
    let direction = if reverse { "from the server" } else { "to the server" };
    let long = |extent| match extent {
        Extent::Bytes(bytes) => show::bytes(bytes),
        Extent::Time(time) => format!("for {}", show::span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))),
    };
    match work {
        Work::Bulk(extent) => format!("TCP, {} {direction}", long(extent)),
        Work::Requests { count, .. } => format!("TCP, {}", show::counted(count, "request")),
        Work::Datagrams(datagrams) => {
            let rate = show::rate(datagrams.rate_bits_per_second, 1_000_000_000);
            let each = datagrams.length_bytes;
            format!("datagrams of {each} B at {rate}, {} {direction}", long(datagrams.extent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let times = ResponseTimes::of(&hundred).unwrap();
        assert_eq!((times.min_ns, times.p50_ns, times.p99_ns, times.max_ns), (1, 50, 99, 100));
        assert!((times.mean_ns - 50.5).abs() < 1e-9);
        assert_eq!(ResponseTimes::of(&[7]).map(|times| (times.p50_ns, times.p99_ns)), Some((7, 7)));
        assert_eq!(ResponseTimes::of(&[]), None);
    }
}
