//! Packets that entered the link later than they came.

use super::super::share::by_packets;
use super::super::{Measurements, Reads, Reason, advice};
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
