// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The rules of the verdict: one file for each way in which a result can be distorted, one line in
//! [`RULES`].

mod around;
mod circling;
mod demoted;
mod departures;
mod ends_holds;
mod ends_sockets;
mod ends_waits;
mod interfaces;
mod log;
mod outside;
mod reads;
mod refused;
mod unfinished;
mod unreadable;
mod wall_clock;
mod workload;

use super::{Measurements, Reason};

pub(super) use wall_clock::describe as describe_wall_clock;
pub(super) use workload::broken_off;

/// A rule: the reasons that it finds in what was measured.
pub(super) type Rule = fn(&Measurements) -> Vec<Reason>;

/// All rules. Reasons of one grade stand in the order of this list.
pub(super) const RULES: [Rule; 25] = [
    workload::was_broken_off,
    workload::never_started,
    unfinished::behind_at_the_end,
    departures::late,
    reads::late,
    reads::unwatched,
    wall_clock::stepped,
    outside::lost,
    refused::writes,
    interfaces::changed,
    circling::frames,
    demoted::demoted,
    ends_waits::commands,
    ends_waits::relays,
    ends_holds::stopped,
    ends_holds::traced,
    ends_sockets::datagrams,
    ends_sockets::listeners,
    ends_sockets::segments,
    workload::server_failed,
    workload::client_killed,
    workload::no_packets,
    unreadable::counters,
    around::judged,
    log::incomplete,
];
