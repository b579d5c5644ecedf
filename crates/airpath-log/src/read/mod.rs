// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading what a run left behind.

pub mod arrow;
pub mod capture;
mod claims;
pub(crate) mod columns;
pub mod rows;

use std::path::{Path, PathBuf};

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
    if let Some(part) = part_with(folder, files::TCP_STATE) {
        return Err(not_joined(&path, &part));
    }
    let hint = "record it again with --clock live or warp and --tcp-state '10 ms'";
    Err(LogError::content(&path, "the run was recorded without the state of TCP", hint))
}

fn open(folder: &Path, name: &str) -> Result<ArrowLog, LogError> {
    let path = folder.join(name);
    if path.exists() || !folder.join(files::MANIFEST).exists() {
        return ArrowLog::open(&path);
    }
    let manifest = Manifest::read(folder)?;
    if let Some(part) = part_with(folder, name) {
        return Err(not_joined(&path, &part));
    }
    let (what, hint) = match manifest.log_level {
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

/// The folder of a part of the run in `folder` that has the file `name`, the first by name.
fn part_with(folder: &Path, name: &str) -> Option<PathBuf> {
    let parts = std::fs::read_dir(folder.join(files::HOSTS)).into_iter().flatten().flatten();
    parts.map(|part| part.path()).filter(|part| part.join(name).exists()).min()
}

/// The error for the file at `path` of a run on several hosts that only `part` has, maybe among others.
fn not_joined(path: &Path, part: &Path) -> LogError {
    let hint = format!("name one of them, such as {}", part.display());
    LogError::content(path, "the parts of this run on several hosts were not joined", &hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snaplen;

    #[test]
    fn parts_that_were_not_joined_are_named() {
        let folder = tempfile::tempdir().unwrap();
        Manifest::new(Level::Events, Snaplen::default()).write(folder.path()).unwrap();
        let told = || open_events(folder.path()).err().unwrap().to_string();
        assert!(told().contains("restore it, or record the run again"), "{}", told());
        for host in ["lab2", "local"] {
            std::fs::create_dir_all(folder.path().join("hosts").join(host)).unwrap();
        }
        let part = folder.path().join("hosts/local");
        std::fs::write(part.join(files::EVENTS), "").unwrap();
        assert!(told().ends_with(&format!("name one of them, such as {}", part.display())), "{}", told());
        assert!(!told().contains("restore it"));
        std::fs::write(part.join(files::TCP_STATE), "").unwrap();
        let told = open_tcp_state(folder.path()).err().unwrap().to_string();
        assert!(told.ends_with(&format!("name one of them, such as {}", part.display())), "{told}");
    }
}
