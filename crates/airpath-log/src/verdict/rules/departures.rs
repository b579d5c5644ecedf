// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that left later than the model said.

use super::super::share::by_packets;
use super::super::{Code, Measurements, Reason, advice};
use crate::histogram::Late;
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    too_late(Code::LateEmissions, "left too late", measured.late_emissions, measured.lateness.count, measured)
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
