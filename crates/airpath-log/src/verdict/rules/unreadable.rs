//! Counters without which a loss would not be seen.

use super::super::{Code, Grade, Measurements, Reason};

pub(super) fn counters(measured: &Measurements) -> Vec<Reason> {
    let mend = "see what the system refuses, and run again; until then check the results for losses by yourself";
    let reason =
        |what: &String| Reason::new(Grade::Suspect, Code::Unreadable, format!("could not be read: {what}"), mend);
    measured.ends.unreadable.iter().map(reason).collect()
}
