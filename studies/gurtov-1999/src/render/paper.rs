// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Table 1 of Gurtov 1999 beside the same on this machine.

use super::grid::grid;
use super::number;
use crate::report::{Measured, TimingReport};

/// A line of the table: what the paper calls it, its figures (mean and variance of the absolute error
/// in ms and ms², of the relative error), and the series that is the same here, if any is.
struct Line {
    name: &'static str,
    figures: [f64; 4],
    here: Option<(&'static str, &'static str)>,
}

const LINES: [Line; 5] = [
    Line { name: "standard select()", figures: [14.50, 10.49, 0.85, 4.39], here: Some(("select", "plain")) },
    Line { name: "interrupts RTC", figures: [0.0; 4], here: Some(("rtc", "plain")) },
    Line { name: "interrupts HZ", figures: [0.41, 0.25, 0.04, 0.01], here: None },
    Line { name: "slack variable", figures: [0.01, 38.56, -0.09, 0.27], here: Some(("select", "slack")) },
    Line { name: "busy waiting", figures: [0.02, 0.11, 0.0, 0.0], here: Some(("busy", "plain")) },
];

/// As wide as the longest name.
const NAME_WIDTH: usize = 17;

/// The table; the series here are those with the system's timer slack and unlocked memory, as in 1999.
pub fn table_one(report: &TimingReport) -> String {
    let head = |cells: [&str; 6]| cells.map(String::from).to_vec();
    let mut rows = vec![
        head(["", "", "absolute error", "", "relative error", ""]),
        head(["", "", "mean, ms", "variance, ms²", "mean", "variance"]),
    ];
    for line in &LINES {
        let mut row = vec![line.name.to_string(), "1999".into()];
        row.extend(line.figures.map(|figure| format!("{figure:.2}")));
        rows.push(row);
        rows.extend(here(report, line));
    }
    grid(&rows, 2)
}

fn here(report: &TimingReport, line: &Line) -> Vec<Vec<String>> {
    let told = |text: String| vec![vec![format!("{:NAME_WIDTH$}  here: {text}", "")]];
    let Some((method, technique)) = line.here else { return told(ticks(report)) };
    let mut found = report.series.iter().filter(|one| one.method == method && one.technique == technique);
    let Some(series) = found.clone().find(|one| one.timer_slack_ns.is_none()).or_else(|| found.next()) else {
        return told(format!("not measured (--methods {method} --techniques {technique})"));
    };
    match &series.measured {
        Some(measured) => figures(measured),
        None => told(format!("not available: {}", series.unavailable.as_deref().unwrap_or("no reason is known"))),
    }
}

fn figures(measured: &Measured) -> Vec<Vec<String>> {
    let (absolute, relative) = (&measured.absolute_error_ms, &measured.relative_error);
    let interval = |interval: Option<[f64; 2]>| match interval {
        Some([low, high]) => format!("{}..{}", number(low), number(high)),
        None => "-".into(),
    };
    vec![
        vec![
            String::new(),
            "here".into(),
            number(absolute.mean),
            number(absolute.variance),
            number(relative.mean),
            number(relative.variance),
        ],
        vec![
            String::new(),
            "  95 %".into(),
            interval(absolute.mean_interval),
            interval(absolute.variance_interval),
            interval(relative.mean_interval),
            interval(relative.variance_interval),
        ],
    ]
}

fn ticks(report: &TimingReport) -> String {
    let rate = report.host["ticks_per_second"].as_u64().map_or("an unknown rate".into(), |rate| format!("{rate} Hz"));
    let fine = if report.host["high_resolution_timers"].as_bool() == Some(true) {
        "but timers do not wait for them"
    } else {
        "and timers wait for them"
    };
    format!("no counterpart; this kernel ticks at {rate}, {fine}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recommend;

    #[test]
    fn figures_stand_beside_those_of_the_paper() {
        let mut report = recommend::tests::report();
        let text = table_one(&report);
        let line = |begin: &str| {
            let at = text.lines().position(|line| line.starts_with(begin)).unwrap();
            text.lines()
                .skip(at)
                .take(2)
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(line("standard"), ["standard select() 1999 14.50 10.49 0.85 4.39", "here 0.0580 0 0 0"]);
        assert_eq!(line("interrupts RTC")[1], "here: not available: there is no such device");
        assert_eq!(
            line("interrupts HZ")[1],
            "here: no counterpart; this kernel ticks at 250 Hz, but timers do not wait for them"
        );
        assert_eq!(line("slack variable")[0], "slack variable 1999 0.01 38.56 -0.09 0.27");
        report.series.retain(|one| one.method != "busy");
        assert!(table_one(&report).contains("not measured (--methods busy --techniques plain)"));
    }
}
