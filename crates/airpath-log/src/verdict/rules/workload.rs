//! The workload never ran, or not to its end.

use super::super::{Grade, Measurements, Reason};

/// The reason of a run that was broken off.
pub(in crate::verdict) fn broken_off(why: &str) -> Reason {
    Reason::new(Grade::Invalid, "broken_off", format!("the run was broken off: {why}"), "run it again")
}

pub(super) fn was_broken_off(measured: &Measurements) -> Vec<Reason> {
    measured.broken_off.iter().map(|why| broken_off(why)).collect()
}

pub(super) fn never_started(measured: &Measurements) -> Vec<Reason> {
    let reason = |why: &String| {
        let mend = "check the command, and the server's own messages";
        Reason::new(Grade::Invalid, "never_started", format!("the workload never started: {why}"), mend)
    };
    measured.never_started.iter().map(reason).collect()
}
