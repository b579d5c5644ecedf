// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that passed the link and another way between the same two networks.

use super::super::{Code, Grade, Measurements, Reason};
use crate::show;

/// Number of frames with a source on both sides that a machine which moves does not explain.
const MOST_MOVED: u64 = 3;

pub(super) fn frames(measured: &Measurements) -> Vec<Reason> {
    let (returned, moved) = (measured.ends.returned_frames, measured.ends.moved_addresses);
    let what = if returned > 0 {
        format!(
            "{} of one network came in from the other one, too: the two reach each other past the link",
            show::counted(returned, "frame")
        )
    } else if moved > MOST_MOVED {
        format!(
            "{} had a source that was behind the other end within the last second: two machines have one address, or \
             the networks reach each other past the link",
            show::counted(moved, "frame")
        )
    } else {
        return Vec::new();
    };
    let hint = "let no other way join the two networks, and give each machine an address of its own";
    vec![Reason::new(Grade::Suspect, Code::FramesReturned, what, hint)]
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::verdict::ends::EndResults;

    #[test]
    fn frames_that_returned_are_told_and_a_machine_that_moved_is_not() {
        let grade = |returned_frames, moved_addresses| {
            let ends = EndResults { returned_frames, moved_addresses, ..EndResults::default() };
            let verdict = judge(&Measurements { ends, ..Measurements::default() });
            verdict.reasons.iter().any(|reason| reason.code == "frames_returned")
        };
        assert_eq!([grade(0, 0), grade(0, 3), grade(0, 4), grade(1, 0)], [false, false, true, true]);
    }
}
