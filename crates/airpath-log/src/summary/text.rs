// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The five lines at the end of a run.

use std::fmt;

use super::{BearerDirection, BearerSummary, CauseCount, DirectionSummary, Summary, UserSummary};
use crate::clock::Clock;
use crate::histogram::Distribution;
use crate::show;
use crate::verdict::describe_wall_clock;
use crate::verdict::ends::EndResults;

/// A program that is kept waiting for less than this is not spoken of.
const LEAST_TOLD_WAIT_NS: u64 = 1_000_000;

/// Width of the labels of lines, with the space behind them.
const LABEL: usize = 9;

fn delivered(direction: &DirectionSummary, duration_ns: u64) -> String {
    let notes = [
        (direction.damaged_packets, "times damaged"),
        (direction.truncated_packets, "times truncated"),
        (direction.duplicated_packets, "duplicated"),
    ];
    let notes: Vec<String> = notes
        .iter()
        .filter(|note| note.0 > 0)
        .map(|(number, what)| format!("{} {what}", show::count(*number)))
        .collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!(
        "{}{notes}, {}, {}",
        show::counted(direction.delivered_packets, "packet"),
        show::bytes(direction.delivered_bytes),
        show::rate(direction.delivered_bytes * 8, duration_ns)
    )
}

fn causes(counts: &[CauseCount]) -> String {
    match counts {
        [] => "none".into(),
        counts => {
            let shown: Vec<_> =
                counts.iter().map(|count| format!("{} {}", show::count(count.packets), count.cause)).collect();
            shown.join(", ")
        }
    }
}

/// Filtered packets in words: "2 (host chatter), 3 (not IP)".
fn filtered(counts: &[CauseCount]) -> String {
    let shown = counts.iter().map(|CauseCount { cause, packets }| {
        let words = match cause.as_str() {
            "noise" => "host chatter",
            "before_start" => "before the start",
            "not_ip" => "not IP",
            "too_long" => "longer than the MTU",
            other => other,
        };
        format!("{} ({words})", show::count(*packets))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn dropped(direction: &DirectionSummary) -> String {
    let causes = causes(&direction.dropped);
    match direction.inside_packets {
        0 => causes,
        inside => format!("{causes}, {} still inside", show::count(inside)),
    }
}

fn load(direction: &DirectionSummary, duration_ns: u64) -> String {
    let Some(load) = &direction.background else { return "none".into() };
    let inside = match load.inside_packets {
        0 => String::new(),
        inside => format!(", {} still inside", show::count(inside)),
    };
    format!(
        "{}, {}, dropped {}{inside}",
        show::counted(load.generated_packets, "packet"),
        show::rate(load.generated_bytes * 8, duration_ns),
        causes(&load.dropped)
    )
}

fn quantiles(distribution: &Distribution) -> String {
    if distribution.count == 0 {
        return "none measured".into();
    }
    format!(
        "p50 {}, p99 {}, max {}",
        show::span(distribution.p50_ns),
        show::span(distribution.p99_ns),
        show::span(distribution.max_ns)
    )
}

/// A line for each user: the label, and what was delivered, dropped and delayed in either direction.
fn of_users(users: &[UserSummary], duration_ns: u64) -> Vec<(String, String)> {
    let cell = |direction: &DirectionSummary| {
        let lost: u64 = direction.dropped.iter().map(|cause| cause.packets).sum();
        let rate = show::rate(direction.delivered_bytes * 8, duration_ns);
        let delay = if direction.delay.count == 0 {
            String::new()
        } else {
            format!(", p50 {}", show::span(direction.delay.p50_ns))
        };
        format!(
            "{}, {rate}, {} dropped{delay}",
            show::counted(direction.delivered_packets, "packet"),
            show::count(lost)
        )
    };
    lines(users.iter().map(|user| (user.name.clone(), [cell(&user.uplink), cell(&user.downlink)])).collect())
}

/// A line for each bearer: the label, and what was queued, dropped and sent in either direction.
fn of_bearers(bearers: &[BearerSummary]) -> Vec<(String, String)> {
    let cell = |direction: &BearerDirection| {
        let queued = show::counted(direction.enqueued_packets, "packet");
        let frames = show::counted(direction.sent_frames, "frame");
        format!("{queued} queued, {} dropped, {frames} sent", causes(&direction.dropped))
    };
    let row = |bearer: &BearerSummary| (full_name(bearer), [cell(&bearer.uplink), cell(&bearer.downlink)]);
    lines(bearers.iter().map(row).collect())
}

/// The name of a bearer behind those of user and hop, as `alice.radio.voice`.
fn full_name(bearer: &BearerSummary) -> String {
    let parts = [&bearer.user, &bearer.hop, &bearer.name].map(String::as_str);
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// Labels and cells of the uplink and the downlink, aligned.
fn lines(rows: Vec<(String, [String; 2])>) -> Vec<(String, String)> {
    let names = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(LABEL);
    let width = rows.iter().map(|(_, [uplink, _])| uplink.len()).max().unwrap_or(0);
    let line = |(name, [up, down]): (String, [String; 2])| {
        (format!("{name:<names$}"), format!("uplink {up:<width$}   downlink {down}"))
    };
    rows.into_iter().map(line).collect()
}

/// Disturbances at the ends in words, above a threshold: any program waits a little.
fn suffered(ends: &EndResults) -> Option<String> {
    let parties = ends
        .waits
        .iter()
        .flat_map(|waits| [("client", &waits.client), ("server", &waits.server), ("relays", &waits.relays)]);
    let waits = parties.filter(|(_, waits)| waits.kept_waiting_ns >= LEAST_TOLD_WAIT_NS).map(|(party, waits)| {
        format!(
            "{party} waited {} for a CPU, at most {} at a time",
            show::span(waits.kept_waiting_ns),
            show::span(waits.longest_ns)
        )
    });
    let holds = [("client", &ends.holds.client), ("server", &ends.holds.server), ("relays", &ends.holds.relays)];
    let holds = holds.into_iter().flat_map(|(party, holds)| {
        let times = [(holds.stopped_ns, "stopped"), (holds.traced_ns, "traced")];
        let told = times.into_iter().filter(|(time_ns, _)| *time_ns > 0);
        told.map(move |(time_ns, how)| format!("{party} {how} for {}", show::span(time_ns)))
    });
    let sockets = [("client", &ends.client_sockets), ("server", &ends.server_sockets)];
    let losses = sockets.into_iter().flat_map(|(end, losses)| {
        [
            (losses.datagrams(), "datagram", "lost in sockets"),
            (losses.tcp_receive_drops, "segment", "dropped by TCP at full buffers"),
            (losses.listen_drops, "connection request", "dropped"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(move |(count, what, fate)| format!("{end} {} {fate}", show::counted(count, what)))
    });
    let refused = (ends.refused_writes > 0)
        .then(|| format!("{} refused by the kernel behind the link", show::counted(ends.refused_writes, "packet")));
    let told: Vec<String> = waits.chain(holds).chain(losses).chain(refused).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn virtual_time(duration_ns: u64, wall_ns: Option<u64>) -> String {
    match wall_ns {
        None | Some(0) => "virtual".into(),
        // What takes no time of its own cannot be run faster.
        Some(wall_ns) if duration_ns == 0 => format!("virtual, run in {}", show::span(wall_ns)),
        Some(wall_ns) => format!(
            "virtual, run in {}: {} times real-time speed",
            show::span(wall_ns),
            show::ratio(duration_ns, wall_ns)
        ),
    }
}

impl fmt::Display for Summary {
    /// Five lines, more only where there are users, bearers or background load, or the verdict has several reasons; the last
    /// without a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![
            ("delivered", [delivered(&self.uplink, self.duration_ns), delivered(&self.downlink, self.duration_ns)]),
            ("dropped", [&self.uplink, &self.downlink].map(dropped)),
            ("delay", [quantiles(&self.uplink.delay), quantiles(&self.downlink.delay)]),
        ];
        let directions = [&self.uplink, &self.downlink];
        if directions.iter().any(|direction| direction.background.is_some()) {
            rows.push(("background", directions.map(|direction| load(direction, self.duration_ns))));
        }
        let width = rows.iter().map(|(_, cells)| cells[0].len()).max().unwrap_or(0);
        for (label, [up, down]) in &rows {
            write!(f, "{label:<10} uplink {up:<width$}   downlink {down}")?;
            match *label {
                "delivered" => {
                    write!(f, "   in {}", show::span(self.duration_ns))?;
                    if let Some(seed) = self.seed {
                        write!(f, ", seed {seed}")?;
                    }
                }
                "dropped" => {
                    let mut off = [&self.uplink.discarded[..], &self.downlink.discarded[..]].concat();
                    let ends = self.ends.as_ref();
                    let frames = [
                        ("not_ip", ends.map_or(0, |ends| ends.not_ip_frames)),
                        ("too_long", ends.map_or(0, |ends| ends.too_long_frames)),
                    ];
                    let told = frames.into_iter().filter(|(_, packets)| *packets > 0);
                    off.extend(told.map(|(cause, packets)| CauseCount { cause: cause.into(), packets }));
                    if !off.is_empty() {
                        write!(f, "   filtered {}", filtered(&merged(&off)))?;
                    }
                }
                _ => {}
            }
            writeln!(f)?;
        }
        for (label, cells) in of_users(&self.users, self.duration_ns).into_iter().chain(of_bearers(&self.bearers)) {
            writeln!(f, "{label}  {cells}")?;
        }
        if let Some(ends) = self.ends.as_ref().and_then(suffered) {
            writeln!(f, "{:<10} {ends}", "ends")?;
        }
        match (self.clock, self.wall_ns) {
            // Nothing is late where no clock is met.
            (Clock::Virtual, wall_ns) => writeln!(f, "{:<10} {}", "clock", virtual_time(self.duration_ns, wall_ns))?,
            _ => writeln!(f, "{:<10} {}", "exactness", self.exactness)?,
        }
        if let Some(steps) = describe_wall_clock(&self.wall_clock)
            && self.wall_clock.concerned() == 0
        {
            writeln!(f, "{:<10} {steps}; no packet was affected", "clock")?;
        }
        write!(f, "{:<10} {}", "verdict", self.verdict.grade)?;
        for (index, reason) in self.verdict.reasons.iter().enumerate() {
            let lead = if index == 0 { ": ".into() } else { format!("\n{:<11}", "") };
            write!(f, "{lead}{}", reason.what)?;
            // What several reasons have in common is said with the last of them.
            if !self.verdict.reasons[index + 1..].iter().any(|later| later.hint == reason.hint) {
                write!(f, "; {}", reason.hint)?;
            }
        }
        Ok(())
    }
}

/// The counts of equal causes added up.
fn merged(counts: &[CauseCount]) -> Vec<CauseCount> {
    let mut merged: Vec<CauseCount> = Vec::new();
    for count in counts {
        match merged.iter_mut().find(|other| other.cause == count.cause) {
            Some(other) => other.packets += count.packets,
            None => merged.push(count.clone()),
        }
    }
    merged
}
