// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that the link delivered and the kernel did not take.

use super::super::share::by_packets;
use super::super::{Code, Measurements, Reason};
use crate::show;

pub(super) fn writes(measured: &Measurements) -> Vec<Reason> {
    let (refused, all) = (measured.ends.refused_writes, measured.lateness.count.max(measured.ends.refused_writes));
    if refused == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} of {} ({}) were lost behind the link, although logged as delivered: the kernel refused them",
        show::count(refused),
        show::counted(all, "packet"),
        show::percent(refused, all)
    );
    let hint = "do not change the interfaces of either end (MTU, up), and check for free memory";
    vec![Reason::new(by_packets(refused, all), Code::RefusedWrites, what, hint)]
}
