// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Watching what the ends of a live run suffer beside the link, from t = 0 to the end of the commands.

use std::io;

use airpath_core::End;
use airpath_live::end_waits::Measured;
use airpath_live::session::SessionEnd;
use airpath_live::socket_losses;
use airpath_log::{Clock, EndResults, SocketLosses};

use super::request::RunRequest;
use super::workload::{Failures, Workload};
use crate::control::around::Around;

/// State of both ends when the run began.
pub struct EndsWatch {
    sockets: Vec<io::Result<SocketLosses>>,
    around: Option<Around>,
    shared: bool,
}

/// Measurements of the waits of each link's commands; the reason where there are none.
pub type MeasuredWaits = Result<Option<Measured>, String>;

/// Waits of the commands of `workload` since they were measured.
pub fn measured_waits(workload: &mut Workload<'_>) -> MeasuredWaits {
    workload.measured_waits().map_err(|error| cannot_tell_waits(&error))
}

/// Begins to measure how long the commands of `links` wait for a processor; the reason where that cannot be.
pub fn measure_waits(request: &RunRequest, workload: &mut Workload<'_>, links: usize) -> Option<String> {
    // Where time stands still while anybody works, nobody waits.
    let measured = (request.clock == Clock::Live).then(|| workload.measure_waits(links))?;
    measured.err().map(|error| cannot_tell_waits(&error))
}

impl EndsWatch {
    /// Looks at the ends of a link.
    pub fn begin(request: &RunRequest, ends: &[&SessionEnd]) -> EndsWatch {
        // Where time stands still while anybody works, no link around is late.
        let around = (request.clock == Clock::Live && request.enclosing).then(Around::watch);
        let sockets = ends.iter().map(|end| socket_losses::read(end.network())).collect();
        EndsWatch { sockets, around, shared: request.enclosing }
    }

    /// Disturbances of the ends of `link` since; `failures` are those of their commands.
    pub fn finish(self, link: usize, failures: Failures, measured: &MeasuredWaits, ends: &[&SessionEnd]) -> EndResults {
        let EndsWatch { sockets, around, shared } = self;
        let mut unreadable: Vec<String> = measured.as_ref().err().cloned().into_iter().collect();
        let [mut client_sockets, mut server_sockets] = [SocketLosses::default(); 2];
        for (start, end) in sockets.into_iter().zip(ends) {
            let losses = match end.end() {
                End::Client => &mut client_sockets,
                End::Server => &mut server_sockets,
            };
            match start.and_then(|start| Ok((start, socket_losses::read(end.network())?))) {
                Ok((start, now)) => *losses = losses.and(&now.since(&start)),
                Err(error) => unreadable.push(format!("socket losses at the {end} ({error})")),
            }
        }
        let of_link = measured.as_ref().ok().and_then(|measured| measured.as_ref()?.get(link).cloned());
        let (waits, holds) = of_link.unzip();
        EndResults {
            waits,
            holds: holds.unwrap_or_default(),
            client_sockets,
            server_sockets,
            server_end_is_shared: shared,
            unreadable,
            server_failed: failures.server_failed,
            client_killed: failures.client_killed,
            around: around.map(Around::judge),
            ..EndResults::default()
        }
    }
}

fn cannot_tell_waits(error: &io::Error) -> String {
    format!("CPU wait times of the commands ({error})")
}
