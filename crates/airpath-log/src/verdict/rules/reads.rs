//! Packets that entered the link later than they came.

use super::super::share::by_packets;
use super::super::{Grade, Measurements, Reads, Reason, advice};
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let late = measured.reads.late();
    if late.packets == 0 {
        return Vec::new();
    }
    let (all, entered) = match measured.reads {
        Reads::Stamped { delay, .. } => (delay.count, "entered the link"),
        // How late it was is not known, but how late it can have been.
        _ => (measured.offered, "may have entered the link"),
    };
    let what = format!(
        "{} of {} ({}) {entered} too late after they came, the worst by {} where {} is allowed",
        show::count(late.packets),
        show::counted(all, "packet"),
        show::percent(late.packets, all),
        show::span(late.worst.late_ns),
        show::span(late.worst.bound_ns)
    );
    let mend = advice::in_time(&measured.machine);
    vec![Reason::new(by_packets(late.packets, all), "late_reads", what, &mend)]
}

/// Without stamps, and without the kernel's account of the loop's own waiting, short delays are not seen.
pub(super) fn unwatched(measured: &Measurements) -> Vec<Reason> {
    if measured.unwatched_reads_ns == 0 {
        return Vec::new();
    }
    let what = format!(
        "reads were unwatched for {}: this kernel tells neither when packets came nor how long the engine waited for a \
         processor, so that delays below 100 ms were not seen",
        show::span(measured.unwatched_reads_ns)
    );
    let mend = "use --port packet, whose packets bear stamps, or a kernel with CONFIG_SCHEDSTATS";
    vec![Reason::new(Grade::Suspect, "unwatched_reads", what, mend)]
}
