// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Watching what the ends of a live run suffer beside the link, from t = 0 to the end of the commands.

use std::io;

use airpath_core::End;
use airpath_live::session::SessionEnd;
use airpath_live::socket_losses;
use airpath_log::{Clock, EndResults, Holds, SocketLosses, Waits};

use super::request::RunRequest;
use super::workload::Workload;
use crate::control::around::Around;

/// State of both ends when the run began.
pub struct EndsWatch {
    sockets: Vec<io::Result<SocketLosses>>,
    around: Option<Around>,
    shared: bool,
    unreadable: Vec<String>,
}

impl EndsWatch {
    /// Looks at the ends, and begins to measure how long commands wait for a processor.
    pub fn begin(request: &RunRequest, workload: &mut Workload<'_>, ends: &[&SessionEnd]) -> EndsWatch {
        let mut unreadable = Vec::new();
        // Where time stands still while anybody works, nobody waits and no link around is late.
        let live = request.clock == Clock::Live;
        if live && let Err(error) = workload.measure_waits() {
            unreadable.push(cannot_tell_waits(&error));
        }
        let around = (live && request.enclosing).then(Around::watch);
        let sockets = ends.iter().map(|end| socket_losses::read(end.network())).collect();
        EndsWatch { sockets, around, shared: request.enclosing, unreadable }
    }

    /// Disturbances of the ends since.
    pub fn finish(
        self,
        workload: &Workload<'_>,
        measured: io::Result<Option<(Waits, Holds)>>,
        ends: &[&SessionEnd],
    ) -> EndResults {
        let EndsWatch { sockets, around, shared, mut unreadable } = self;
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
        let (waits, holds) = measured
            .unwrap_or_else(|error| {
                unreadable.push(cannot_tell_waits(&error));
                None
            })
            .unzip();
        EndResults {
            waits,
            holds: holds.unwrap_or_default(),
            client_sockets,
            server_sockets,
            server_end_is_shared: shared,
            unreadable,
            server_failed: workload.server_failed().map(str::to_owned),
            client_killed: workload.client_killed().map(str::to_owned),
            around: around.map(Around::judge),
            ..EndResults::default()
        }
    }
}

fn cannot_tell_waits(error: &io::Error) -> String {
    format!("CPU wait times of the commands ({error})")
}
