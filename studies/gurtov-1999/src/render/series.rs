// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One line a series, and one a line rate.

use super::grid::grid;
use super::{microseconds, number};
use crate::report::{Series, TimingReport};

const HEADS: [[&str; 13]; 2] = [
    [
        "method",
        "technique",
        "timer",
        "memory",
        "mean",
        "variance",
        "p50",
        "p99",
        "p99.9",
        "max",
        "drift",
        "processor",
        "switches",
    ],
    ["", "", "slack", "", "ms", "ms²", "us", "us", "us", "us", "ms", "us/sleep", "given+taken"],
];

/// A table of what was measured: errors are actual less requested.
pub fn series(report: &TimingReport) -> String {
    let mut rows: Vec<Vec<String>> = HEADS.iter().map(|head| head.map(String::from).to_vec()).collect();
    for one in &report.series {
        let mut row = vec![
            one.method.clone(),
            one.technique.clone(),
            one.timer_slack_ns.map_or_else(|| "default".into(), |slack| format!("{slack} ns")),
            if one.memory_locked { "locked" } else { "unlocked" }.into(),
        ];
        row.extend(cells(one));
        rows.push(row);
    }
    grid(&rows, 4)
}

fn cells(one: &Series) -> Vec<String> {
    let Some(measured) = &one.measured else { return vec!["-".into()] };
    let quantiles = measured.error_ns;
    vec![
        number(measured.absolute_error_ms.mean),
        number(measured.absolute_error_ms.variance),
        microseconds(quantiles.p50 as f64),
        microseconds(quantiles.p99 as f64),
        microseconds(quantiles.p999 as f64),
        microseconds(quantiles.max as f64),
        number(measured.drift_ns as f64 / 1e6),
        microseconds(measured.processor_ns_per_sleep),
        format!("{:.2}+{:.2}", measured.voluntary_switches_per_sleep, measured.involuntary_switches_per_sleep),
    ]
}

/// A table of requested and actual line rates; nothing where none was asked for.
pub fn line_rates(report: &TimingReport) -> String {
    if report.line_rates.is_empty() {
        return String::new();
    }
    let head = ["method", "technique", "requested kbit/s", "actual kbit/s", "actual/requested"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(report.line_rates.iter().map(|rate| {
        vec![
            rate.method.clone(),
            rate.technique.clone(),
            number(rate.requested_bits_per_second / 1e3),
            number(rate.actual_bits_per_second / 1e3),
            format!("{:.4}", rate.actual_bits_per_second / rate.requested_bits_per_second),
        ]
    }));
    grid(&rows, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recommend;
    use crate::report::LineRate;

    #[test]
    fn one_line_a_series() {
        let text = series(&recommend::tests::report());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 6);
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            words,
            [
                "select",
                "plain",
                "default",
                "unlocked",
                "0.0580",
                "0",
                "58.0",
                "90.0",
                "90.0",
                "90.0",
                "58.00",
                "9.0",
                "1.00+0.00"
            ]
        );
        assert!(lines[5].starts_with("rtc") && lines[5].ends_with('-'), "{text}");
    }

    #[test]
    fn one_line_a_rate() {
        let mut report = recommend::tests::report();
        assert_eq!(line_rates(&report), "");
        report.line_rates.push(LineRate {
            method: "select".into(),
            technique: "plain".into(),
            timer_slack_ns: None,
            packet_bytes: 100,
            packets: 4,
            requested_bits_per_second: 1e6,
            actual_bits_per_second: 934_500.0,
        });
        let text = line_rates(&report);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["select", "plain", "1000", "934", "0.9345"]);
    }
}
