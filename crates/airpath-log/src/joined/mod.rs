// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One run out of the parts of a path that ran on two hosts: their logs in one order, their counters, times and
//! verdicts in one.

mod counts;
mod logs;
mod summaries;

use airpath_core::Direction;

pub use counts::results;
pub use logs::{merge_events, merge_inputs};
pub use summaries::{host_line, summary};

use crate::histogram::Distribution;
use crate::verdict::Verdict;
use crate::verdict::ends::EndResults;

/// The parts of a path on two hosts.
#[derive(Clone, Debug)]
pub struct Border {
    /// Names of the hops before the border, at the client's host.
    pub near: Vec<String>,
    /// Names of the hops behind it, at the server's host.
    pub far: Vec<String>,
    /// The name of the server's host.
    pub host: String,
}

impl Border {
    /// The hop before the border in `direction`.
    fn last_hop(&self, direction: Direction) -> &str {
        let hop = match direction {
            Direction::Uplink => self.near.last(),
            Direction::Downlink => self.far.first(),
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

/// Disturbances at the client's end, which the near part measured, and at the server's, which the far one did.
fn ends(near: Option<&EndResults>, far: Option<&EndResults>) -> Option<EndResults> {
    let mut ends = near?.clone();
    if let Some(far) = far {
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

/// The verdict on both parts: the gravest of the reasons counts.
pub fn verdict(near: &Verdict, far: &Verdict, host: &str) -> Verdict {
    let mut reasons = near.reasons.clone();
    for reason in &far.reasons {
        let mut reason = reason.clone();
        reason.what = format!("host `{host}`: {}", reason.what);
        reasons.push(reason);
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.grade));
    Verdict { grade: near.grade.max(far.grade), reasons }
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
        let both = verdict(&near, &far, "lab2");
        assert_eq!(both.grade, Grade::Invalid);
        assert_eq!(both.reasons[0].what, "host `lab2`: two");
        assert_eq!(both.reasons[1].what, "one");
        assert_eq!(verdict(&near, &Verdict::default(), "lab2").grade, Grade::Suspect);
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
