// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Job of the guest, and the files through which host and guest exchange it.
//!
//! Nothing of it may be on the kernel's command line, which goes into the kernel's random numbers and
//! must therefore be the same from run to run.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// The folder that both see: a temporary file system that only the kernel's process has, over the
/// host's /sys. The guest mounts a /sys of its own, so nothing of the host's is missed there.
pub const MOUNT_POINT: &str = "/sys";
/// The folder in it.
pub const FOLDER: &str = "/sys/airpath";
/// This program, for the guest to start as its first process.
pub const ENGINE: &str = "engine";
/// The [`Job`] as JSON.
pub const JOB: &str = "job.json";
/// Input of the commands.
pub const INPUT: &str = "input";
/// Their standard output.
pub const OUTPUT: &str = "output";
/// Their standard error.
pub const ERRORS: &str = "errors";
/// Console of the guest's kernel.
pub const CONSOLE: &str = "console";
/// Appears once the guest listens to signals: before that the kernel would boot anew on one.
pub const LISTENING: &str = "listening";
/// The engine's exit status and how long it ran in virtual nanoseconds, as two decimal numbers; written
/// last.
pub const STATUS: &str = "status";
/// Reason that the guest could not start the engine.
pub const FAILURE: &str = "failure";
/// The manifest of the run, for who asked for it.
pub const MANIFEST: &str = "manifest.json";
/// The beginning of the names of files that hold the number of a signal, counted from 0.
pub const SIGNAL_PREFIX: &str = "signal-";

/// A run of the engine in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The engine's arguments, without the program.
    pub arguments: Vec<OsString>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: OsString,
    /// User who runs it.
    pub uid: u32,
    /// And their group.
    pub gid: u32,
    /// The file mode creation mask.
    pub umask: u32,
    /// True if standard error goes where standard output goes, in the order in which it is written.
    pub merged_output: bool,
    /// True if the manifest goes to [`MANIFEST`] as well.
    pub manifest: bool,
    /// The name of the machine.
    pub host_name: String,
}

impl Job {
    /// The client's command, on one line, to name it.
    pub fn client(&self) -> Option<String> {
        let end = self.arguments.iter().position(|word| word == "--")?;
        let words: Vec<_> = self.arguments[end + 1..].iter().map(|word| word.to_string_lossy()).collect();
        Some(words.join(" ").replace('\n', " "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_job_with_words_that_are_no_text_reads_back() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
        let job = Job {
            arguments: vec!["exec".into(), odd.clone()],
            environment: vec![("PATH".into(), odd.clone())],
            directory: odd,
            uid: 65534,
            gid: 0,
            umask: 0o22,
            merged_output: true,
            manifest: false,
            host_name: "box".into(),
        };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
        assert_eq!(job.client(), None);
        let arguments = ["exec", "--", "sleep", "--", "9"].map(OsString::from).to_vec();
        assert_eq!(Job { arguments, ..job }.client().unwrap(), "sleep -- 9");
    }
}
