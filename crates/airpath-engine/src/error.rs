// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Failures, as the user reads them.

use std::fmt;
use std::io;

use airpath_clocks::ClockError;
use airpath_live::{LiveError, open_files};
use airpath_log::LogError;
use airpath_warp::WarpError;

use crate::status;

/// A failure of Airpath itself: what, where, and how to fix it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: i32,
    /// True if there are fewer open files allowed than are needed.
    lacks_files: bool,
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    fn of(message: impl Into<String>, status: i32) -> Failure {
        Failure { message: message.into(), status, lacks_files: false }
    }

    /// A failure of Airpath itself.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::FAILED)
    }

    /// A mistake in what was typed, or in a file that was named.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::USAGE)
    }

    /// Something that did not come out as it should.
    pub fn program(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::UNDONE)
    }

    /// Output that cannot be written.
    pub fn unwritable(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::UNWRITABLE)
    }

    /// Something that is not installed or not permitted here.
    pub fn lacking(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::LACKING)
    }

    /// A server that was not ready for the client.
    pub fn not_ready(message: impl Into<String>) -> Failure {
        Failure::of(message.into(), status::NOT_READY)
    }

    /// A failure of the system around the link.
    pub fn live(error: LiveError) -> Failure {
        let status = match error {
            LiveError::Request(_) => status::USAGE,
            LiveError::Forbidden(_) | LiveError::Missing(_) => status::LACKING,
            LiveError::System { ref source, .. } if is_out_of_files(source) => status::LACKING,
            LiveError::System { .. } => status::FAILED,
        };
        let lacks_files = matches!(&error, LiveError::System { source, .. } if is_out_of_files(source));
        Failure { lacks_files, ..Failure::of(error.to_string(), status) }
    }

    /// A failure of the kernel for virtual time, or of the guest.
    pub fn warp(error: WarpError) -> Failure {
        let status = match error {
            WarpError::Missing(_) => status::LACKING,
            WarpError::Interrupted(signal) => status::of_signal(signal),
            WarpError::System { .. } | WarpError::Build(_) | WarpError::Guest(_) => status::FAILED,
        };
        Failure::of(error.to_string(), status)
    }

    /// A failure to compare clocks, or to correct logs by them.
    pub fn clocks(error: ClockError) -> Failure {
        let status = match error {
            ClockError::Log(error) => return Failure::log(error),
            ClockError::Io { action: ClockError::READ, .. } | ClockError::File { .. } | ClockError::Name { .. } => {
                status::USAGE
            }
            ClockError::Io { .. } => status::UNWRITABLE,
            _ => status::UNDONE,
        };
        Failure::of(error.to_string(), status)
    }

    /// A failure to read or write the files of a run.
    pub fn log(error: LogError) -> Failure {
        let status = match &error {
            LogError::NotEmpty { .. } | LogError::Format { .. } | LogError::Content { .. } => status::USAGE,
            LogError::Io { action: LogError::READ, .. } => status::USAGE,
            LogError::Io { source, .. } if is_out_of_files(source) => status::LACKING,
            LogError::Io { .. } => status::UNWRITABLE,
        };
        let lacks_files = matches!(&error, LogError::Io { source, .. } if is_out_of_files(source));
        Failure { lacks_files, ..Failure::of(error.to_string(), status) }
    }

    /// The same, or where open files ran out, what so many users need.
    #[must_use]
    pub fn of_users(self, users: usize) -> Failure {
        if self.lacks_files { Failure::live(open_files::too_many_users(users)) } else { self }
    }

    /// The exit status.
    pub fn status(&self) -> i32 {
        self.status
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
