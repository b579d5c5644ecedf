// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Outcome of a live run.

use airpath_live::command::CommandEnd;
use airpath_live::engine_loop::{FinishedLink, LoopReport, PortLosses};
use airpath_live::processor_time::ProcessorShares;
use airpath_log::{EndResults, Manifest, Writer};

use super::workload::Ended;

/// All that a live run leaves behind.
pub struct LiveOutcome {
    /// End of the client's command, of each user.
    pub clients: Vec<Ended>,
    /// End of the server's command at each server's end; none without a command.
    pub servers: Vec<Option<CommandEnd>>,
    /// Disturbances at the ends, without those that the link itself knows.
    pub ends: EndResults,
    /// Losses in the ports of the link.
    pub losses: PortLosses,
    /// The link.
    pub link: FinishedLink,
    /// The loop.
    pub report: LoopReport,
    /// Use of the processors meanwhile.
    pub shares: ProcessorShares,
    /// The manifest as it was written at the start.
    pub manifest: Manifest,
    /// The writer of the log, to be finished.
    pub writer: Writer,
}
