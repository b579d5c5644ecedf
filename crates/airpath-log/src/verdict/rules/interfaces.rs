// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Interfaces of the link that somebody changed during the run: what they lose or hold back, the link never sees.

use super::super::{Code, Grade, Measurements, Reason};

pub(super) fn changed(measured: &Measurements) -> Vec<Reason> {
    let hint = "do not change the interfaces of either end; configure rates, queues and blackouts in the link";
    let reason = |what: &String| Reason::new(Grade::Suspect, Code::InterfaceChanged, what.clone(), hint);
    measured.ends.interface_changes.iter().map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::verdict::ends::EndResults;

    #[test]
    fn an_interface_that_was_taken_down_is_told() {
        let interface_changes = vec!["the interface of the client's end was taken down once".to_owned()];
        let ends = EndResults { interface_changes, ..EndResults::default() };
        let verdict = judge(&Measurements { ends, ..Measurements::default() });
        assert_eq!((verdict.grade, verdict.reasons[0].code.as_str()), (Grade::Suspect, "interface_changed"));
        assert!(verdict.reasons[0].what.ends_with("taken down once"));
    }
}
