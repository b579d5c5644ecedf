// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors, with advice on their cause.

use std::fmt;
use std::io;

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, LoadError>;

/// Origin of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An invalid request.
    Request,
    /// The network, the peer or the system.
    World,
}

/// A failed transfer: what happened, where, and how to fix it.
#[derive(Clone, Debug)]
pub struct LoadError {
    message: String,
    fault: Fault,
}

impl LoadError {
    /// A failure of the network, the peer or the system.
    pub fn new(message: impl Into<String>) -> LoadError {
        LoadError { message: message.into(), fault: Fault::World }
    }

    /// A mistake in what was asked for.
    pub fn request(message: impl Into<String>) -> LoadError {
        LoadError { message: message.into(), fault: Fault::Request }
    }

    /// Origin of the error.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// An error on an established connection to `peer`, after `bytes` of the load.
    pub fn midway(peer: impl fmt::Display, bytes: u64, error: &io::Error) -> LoadError {
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => "ended the connection".to_string(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                "reset the connection".to_string()
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "was silent for too long".to_string(),
            io::ErrorKind::InvalidData => return LoadError::new(format!("{peer} {error}")),
            _ => format!("became unreachable ({error})"),
        };
        LoadError::new(format!(
            "{peer} {what} after {bytes} bytes, before the transfer was complete\n  Check whether the program at \
             that end was stopped, and its output."
        ))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}
