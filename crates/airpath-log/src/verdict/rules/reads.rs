// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that entered the link later than they came.

use super::super::{Code, Grade, Measurements, Reads, Reason};
use super::departures::too_late;
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let (all, did) = match measured.reads {
        Reads::Stamped { delay, .. } => (delay.count, "entered the link too late after their arrival"),
        // How late it was is not known, but how late it can have been.
        _ => (measured.offered, "may have entered the link too late after their arrival"),
    };
    too_late(Code::LateReads, did, measured.reads.late(), all, measured)
}

/// Without stamps, and without the kernel's account of the loop's own waiting, short delays are not seen.
pub(super) fn unwatched(measured: &Measurements) -> Vec<Reason> {
    if measured.unwatched_reads_ns == 0 {
        return Vec::new();
    }
    let what = format!(
        "arrival times were unknown for {}: this kernel reports neither packet timestamps nor the engine's CPU wait \
         time, so delays below 100 ms went unnoticed",
        show::span(measured.unwatched_reads_ns)
    );
    let hint = "use --port packet, which has timestamps, or a kernel with CONFIG_SCHEDSTATS";
    vec![Reason::new(Grade::Suspect, Code::UnwatchedReads, what, hint)]
}
