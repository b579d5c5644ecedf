// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Findings of a recording, as text or JSON.

use std::path::Path;

use airpath_record::analysis::{Analysis, Split};
use airpath_record::estimate::Estimates;
use airpath_record::estimate::capacity::Course;
use airpath_record::estimate::loss::Model;
use airpath_record::folder::SCENARIO;
use airpath_record::recording::{Recording, Way};
use serde_json::json;

use crate::terminal::{say, show};

/// Prints the estimates, and how to replay the path.
pub fn print(as_json: bool, recording: &Recording, analysis: &Analysis, out: &Path) {
    let scenario = out.join(SCENARIO);
    for warning in recording.warnings.iter().filter(|_| !as_json) {
        say!("airpath: warning: {warning}");
    }
    if as_json {
        let document = json!({
            "folder": out.display().to_string(),
            "scenario": scenario.display().to_string(),
            "warnings": recording.warnings,
            "parts": recording.parts,
            "estimates": analysis,
        });
        show!("{document:#}\n");
        return;
    }
    for way in Way::ALL {
        if let Some(estimates) = analysis.of(way) {
            direction(way, estimates);
        }
    }
    show!("delays     {}\n", split(analysis));
    show!("replay     airpath exec --scenario {} -- COMMAND\n", scenario.display());
}

fn split(analysis: &Analysis) -> String {
    match (analysis.delay_split, analysis.delay_bound_ns) {
        (Split::SameClock, _) => "both ends have one clock".into(),
        (Split::Compared, Some(bound)) => format!(
            "clocks compared over the path: each delay is certain to ± {:.3} ms, the sum of both exact",
            bound as f64 / 1e6
        ),
        (Split::Halved, _) => "clocks not compared: half of the round trip in each direction".into(),
        _ => "clocks not compared: not known".into(),
    }
}

fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        high if high >= 1e6 => format!("{:.3} Mbit/s", high / 1e6),
        low => format!("{:.2} kbit/s", low / 1e3),
    }
}

fn line(way: Way, what: &str, words: &str) {
    show!("{:<9}  {what:<9}  {words}\n", way.name());
}

fn direction(way: Way, estimates: &Estimates) {
    match &estimates.capacity {
        Some(capacity) => {
            let mean = rate(capacity.rate_bits_per_second);
            let course = match (capacity.course, &capacity.parts_bits_per_second[..]) {
                (Course::Varying, [least, _, greatest]) => {
                    format!("on average, varying from {} to {}", rate(*least), rate(*greatest))
                }
                (Course::Varying, _) => "on average, varying".into(),
                (Course::Constant, _) => "constant".into(),
            };
            line(
                way,
                "capacity",
                &format!("{mean} {course}, busy for {:.0} % of the time", capacity.busy_share * 100.0),
            );
        }
        None => line(way, "capacity", "not measured"),
    }
    if let Some(delay) = &estimates.delay {
        let varies =
            if delay.varies { format!(", deviation {:.3} ms", delay.deviation_ns as f64 / 1e6) } else { String::new() };
        line(way, "delay", &format!("{:.3} ms{varies}, {} packets", delay.propagation_ns as f64 / 1e6, delay.samples));
    }
    if let Some(loss) = &estimates.loss {
        let [low, high] = loss.share.interval.map(|share| share * 100.0);
        let model = match loss.model {
            Model::GilbertElliott { .. } => format!(", in bursts of {:.1} on average", loss.mean_burst),
            _ if loss.bursty => format!(", in {} bursts", loss.bursts),
            _ => String::new(),
        };
        line(
            way,
            "loss",
            &format!(
                "{:.3} % ({low:.3} to {high:.3} %), {} of {}{model}",
                loss.share.share * 100.0,
                loss.share.hits,
                loss.share.of
            ),
        );
    }
    if let Some(found) = estimates.reordering.as_ref().filter(|found| found.share.hits > 0) {
        line(
            way,
            "reordered",
            &format!(
                "{:.3} %, {} places, {:.3} ms",
                found.share.share * 100.0,
                found.median_displacement.unwrap_or(0),
                found.held_ns.unwrap_or(0) as f64 / 1e6
            ),
        );
    }
    if let Some(twice) = estimates.duplicates.filter(|twice| twice.hits > 0) {
        line(way, "twice", &format!("{:.3} %", twice.share * 100.0));
    }
    if let Some(queue) = &estimates.queue {
        let delay = queue.longest_delay_ns as f64 / 1e6;
        match queue.limit_packets {
            Some(limit) => line(way, "queue", &format!("{limit} packets, {delay:.0} ms when full")),
            None => line(
                way,
                "queue",
                &format!("did not overflow with {} packets, {delay:.0} ms", queue.most_ahead_packets),
            ),
        }
    }
}
