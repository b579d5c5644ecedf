// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A log that does not hold everything.

use super::super::{Code, Grade, Measurements, Reason};

pub(super) fn incomplete(measured: &Measurements) -> Vec<Reason> {
    let hint = "record less (--log events, a smaller --snaplen), or use a faster or larger disk";
    let reason =
        |why: &String| Reason::new(Grade::Suspect, Code::LogIncomplete, format!("log incomplete: {why}"), hint);
    measured.log_incomplete.iter().map(reason).collect()
}
