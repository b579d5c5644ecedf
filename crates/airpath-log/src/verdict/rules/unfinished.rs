// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A link that the loop could not carry to the end of its run.

use super::super::{Code, Grade, Measurements, Reason};
use crate::show;

pub(super) fn behind_at_the_end(measured: &Measurements) -> Vec<Reason> {
    if measured.unfinished_ns == 0 {
        return Vec::new();
    }
    let reached_ns = measured.duration_ns.saturating_sub(measured.unfinished_ns);
    let mut what = format!(
        "the engine could not keep up with the load of the link: at the end of the run, after {}, the link had only \
         reached {}",
        show::span(measured.duration_ns),
        show::span(reached_ns)
    );
    if measured.unoffered > 0 {
        what += &format!(", and {} arrived but never entered it", show::counted(measured.unoffered, "packet"));
    }
    let hint =
        "lower the rates of the background loads (`airpath check` lists them), or use virtual time (airpath sim)";
    vec![Reason::new(Grade::Invalid, Code::Unfinished, what, hint)]
}
