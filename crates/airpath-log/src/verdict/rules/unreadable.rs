// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counters without which a loss would not be seen.

use super::super::{Code, Grade, Measurements, Reason};

pub(super) fn counters(measured: &Measurements) -> Vec<Reason> {
    let hint = "fix the access error and run again; until then check the results for losses yourself";
    let reason =
        |what: &String| Reason::new(Grade::Suspect, Code::Unreadable, format!("could not be read: {what}"), hint);
    measured.ends.unreadable.iter().map(reason).collect()
}
