// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that were lost outside the model.

use super::super::share::by_packets;
use super::super::{Code, Measurements, Reason};
use crate::show;

pub(super) fn lost(measured: &Measurements) -> Vec<Reason> {
    let (lost, all) = (measured.outside_drops, measured.offered.saturating_add(measured.outside_drops));
    if lost == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} of {} ({}) were lost outside the model, in a kernel queue",
        show::count(lost),
        show::counted(all, "packet"),
        show::percent(lost, all)
    );
    let hint = "use a lower rate, fewer flows or a less loaded machine";
    vec![Reason::new(by_packets(lost, all), Code::OutsideDrops, what, hint)]
}
