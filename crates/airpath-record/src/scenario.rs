// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The scenario that replays a recording, as TOML with remarks on what could not be told apart.

use std::fmt::Write as _;

use crate::analysis::{Analysis, Split};
use crate::date::utc;
use crate::estimate::Estimates;
use crate::estimate::capacity::Course;
use crate::estimate::delay::Delay;
use crate::estimate::loss::{LEAST_BURSTS, Loss, Model};
use crate::estimate::order::Reordering;
use crate::recording::{Recording, Way};

/// Name of the file with the opportunities of a direction.
pub fn trace_file(way: Way) -> String {
    format!("{}.trace", way.name())
}

/// Name of the file with the trains of a direction.
pub fn light_file(way: Way) -> String {
    format!("{}.light", way.name())
}

/// Opportunities of a direction as a trace of mm-link;
/// none where its rate is constant and no trains were sent.
pub fn trace(estimates: &Estimates) -> Option<String> {
    let capacity = estimates
        .capacity
        .as_ref()
        .filter(|capacity| capacity.course == Course::Varying || estimates.trains.is_some())?;
    Some(capacity.opportunities_ms.iter().fold(String::new(), |mut text, ms| {
        let _ = writeln!(text, "{ms}");
        text
    }))
}

/// A time in ns with a unit that leaves few digits.
fn time(ns: f64) -> String {
    let rounded = (ns.max(0.0) / 1e3).round();
    format!("\"{} ms\"", rounded / 1e3)
}

/// A rate to four significant digits.
fn rate(bits_per_second: f64) -> String {
    let digits = 10f64.powf(bits_per_second.max(1.0).log10().floor() - 3.0).max(1.0);
    let rounded = ((bits_per_second / digits).round() * digits).max(1.0);
    if rounded >= 1e6 {
        format!("\"{} Mbit/s\"", (rounded / 1e2).round() / 1e4)
    } else {
        format!("\"{} bit/s\"", rounded.round())
    }
}

/// A probability to three significant digits.
fn probability(share: f64) -> String {
    if share <= 0.0 {
        return "0.0".into();
    }
    let digits = (2.0 - share.log10().floor()).clamp(1.0, 12.0) as usize;
    let text = format!("{share:.digits$}");
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.into() }
}

/// A remark in words of at most one line each.
fn remark(text: &mut String, words: &str) {
    let _ = writeln!(text, "# {words}");
}

/// The scenario.
pub fn scenario(recording: &Recording, analysis: &Analysis) -> String {
    let mut text = String::new();
    remark(&mut text, "Written by `airpath record`; docs/record.md says how each value was estimated.");
    let _ = writeln!(text, "name = \"recorded\"");
    let began = utc(recording.began_unix_ns / 1_000_000_000);
    let _ = writeln!(
        text,
        "description = {}",
        quoted(&format!("The path to {} ({}), recorded {began}", recording.host, recording.peer))
    );
    let _ = writeln!(text, "source = \"Measured by airpath record {}\"\n", recording.airpath_version);
    remark(&mut text, delays_split(analysis.delay_split));
    if let Some(bound_ns) = analysis.delay_bound_ns.filter(|bound| *bound > 0) {
        remark(
            &mut text,
            &format!("Each delay is within {} ms of the truth; their sum is exact.", bound_ns as f64 / 1e6),
        );
    }
    let _ = writeln!(text, "\n[[hops]]\nname = \"path\"");
    for way in Way::ALL {
        match analysis.of(way) {
            Some(estimates) => direction(&mut text, way, estimates),
            None => {
                text.push('\n');
                remark(&mut text, &format!("The {} was not recorded.", way.name()));
            }
        }
    }
    text
}

const fn delays_split(split: Split) -> &'static str {
    match split {
        Split::SameClock => "Both ends have one clock: the delay of each direction is exact.",
        Split::Compared => "The delays of the two directions are told apart by comparing the clocks over this path.",
        Split::Halved => "The clocks were not compared: each direction has half of the round trip.",
        Split::Unknown => "The clocks were not compared: the delay is not known.",
    }
}

/// Text as a string of TOML.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

fn direction(text: &mut String, way: Way, estimates: &Estimates) {
    let _ = writeln!(text, "\n[hops.{}]", way.name());
    match &estimates.capacity {
        Some(capacity) if estimates.trains.is_some() => {
            let (light, heavy) = (light_file(way), trace_file(way));
            remark(
                text,
                &format!(
                    "Trains on the idle path, and {} of IP packets under load; the delay is that of the trains.",
                    rate(capacity.rate_bits_per_second).trim_matches('"')
                ),
            );
            let _ = writeln!(text, "rate = {{ type = \"cellreplay\", light = \"{light}\", heavy = \"{heavy}\" }}");
            remark(text, "Packets wait in the link: the limit of the queue was measured, and is not replayed.");
            let _ = writeln!(text, "send_buffer = \"unlimited\"");
            rest(text, estimates);
            return;
        }
        Some(capacity) if capacity.course == Course::Varying => {
            let file = trace_file(way);
            remark(
                text,
                &format!("On average {} of IP packets.", rate(capacity.rate_bits_per_second).trim_matches('"')),
            );
            let _ = writeln!(text, "rate = {{ type = \"mahimahi\", file = \"{file}\" }}");
        }
        Some(capacity) => {
            remark(text, "Of IP packets; overhead of the link layer is part of it.");
            let _ = writeln!(text, "rate = {}", rate(capacity.rate_bits_per_second));
        }
        None => remark(text, "The rate was not measured."),
    }
    match &estimates.delay {
        Some(delay) => propagation(text, delay),
        None => remark(text, "The delay was not measured."),
    }
    if let Some(queue) = &estimates.queue {
        match queue.limit_packets {
            Some(limit) => {
                remark(text, "A limit in packets and one in bytes cannot be told apart, nor tail drop and others.");
                let _ = writeln!(text, "queue = {{ type = \"tail_drop\", limit = \"{} packets\" }}", limit.max(1));
            }
            None => remark(
                text,
                &format!(
                    "The queue did not overflow with {} packets ({:.0} ms) in it.",
                    queue.most_ahead_packets,
                    queue.longest_delay_ns as f64 / 1e6
                ),
            ),
        }
    }
    rest(text, estimates);
}

/// Losses, reordering and copies.
fn rest(text: &mut String, estimates: &Estimates) {
    match &estimates.loss {
        Some(loss) => errors(text, loss),
        None => remark(text, "Losses were not measured."),
    }
    if let Some(reordering) = estimates.reordering.as_ref().filter(|found| found.share.hits > 0) {
        reorder(text, reordering);
    }
    if let Some(twice) = estimates.duplicates.filter(|found| found.hits > 0) {
        let _ = writeln!(text, "duplicate = {{ probability = {} }}", probability(twice.share));
    }
}

fn propagation(text: &mut String, delay: &Delay) {
    if delay.propagation_ns < 0 {
        remark(text, "The delay came out below zero: the clocks or the transmission are not exact enough for it.");
    }
    let mean = time(delay.propagation_ns as f64);
    if delay.varies {
        remark(text, "How fast the delay varies was not measured: ten deviations are assumed.");
        let deviation = delay.deviation_ns as f64;
        let _ = writeln!(
            text,
            "propagation = {{ type = \"wander\", mean = {mean}, deviation = {}, time = {} }}",
            time(deviation),
            time(10.0 * deviation)
        );
    } else {
        let _ = writeln!(text, "propagation = {mean}");
    }
}

fn errors(text: &mut String, loss: &Loss) {
    let [low, high] = loss.share.interval;
    remark(
        text,
        &format!(
            "{} of {} packets were lost: {} to {} with 95 % confidence.",
            loss.share.hits,
            loss.share.of,
            probability(low),
            probability(high)
        ),
    );
    match loss.model {
        Model::None => {}
        Model::Bernoulli { probability: share } => {
            if loss.bursty {
                remark(
                    text,
                    &format!(
                        "Losses came in {} bursts; less than {LEAST_BURSTS} make no model of bursts.",
                        loss.bursts
                    ),
                );
            }
            let _ = writeln!(
                text,
                "errors = {{ type = \"bernoulli\", per = \"packet\", probability = {} }}",
                probability(share)
            );
        }
        Model::GilbertElliott { good_to_bad, bad_to_good } => {
            remark(text, "Bursts of packets and bursts in time cannot be told apart: the state changes per packet.");
            let _ = writeln!(
                text,
                "errors = {{ type = \"gilbert_elliott\", per = \"packet\", good_to_bad = {}, bad_to_good = {} }}",
                probability(good_to_bad),
                probability(bad_to_good)
            );
        }
    }
}

fn reorder(text: &mut String, reordering: &Reordering) {
    remark(
        text,
        &format!(
            "{} of {} packets were overtaken, by {} at most.",
            reordering.share.hits, reordering.share.of, reordering.greatest_displacement
        ),
    );
    let _ = writeln!(
        text,
        "reorder = {{ probability = {}, delay = {} }}",
        probability(reordering.share.share),
        time(reordering.held_ns.unwrap_or(0) as f64)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_their_digits() {
        assert_eq!(
            [rate(99_987.0), rate(5_000_400.0), rate(49_987_654.0), rate(0.2)],
            ["\"99990 bit/s\"", "\"5 Mbit/s\"", "\"49.99 Mbit/s\"", "\"1 bit/s\""]
        );
        assert_eq!([time(20_000_400.0), time(-5.0), time(1_234_567.0)], ["\"20 ms\"", "\"0 ms\"", "\"1.235 ms\""]);
        assert_eq!(
            [probability(0.01), probability(0.012_345), probability(0.0), probability(1.0), probability(0.000_123_4)],
            ["0.01", "0.0123", "0.0", "1.0", "0.000123"]
        );
        assert_eq!(quoted("a \"b\" \\ \n"), "\"a \\\"b\\\" \\\\ \"");
    }
}
