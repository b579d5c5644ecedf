// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Offset and drift between the clocks of two hosts: how they come out of exchanges, and the file in
//! which they are kept.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ClockError;
use super::exchange::Exchange;
use super::lines::{Lines, Point};
use super::segments::{self, Step};
use super::theil_sen;

/// The version of the format of the file.
pub const FORMAT_VERSION: u32 = 1;
/// Fewer exchanges make no estimate.
pub const LEAST_EXCHANGES: usize = 8;
/// The line is fitted through the best exchange of each of so many parts of the time at most.
const MOST_PARTS: usize = 64;
/// A part has so many exchanges at least, on average.
const EXCHANGES_PER_PART: usize = 4;
const SECOND_NS: f64 = 1e9;
/// 1 ppm in ns/s.
const PPM: f64 = 1e3;

/// Numbers of requests, answers and exchanges of a measurement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests sent.
    pub sent: u64,
    /// Requests answered.
    pub answered: u64,
    /// Answers that came twice.
    pub duplicates: u64,
    /// Exchanges between the steps that were used; all, where there was none.
    pub used: u64,
    /// Stamps of used exchanges that are the kernel's: T1, T2, T3, T4. The others were taken by the program.
    pub kernel_stamps: [u64; 4],
}

/// One of the two hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its name; of the remote host the name it was called by.
    pub name: String,
    /// Identity of the host's clock until it boots again; empty if unknown.
    pub identity: String,
}

/// The estimate: remote less local clock, as a line over the local clock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of Airpath that measured.
    pub airpath_version: String,
    /// The host that measured.
    pub local: Host,
    /// The host that answered.
    pub remote: Host,
    /// The local time of [`Estimate::offset_ns`], in ns since 1970.
    pub at_unix_ns: u64,
    /// CLOCK_REALTIME of the remote host less that of the local one, then.
    pub offset_ns: i64,
    /// The offset is not farther off than this: half of the least round trip, about.
    pub bound_ns: u64,
    /// Interval that certainly contains the offset at that time.
    pub offset_interval_ns: [i64; 2],
    /// The same of CLOCK_MONOTONIC.
    pub monotonic_offset_ns: i64,
    /// Drift of the remote clock relative to the local one, in parts per million; positive if faster.
    pub drift_ppm: f64,
    /// The interval of 95 % of the drift.
    pub drift_interval_ppm: [f64; 2],
    /// Interval that certainly contains the drift, if it was constant.
    pub drift_bound_ppm: [f64; 2],
    /// From this local time…
    pub from_unix_ns: u64,
    /// … to this one the estimate holds.
    pub to_unix_ns: u64,
    /// The bound at these two times.
    pub bound_at_ends_ns: [u64; 2],
    /// The least round trip.
    pub least_round_trip_ns: u64,
    /// The median round trip.
    pub median_round_trip_ns: u64,
    /// Least deviation of the clocks from a straight line; contained in the bounds.
    pub wander_ns: u64,
    /// Clocks that were set meanwhile.
    pub steps: Vec<Step>,
    /// Numbers of exchanges.
    pub exchanges: Counts,
    /// Warnings about the estimate, a sentence each.
    pub warnings: Vec<String>,
}

impl Estimate {
    /// The estimate of `exchanges`, in the order in which they were sent. Where a clock was set
    /// meanwhile, it is of the longest time between two steps. Hosts and counts are left empty, but
    /// for how many were used.
    ///
    /// # Errors
    /// When there are fewer than [`LEAST_EXCHANGES`] between two steps.
    pub fn of(exchanges: &[Exchange]) -> Result<Estimate, ClockError> {
        let (segments, steps) = segments::cut(exchanges);
        let segment = segments.into_iter().max_by_key(segments::Segment::span_ns).unwrap_or_default();
        let used = segment.exchanges;
        let (Some(first), true) = (used.first(), used.len() >= LEAST_EXCHANGES) else {
            return Err(ClockError::TooFew { used: used.len(), least: LEAST_EXCHANGES, steps: steps.len() });
        };
        let from_ns = used.iter().map(|one| one.origin_ns).min().unwrap_or(first.origin_ns);
        let to_ns = used.iter().map(|one| one.destination_ns).max().unwrap_or(first.destination_ns);
        let at_ns = from_ns + (to_ns - from_ns) / 2;
        // Everything from here on is relative to these two, lest digits are lost.
        let base_ns = first.offset_ns();
        let x = |unix_ns: u64| (i128::from(unix_ns) - i128::from(at_ns)) as f64 / SECOND_NS;
        let y = |offset_ns: i128| (offset_ns - base_ns) as f64;
        let lines = Lines::between(
            used.iter().map(|one| (x(one.origin_ns), y(one.greatest_offset_ns()))).collect(),
            used.iter().map(|one| (x(one.destination_ns), y(one.least_offset_ns()))).collect(),
        );
        let best: Vec<Point> = best_of_parts(&used, from_ns, to_ns)
            .iter()
            .map(|one| (x(one.origin_ns / 2 + one.destination_ns / 2), y(one.offset_ns())))
            .collect();
        let [slope_low, slope_high] = lines.slope();
        let line = theil_sen::fit(&best).ok_or(ClockError::TooFew {
            used: best.len(),
            least: LEAST_EXCHANGES,
            steps: steps.len(),
        })?;
        let slope = line.slope.clamp(slope_low, slope_high);
        let [least, greatest] = lines.range_at(0.0);
        let offset = line.intercept.clamp(least, greatest);
        let bound_at = |unix_ns: u64| {
            let [least, greatest] = lines.range_at(x(unix_ns));
            let here = offset + slope * x(unix_ns);
            (greatest - here).max(here - least).max(0.0).ceil() as u64
        };
        let mut round_trips: Vec<f64> = used.iter().map(|one| one.round_trip_ns() as f64).collect();
        round_trips.sort_by(f64::total_cmp);
        let unix = |offset: f64| i64::try_from(base_ns + offset.round() as i128).map_err(|_| ClockError::Range);
        let offset_ns = unix(offset)?;
        let mut estimate = Estimate {
            format_version: FORMAT_VERSION,
            airpath_version: env!("CARGO_PKG_VERSION").into(),
            local: Host::default(),
            remote: Host::default(),
            at_unix_ns: at_ns,
            offset_ns,
            bound_ns: bound_at(at_ns),
            offset_interval_ns: [unix(least.floor())?, unix(greatest.ceil())?],
            monotonic_offset_ns: offset_ns.saturating_add(first.origin_ahead_ns).saturating_sub(first.remote_ahead_ns),
            drift_ppm: slope / PPM,
            drift_interval_ppm: line.slope_interval.map(|slope| slope / PPM),
            drift_bound_ppm: [slope_low / PPM, slope_high / PPM],
            from_unix_ns: from_ns,
            to_unix_ns: to_ns,
            bound_at_ends_ns: [bound_at(from_ns), bound_at(to_ns)],
            least_round_trip_ns: round_trips[0].max(0.0) as u64,
            median_round_trip_ns: theil_sen::median(&round_trips).max(0.0) as u64,
            wander_ns: lines.wander_ns().ceil() as u64,
            steps,
            exchanges: Counts { used: used.len() as u64, ..Counts::default() },
            warnings: Vec::new(),
        };
        estimate.warnings = estimate.doubts();
        Ok(estimate)
    }

    /// Returns the warnings that follow from the estimate itself.
    fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self
            .steps
            .iter()
            .map(|step| {
                format!(
                    "the {} clock was set by {:+.6} s while the measurement went on; the estimate is of the longest time \
                     without a step",
                    step.host.name(),
                    step.by_ns as f64 / SECOND_NS
                )
            })
            .collect();
        if self.wander_ns > (self.least_round_trip_ns / 2).max(10_000) {
            doubts.push(format!(
                "the clocks did not keep one rate: no straight line comes nearer than {} ns to the exchanges; is one \
                 being adjusted? Measure for a shorter time",
                self.wander_ns
            ));
        }
        doubts
    }

    /// Returns the time of the remote clock when the local one shows `local_ns`; none before 1970.
    pub fn remote_ns(&self, local_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(local_ns) + self.offset_at_ns(local_ns)).ok()
    }

    /// Returns the time of the local clock when the remote one shows `remote_ns`; none before 1970.
    pub fn local_ns(&self, remote_ns: u64) -> Option<u64> {
        let since = i128::from(remote_ns) - i128::from(self.at_unix_ns) - i128::from(self.offset_ns);
        let drift = self.drift_ppm / 1e6;
        let behind = (since as f64 * drift / (1.0 + drift)).round() as i128;
        u64::try_from(i128::from(self.at_unix_ns) + since - behind).ok()
    }

    /// Returns the remote less the local clock when the local one shows `local_ns`.
    pub fn offset_at_ns(&self, local_ns: u64) -> i128 {
        let since = i128::from(local_ns) - i128::from(self.at_unix_ns);
        i128::from(self.offset_ns) + (since as f64 * self.drift_ppm / 1e6).round() as i128
    }

    /// Returns the bound of the error of that offset, in ns. Outside the time for which the estimate holds it
    /// grows with the greatest possible drift, supposing that the drift does not change.
    pub fn bound_at_ns(&self, local_ns: u64) -> u64 {
        let (from, to) = (self.from_unix_ns, self.to_unix_ns.max(self.from_unix_ns + 1));
        let [first, last] = self.bound_at_ends_ns;
        if self.covers(local_ns) {
            // The bound is convex, so that it is nowhere above the chord.
            let (near, far) = if local_ns <= self.at_unix_ns { (from, first) } else { (to, last) };
            let share = local_ns.abs_diff(self.at_unix_ns) as f64 / near.abs_diff(self.at_unix_ns).max(1) as f64;
            return (self.bound_ns as f64 + (far as f64 - self.bound_ns as f64) * share).ceil().max(0.0) as u64;
        }
        let [low, high] = self.drift_bound_ppm;
        let doubt = (high - self.drift_ppm).max(self.drift_ppm - low) / 1e6;
        let (end, beyond_ns) = if local_ns < from { (first, from - local_ns) } else { (last, local_ns - to) };
        end.saturating_add((beyond_ns as f64 * doubt).ceil() as u64)
    }

    /// True if the estimate holds at this local time.
    pub fn covers(&self, local_ns: u64) -> bool {
        (self.from_unix_ns..=self.to_unix_ns).contains(&local_ns)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or is no estimate of this format.
    pub fn read(path: &Path) -> Result<Estimate, ClockError> {
        let text = std::fs::read(path).map_err(|source| ClockError::io(ClockError::READ, path, source))?;
        #[derive(Deserialize)]
        struct Head {
            format_version: u32,
        }
        let wrong = |error: serde_json::Error| ClockError::File {
            path: path.to_owned(),
            what: format!("is no estimate of two clocks: {error}"),
            hint: "name the file that `airpath timing sync HOST --out FILE` wrote".into(),
        };
        let head: Head = serde_json::from_slice(&text).map_err(wrong)?;
        if head.format_version != FORMAT_VERSION {
            return Err(ClockError::File {
                path: path.to_owned(),
                what: format!("has format {}, and this Airpath reads format {FORMAT_VERSION}", head.format_version),
                hint: "measure again with this version".into(),
            });
        }
        let estimate: Estimate = serde_json::from_slice(&text).map_err(wrong)?;
        let numbers = [estimate.drift_ppm, estimate.drift_bound_ppm[0], estimate.drift_bound_ppm[1]];
        let sensible = numbers.iter().all(|ppm| ppm.abs() <= 200_000.0)
            && (estimate.from_unix_ns..=estimate.to_unix_ns).contains(&estimate.at_unix_ns);
        if !sensible {
            return Err(ClockError::File {
                path: path.to_owned(),
                what: "contradicts itself".into(),
                hint: "measure again".into(),
            });
        }
        Ok(estimate)
    }
}

/// The exchange of least round trip in each part of the time, of those parts in which the way was
/// about as free as ever: a queue that never emptied says little.
fn best_of_parts(used: &[Exchange], from_ns: u64, to_ns: u64) -> Vec<Exchange> {
    let parts = (used.len() / EXCHANGES_PER_PART).clamp(LEAST_EXCHANGES / 2, MOST_PARTS);
    let mut best: Vec<Option<Exchange>> = vec![None; parts];
    let width_ns = (to_ns - from_ns) / parts as u64 + 1;
    for exchange in used {
        let part = &mut best[((exchange.origin_ns - from_ns) / width_ns) as usize];
        if part.is_none_or(|other| exchange.round_trip_ns() < other.round_trip_ns()) {
            *part = Some(*exchange);
        }
    }
    let mut best: Vec<Exchange> = best.into_iter().flatten().collect();
    let mut round_trips: Vec<i128> = best.iter().map(Exchange::round_trip_ns).collect();
    round_trips.sort_unstable();
    let (least, median) = (round_trips[0], round_trips[round_trips.len() / 2]);
    best.retain(|one| one.round_trip_ns() <= least + 2 * (median - least));
    best
}
