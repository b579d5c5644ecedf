// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The one error type of this crate: what failed, where, and how to fix it.

use std::io;

/// Failure of the operating system side of a live run, at set-up or later.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The system forbids what a live run needs; the text says what to change.
    #[error("{0}")]
    Forbidden(String),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// Attempted action, as a verb phrase ("create a network namespace").
        action: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The request makes no sense.
    #[error("{0}")]
    Request(String),
    /// Something that is needed is not installed, or not enough of it is there; the text says how to get it.
    #[error("{0}")]
    Missing(String),
}

impl LiveError {
    /// Wraps `source` (an `io::Error` or an errno) with what was attempted.
    pub fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// The kernel's error number, if a system call is at the root of this.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, LiveError>;

/// Adds "what was attempted" to results of system calls.
pub(crate) trait Attempting<T> {
    /// Turns the error into [`LiveError::System`] with `action`.
    fn attempting(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Attempting<T> for std::result::Result<T, E> {
    fn attempting(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| LiveError::system(action(), source))
    }
}
