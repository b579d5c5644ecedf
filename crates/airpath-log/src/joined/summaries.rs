// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The summary of a path on several hosts.

use std::fmt;

use super::{PartHops, distribution, ends, verdict};
use crate::exactness::Exactness;
use crate::show;
use crate::summary::{BackgroundSummary, CauseCount, DirectionSummary, Summary};

/// The sums of causes, the most frequent first.
fn causes(one: &[CauseCount], other: &[CauseCount]) -> Vec<CauseCount> {
    let mut sums = one.to_vec();
    for count in other {
        match sums.iter_mut().find(|sum| sum.cause == count.cause) {
            Some(sum) => sum.packets += count.packets,
            None => sums.push(count.clone()),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.packets));
    sums
}

fn background(one: &Option<BackgroundSummary>, other: &Option<BackgroundSummary>) -> Option<BackgroundSummary> {
    let (Some(one), Some(other)) = (one, other) else { return one.clone().or_else(|| other.clone()) };
    Some(BackgroundSummary {
        generated_packets: one.generated_packets + other.generated_packets,
        generated_bytes: one.generated_bytes + other.generated_bytes,
        consumed_packets: one.consumed_packets + other.consumed_packets,
        inside_packets: one.inside_packets + other.inside_packets,
        dropped: causes(&one.dropped, &other.dropped),
    })
}

/// One direction: packets enter in the part `first`, and leave in the part `last`.
fn direction(first: &DirectionSummary, last: &DirectionSummary, duration_ns: u64) -> DirectionSummary {
    let dropped = causes(&first.dropped, &last.dropped);
    let lost: u64 = dropped.iter().map(|count| count.packets).sum();
    let duplicated = first.duplicated_packets + last.duplicated_packets;
    let seconds = duration_ns as f64 / 1e9;
    let bits = (last.delivered_bytes * 8) as f64;
    DirectionSummary {
        offered_packets: first.offered_packets,
        delivered_packets: last.delivered_packets,
        delivered_bytes: last.delivered_bytes,
        delivered_bit_per_s: if seconds > 0.0 { bits / seconds } else { 0.0 },
        damaged_packets: first.damaged_packets + last.damaged_packets,
        duplicated_packets: duplicated,
        truncated_packets: first.truncated_packets + last.truncated_packets,
        inside_packets: (first.offered_packets + duplicated).saturating_sub(last.delivered_packets + lost),
        dropped,
        discarded: causes(&first.discarded, &last.discarded),
        // The last part counts from the entry into the path.
        delay: last.delay,
        background: background(&first.background, &last.background),
    }
}

/// Error bounds of both parts together.
pub(super) fn exactness(near: &Exactness, far: &Exactness, medians_ns: [u64; 2]) -> Exactness {
    Exactness {
        packets: near.packets.max(far.packets),
        delays_ns: near.delays_ns + far.delays_ns,
        delays_p999_ns: near.delays_p999_ns + far.delays_p999_ns,
        departures_ns: near.departures_ns.max(far.departures_ns),
        median_delay_ns: medians_ns.into_iter().filter(|median| *median > 0).min().unwrap_or(0),
        quantum_ns: near.quantum_ns.max(far.quantum_ns),
    }
}

/// The summary of the whole path out of those of its `parts`, from the client on; none without any.
pub fn summary(of_parts: &[&Summary], parts: &[PartHops]) -> Option<Summary> {
    let (first, others) = of_parts.split_first()?;
    let mut whole = (*first).clone();
    for part in others {
        whole.uplink = direction(&whole.uplink, &part.uplink, first.duration_ns);
        whole.downlink = direction(&part.downlink, &whole.downlink, first.duration_ns);
        let medians_ns = [whole.uplink.delay.p50_ns, whole.downlink.delay.p50_ns];
        whole.exactness = exactness(&whole.exactness, &part.exactness, medians_ns);
        whole.lateness = distribution(&whole.lateness, &part.lateness);
    }
    whole.verdict = verdict(of_parts.iter().map(|part| &part.verdict), parts);
    whole.ends = ends(of_parts.iter().map(|part| part.ends.as_ref()));
    Some(whole)
}

/// A line about another host, beneath the summary.
#[derive(Clone, Copy, Debug)]
pub struct HostLine<'a> {
    /// Its name.
    pub host: &'a str,
    /// Its clock less that of this host.
    pub offset_ns: i64,
    /// Bound of the offset.
    pub bound_ns: u64,
    /// Interval of the drift.
    pub drift_interval_ppm: [f64; 2],
    /// Median delays of the network: to the host and from it; none where no packet came.
    pub delays_ns: [Option<u64>; 2],
    /// Greatest lateness there.
    pub late_ns: u64,
}

impl fmt::Display for HostLine<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostLine { host, offset_ns, bound_ns, drift_interval_ppm: [low, high], delays_ns: [there, back], late_ns } =
            *self;
        let network = match (there, back) {
            (None, None) => "carried no packets".to_owned(),
            (there, back) => {
                let told = |delay: Option<u64>, way: &str| {
                    delay.map_or_else(|| format!("none came {way}"), |ns| format!("{} {way}", show::span(ns)))
                };
                format!("p50 {}, {}", told(there, "there"), told(back, "back"))
            }
        };
        write!(
            out,
            "host       {host}: clock {}{} within {}, drift {low:+.1} to {high:+.1} ppm   network {network}   \
             lateness max {}",
            if offset_ns < 0 { "-" } else { "+" },
            show::span(offset_ns.unsigned_abs()),
            show::span(bound_ns),
            show::span(late_ns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Distribution;

    fn part(offered: u64, delivered: u64, drops: u64, p50_ns: u64) -> DirectionSummary {
        DirectionSummary {
            offered_packets: offered,
            delivered_packets: delivered,
            delivered_bytes: 100 * delivered,
            dropped: vec![CauseCount { cause: "queue_packets".into(), packets: drops }],
            delay: Distribution { count: delivered, p50_ns, ..Distribution::default() },
            ..DirectionSummary::default()
        }
    }

    #[test]
    fn packets_enter_at_one_host_and_leave_at_the_other() {
        let near = Summary {
            duration_ns: 1_000_000_000,
            uplink: part(10, 9, 1, 5),
            downlink: part(18, 17, 0, 40),
            ..Summary::default()
        };
        let far = Summary { uplink: part(9, 7, 2, 30), downlink: part(20, 18, 2, 8), ..Summary::default() };
        let middle = Summary { uplink: part(9, 9, 0, 6), downlink: part(18, 18, 0, 9), ..Summary::default() };
        let parts = super::super::parts(&["a", "b", "c"]);
        let whole = summary(&[&near, &middle, &far], &parts).unwrap();
        let facts = |way: &DirectionSummary| {
            (way.offered_packets, way.delivered_packets, way.dropped[0].packets, way.inside_packets, way.delay.p50_ns)
        };
        assert_eq!(facts(&whole.uplink), (10, 7, 3, 0, 30));
        assert_eq!(whole.uplink.dropped.len(), 1);
        assert_eq!(facts(&whole.downlink), (20, 17, 2, 1, 40));
        assert_eq!(whole.uplink.delivered_bit_per_s, 5_600.0);
        assert_eq!(whole.exactness.median_delay_ns, 30);
    }

    #[test]
    fn the_line_of_a_host_has_the_offset_with_its_bound() {
        let line = HostLine {
            host: "lab2",
            offset_ns: -1_500,
            bound_ns: 40_000,
            drift_interval_ppm: [-0.5, 3.0],
            delays_ns: [Some(90_000), Some(100_000)],
            late_ns: 70_000,
        };
        let with = |delays_ns| HostLine { delays_ns, ..line }.to_string();
        let line = line.to_string();
        assert!(line.contains("clock -1.50 us within 40.0 us, drift -0.5 to +3.0 ppm"), "{line}");
        assert!(line.contains("   network p50 90.0 us there, 100 us back   lateness max 70.0 us"), "{line}");
        let one_way = with([Some(90_000), None]);
        assert!(one_way.contains("   network p50 90.0 us there, none came back   "), "{one_way}");
        let back = with([None, Some(90_000)]);
        assert!(back.contains("   network p50 none came there, 90.0 us back   "), "{back}");
        assert!(with([None, None]).contains("   network carried no packets   "));
    }
}
