// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading what a run left behind.

pub mod arrow;
pub mod capture;
mod claims;
pub(crate) mod columns;
pub mod rows;

use std::path::Path;

use crate::error::LogError;
use crate::files;
use crate::{Level, Manifest};
use arrow::ArrowLog;

/// Opens the event log in `folder`.
///
/// # Errors
/// When there is none; the message says what to do.
pub fn open_events(folder: &Path) -> Result<ArrowLog, LogError> {
    open(folder, files::EVENTS)
}

/// Opens the input log in `folder`.
///
/// # Errors
/// When there is none; the message says what to do.
pub fn open_inputs(folder: &Path) -> Result<ArrowLog, LogError> {
    open(folder, files::INPUT)
}

/// Opens the log of TCP state in `folder`.
///
/// # Errors
/// When there is none; the message says what to do.
pub fn open_tcp_state(folder: &Path) -> Result<ArrowLog, LogError> {
    let path = folder.join(files::TCP_STATE);
    if path.exists() || !folder.join(files::MANIFEST).exists() {
        return ArrowLog::open(&path);
    }
    Manifest::read(folder)?;
    let hint = "record it again with --clock live or warp and --tcp-state '10 ms'";
    Err(LogError::content(&path, "the run was recorded without the state of TCP", hint))
}

fn open(folder: &Path, name: &str) -> Result<ArrowLog, LogError> {
    let path = folder.join(name);
    if path.exists() || !folder.join(files::MANIFEST).exists() {
        return ArrowLog::open(&path);
    }
    let (what, hint) = match Manifest::read(folder)?.log_level {
        level if level < Level::Events => {
            ("the run was recorded without events".into(), "record the run again with --log events or --log packets")
        }
        level => (
            format!("the file is missing, but the run was recorded with --log {level}"),
            "restore it, or record the run again",
        ),
    };
    Err(LogError::content(&path, what, hint))
}
