//! Counters without which a loss would not be seen.

use super::super::{Grade, Measurements, Reason};

pub(super) fn counters(measured: &Measurements) -> Vec<Reason> {
    let mend = "fix the access error and run again; until then check the results for losses yourself";
    let reason = |what: &String| Reason::new(Grade::Suspect, "unreadable", format!("could not be read: {what}"), mend);
    measured.ends.unreadable.iter().map(reason).collect()
}
