// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The record of an end: what became of its programs, for the runner of the experiment.

use serde::Serialize;

use crate::output::Length;
use crate::program::Running;
use crate::specification::End;

/// The record of an end.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    pub end: &'static str,
    pub user: Option<&'a str>,
    pub epoch_unix_ns: u64,
    pub failure: &'a str,
    pub interrupted: bool,
    pub programs: Vec<OfProgram<'a>>,
}

/// The record of a program.
#[derive(Debug, Serialize)]
pub struct OfProgram<'a> {
    name: &'a str,
    program: &'a str,
    end: &'static str,
    user: Option<&'a str>,
    command: &'a [String],
    service: bool,
    start_ns: Option<i128>,
    end_ns: Option<i128>,
    elapsed_ns: Option<u64>,
    exit_status: Option<i32>,
    signal: Option<i32>,
    stopped: bool,
    pub succeeded: bool,
    reason: String,
    output: Lengths,
}

/// The lengths of a program's outputs; none for one that never ran.
#[derive(Debug, Default, Serialize)]
pub struct Lengths {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Length>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Length>,
}

impl<'a> OfProgram<'a> {
    /// Record of a program at `end`, of `user` where there are several; times are after `epoch_ns`.
    pub fn new(running: &'a Running, output: Lengths, end: End, user: Option<&'a str>, epoch_ns: u64) -> OfProgram<'a> {
        let specification = &running.specification;
        let by_status = running.status.is_some_and(|status| specification.exit_status.contains(&status));
        // A service may have been to start later than the workload lasted.
        let by_service = specification.service && (running.stopped || running.process.is_none());
        let succeeded = running.reason.is_empty() && (by_status || by_service);
        let reason = match running.status {
            Some(status) if !succeeded && running.reason.is_empty() && status < 0 => {
                format!("ended by signal {}", -status)
            }
            Some(status) if !succeeded && running.reason.is_empty() => format!("exit status {status}"),
            _ => running.reason.clone(),
        };
        let after_epoch = |at_ns: u64| i128::from(at_ns) - i128::from(epoch_ns);
        OfProgram {
            name: &specification.name,
            program: &running.program,
            end: end.name(),
            user,
            command: &specification.command,
            service: specification.service,
            start_ns: running.started_ns.map(after_epoch),
            end_ns: running.ended_ns.map(after_epoch),
            elapsed_ns: running.started_ns.zip(running.ended_ns).map(|(start, end)| end.saturating_sub(start)),
            exit_status: running.status.filter(|status| *status >= 0),
            signal: running.status.filter(|status| *status < 0).map(|status| -status),
            stopped: running.stopped,
            succeeded,
            reason,
            output,
        }
    }
}
