//! Packets that left later than the model said.

use super::super::share::by_packets;
use super::super::{Measurements, Reason, advice};
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let (late, all) = (measured.late_emissions, measured.lateness.count);
    if late.packets == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} of {} ({}) left too late, the worst by {} where {} is allowed",
        show::count(late.packets),
        show::counted(all, "packet"),
        show::percent(late.packets, all),
        show::span(late.worst.late_ns),
        show::span(late.worst.bound_ns)
    );
    let mend = advice::in_time(&measured.machine);
    vec![Reason::new(by_packets(late.packets, all), "late_emissions", what, &mend)]
}
