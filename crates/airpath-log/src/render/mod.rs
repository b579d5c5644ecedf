// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run's log as text: a table of events, JSON lines, packets as tcpdump shows them, or one packet field by field.

mod contents;
mod fate;
mod filter;
mod headers;
mod mahimahi;
mod packets;
mod table;
mod tcp_state;

pub use filter::{Filter, FilterError, parse_direction, parse_kind, parse_origin};
pub use headers::headers;
pub use mahimahi::{MahimahiLog, Opportunities, mahimahi};
pub use packets::tcpdump;
pub use table::{events_json, events_table};
pub use tcp_state::{TimeRange, tcp_state_json, tcp_state_table};

use std::io;

use crate::error::LogError;

/// Reason for which a log could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The filter names something that is not in the log.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The text could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Extent of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rendered {
    /// Number of lines.
    pub lines: u64,
    /// Number of bytes at the end of the log that were an incomplete batch, and not shown.
    pub torn_bytes: u64,
}

/// A reader that goes away (`| head`) ends the output and is no error.
fn tolerate(result: Result<Rendered, RenderError>) -> Result<Rendered, RenderError> {
    match result {
        Err(RenderError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Rendered::default()),
        other => other,
    }
}
