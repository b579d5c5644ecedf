// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counters and times of a path on several hosts.

use std::collections::BTreeMap;

use airpath_core::{Direction, EventKind};

use super::summaries::exactness;
use super::{PartHops, Place, distribution, ends, verdict};
use crate::histogram::Excess;
use crate::manifest::{Count, LogResults, Results, SiteCount, TimingResults};
use crate::tables::events::WHOLE_PATH;

/// The counters of a part as the whole path has them: what leaves one part and enters the next is passed from hop to
/// hop.
fn of_whole(sites: &[SiteCount], place: Place<'_>) -> Vec<SiteCount> {
    let (delivered, offered, passed) =
        (EventKind::Delivered.name(), EventKind::Offered.name(), EventKind::Passed.name());
    let mut whole = sites.to_vec();
    let mut crossed: Vec<(Direction, String, Count)> = Vec::new();
    for site in whole.iter_mut().filter(|site| site.hop == WHOLE_PATH) {
        if place.comes_from_other(site.direction) {
            site.kinds.remove(offered);
        }
        if place.goes_to_other(site.direction)
            && let Some(count) = site.kinds.remove(delivered)
        {
            crossed.push((site.direction, site.origin.clone(), count));
        }
    }
    for (direction, origin, count) in crossed {
        let hop = place.last_hop(direction);
        let is_it = |site: &&mut SiteCount| site.hop == hop && site.direction == direction && site.origin == origin;
        match whole.iter_mut().find(is_it) {
            Some(site) => drop(site.kinds.insert(passed.into(), count)),
            None => whole.push(SiteCount {
                hop: hop.into(),
                user: String::new(),
                bearer: String::new(),
                direction,
                origin,
                kinds: [(passed.to_owned(), count)].into(),
                causes: BTreeMap::new(),
            }),
        }
    }
    whole
}

fn add(sums: &mut BTreeMap<String, Count>, more: &BTreeMap<String, Count>) {
    for (name, count) in more {
        let sum = sums.entry(name.clone()).or_insert(Count { count: 0, bits: 0 });
        sum.count += count.count;
        sum.bits += count.bits;
    }
}

/// The counters of the whole path: its own first, then those of the hops from the client on.
fn counters<'a>(counts: impl Iterator<Item = &'a [SiteCount]>, parts: &[PartHops]) -> Vec<SiteCount> {
    let mut sums: Vec<SiteCount> = Vec::new();
    for site in counts.zip(Place::all(parts)).flat_map(|(sites, place)| of_whole(sites, place)) {
        let same =
            |sum: &&mut SiteCount| (&sum.hop, sum.direction, &sum.origin) == (&site.hop, site.direction, &site.origin);
        match sums.iter_mut().find(same) {
            Some(sum) => {
                add(&mut sum.kinds, &site.kinds);
                add(&mut sum.causes, &site.causes);
            }
            None => sums.push(site),
        }
    }
    let hops = || parts.iter().flat_map(|part| &part.hops);
    sums.sort_by_key(|site| {
        (hops().position(|hop| *hop == site.hop).map_or(0, |place| place + 1), site.direction as u8)
    });
    sums.retain(|site| !site.kinds.is_empty());
    sums
}

fn worse(one: Excess, other: Excess) -> Excess {
    let beyond = |excess: Excess| excess.late_ns.saturating_sub(excess.bound_ns);
    if beyond(other) > beyond(one) { other } else { one }
}

/// The times of the parts together. A packet's whole delay is measured where it leaves the path: in the uplink by the
/// last part, in the downlink by the first one.
fn timings(near: &TimingResults, far: &TimingResults) -> TimingResults {
    let (uplink_delay, downlink_delay) = (far.uplink_delay, near.downlink_delay);
    TimingResults {
        uplink_delay,
        downlink_delay,
        lateness: distribution(&near.lateness, &far.lateness),
        read_delay: distribution(&near.read_delay, &far.read_delay),
        entries: distribution(&near.entries, &far.entries),
        bound_ns: near.bound_ns,
        bound_share_ppm: near.bound_share_ppm,
        late_emissions: near.late_emissions + far.late_emissions,
        worst_emission: worse(near.worst_emission, far.worst_emission),
        late_reads: near.late_reads + far.late_reads,
        worst_read: worse(near.worst_read, far.worst_read),
        exactness: exactness(&near.exactness, &far.exactness, [uplink_delay.p50_ns, downlink_delay.p50_ns]),
    }
}

fn log(near: &LogResults, far: &LogResults, host: &str) -> LogResults {
    let mut log = near.clone();
    log.complete &= far.complete;
    log.lost.events += far.lost.events;
    log.lost.inputs += far.lost.inputs;
    log.files.incomplete.extend(far.files.incomplete.iter().map(|what| format!("host `{host}`: {what}")));
    log
}

/// The results of the whole path out of those of its `parts`, from the client on; none without any.
pub fn results(of_parts: &[&Results], parts: &[PartHops]) -> Option<Results> {
    let (first, others) = of_parts.split_first()?;
    let mut whole = Results {
        counters: counters(of_parts.iter().map(|results| results.counters.as_slice()), parts),
        verdict: verdict(of_parts.iter().map(|results| &results.verdict), parts),
        ends: ends(of_parts.iter().map(|results| results.ends.as_ref())),
        ..(*first).clone()
    };
    for (results, part) in others.iter().zip(&parts[1..]) {
        whole.timings = timings(&whole.timings, &results.timings);
        whole.log = log(&whole.log, &results.log, &part.host);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(hop: &str, direction: Direction, kinds: &[(EventKind, u64)]) -> SiteCount {
        SiteCount {
            hop: hop.into(),
            user: String::new(),
            bearer: String::new(),
            direction,
            origin: "user".into(),
            kinds: kinds
                .iter()
                .map(|(kind, count)| (kind.name().into(), Count { count: *count, bits: 8 * count }))
                .collect(),
            causes: BTreeMap::new(),
        }
    }

    #[test]
    fn what_crosses_the_border_is_passed_from_hop_to_hop() {
        use Direction::{Downlink, Uplink};
        use EventKind::{Delivered, Enqueued, Offered};
        let near = [
            site("path", Uplink, &[(Offered, 10), (Delivered, 9)]),
            site("path", Downlink, &[(Offered, 4), (Delivered, 3)]),
            site("radio", Uplink, &[(Enqueued, 10)]),
        ];
        let middle = [
            site("path", Uplink, &[(Offered, 9), (Delivered, 9)]),
            site("path", Downlink, &[(Offered, 4), (Delivered, 4)]),
            site("wire", Uplink, &[(Enqueued, 9)]),
        ];
        let far = [
            site("path", Uplink, &[(Offered, 9), (Delivered, 8)]),
            site("path", Downlink, &[(Offered, 5), (Delivered, 4)]),
            site("core", Uplink, &[(Enqueued, 9)]),
        ];
        let parts = super::super::parts(&["radio", "wire", "core"]);
        let whole = counters([&near[..], &middle, &far].into_iter(), &parts);
        let count = |hop: &str, direction, kind: &str| {
            let site = whole.iter().find(|site| site.hop == hop && site.direction == direction);
            site.and_then(|site| site.kinds.get(kind)).map(|count| count.count)
        };
        assert_eq!([count("path", Uplink, "offered"), count("path", Uplink, "delivered")], [Some(10), Some(8)]);
        assert_eq!([count("path", Downlink, "offered"), count("path", Downlink, "delivered")], [Some(5), Some(3)]);
        assert_eq!([count("radio", Uplink, "passed"), count("core", Downlink, "passed")], [Some(9), Some(4)]);
        assert_eq!([count("wire", Uplink, "passed"), count("wire", Downlink, "passed")], [Some(9), Some(4)]);
        assert_eq!([count("radio", Uplink, "enqueued"), count("core", Uplink, "enqueued")], [Some(10), Some(9)]);
        assert_eq!(whole[0].hop, "path");
    }
}
