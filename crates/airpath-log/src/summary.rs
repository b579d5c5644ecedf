// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The summary of a run: its packets by their fate, delays and verdict. `text` makes its lines of it.

mod text;

#[cfg(test)]
mod tests;

use airpath_core::pdu::Origin;
use airpath_core::{Cause, CauseClass, Counters, Direction, EventKind, Span, Tally};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::exactness::Exactness;
use crate::histogram::{Delays, Distribution, Timings};
use crate::places::Places;
use crate::verdict::ends::EndResults;
use crate::verdict::{Verdict, WallClock};

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

/// A run in figures; its text has five lines.
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
