// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Steps of either clock, and the exchanges between two of them.

use serde::{Deserialize, Serialize};

use super::exchange::Exchange;

/// Greatest change of CLOCK_REALTIME less CLOCK_MONOTONIC that is no step, in ns: the distance of two
/// readings on a loaded machine.
const SAME_NS: u64 = 50_000;
/// So many exchanges in a row show a step; fewer are readings that went wrong.
const CONFIRMED: usize = 3;

/// A host of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostSide {
    /// The one that measures.
    Local,
    /// The one that answers.
    Remote,
}

impl HostSide {
    /// The word used in files.
    pub const fn name(self) -> &'static str {
        match self {
            HostSide::Local => "local",
            HostSide::Remote => "remote",
        }
    }
}

/// A clock that was set during the measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The host whose clock was set.
    pub host: HostSide,
    /// No later than this, by the local clock after the step.
    pub at_unix_ns: u64,
    /// Size of the step, in ns; positive: forward.
    pub by_ns: i64,
}

/// The exchanges between two steps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Them, in the order in which they were sent.
    pub exchanges: Vec<Exchange>,
}

impl Segment {
    fn level(&self) -> Option<(i64, i64)> {
        self.exchanges.first().map(level)
    }

    /// From the first request to the last answer, in ns.
    pub fn span_ns(&self) -> u64 {
        let first = self.exchanges.iter().map(|one| one.origin_ns).min().unwrap_or(0);
        self.exchanges.iter().map(|one| one.destination_ns).max().unwrap_or(0).saturating_sub(first)
    }
}

fn level(exchange: &Exchange) -> (i64, i64) {
    (exchange.origin_ahead_ns, exchange.remote_ahead_ns)
}

fn same(one: (i64, i64), other: (i64, i64)) -> bool {
    one.0.abs_diff(other.0) <= SAME_NS && one.1.abs_diff(other.1) <= SAME_NS
}

/// Cuts `exchanges`, in the order in which they were sent, where a clock was stepped. Those during
/// which one was are in no segment.
pub fn cut(exchanges: &[Exchange]) -> (Vec<Segment>, Vec<Step>) {
    let whole: Vec<&Exchange> =
        exchanges.iter().filter(|one| one.origin_ahead_ns.abs_diff(one.destination_ahead_ns) <= SAME_NS).collect();
    let mut segments: Vec<Segment> = Vec::new();
    let mut steps = Vec::new();
    for (index, exchange) in whole.iter().enumerate() {
        let here = level(exchange);
        let before = segments.last().and_then(Segment::level);
        match (before, segments.last_mut()) {
            (Some(before), Some(segment)) if same(before, here) => segment.exchanges.push(**exchange),
            _ => {
                let next = &whole[index..whole.len().min(index + CONFIRMED)];
                let confirmed = next.len() == CONFIRMED && next.iter().all(|one| same(level(one), here));
                // What is there at the beginning needs no confirmation unless more follows.
                if !confirmed && (before.is_some() || whole.len() >= CONFIRMED) {
                    continue;
                }
                if let Some(before) = before {
                    let changes = [(HostSide::Local, here.0 - before.0), (HostSide::Remote, here.1 - before.1)];
                    steps.extend(
                        changes
                            .into_iter()
                            .filter(|(_, by_ns)| by_ns.unsigned_abs() > SAME_NS)
                            .map(|(host, by_ns)| Step { host, at_unix_ns: exchange.origin_ns, by_ns }),
                    );
                }
                segments.push(Segment { exchanges: vec![**exchange] });
            }
        }
    }
    (segments, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(origin_ns: u64, local: i64, remote: i64) -> Exchange {
        Exchange {
            origin_ns,
            destination_ns: origin_ns + 1,
            origin_ahead_ns: local,
            destination_ahead_ns: local,
            remote_ahead_ns: remote,
            ..Exchange::default()
        }
    }

    #[test]
    fn a_step_divides_and_a_bad_reading_does_not() {
        let second = 1_000_000_000;
        let mut all: Vec<Exchange> = (0..10).map(|i| at(i, 0, 7)).collect();
        all[4].remote_ahead_ns = second;
        all.extend((10..30).map(|i| at(i, 0, 7 + second)));
        all[20].destination_ahead_ns = -second;
        let (segments, steps) = cut(&all);
        assert_eq!(segments.iter().map(|one| one.exchanges.len()).collect::<Vec<_>>(), [9, 19]);
        assert_eq!(steps, [Step { host: HostSide::Remote, at_unix_ns: 10, by_ns: second }]);
    }
}
