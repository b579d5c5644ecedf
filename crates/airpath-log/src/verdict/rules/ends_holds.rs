// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Programs that somebody stopped or traced: they were late, and neither the link nor the machine was.

use super::super::{Code, Grade, Measurements, Reason};
use super::ends_waits::INVALID_FROM_ONE_IN;
use crate::show;
use crate::verdict::ends::PartyHolds;

fn parties(measured: &Measurements) -> [(&'static str, &PartyHolds); 3] {
    let holds = &measured.ends.holds;
    [
        ("a program of the client's end", &holds.client),
        ("a program of the server's end", &holds.server),
        ("the relay to the host's network (--internet)", &holds.relays),
    ]
}

pub(super) fn stopped(measured: &Measurements) -> Vec<Reason> {
    let reason = |(who, holds): (&str, &PartyHolds)| {
        (holds.stopped_ns > 0).then(|| {
            let is_long = holds.stopped_ns.saturating_mul(INVALID_FROM_ONE_IN) > measured.duration_ns;
            let grade = if is_long { Grade::Invalid } else { Grade::Suspect };
            let what = format!(
                "{who} was stopped for {} of {} ({}), at most {} at a time",
                show::span(holds.stopped_ns),
                show::span(measured.duration_ns),
                show::percent(holds.stopped_ns, measured.duration_ns),
                show::span(holds.longest_stop_ns)
            );
            let hint = "do not send SIGSTOP or Ctrl-Z to the commands during a run; if the stop is part of the \
                experiment, exclude it from comparisons";
            Reason::new(grade, Code::Stopped, what, hint)
        })
    };
    parties(measured).into_iter().filter_map(reason).collect()
}

pub(super) fn traced(measured: &Measurements) -> Vec<Reason> {
    let reason = |(who, holds): (&str, &PartyHolds)| {
        (holds.traced_ns > 0).then(|| {
            let tracer = if holds.tracer.is_empty() { "another program" } else { &holds.tracer };
            let what = format!("{who} was traced by {tracer} for {}", show::span(holds.traced_ns));
            let hint = "run the command without strace or a debugger, which slow down every system call; use tcpdump \
                or --snaplen to see packets";
            Reason::new(Grade::Suspect, Code::Traced, what, hint)
        })
    };
    parties(measured).into_iter().filter_map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::verdict::ends::{EndResults, Holds};

    const MS: u64 = 1_000_000;

    fn of_client(client: PartyHolds) -> Measurements {
        let ends = EndResults { holds: Holds { client, ..Holds::default() }, ..EndResults::default() };
        Measurements { duration_ns: 4_000 * MS, ends, ..Measurements::default() }
    }

    #[test]
    fn a_stop_is_told_with_its_time_and_graded_by_it() {
        let stop = |ms| PartyHolds { stopped_ns: ms * MS, longest_stop_ns: ms * MS, ..PartyHolds::default() };
        let verdict = judge(&of_client(stop(500)));
        assert_eq!((verdict.grade, verdict.reasons[0].code.as_str()), (Grade::Invalid, "stopped"));
        let expected = "a program of the client's end was stopped for 500 ms of 4.00 s (12 %), at most 500 ms at a \
            time";
        assert_eq!(verdict.reasons[0].what, expected);
        assert_eq!(judge(&of_client(stop(20))).grade, Grade::Suspect);
        assert_eq!(judge(&of_client(stop(0))).grade, Grade::Trusted);
    }

    #[test]
    fn a_tracer_is_named_where_it_can_be() {
        let traced =
            |tracer: &str| PartyHolds { traced_ns: 4_000 * MS, tracer: tracer.into(), ..PartyHolds::default() };
        let verdict = judge(&of_client(traced("strace")));
        assert_eq!((verdict.grade, verdict.reasons[0].code.as_str()), (Grade::Suspect, "traced"));
        assert_eq!(verdict.reasons[0].what, "a program of the client's end was traced by strace for 4.00 s");
        assert!(judge(&of_client(traced(""))).reasons[0].what.contains("by another program for"));
    }
}
