//! An engine that could not keep up, or was kept from the processor.

use super::super::share::by_share;
use super::super::{Grade, Measurements, Reason};
use super::LESS_LOAD;
use crate::show;

pub(super) fn behind(measured: &Measurements) -> Vec<Reason> {
    if measured.overload_ns == 0 {
        return Vec::new();
    }
    let what = format!(
        "the engine was behind by more than {} for {} of {} ({})",
        show::span(measured.bound_ns),
        show::span(measured.overload_ns),
        show::span(measured.duration_ns),
        show::percent(measured.overload_ns, measured.duration_ns)
    );
    vec![Reason::new(by_share(measured.overload_ns, measured.duration_ns), "overload", what, LESS_LOAD)]
}

/// A lost priority matters where something was late.
pub(super) fn demoted(measured: &Measurements) -> Vec<Reason> {
    let late = measured.late_emissions > 0 || measured.overload_ns > 0 || measured.reads.late() > 0;
    let Some(at_ns) = measured.demoted_ns.filter(|_| late) else { return Vec::new() };
    let what = format!(
        "the engine lost its real-time priority {} into the run, as it had not slept for too long; any program could \
         keep it waiting from then on",
        show::span(at_ns)
    );
    vec![Reason::new(Grade::Suspect, "demoted", what, "use a lower rate, fewer flows or a shorter --spin")]
}
