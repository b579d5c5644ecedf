// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages of `ssh` itself: they go into a file, so that the message of a failure has them. The other host's standard
//! error is passed on as it comes.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Most bytes that a message has.
const LONGEST_BYTES: usize = 4096;

/// The file of one `ssh`, in memory.
pub struct SshLog {
    file: File,
    /// The path by which `ssh` opens it.
    pub path: PathBuf,
}

impl SshLog {
    /// A new file; none where other processes cannot reach it, because `/proc` is of other processes.
    pub fn create() -> Option<SshLog> {
        let file = File::from(memfd_create(c"airpath-ssh", MFdFlags::MFD_CLOEXEC).ok()?);
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let number = |about: fs::Metadata| (about.dev(), about.ino());
        let is_ours = number(fs::metadata(&path).ok()?) == number(file.metadata().ok()?);
        is_ours.then_some(SshLog { file, path })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// The end of a message about the `ssh` whose log `log` is: what it said so far.
pub fn reason(log: Option<&File>) -> String {
    let Some(log) = log else { return "; its message is above".into() };
    let mut bytes = vec![0; LONGEST_BYTES];
    let count = log.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..count]);
    // A changed key has a frame around its warning.
    let is_told = |line: &&str| !line.bytes().all(|byte| byte == b'@');
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_told).collect();
    match lines.as_slice() {
        // It prints a few of its words whatever file it has.
        [] => "; what it printed, if anything, is above".into(),
        [line] => format!(": {line}"),
        lines => format!(":\n  {}", lines.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_reason_is_what_was_said() {
        let log = SshLog::create().unwrap();
        let told = || reason(Some(log.file()));
        assert_eq!(told(), "; what it printed, if anything, is above");
        let mut ssh = File::options().append(true).open(&log.path).unwrap();
        ssh.write_all(b"@@@@@@\r\n\r\nssh: no such host\r\n").unwrap();
        assert_eq!(told(), ": ssh: no such host");
        ssh.write_all(b"bye\n").unwrap();
        assert_eq!(told(), ":\n  ssh: no such host\n  bye");
    }
}
