// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One run out of the parts of a path that ran on several hosts: their logs in one order, their counters, times and
//! verdicts in one.

mod counts;
mod logs;
mod summaries;

use airpath_core::Direction;

pub use counts::results;
pub use logs::{Moved, merge_events, merge_inputs};
pub use summaries::{HostLine, summary};

use crate::histogram::Distribution;
use crate::verdict::Verdict;
use crate::verdict::ends::EndResults;

/// The hops of a path that are on one host.
#[derive(Clone, Debug)]
pub struct PartHops {
    /// The name of the part.
    pub host: String,
    /// Names of its hops, from the client on.
    pub hops: Vec<String>,
}

/// One part of a path among those of all hosts, from the client on.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    part: &'a PartHops,
    is_first: bool,
    is_last: bool,
}

impl<'a> Place<'a> {
    /// Each part with its place.
    fn all(parts: &'a [PartHops]) -> impl Iterator<Item = Place<'a>> {
        let last = parts.len().saturating_sub(1);
        parts.iter().enumerate().map(move |(number, part)| Place {
            part,
            is_first: number == 0,
            is_last: number == last,
        })
    }

    /// True if packets of `direction` come from another part, not from an end of the path.
    fn comes_from_other(self, direction: Direction) -> bool {
        match direction {
            Direction::Uplink => !self.is_first,
            Direction::Downlink => !self.is_last,
        }
    }

    /// True if packets of `direction` go on to another part, not to an end of the path.
    fn goes_to_other(self, direction: Direction) -> bool {
        self.comes_from_other(direction.opposite())
    }

    /// The hop from which packets of `direction` leave the part.
    fn last_hop(self, direction: Direction) -> &'a str {
        let hops = &self.part.hops;
        let hop = match direction {
            Direction::Uplink => hops.last(),
            Direction::Downlink => hops.first(),
        };
        hop.map_or("", String::as_str)
    }
}

/// Two distributions in one: exact in number, mean and maximum; each quantile is the greater of both, which bounds it.
fn distribution(one: &Distribution, other: &Distribution) -> Distribution {
    let count = one.count + other.count;
    let sum = one.mean_ns * one.count as f64 + other.mean_ns * other.count as f64;
    Distribution {
        count,
        mean_ns: if count == 0 { 0.0 } else { sum / count as f64 },
        p50_ns: one.p50_ns.max(other.p50_ns),
        p99_ns: one.p99_ns.max(other.p99_ns),
        p999_ns: one.p999_ns.max(other.p999_ns),
        max_ns: one.max_ns.max(other.max_ns),
    }
}

/// Disturbances at the client's end, which the first part measured, and at the server's, which the last one did.
fn ends<'a>(mut parts: impl DoubleEndedIterator<Item = Option<&'a EndResults>>) -> Option<EndResults> {
    let mut ends = parts.next()??.clone();
    if let Some(far) = parts.next_back().flatten() {
        if let (Some(waits), Some(far)) = (&mut ends.waits, &far.waits) {
            waits.server = far.server;
        }
        ends.holds.server = far.holds.server.clone();
        ends.server_sockets = far.server_sockets;
        ends.server_failed.clone_from(&far.server_failed);
        ends.interface_changes.extend_from_slice(&far.interface_changes);
        ends.unreadable.extend_from_slice(&far.unreadable);
        ends.no_packets |= far.no_packets;
    }
    Some(ends)
}

/// The verdict on all parts: the gravest of the reasons counts. Reasons of the first part, at the host on which the
/// command runs, name no host.
fn verdict<'a>(verdicts: impl Iterator<Item = &'a Verdict>, parts: &[PartHops]) -> Verdict {
    let mut all = Verdict::default();
    for (number, (verdict, part)) in verdicts.zip(parts).enumerate() {
        all.grade = all.grade.max(verdict.grade);
        all.reasons.extend(verdict.reasons.iter().cloned().map(|mut reason| {
            if number > 0 {
                reason.what = format!("host `{}`: {}", part.host, reason.what);
            }
            reason
        }));
    }
    all.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.grade));
    all
}

/// Parts for tests: a hop each, called as its host.
#[cfg(test)]
fn parts(hosts: &[&str]) -> Vec<PartHops> {
    hosts.iter().map(|host| PartHops { host: (*host).into(), hops: vec![(*host).into()] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Grade, Reason};

    #[test]
    fn the_gravest_reason_counts_and_says_where() {
        let reason = |grade, what: &str| Reason { grade, code: "x".into(), what: what.into(), hint: String::new() };
        let near = Verdict { grade: Grade::Suspect, reasons: vec![reason(Grade::Suspect, "one")] };
        let far = Verdict { grade: Grade::Invalid, reasons: vec![reason(Grade::Invalid, "two")] };
        let both = verdict([&near, &far].into_iter(), &parts(&["local", "lab2"]));
        assert_eq!(both.grade, Grade::Invalid);
        assert_eq!(both.reasons[0].what, "host `lab2`: two");
        assert_eq!(both.reasons[1].what, "one");
        let near_alone = [&near, &Verdict::default()];
        assert_eq!(verdict(near_alone.into_iter(), &parts(&["local", "lab2"])).grade, Grade::Suspect);
    }

    #[test]
    fn quantiles_of_both_are_bounded() {
        let one = Distribution { count: 1, mean_ns: 4.0, p50_ns: 4, max_ns: 4, ..Distribution::default() };
        let other = Distribution { count: 3, mean_ns: 8.0, p50_ns: 7, max_ns: 9, ..Distribution::default() };
        let both = distribution(&one, &other);
        assert_eq!((both.count, both.mean_ns, both.p50_ns, both.max_ns), (4, 7.0, 7, 9));
        assert_eq!(distribution(&Distribution::default(), &Distribution::default()), Distribution::default());
    }
}
