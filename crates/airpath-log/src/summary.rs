// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The five lines at the end of a run.

use std::fmt;

use airpath_core::pdu::Origin;
use airpath_core::{Cause, CauseClass, Counters, Direction, EventKind, Span, Tally};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::exactness::Exactness;
use crate::histogram::{Delays, Distribution, Timings};
use crate::places::Places;
use crate::show;
use crate::verdict::ends::EndResults;
use crate::verdict::{Verdict, WallClock, describe_wall_clock};

/// A program that is kept waiting for less than this is not spoken of.
const LEAST_TOLD_WAIT_NS: u64 = 1_000_000;

/// Width of the labels of lines, with the space behind them.
const LABEL: usize = 9;

/// A cause and how often it occurred.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CauseCount {
    /// The cause's word.
    pub cause: String,
    /// Number of packets.
    pub packets: u64,
}

/// Packets of background loads in one direction, by their fate.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BackgroundSummary {
    /// Packets that the loads put into hops.
    pub generated_packets: u64,
    /// Their bytes, IP headers included.
    pub generated_bytes: u64,
    /// Packets that went as far as they were to.
    pub consumed_packets: u64,
    /// Packets still in the link when the run ended.
    pub inside_packets: u64,
    /// Packets that the link dropped, the most frequent cause first.
    pub dropped: Vec<CauseCount>,
}

/// Packets of one direction, by their fate.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DirectionSummary {
    /// Packets that entered the link.
    pub offered_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Their bytes, IP headers included.
    pub delivered_bytes: u64,
    /// Delivered bits over the run's duration.
    pub delivered_bit_per_s: f64,
    /// Times that a hop flipped bits of a packet; a packet that two hops or two frames damaged counts twice.
    pub damaged_packets: u64,
    /// Copies that the link made of packets; what is delivered, dropped or inside includes them.
    pub duplicated_packets: u64,
    /// Times that a hop cut a packet short; the packet is delivered all the same.
    #[serde(default)]
    pub truncated_packets: u64,
    /// Packets still in the link when the run ended.
    pub inside_packets: u64,
    /// Packets that the link dropped, the most frequent cause first.
    pub dropped: Vec<CauseCount>,
    /// Packets filtered before the link: host chatter, or sent before the run began.
    pub discarded: Vec<CauseCount>,
    /// One-way delay.
    pub delay: Distribution,
    /// Background load, which is in none of the other figures; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundSummary>,
}

/// Packets of one user of a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct UserSummary {
    /// The user's name.
    pub name: String,
    /// Client to server.
    pub uplink: DirectionSummary,
    /// Server to client.
    pub downlink: DirectionSummary,
}

/// Packets of one bearer, of any origin, in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BearerDirection {
    /// Packets that entered its queue.
    pub enqueued_packets: u64,
    /// Packets that it dropped, the most frequent cause first.
    pub dropped: Vec<CauseCount>,
    /// Frames that it sent, those without packets included.
    pub sent_frames: u64,
}

/// Packets of one bearer of a hop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BearerSummary {
    /// The user's name; empty for one without.
    pub user: String,
    /// The hop's name.
    pub hop: String,
    /// The bearer's name.
    pub name: String,
    /// Client to server.
    pub uplink: BearerDirection,
    /// Server to client.
    pub downlink: BearerDirection,
}

impl BearerSummary {
    /// The name behind those of user and hop, as `alice.radio.voice`.
    fn full_name(&self) -> String {
        let parts = [&self.user, &self.hop, &self.name].map(String::as_str);
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
    }
}

/// A run in five lines.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Clock of the run.
    #[serde(default)]
    pub clock: Clock,
    /// The seed of its draws; none where it stands elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Duration by the wall clock, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ns: Option<u64>,
    /// Duration of the run.
    pub duration_ns: u64,
    /// Client to server.
    pub uplink: DirectionSummary,
    /// Server to client.
    pub downlink: DirectionSummary,
    /// The users of a cell; none for a path alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserSummary>,
    /// The bearers; none where no hop has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bearers: Vec<BearerSummary>,
    /// Real departures after due times.
    pub lateness: Distribution,
    /// Steps of the wall clock.
    #[serde(default, skip_serializing_if = "WallClock::is_quiet")]
    pub wall_clock: WallClock,
    /// Disturbances at the ends, apart from the link; none where no real programs were at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<EndResults>,
    /// Error bounds that follow from these and from late entries.
    #[serde(default)]
    pub exactness: Exactness,
    /// The judgement.
    pub verdict: Verdict,
}

fn most_frequent_first(mut causes: Vec<(Cause, Tally)>) -> Vec<(Cause, Tally)> {
    causes.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.count));
    causes
}

fn background(counters: &Counters, direction: Direction) -> Option<BackgroundSummary> {
    let total = |kind| counters.total_of(direction, Origin::Background, kind);
    let (generated, consumed) = (total(EventKind::Generated), total(EventKind::Consumed).count);
    let causes = most_frequent_first(counters.drops_of(direction, Origin::Background));
    let lost: u64 = causes.iter().map(|(_, tally)| tally.count).sum();
    let duplicated = total(EventKind::Duplicated).count;
    let count = |(cause, tally): (Cause, Tally)| CauseCount { cause: cause.name().into(), packets: tally.count };
    (generated.count > 0).then(|| BackgroundSummary {
        generated_packets: generated.count,
        generated_bytes: generated.bits / 8,
        consumed_packets: consumed,
        inside_packets: (generated.count + duplicated).saturating_sub(consumed + lost),
        dropped: causes.into_iter().map(count).collect(),
    })
}

fn direction(counters: &Counters, delay: Distribution, duration: Span, direction: Direction) -> DirectionSummary {
    // Only the whole path of a user offers and delivers.
    let of_paths = |kind| counters.total_of(direction, Origin::User, kind);
    let delivered = of_paths(EventKind::Delivered);
    let causes = most_frequent_first(counters.drops(direction));
    let (discarded, dropped): (Vec<_>, Vec<_>) = causes
        .into_iter()
        .map(|(cause, tally)| (cause, CauseCount { cause: cause.name().into(), packets: tally.count }))
        .partition(|(cause, _)| cause.class() == CauseClass::NeverInside);
    let counts = |causes: Vec<(Cause, CauseCount)>| causes.into_iter().map(|(_, count)| count).collect();
    let seconds = duration.as_secs_f64();
    let offered = of_paths(EventKind::Offered).count;
    let duplicated = counters.total(direction, EventKind::Duplicated);
    let lost: u64 = dropped.iter().map(|(_, count)| count.packets).sum();
    DirectionSummary {
        offered_packets: offered,
        damaged_packets: counters.total(direction, EventKind::Damaged),
        duplicated_packets: duplicated,
        truncated_packets: counters.total(direction, EventKind::Truncated),
        inside_packets: (offered + duplicated).saturating_sub(delivered.count + lost),
        delivered_packets: delivered.count,
        delivered_bytes: delivered.bits / 8,
        delivered_bit_per_s: if seconds > 0.0 { delivered.bits as f64 / seconds } else { 0.0 },
        dropped: counts(dropped),
        discarded: counts(discarded),
        delay,
        background: background(counters, direction),
    }
}

/// Counts at the place of a bearer in `direction`.
fn bearer(counters: &Counters, place: u16, direction: Direction) -> BearerDirection {
    let site = |origin| counters.site(place, direction, origin);
    let sum = |kind| Origin::ALL.iter().map(|origin| site(*origin).kind(kind).count).sum();
    let of_cause = |cause: &Cause| Origin::ALL.iter().map(|origin| site(*origin).cause(*cause).count).sum::<u64>();
    let dropped = Cause::ALL.iter().map(|cause| CauseCount { cause: cause.name().into(), packets: of_cause(cause) });
    let mut dropped: Vec<_> = dropped.filter(|count| count.packets > 0).collect();
    dropped.sort_by_key(|count| std::cmp::Reverse(count.packets));
    BearerDirection { enqueued_packets: sum(EventKind::Enqueued), dropped, sent_frames: sum(EventKind::FrameSent) }
}

impl Summary {
    /// The summary of a run.
    pub fn new(counters: &Counters, timings: &Timings, duration: Span, verdict: Verdict) -> Summary {
        Summary {
            clock: Clock::Live,
            seed: None,
            wall_ns: None,
            duration_ns: duration.nanos(),
            uplink: direction(counters, timings.delay(Direction::Uplink), duration, Direction::Uplink),
            downlink: direction(counters, timings.delay(Direction::Downlink), duration, Direction::Downlink),
            users: Vec::new(),
            bearers: Vec::new(),
            lateness: timings.lateness(),
            wall_clock: WallClock::default(),
            ends: None,
            exactness: Exactness::of(timings),
            verdict,
        }
    }

    /// The same with a part for each named user of `places`, whose delays are in `delays`, and for each bearer.
    pub fn with_users(self, counters: &Counters, places: &Places, delays: &[Delays], duration: Span) -> Summary {
        let users = places.named_users().iter().zip(delays).enumerate().map(|(number, (user, delays))| {
            let counters = counters.of_user(number, places.stride());
            let of = |way| direction(&counters, delays.of(way), duration, way);
            UserSummary { name: user.name.clone(), uplink: of(Direction::Uplink), downlink: of(Direction::Downlink) }
        });
        let bearers = places.all().filter(|place| !place.bearer.is_empty()).map(|place| BearerSummary {
            user: place.user.into(),
            hop: place.hop.unwrap_or_default().into(),
            name: place.bearer.into(),
            uplink: bearer(counters, place.number, Direction::Uplink),
            downlink: bearer(counters, place.number, Direction::Downlink),
        });
        Summary { users: users.collect(), bearers: bearers.collect(), ..self }
    }

    /// The summary of a run in virtual time that took `wall_ns` by the wall clock.
    pub fn in_virtual_time(self, wall_ns: u64) -> Summary {
        Summary { clock: Clock::Virtual, wall_ns: Some(wall_ns), ..self }
    }

    /// The same as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

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
    let row = |bearer: &BearerSummary| (bearer.full_name(), [cell(&bearer.uplink), cell(&bearer.downlink)]);
    lines(bearers.iter().map(row).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::LatenessBound;
    use crate::histogram::{Excess, Late};
    use crate::verdict::ends::Waits;
    use crate::verdict::{Measurements, judge};
    use airpath_core::{Event, Pdu, Time};

    fn summary(measured: &Measurements) -> Summary {
        let mut counters = Counters::default();
        let mut timings = Timings::new(LatenessBound::USUAL);
        for id in 0..500u64 {
            let pdu = Pdu { id, len: 296, ..Pdu::default() };
            let mut count = |direction, kind, cause| {
                counters.count(&Event::of_path(Time::ZERO, direction, kind, cause, &pdu, 0));
            };
            count(Direction::Downlink, EventKind::Offered, Cause::None);
            match id % 10 {
                0 => count(Direction::Downlink, EventKind::Dropped, Cause::ChannelError),
                1 if id < 100 => count(Direction::Downlink, EventKind::Dropped, Cause::QueuePackets),
                _ => {
                    count(Direction::Downlink, EventKind::Delivered, Cause::None);
                    let due = Time::from_nanos(200_000_000 + id * 1_000_000);
                    timings
                        .emitted(Direction::Downlink, Time::ZERO, due, due + Span::from_micros(id / 10), || Span::ZERO);
                }
            }
            if id < 4 {
                count(Direction::Uplink, EventKind::Discarded, Cause::Noise);
                count(Direction::Downlink, EventKind::Discarded, Cause::Noise);
            }
        }
        Summary::new(&counters, &timings, Span::from_millis(170_500), judge(measured))
    }

    #[test]
    fn five_aligned_lines() {
        let text = summary(&Measurements::default()).to_string();
        let expected = "\
delivered  uplink 0 packets, 0 B, 0 bit/s   downlink 440 packets, 130 kB, 6.11 kbit/s   in 170 s
dropped    uplink none                      downlink 50 channel_error, 10 queue_packets   filtered 8 (host chatter)
delay      uplink none measured             downlink p50 455 ms, p99 696 ms, max 699 ms
exactness  one-way delays and departures to 49.0 us (0.011 %)
verdict    trusted";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_the_ends_suffered_has_a_line_where_it_is_not_nothing() {
        let mut summary = summary(&Measurements::default());
        summary.seed = Some(7);
        let mut ends = EndResults { not_ip_frames: 3, too_long_frames: 4, ..EndResults::default() };
        let mut waits = Waits::default();
        (waits.client.kept_waiting_ns, waits.client.longest_ns) = (1_550_000_000, 41_000_000);
        waits.server.kept_waiting_ns = 900_000;
        ends.waits = Some(waits);
        ends.client_sockets.listen_drops = 1;
        ends.server_sockets.udp_receive_buffer = 117;
        ends.refused_writes = 2;
        summary.ends = Some(ends);
        let text = summary.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("   in 170 s, seed 7"), "{text}");
        assert!(lines[1].ends_with("filtered 8 (host chatter), 3 (not IP), 4 (longer than the MTU)"), "{text}");
        let expected = "ends       client waited 1.55 s for a CPU, at most 41.0 ms at a time; \
                        client 1 connection request dropped; server 117 datagrams lost in sockets; 2 packets refused by the kernel behind the link";
        assert_eq!((lines.len(), lines[3]), (6, expected));
        summary.ends = Some(EndResults::default());
        assert_eq!(summary.to_string().lines().count(), 5);
    }

    #[test]
    fn bearers_have_a_line_each() {
        let user = |name: &str| crate::places::UserNames {
            name: name.into(),
            hops: vec!["radio".into()],
            states: vec!["initial".into()],
            bearers: vec![vec!["voice".into(), "rest".into()]],
        };
        let places = Places::of_users(vec![user("alice"), user("bob")]);
        let mut counters = Counters::default();
        let pdu = Pdu { id: 1, len: 125, ..Pdu::default() };
        let mut count = |place, kind, cause| {
            let event = Event::of_path(Time::ZERO, Direction::Downlink, kind, cause, &pdu, 0);
            counters.count(&Event { hop: place, ..event });
        };
        // Bob's first bearer has the place behind the whole path of bob, which is behind the two of alice.
        count(3, EventKind::Enqueued, Cause::None);
        count(3, EventKind::FrameSent, Cause::None);
        count(4, EventKind::Dropped, Cause::QueuePackets);
        let timings = Timings::new(LatenessBound::USUAL);
        let delays = vec![Delays::default(); 2];
        let duration = Span::from_secs(1);
        let summary = Summary::new(&counters, &timings, duration, judge(&Measurements::default()));
        let text = summary.with_users(&counters, &places, &delays, duration).to_string();
        let lines: Vec<_> = text.lines().collect();
        let none = "0 packets queued, none dropped, 0 frames sent";
        let expected = [
            format!("alice.radio.voice  uplink {none}   downlink {none}"),
            format!("alice.radio.rest   uplink {none}   downlink {none}"),
            format!("bob.radio.voice    uplink {none}   downlink 1 packet queued, none dropped, 1 frame sent"),
            format!(
                "bob.radio.rest     uplink {none}   downlink 0 packets queued, 1 queue_packets dropped, 0 frames sent"
            ),
        ];
        assert_eq!(lines[5..9], expected);
    }

    #[test]
    fn background_load_has_a_line_of_its_own_and_is_in_no_other() {
        let mut counters = Counters::default();
        let timings = Timings::new(LatenessBound::USUAL);
        for id in 0..10u64 {
            let pdu = Pdu { id, len: 1250, origin: Origin::Background, ..Pdu::default() };
            let mut count = |hop, kind, cause| {
                let event = Event::of_path(Time::ZERO, Direction::Uplink, kind, cause, &pdu, 0);
                counters.count(&Event { hop, ..event });
            };
            count(0, EventKind::Generated, Cause::None);
            match id {
                0..3 => count(1, EventKind::Dropped, Cause::QueuePackets),
                3..8 => count(1, EventKind::Consumed, Cause::None),
                _ => {}
            }
        }
        let summary = Summary::new(&counters, &timings, Span::from_secs(1), judge(&Measurements::default()));
        let text = summary.to_string();
        let lines: Vec<_> = text.lines().collect();
        let expected =
            "background uplink 10 packets, 100 kbit/s, dropped 3 queue_packets, 2 still inside   downlink none";
        assert_eq!((lines.len(), lines[3]), (6, expected));
        assert!(lines[0].starts_with("delivered  uplink 0 packets") && lines[1].starts_with("dropped    uplink none "));
        assert_eq!(summary.to_json()["uplink"]["background"]["consumed_packets"], 5);
        assert!(summary.to_json()["downlink"].get("background").is_none());
    }

    #[test]
    fn in_virtual_time_the_speed_stands_where_the_lateness_was() {
        let live = summary(&Measurements::default());
        let text = live.clone().in_virtual_time(1_705_000).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[3], "clock      virtual, run in 1.71 ms: 100,000 times real-time speed");
        let json = live.in_virtual_time(1_705_000).to_json();
        assert_eq!((&json["clock"], &json["wall_ns"]), (&"virtual".into(), &1_705_000.into()));
    }

    #[test]
    fn a_step_of_the_clock_is_told_where_it_did_no_harm() {
        let step = crate::verdict::ClockStep { at_ns: 3_200_000_000, by_ns: 500_000_000 };
        let wall_clock = WallClock { count: 1, largest_ns: 500_000_000, steps: vec![step], ..WallClock::default() };
        let measured = Measurements { wall_clock: wall_clock.clone(), ..Measurements::default() };
        let summary = Summary { wall_clock, ..summary(&measured) };
        let text = summary.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[4],
            "clock      the wall clock was stepped once, by +500 ms 3.20 s into the run; no packet was affected"
        );
        assert_eq!((lines.len(), lines[5]), (6, "verdict    trusted"));
        assert_eq!(summary.to_json()["wall_clock"]["steps"][0]["by_ns"], 500_000_000);
    }

    #[test]
    fn reasons_stand_below_each_other() {
        let measured = Measurements {
            offered: 1_000,
            outside_drops: 1,
            log_incomplete: vec!["9 events were lost".into()],
            ..Measurements::default()
        };
        let text = summary(&measured).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 6);
        assert!(lines[4].starts_with("verdict    suspect: 1 of 1,001 packets"), "{}", lines[4]);
        assert!(lines[5].starts_with("           log incomplete: 9 events were lost; "), "{}", lines[5]);
    }

    #[test]
    fn advice_that_reasons_share_is_given_once() {
        let late = Late { packets: 1, worst: Excess { late_ns: 2_000_000, bound_ns: 1_000_000 } };
        let reads = crate::verdict::Reads::Gaps { late };
        let text = summary(&Measurements { late_emissions: late, reads, offered: 500, ..Measurements::default() });
        let text = text.to_string();
        assert_eq!(text.matches("no cause").count(), 1, "{text}");
        assert!(text.lines().last().is_some_and(|line| line.contains("no cause")), "{text}");
    }

    #[test]
    fn json_carries_the_same() {
        let json = summary(&Measurements::default()).to_json();
        assert_eq!(json["exactness"]["departures_ns"], 49_000);
        assert_eq!(json["downlink"]["dropped"][0], serde_json::json!({"cause": "channel_error", "packets": 50}));
        assert_eq!(json["verdict"]["grade"], "trusted");
    }
}
