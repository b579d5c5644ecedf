// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that left later than the model said.

use super::super::share::by_packets;
use super::super::{Code, Measurements, Reason, advice};
use crate::histogram::Late;
use crate::quantum::MOST_PRECISE;
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let late = measured.late_emissions;
    let mut reasons = too_late(Code::LateEmissions, "left too late", late, measured.lateness.count, measured);
    // A precise quantum makes nothing late.
    if measured.quantum_ns > MOST_PRECISE.nanos() {
        let chosen = show::span(measured.quantum_ns);
        for reason in &mut reasons {
            let hint = &reason.hint;
            reason.hint = format!("packets waited up to {chosen} for others by choice: use --economy off; {hint}");
        }
    }
    reasons
}

/// The reason `code`, if any of `all` packets were later than their bounds; `did` says at what.
pub(super) fn too_late(code: Code, did: &str, late: Late, all: u64, measured: &Measurements) -> Vec<Reason> {
    if late.packets == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} of {} ({}) {did}, the worst by {} where {} is allowed",
        show::count(late.packets),
        show::counted(all, "packet"),
        show::percent(late.packets, all),
        show::span(late.worst.late_ns),
        show::span(late.worst.bound_ns)
    );
    let hint = advice::in_time(&measured.machine);
    vec![Reason::new(by_packets(late.packets, all), code, what, &hint)]
}
