// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Processes that somebody held: stopped by a signal, or traced by a debugger.

use airpath_log::{Holds, PartyHolds};

use super::{Member, Party};

/// Number of looks in which a process that runs is asked once whether somebody holds it: one that is stopped
/// does not run, and is asked at every look.
pub(super) const LOOKS_BETWEEN: u64 = 5;

/// Holder of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hold {
    /// It is stopped, by a signal or by a tracer.
    pub(super) is_stopped: bool,
    /// The process that traces it, as `/proc` numbers processes; 0 for one outside of `/proc`.
    pub(super) tracer: Option<i32>,
}

/// A process that was found held.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) member: Member,
    pub(super) is_stopped: bool,
    /// The tracer's name, empty where it cannot be read.
    pub(super) tracer: Option<String>,
}

/// Times for which processes of each party were held.
#[derive(Debug, Default)]
pub(super) struct HoldAccount {
    holds: Holds,
    /// The stop that lasts, by party.
    stretch_ns: [u64; 3],
}

impl HoldAccount {
    /// Takes what was found at a look, `since_ns` after the one before it. A stop began and ended somewhere
    /// between two looks: of both ends together, one of the two intervals counts.
    pub(super) fn sample(&mut self, since_ns: u64, held: &[Held]) {
        for (party, stretch_ns) in [Party::Client, Party::Server, Party::Relay].into_iter().zip(&mut self.stretch_ns) {
            let holds = match party {
                Party::Client => &mut self.holds.client,
                Party::Server => &mut self.holds.server,
                Party::Relay => &mut self.holds.relays,
            };
            let mut of_party = held.iter().filter(|held| held.member.party == party);
            // A tracer stops what it traces over and over: that is its way of tracing.
            let is_stopped = of_party.clone().any(|held| held.is_stopped && held.tracer.is_none());
            *stretch_ns = if is_stopped { *stretch_ns + since_ns } else { 0 };
            holds.stopped_ns += if is_stopped { since_ns } else { 0 };
            holds.longest_stop_ns = holds.longest_stop_ns.max(*stretch_ns);
            if let Some(tracer) = of_party.find_map(|held| held.tracer.as_ref()) {
                note_tracer(holds, tracer, since_ns);
            }
        }
    }

    /// Measured holds.
    pub(super) fn finish(self) -> Holds {
        self.holds
    }
}

fn note_tracer(holds: &mut PartyHolds, tracer: &str, since_ns: u64) {
    holds.traced_ns += since_ns;
    if holds.tracer.is_empty() {
        tracer.clone_into(&mut holds.tracer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn stops_and_tracers_are_told_apart_by_party() {
        let mut account = HoldAccount::default();
        let of = |party, is_stopped, tracer: Option<&str>| Held {
            member: Member { party, link: Some(0) },
            is_stopped,
            tracer: tracer.map(str::to_owned),
        };
        account.sample(20 * MS, &[]);
        // Two processes of one end that are stopped together count once.
        account.sample(20 * MS, &[of(Party::Client, true, None), of(Party::Client, true, None)]);
        account.sample(30 * MS, &[of(Party::Client, true, None), of(Party::Server, true, Some("strace"))]);
        account.sample(20 * MS, &[of(Party::Server, false, Some("strace"))]);
        account.sample(20 * MS, &[of(Party::Client, true, None)]);
        let holds = account.finish();
        let client = PartyHolds { stopped_ns: 70 * MS, longest_stop_ns: 50 * MS, ..PartyHolds::default() };
        assert_eq!(holds.client, client);
        let server = PartyHolds { traced_ns: 50 * MS, tracer: "strace".into(), ..PartyHolds::default() };
        assert_eq!(holds.server, server);
        assert_eq!(holds.relays, PartyHolds::default());
    }
}
