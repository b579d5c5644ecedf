// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A program beside this process, in a session and a working directory of its own.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

use super::program::{Program, Stream};

/// Starts the program that `words` name, with exactly this environment, in the namespaces of this process, with the
/// signals of `mask` blocked. It leads a session and a process group of its own, whose number is the one that this
/// returns. The caller reaps it.
///
/// # Errors
/// No word, a text with a zero byte, a directory that cannot be entered, or a program that cannot be executed.
pub fn start(
    words: &[OsString],
    environment: BTreeMap<OsString, OsString>,
    directory: &Path,
    mask: SigSet,
    streams: [Stream; 3],
) -> io::Result<Pid> {
    let (name, arguments) = words.split_first().ok_or_else(|| io::Error::from(Errno::ENOENT))?;
    let directory = CString::new(directory.as_os_str().as_bytes())?;
    let program = Program::new(name, arguments, environment, streams, libc::STDERR_FILENO + 1)?;
    let enter = || {
        // SAFETY: a C string that lives over the call.
        Errno::result(unsafe { libc::chdir(directory.as_ptr()) }).map(drop).map_err(io::Error::from)
    };
    let settle = || {
        // SAFETY: no arguments. It fails for the leader of a group, which a new process is not.
        Errno::result(unsafe { libc::setsid() })?;
        Ok(mask.thread_set_mask()?)
    };
    program.spawn(&enter, &settle)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nix::sys::wait::{WaitStatus, waitpid};

    use super::*;

    #[test]
    fn a_program_apart_has_its_session_folder_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let words = ["sh", "-c", "pwd; echo $A; cut -d ' ' -f 6 /proc/$$/stat"];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        environment.insert("A".into(), "b c".into());
        let streams = [Stream::Null, Stream::To(writer.into()), Stream::Null];
        let pid = start(&words, environment, folder.path(), SigSet::empty(), streams).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(waitpid(pid, None).unwrap(), WaitStatus::Exited(pid, 0));
        let folder = folder.path().canonicalize().unwrap();
        assert_eq!(text, format!("{}\nb c\n{pid}\n", folder.display()));
    }

    #[test]
    fn what_keeps_a_program_from_starting_is_told() {
        let error = |words: &[&str], directory: &str| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let environment = std::env::vars_os().collect();
            start(&words, environment, Path::new(directory), SigSet::empty(), Default::default())
                .unwrap_err()
                .raw_os_error()
        };
        assert_eq!(error(&["airpath-no-such-program"], "/"), Some(libc::ENOENT));
        assert_eq!(error(&["true"], "/airpath-no-such-folder"), Some(libc::ENOENT));
        assert_eq!(error(&["/dev/null"], "/"), Some(libc::EACCES));
        assert_eq!(error(&[], "/"), Some(libc::ENOENT));
    }
}
