// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Programs that were kept from the processors: a link that keeps its times is no use to a program that
//! cannot run when its packet comes.
//!
//! What counts is waiting while others than the run's own commands had the processors. A client that
//! shares two processors with its own server waits too, but that is the workload's own doing.

use super::super::{Code, Grade, Measurements, Reason};
use crate::show;
use crate::verdict::ends::PartyWaits;

/// A single wait of so many bounds of lateness makes a run suspect: programs are ordinary threads, and
/// wait a little on any machine.
const STALL_BOUNDS: u64 = 5;
/// A shorter one is usual on a calm machine.
const LEAST_STALL_NS: u64 = 5_000_000;
/// Less than so many stalls altogether is usual on a calm machine, however short the run.
const LEAST_STALLS: u64 = 2;
/// One in so many instants makes a run suspect.
const SUSPECT_FROM_ONE_IN: u64 = 50;
/// One in so many instants makes it invalid, in which programs could not run.
pub(super) const INVALID_FROM_ONE_IN: u64 = 10;

fn grade(waits: &PartyWaits, bound_ns: u64, duration_ns: u64) -> Option<Grade> {
    let stall_ns = bound_ns.saturating_mul(STALL_BOUNDS).max(LEAST_STALL_NS);
    let (kept_ns, least_ns) = (waits.kept_waiting_ns, stall_ns.saturating_mul(LEAST_STALLS));
    let more_than_one_in = |one_in: u64| kept_ns > least_ns && kept_ns.saturating_mul(one_in) > duration_ns;
    if more_than_one_in(INVALID_FROM_ONE_IN) {
        Some(Grade::Invalid)
    } else if more_than_one_in(SUSPECT_FROM_ONE_IN) || waits.longest_ns > stall_ns {
        Some(Grade::Suspect)
    } else {
        None
    }
}

fn reason(who: &str, code: Code, waits: &PartyWaits, measured: &Measurements) -> Option<Reason> {
    let grade = grade(waits, measured.usual_bound_ns, measured.duration_ns)?;
    let what = format!(
        "{who} waited {} of {} ({}) for a CPU used by other programs, at most {} at a time",
        show::span(waits.kept_waiting_ns),
        show::span(measured.duration_ns),
        show::percent(waits.kept_waiting_ns, measured.duration_ns),
        show::span(waits.longest_ns)
    );
    let hint = "stop other programs on this machine, use fewer jobs, or reserve CPUs for the run (taskset)";
    Some(Reason::new(grade, code, what, hint))
}

pub(super) fn commands(measured: &Measurements) -> Vec<Reason> {
    let Some(waits) = &measured.ends.waits else { return Vec::new() };
    let ends = [("the client's commands", &waits.client), ("the server's commands", &waits.server)];
    ends.into_iter().filter_map(|(who, waits)| reason(who, Code::EndsWaited, waits, measured)).collect()
}

pub(super) fn relays(measured: &Measurements) -> Vec<Reason> {
    let Some(waits) = &measured.ends.waits else { return Vec::new() };
    let who = "the relays to the host (--host-port, --internet)";
    reason(who, Code::RelaysWaited, &waits.relays, measured).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::verdict::ends::{EndResults, Waits};

    const MS: u64 = 1_000_000;

    fn of_client(kept_ms: u64, longest_ms: u64, duration_ms: u64) -> Measurements {
        let client = PartyWaits { kept_waiting_ns: kept_ms * MS, longest_ns: longest_ms * MS, ..PartyWaits::default() };
        let waits = Some(Waits { client, ..Waits::default() });
        let ends = EndResults { waits, ..EndResults::default() };
        Measurements { usual_bound_ns: MS, duration_ns: duration_ms * MS, ends, ..Measurements::default() }
    }

    #[test]
    fn hogs_with_pauses_and_single_stalls_are_found_and_calm_runs_left_alone() {
        for (kept_ms, longest_ms, duration_ms, grade) in [
            (1_550, 41, 4_010, Grade::Invalid),
            (40, 13, 2_500, Grade::Suspect),
            (13, 6, 60_000, Grade::Suspect),
            (100, 3, 4_000, Grade::Suspect),
            (10, 4, 50, Grade::Trusted),
            (40, 4, 4_000, Grade::Trusted),
            (0, 0, 0, Grade::Trusted),
        ] {
            let verdict = judge(&of_client(kept_ms, longest_ms, duration_ms));
            assert_eq!(verdict.grade, grade, "{kept_ms} {longest_ms} {duration_ms} {verdict:?}");
        }
    }

    #[test]
    fn what_is_late_by_a_larger_bound_is_a_longer_wait() {
        let measured = Measurements { usual_bound_ns: 8 * MS, ..of_client(40, 30, 4_000) };
        assert_eq!(judge(&measured).grade, Grade::Trusted);
    }

    #[test]
    fn the_reason_says_who_waited_how_long() {
        let verdict = judge(&of_client(1_550, 41, 4_010));
        assert_eq!(verdict.reasons[0].code, "ends_waited");
        let what = &verdict.reasons[0].what;
        assert!(what.starts_with("the client's commands waited 1.55 s of 4.01 s (39 %) for a CPU"), "{what}");
        let mut relays = of_client(1_550, 41, 4_010);
        let waits = relays.ends.waits.as_mut().unwrap();
        (waits.relays, waits.client) = (waits.client, PartyWaits::default());
        assert_eq!(judge(&relays).reasons[0].code, "relays_waited");
    }
}
