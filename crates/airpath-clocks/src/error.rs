// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of comparing clocks and correcting logs, each with its subject, its place and its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A reason for which clocks could not be compared or logs not be corrected.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// Too few exchanges for an estimate.
    #[error("{used} usable exchanges make no estimate of the clocks, {least} do{}; measure longer (--seconds) or more \
             often (--interval)", if *steps > 0 { " (a clock was set meanwhile)" } else { "" })]
    TooFew {
        /// Number of usable exchanges.
        used: usize,
        /// Least number of exchanges for an estimate.
        least: usize,
        /// Number of times a clock was set.
        steps: usize,
    },
    /// The clocks are centuries apart.
    #[error("the clocks are more than 292 years apart; set them roughly first (date)")]
    Range,
    /// The name or address is not known.
    #[error("cannot find {host}: {source}; check the name, or write the address")]
    Name {
        /// The host.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// The host says that no program listens.
    #[error("nobody answers at {target}: the port is closed; start `airpath timing sync --serve` there")]
    Refused {
        /// The address and port.
        target: String,
    },
    /// Silence.
    #[error(
        "no answer from {target} to {sent} requests in {waited_s} s; is `airpath timing sync --serve` running there, and \
         does UDP get through?"
    )]
    Silence {
        /// The address and port.
        target: String,
        /// Number of requests.
        sent: u64,
        /// Time waited, in seconds.
        waited_s: u64,
    },
    /// Another program answers.
    #[error(
        "what answers at {target} is not `airpath timing sync --serve`: {datagrams} of its datagrams made no sense; \
         check the port"
    )]
    Foreign {
        /// The address and port.
        target: String,
        /// Number of datagrams that came.
        datagrams: u64,
    },
    /// The other end is of another version.
    #[error(
        "{target} speaks version {theirs} of this protocol and this Airpath version {ours}; use the same version of \
             Airpath at both ends"
    )]
    Version {
        /// The address and port.
        target: String,
        /// Its version.
        theirs: u8,
        /// Ours.
        ours: u8,
    },
    /// A port that cannot be had.
    #[error("cannot listen at {address}: {source}; {hint}")]
    Listen {
        /// The address and port.
        address: String,
        /// The system's error.
        source: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// The network fails.
    #[error("cannot {action} {target}: {source}; check the network there and here")]
    Network {
        /// The operation, such as "send to".
        action: &'static str,
        /// The address and port.
        target: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file or folder that cannot be used.
    #[error("cannot {action} {path}: {source}; {hint}")]
    Io {
        /// The operation, such as "read".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// A file that is not what it should be.
    #[error("{path} {what}; {hint}")]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// A log that cannot be read or written.
    #[error(transparent)]
    Log(#[from] airpath_log::LogError),
}

impl ClockError {
    /// The action of a [`ClockError::Io`] that read; all others wrote.
    pub const READ: &'static str = "read";

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> ClockError {
        let hint = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space there, or name another place",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "check the rights, or name another place"
            }
            io::ErrorKind::NotFound => "check the name",
            _ => "check the file system",
        };
        ClockError::Io { action, path: path.to_owned(), source, hint }
    }
}
