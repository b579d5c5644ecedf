//! A log that does not hold everything.

use super::super::{Grade, Measurements, Reason};

pub(super) fn incomplete(measured: &Measurements) -> Vec<Reason> {
    let mend = "record less (--log events, a smaller --snaplen), or use a faster or larger disk";
    let reason = |why: &String| Reason::new(Grade::Suspect, "log_incomplete", format!("log incomplete: {why}"), mend);
    measured.log_incomplete.iter().map(reason).collect()
}
