// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A wall clock that was set while the run went on.

use super::super::share::by_packets;
use super::super::{Code, Measurements, Reason, WallClock};
use crate::show;

const MEND: &str = "do not step the clock during runs: slew it (chrony without `makestep`, ntpd -x), or use --port \
    tun, which needs no timestamps";

/// A step is told in any case; it matters where packets may have entered at a wrong time.
pub(super) fn stepped(measured: &Measurements) -> Vec<Reason> {
    let clock = &measured.wall_clock;
    if clock.concerned() == 0 {
        return Vec::new();
    }
    let all = show::counted(measured.offered, "packet");
    let mut what = match clock.count {
        0 => "kernel timestamps contradict the wall clock".to_owned(),
        _ => describe(clock),
    };
    if clock.doubtful > 0 {
        what += &format!(": {} of {all} may have entered early or late", show::count(clock.doubtful));
    }
    if clock.unplaced > 0 {
        let lead = if clock.doubtful > 0 { ", and" } else { ":" };
        let count = show::count(clock.unplaced);
        what += &format!("{lead} {count} of {all} entered when they were read, not when they arrived");
    }
    vec![Reason::new(by_packets(clock.doubtful, measured.offered), Code::ClockStep, what, MEND)]
}

/// The steps in words, such as "the wall clock was stepped once, by -10.0 s 1.15 s into the run".
pub(in crate::verdict) fn describe(clock: &WallClock) -> String {
    match (clock.count, clock.steps.first()) {
        (1, Some(step)) => {
            let sign = if step.by_ns < 0 { "-" } else { "+" };
            let (by, at) = (show::span(step.by_ns.unsigned_abs()), show::span(step.at_ns));
            format!("the wall clock was stepped once, by {sign}{by} {at} into the run")
        }
        (count, _) => {
            format!(
                "the wall clock was stepped {} times, by up to {}",
                show::count(count),
                show::span(clock.largest_ns)
            )
        }
    }
}
