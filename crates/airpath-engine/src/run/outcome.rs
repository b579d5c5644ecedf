//! What a live run leaves behind.

use airpath_live::command::CommandEnd;
use airpath_live::engine_loop::{FinishedLink, LoopReport, PortLosses};
use airpath_live::processor_time::ProcessorShares;
use airpath_log::{EndResults, Manifest, Writer};

use super::workload::Ended;

/// All that a live run leaves behind.
pub struct LiveOutcome {
    /// How the client's command ended.
    pub client: Ended,
    /// How the server's command ended.
    pub server: Option<CommandEnd>,
    /// What the ends suffered, but for what the link itself knows.
    pub ends: EndResults,
    /// What the ports of the link lost.
    pub losses: PortLosses,
    /// The link.
    pub link: FinishedLink,
    /// The loop.
    pub report: LoopReport,
    /// What the processors did meanwhile.
    pub shares: ProcessorShares,
    /// The manifest as it was written at the start.
    pub manifest: Manifest,
    /// The writer of the log, to be finished.
    pub writer: Writer,
}
