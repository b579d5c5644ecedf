// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A program of the workload, from its start to its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use airpath_live::clock::monotonic_ns;
use airpath_live::command::{Stream, apart};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2, write};

use crate::output::{Output, without_number};
use crate::specification;

/// Ends of the names of the files that the two outputs go into.
const OUTPUTS: [&str; 2] = ["stdout", "stderr"];
/// Length of what a matcher has not taken beyond which its program's output stays in the pipes.
const MOST_BACKLOG_BYTES: usize = 64 << 10;

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
    /// The command that is being asked whether it is ready.
    pub question: Option<Question>,
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
            question: None,
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

    /// The outputs to read from; none of them while its matcher is behind.
    pub fn sources(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let has_room = self.matcher.as_ref().is_none_or(|matcher| matcher.backlog.len() < MOST_BACKLOG_BYTES);
        let outputs = (0..).zip(&self.outputs).filter(move |_| has_room);
        outputs.filter_map(|(number, output)| Some((number, output.source()?)))
    }

    /// Takes what it has written to one of its outputs; returns what failed.
    pub fn take(&mut self, output: usize) -> Option<String> {
        let taken = self.outputs[output].take(self.matcher.is_some());
        let at_end = self.outputs.iter().all(|output| output.source().is_none());
        if let Some(matcher) = &mut self.matcher {
            matcher.look_at(&taken.lines);
            if at_end {
                matcher.close();
            }
        }
        taken.failure
    }

    /// Asks `command` whether it is ready. The answer is none until there is one that holds: of a program that has
    /// ended, to a question that came after its end.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn ask(&mut self, command: &str, mask: SigSet, interval_ns: u64) -> io::Result<Option<bool>> {
        let now_ns = monotonic_ns();
        let has_ended = self.status.is_some();
        if let Some(question) = &mut self.question
            && let Some(process) = question.process
        {
            let Some(succeeded) = success(process) else { return Ok(None) };
            question.process = None;
            question.next_ns = now_ns.saturating_add(interval_ns);
            if succeeded || question.has_ended || !has_ended {
                return Ok(Some(succeeded));
            }
        }
        if has_ended || self.question.as_ref().is_none_or(|question| question.next_ns <= now_ns) {
            let words = ["/bin/sh", "-c", command].map(Into::into);
            let streams = [Stream::Null, Stream::Null, Stream::Null];
            let process = apart::start(&words, self.environment(), &self.specification.directory, mask, streams)?;
            self.question = Some(Question { process: Some(process), has_ended, next_ns: now_ns });
        }
        Ok(None)
    }

    /// Ends what would say whether it is ready.
    pub fn stop_asking(&mut self) {
        let matcher = self.matcher.take().map(|matcher| matcher.process);
        let question = self.question.take().and_then(|question| question.process);
        for process in matcher.into_iter().chain(question) {
            let _ = killpg(process, Signal::SIGKILL);
            // What is left of it goes with this process.
            let _ = waitpid(process, Some(WaitPidFlag::WNOHANG));
        }
    }

    /// Notes its end, and that of its matcher, if they have come.
    pub fn reap(&mut self, now_ns: u64) {
        if let Some(matched) = self.matcher.as_ref().and_then(|matcher| success(matcher.process)) {
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

/// A command that says by its exit status whether a program is ready.
#[derive(Debug)]
pub struct Question {
    /// None once it has answered.
    process: Option<Pid>,
    /// True if the program had ended when it was asked.
    has_ended: bool,
    /// The time at which to ask again.
    next_ns: u64,
}

/// A program that ends with status 0 once a line of its input is the one.
#[derive(Debug)]
pub struct Matcher {
    process: Pid,
    /// None once it takes no more, or is to have no more.
    input: Option<OwnedFd>,
    /// Lines that its input had no room for.
    backlog: Vec<u8>,
    /// True if nothing comes after the backlog.
    closing: bool,
}

impl Matcher {
    fn start(words: &[String], mask: SigSet) -> io::Result<Matcher> {
        let (reader, input) = pipe2(OFlag::O_CLOEXEC)?;
        // This end alone: it must not wait for a matcher that thinks.
        fcntl(&input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let streams = [Stream::To(reader), Stream::Null, Stream::Null];
        let process = apart::start(&words, std::env::vars_os().collect(), Path::new("/"), mask, streams)?;
        Ok(Matcher { process, input: Some(input), backlog: Vec::new(), closing: false })
    }

    /// Its input, if lines wait for room there.
    pub fn awaits_room(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().filter(|_| !self.backlog.is_empty()).map(AsFd::as_fd)
    }

    /// Hands it whole lines; one that has ended needs none.
    fn look_at(&mut self, lines: &[u8]) {
        self.backlog.extend_from_slice(lines);
        self.catch_up();
    }

    /// Tells it that no line will follow.
    fn close(&mut self) {
        self.closing = true;
        self.catch_up();
    }

    /// Hands it as much of the backlog as its input has room for.
    pub fn catch_up(&mut self) {
        let mut written = 0;
        while let Some(input) = self.input.as_ref().filter(|_| written < self.backlog.len()) {
            match write(input, &self.backlog[written..]) {
                Ok(count) => written += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => self.input = None,
            }
        }
        self.backlog.drain(..written);
        if self.input.is_none() {
            self.backlog.clear();
        } else if self.closing && self.backlog.is_empty() {
            self.input = None;
        }
    }
}

/// Once a process has ended, whether its exit status was 0.
fn success(process: Pid) -> Option<bool> {
    match waitpid(process, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) => None,
        Ok(status) => Some(matches!(status, WaitStatus::Exited(_, 0))),
        Err(_) => Some(false),
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
