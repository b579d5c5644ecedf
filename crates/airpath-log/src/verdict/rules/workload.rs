// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The workload never ran, or not to its end.

use super::super::{Code, Grade, Measurements, Reason};

/// The reason of a run that was broken off.
pub(in crate::verdict) fn broken_off(why: &str) -> Reason {
    Reason::new(Grade::Invalid, Code::BrokenOff, format!("the run was aborted: {why}"), "run it again")
}

pub(super) fn was_broken_off(measured: &Measurements) -> Vec<Reason> {
    measured.broken_off.iter().map(|why| broken_off(why)).collect()
}

pub(super) fn never_started(measured: &Measurements) -> Vec<Reason> {
    let reason = |why: &String| {
        let hint = "check the command and the server's output";
        Reason::new(Grade::Invalid, Code::NeverStarted, format!("the workload never started: {why}"), hint)
    };
    measured.never_started.iter().map(reason).collect()
}

/// A server that ended with an error while the client went on left the client alone.
pub(super) fn server_failed(measured: &Measurements) -> Vec<Reason> {
    let reason = |how: &String| {
        let what = format!("the server's command ended before the client's ({how})");
        Reason::new(Grade::Suspect, Code::ServerFailed, what, "check the server's output and the cause of its exit")
    };
    measured.ends.server_failed.iter().map(reason).collect()
}

/// A client that crashed or was killed did not send what it would have sent.
pub(super) fn client_killed(measured: &Measurements) -> Vec<Reason> {
    let reason = |signal: &String| {
        let what = format!("the client's command was killed by {signal}");
        let hint = "check the command's output and the kernel log (out of memory?)";
        Reason::new(Grade::Suspect, Code::ClientKilled, what, hint)
    };
    measured.ends.client_killed.iter().map(reason).collect()
}

pub(super) fn no_packets(measured: &Measurements) -> Vec<Reason> {
    if !measured.ends.no_packets || measured.never_started.is_some() {
        return Vec::new();
    }
    let what = "no packet entered the link: nothing was tested".into();
    let hint = match measured.ends.joins_networks {
        true => "the networks at its ends must send through it: see their addresses and routes",
        false => "the command must contact an address behind the link, such as `server`",
    };
    vec![Reason::new(Grade::Suspect, Code::NoPackets, what, hint)]
}
