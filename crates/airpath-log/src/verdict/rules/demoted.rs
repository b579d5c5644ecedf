// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An engine that lost its real-time priority.

use super::super::{Code, Grade, Measurements, Reason};
use crate::show;

/// A lost priority matters where something was late.
pub(super) fn demoted(measured: &Measurements) -> Vec<Reason> {
    let late = measured.late_emissions.packets > 0 || measured.reads.late().packets > 0;
    let Some(at_ns) = measured.demoted_ns.filter(|_| late) else { return Vec::new() };
    let what = format!(
        "the engine lost its real-time priority {} into the run because it ran too long without sleeping; from then \
         on any program could delay it",
        show::span(at_ns)
    );
    vec![Reason::new(Grade::Suspect, Code::Demoted, what, "use a lower rate, fewer flows or a shorter --spin")]
}
