// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Input of a live run's verdict, from its link's measurements.

use airpath_core::{Direction, EventKind, Span, Time};
use airpath_live::engine_loop::{ClockReport, LinkLook};
use airpath_log::EndResults;
use airpath_log::verdict::{ClockStep, Measurements, Reads, WallClock};

/// Measurements in `look` up to its instant; the ends, the log and the workload are as in a run without
/// blemish.
pub fn of_link(look: &LinkLook) -> Measurements {
    let LinkLook { at, measurements, counters, losses, stamped, demoted, reads_unwatched, .. } = look;
    let duration_ns = at.since(Time::ZERO).nanos();
    let timings = &measurements.timings;
    Measurements {
        duration_ns,
        reads: if *stamped {
            Reads::Stamped { late: timings.late_reads(), delay: timings.read_delay() }
        } else {
            Reads::Gaps { late: timings.late_reads() }
        },
        offered: offered(counters),
        outside_drops: losses.drops + measurements.not_taken,
        demoted_ns: demoted.map(Time::nanos),
        unfinished_ns: measurements.unfinished.nanos(),
        unoffered: measurements.unoffered,
        unwatched_reads_ns: if *reads_unwatched { duration_ns } else { 0 },
        wall_clock: wall_clock(look),
        ends: EndResults {
            not_ip_frames: losses.not_ip,
            too_long_frames: losses.too_long,
            returned_frames: measurements.circling.returned,
            moved_addresses: measurements.circling.moved,
            refused_writes: measurements.refused,
            unreadable: losses.unreadable.clone(),
            ..EndResults::default()
        },
        ..Measurements::of(timings, Span::ZERO)
    }
}

/// Observations of the wall clock.
fn wall_clock(look: &LinkLook) -> WallClock {
    let ClockReport { count, largest_ns, astride, unplaced, doubtful, .. } = look.clock;
    let steps = look.clock_steps().map(|(at, by_ns)| ClockStep { at_ns: at.nanos(), by_ns });
    WallClock { count, largest_ns, steps: steps.collect(), astride, unplaced, doubtful }
}

fn offered(counters: &airpath_core::Counters) -> u64 {
    Direction::ALL.into_iter().map(|direction| counters.total(direction, EventKind::Offered)).sum()
}
