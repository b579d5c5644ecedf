// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A program of the workload, from its start to its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use airpath_live::clock::monotonic_ns;
use airpath_live::command::{Stream, apart};
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2, write};

use crate::output::{Output, without_number};
use crate::specification;

/// Ends of the names of the files that the two outputs go into.
const OUTPUTS: [&str; 2] = ["stdout", "stderr"];

/// A program and what became of it.
#[derive(Debug)]
pub struct Running {
    pub specification: specification::Program,
    /// Its name in the workload, which several users share.
    pub program: String,
    pub process: Option<Pid>,
    pub started_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// Its exit status, or the number of the signal that ended it, negative.
    pub status: Option<i32>,
    /// Reason of its failure; empty if it did not fail, or its status says why.
    pub reason: String,
    pub ready: bool,
    /// Standard output and error, once it was started.
    pub outputs: Vec<Output>,
    /// True if it was ended by this process.
    pub stopped: bool,
    /// Looks for the line by which it says that it is ready.
    pub matcher: Option<Matcher>,
}

impl Running {
    /// A program as `user` has it: one of several users has a name of its own.
    pub fn new(mut specification: specification::Program, user: &str) -> Running {
        let program = specification.name.clone();
        if !user.is_empty() && specification.user.as_deref() != Some(user) {
            specification.name = format!("{program}-{user}");
            let mut directory = specification.directory.into_os_string();
            directory.push(format!("-{user}"));
            specification.directory = directory.into();
        }
        Running {
            specification,
            program,
            process: None,
            started_ns: None,
            ended_ns: None,
            status: None,
            reason: String::new(),
            ready: false,
            outputs: Vec::new(),
            stopped: false,
            matcher: None,
        }
    }

    /// True if it has ended, or never will have begun.
    pub fn is_over(&self) -> bool {
        self.status.is_some() || (self.process.is_none() && !self.reason.is_empty())
    }

    /// The process, until it has ended.
    pub fn active(&self) -> Option<Pid> {
        self.process.filter(|_| self.status.is_none())
    }

    /// The time at which it has to end, unless it is being stopped.
    pub fn limit_ns(&self) -> Option<u64> {
        let started_ns = self.started_ns.filter(|_| self.status.is_none() && !self.stopped)?;
        Some(started_ns.saturating_add(self.specification.time_limit_ns))
    }

    /// Starts it; what fails is its reason.
    pub fn start(&mut self, output_limit_bytes: u64, mask: SigSet) {
        if let Err(reason) = self.try_start(output_limit_bytes, mask) {
            self.reason = reason;
        }
    }

    fn try_start(&mut self, output_limit_bytes: u64, mask: SigSet) -> Result<(), String> {
        let specification = &self.specification;
        let failed = |what: &dyn std::fmt::Display, error: &io::Error| {
            format!("cannot be started: {what}: {}", without_number(error))
        };
        let directory = &specification.directory;
        fs::create_dir_all(directory).map_err(|error| failed(&directory.display(), &error))?;
        let (mut outputs, mut writers) = (Vec::new(), Vec::new());
        for name in OUTPUTS {
            // The name of the directory may have dots of its own.
            let path = directory.with_added_extension(name);
            let (output, writer) =
                Output::new(&path, output_limit_bytes).map_err(|error| failed(&path.display(), &error))?;
            outputs.push(output);
            writers.push(Stream::To(writer));
        }
        let [out, err] = <[Stream; 2]>::try_from(writers).unwrap_or_default();
        let words: Vec<OsString> = specification.command.iter().map(OsString::from).collect();
        let process = apart::start(&words, self.environment(), directory, mask, [Stream::Null, out, err]);
        let name = specification.command.first().map_or("", String::as_str);
        let process = process.map_err(|error| {
            // There is no output of what never ran.
            for output in OUTPUTS {
                let _ = fs::remove_file(directory.with_added_extension(output));
            }
            failed(&name, &error)
        })?;
        self.process = Some(process);
        self.started_ns = Some(monotonic_ns());
        self.outputs = outputs;
        if let Some(words) = self.specification.ready.as_ref().and_then(|ready| ready.matcher.as_deref()) {
            let matcher = Matcher::start(words, mask);
            self.matcher =
                Some(matcher.map_err(|error| format!("has no matcher of lines: {}", without_number(&error)))?);
        }
        Ok(())
    }

    /// The environment of this process, with what the program adds.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let added = self.specification.environment.iter().map(|(name, value)| (name.into(), value.into()));
        std::env::vars_os().chain(added).collect()
    }

    /// Notes its end, and that of its matcher, if they have come.
    pub fn reap(&mut self, now_ns: u64) {
        if let Some(matched) = self.matcher.as_ref().and_then(Matcher::outcome) {
            self.ready |= matched;
            self.matcher = None;
        }
        let Some(process) = self.active() else { return };
        let status = match waitpid(process, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => status,
            Ok(WaitStatus::Signaled(_, signal, _)) => -(signal as i32),
            _ => return,
        };
        self.status = Some(status);
        self.ended_ns = Some(now_ns);
        // A service's children end with it.
        let _ = killpg(process, Signal::SIGTERM);
    }

    /// Sends a signal to it and to what it started.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(process) = self.active() {
            self.stopped = true;
            let _ = killpg(process, signal);
        }
    }
}

/// A program that ends with status 0 once a line of its input is the one.
#[derive(Debug)]
pub struct Matcher {
    process: Pid,
    input: OwnedFd,
}

impl Matcher {
    fn start(words: &[String], mask: SigSet) -> io::Result<Matcher> {
        let (reader, input) = pipe2(OFlag::O_CLOEXEC)?;
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let streams = [Stream::To(reader), Stream::Null, Stream::Null];
        let process = apart::start(&words, std::env::vars_os().collect(), Path::new("/"), mask, streams)?;
        Ok(Matcher { process, input })
    }

    /// Hands it whole lines; one that has ended needs none.
    pub fn look_at(&self, mut lines: &[u8]) {
        while let Ok(count @ 1..) = write(&self.input, lines) {
            lines = &lines[count..];
        }
    }

    /// Once it has ended, whether it found the line.
    fn outcome(&self) -> Option<bool> {
        match waitpid(self.process, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(status) => Some(matches!(status, WaitStatus::Exited(_, 0))),
            Err(_) => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specification(words: &[&str], directory: &Path) -> specification::Program {
        specification::Program {
            name: "one".into(),
            user: None,
            command: words.iter().map(|word| (*word).to_string()).collect(),
            start_ns: 0,
            time_limit_ns: 10_000_000_000,
            environment: [("A".to_string(), "b".to_string())].into(),
            ready: None,
            service: false,
            exit_status: vec![0],
            directory: directory.join("one"),
        }
    }

    #[test]
    fn a_user_among_several_has_a_name_and_a_folder_of_its_own() {
        let folder = Path::new("/runs");
        let mut given = specification(&["true"], folder);
        assert_eq!(Running::new(given.clone(), "").specification.name, "one");
        let running = Running::new(given.clone(), "phone-2");
        assert_eq!(running.specification.name, "one-phone-2");
        assert_eq!(running.specification.directory, folder.join("one-phone-2"));
        assert_eq!(running.program, "one");
        given.user = Some("phone-2".into());
        assert_eq!(Running::new(given, "phone-2").specification.name, "one");
    }

    #[test]
    fn a_program_that_cannot_be_started_says_why_and_leaves_no_output() {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Running::new(specification(&["airpath-no-such-program"], folder.path()), "");
        running.start(10, SigSet::empty());
        assert_eq!(running.reason, "cannot be started: airpath-no-such-program: No such file or directory");
        assert!(running.is_over());
        assert!(!folder.path().join("one.stdout").exists());
    }
}
