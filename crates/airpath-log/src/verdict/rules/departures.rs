//! Packets that left later than the model said.

use super::super::share::by_packets;
use super::super::{Measurements, Reason};
use super::LESS_LOAD;
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let (late, all) = (measured.late_emissions, measured.lateness.count);
    if late == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} of {} ({}) left more than {} late, the worst {}",
        show::count(late),
        show::counted(all, "packet"),
        show::percent(late, all),
        show::span(measured.bound_ns),
        show::span(measured.lateness.max_ns)
    );
    vec![Reason::new(by_packets(late, all), "late_emissions", what, LESS_LOAD)]
}
