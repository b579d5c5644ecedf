// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The run around a nested one: its link carries the nested run's packets as well.

use super::super::{Code, Grade, Measurements, Reason};
use crate::verdict::ends::Around;

pub(super) fn judged(measured: &Measurements) -> Vec<Reason> {
    match &measured.ends.around {
        None => Vec::new(),
        Some(Around::Judged { reasons, .. }) => {
            let told = |reason: &Reason| {
                // What comes from further out says so already.
                let what = if reason.code == Code::Around.name() {
                    reason.what.clone()
                } else {
                    format!("the outer link: {}", reason.what)
                };
                Reason::new(reason.grade, Code::Around, what, &reason.hint)
            };
            reasons.iter().map(told).collect()
        }
        Some(Around::Unknown { why }) => {
            let what = format!("the verdict of the outer link is unknown: {why}");
            let hint = "use the same version of Airpath for both, and check the verdict of the outer run";
            vec![Reason::new(Grade::Suspect, Code::AroundUnknown, what, hint)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Grade, judge};
    use super::*;
    use crate::verdict::ends::EndResults;

    fn nested(around: Around) -> Measurements {
        let ends = EndResults { around: Some(around), ..EndResults::default() };
        Measurements { ends, ..Measurements::default() }
    }

    #[test]
    fn what_is_wrong_around_a_run_is_wrong_with_it_at_every_depth() {
        let outer = judge(&Measurements { outside_drops: 500, offered: 1_000, ..Measurements::default() });
        let middle = judge(&nested(Around::Judged { grade: outer.grade, reasons: outer.reasons }));
        let inner = judge(&nested(Around::Judged { grade: middle.grade, reasons: middle.reasons }));
        assert_eq!((inner.grade, inner.reasons.len()), (Grade::Invalid, 1));
        let reason = &inner.reasons[0];
        assert_eq!(reason.code, "around");
        assert!(reason.what.starts_with("the outer link: 500 of 1,500 packets"), "{}", reason.what);
        let fine = Around::Judged { grade: Grade::Trusted, reasons: Vec::new() };
        assert_eq!(judge(&nested(fine)).grade, Grade::Trusted);
    }

    #[test]
    fn a_run_that_cannot_be_asked_leaves_something_open() {
        let verdict = judge(&nested(Around::Unknown { why: "it does not answer".into() }));
        assert_eq!((verdict.grade, verdict.reasons[0].code.as_str()), (Grade::Suspect, "around_unknown"));
        assert!(verdict.reasons[0].what.ends_with("is unknown: it does not answer"));
    }
}
