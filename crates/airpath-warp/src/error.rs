// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The one error type of this crate: what failed, where, and how to fix it.

use std::io;

/// Failure to provide a kernel, or to run in it.
#[derive(Debug, thiserror::Error)]
pub enum WarpError {
    /// Something that is needed is not there; the text says how to get it.
    #[error("{0}")]
    Missing(String),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// Attempted action, as a verb phrase ("read the job").
        action: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel could not be built.
    #[error("{0}")]
    Build(String),
    /// The guest failed, or did not end in time.
    #[error("{0}")]
    Guest(String),
    /// A signal broke it off; its number.
    #[error("aborted by signal {0}")]
    Interrupted(i32),
}

impl WarpError {
    /// Cause in one line, without the advice that follows it.
    pub fn reason(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_owned()
    }
}

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, WarpError>;

/// Adds "what was attempted" to results of system calls.
pub(crate) trait Attempting<T> {
    /// Turns the error into [`WarpError::System`] with `action`.
    fn attempting(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempting<T> for std::result::Result<T, E> {
    fn attempting(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| WarpError::System { action: action(), source: source.into() })
    }
}
