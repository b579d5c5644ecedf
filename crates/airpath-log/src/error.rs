// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of files, each with subject, place and fix.

use std::io;
use std::path::{Path, PathBuf};

/// Error of writing or reading a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A folder that holds something already.
    #[error(
        "{path} is not empty{what}; runs are never overwritten: choose another directory with --out, or remove this \
         one first"
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// Contents of the folder, if it is a run; begins with a colon.
        what: String,
    },
    /// A file or folder could not be used.
    #[error("cannot {action} {path}: {source}; {hint}")]
    Io {
        /// Attempted action, such as "create".
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
        /// Advice for the user.
        hint: String,
    },
    /// A run's folder of a format that this version does not know.
    #[error(
        "{path} has format {found}, but this version of Airpath reads format {known}; use the version of Airpath \
         that recorded it"
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The one that is known.
        known: u32,
    },
    /// A file is not what its name says.
    #[error("{path} cannot be read: {what}; {hint}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        what: String,
        /// Advice for the user.
        hint: String,
    },
}

impl LogError {
    /// The action of an [`LogError::Io`] that read; all others wrote.
    pub const READ: &'static str = "read";

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> LogError {
        let too_many_open = [nix::errno::Errno::EMFILE, nix::errno::Errno::ENFILE].map(|errno| Some(errno as i32));
        let hint = match source.kind() {
            _ if too_many_open.contains(&source.raw_os_error()) => {
                "allow more open files: `ulimit -n` prints the limit, `ulimit -n 4096` raises it"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free space there, or choose another directory with --out"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a writable directory with --out"
            }
            io::ErrorKind::NotFound => "check the name, and that the directory exists",
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "name another folder",
            io::ErrorKind::InvalidInput => "restore the file",
            _ => "check the file system",
        };
        LogError::Io { action, path: path.to_owned(), source, hint: hint.to_owned() }
    }

    pub(crate) fn content(path: &Path, what: impl Into<String>, hint: &str) -> LogError {
        LogError::Content { path: path.to_owned(), what: what.into(), hint: hint.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_no_fault_of_the_file_system() {
        for errno in [nix::errno::Errno::EMFILE, nix::errno::Errno::ENFILE] {
            let text = LogError::io("create", Path::new("x"), errno.into()).to_string();
            assert!(text.contains("`ulimit -n 4096`") && !text.contains("file system"), "{text}");
        }
    }
}
