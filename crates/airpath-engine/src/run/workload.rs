// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands at both ends: started, watched, signalled and ended.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use airpath_core::Span;
use airpath_live::command::{CommandEnd, CommandId, CommandSpec, Commands, start_failure_status};
use airpath_live::end_waits::{EndWaits, Party, Register};
use airpath_live::listening::ListenWatch;
use airpath_live::session::SessionEnd;
use airpath_live::supervise::{EngineProcess, EngineSignal};
use airpath_log::{Holds, Waits};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::error::{Failure, Result};
use crate::status;
use crate::terminal::say;

/// Time that a server's command has to end when asked to, before it is killed. On a loaded host a program needs
/// seconds to write its results.
const KILL_AFTER: Duration = Duration::from_secs(10);

/// Variable that tells a command the name of its user, where there are several.
pub const USER_VARIABLE: &str = "AIRPATH_USER";
/// Variable that tells commands the number of users, where there are several.
pub const USERS_VARIABLE: &str = "AIRPATH_USERS";
/// Variable that tells a command the number of its user, from 0.
pub const USER_INDEX_VARIABLE: &str = "AIRPATH_USER_INDEX";

/// End of a command, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself or by a signal.
    Command(CommandEnd),
    /// It could not be started; the exit status that a shell would report.
    NotStarted(i32),
    /// A signal to the run ended it before the client's command began.
    Interrupted(Signal),
}

impl Ended {
    /// The exit status that a shell would report.
    pub fn exit_status(self) -> i32 {
        match self {
            Ended::Command(end) => end.exit_status(),
            Ended::NotStarted(status) => status,
            Ended::Interrupted(signal) => 128 + signal as i32,
        }
    }
}

/// Result of starting a client's command.
#[derive(Clone, Copy, Debug)]
pub enum Started {
    /// It runs.
    Runs(CommandId),
    /// It has ended before it began.
    Ended(Ended),
}

/// One of several users, as commands are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its number, from 0.
    pub index: usize,
}

impl User {
    fn environment(&self) -> [(OsString, OsString); 2] {
        [(USER_VARIABLE.into(), self.name.clone().into()), (USER_INDEX_VARIABLE.into(), self.index.to_string().into())]
    }
}

/// The commands of one run.
pub struct Workload<'a> {
    process: &'a EngineProcess,
    commands: Commands,
    /// Additional environment of the commands.
    environment: Vec<(OsString, OsString)>,
    servers: Vec<CommandId>,
    clients: Vec<CommandId>,
    /// Error status or signal of the server's command before the client's end.
    server_failed: Option<String>,
    /// The signal by which the client's command crashed or was killed.
    client_killed: Option<String>,
    /// Processes of each end.
    register: Register,
    /// Measures how long the commands wait for a processor.
    waits: Option<EndWaits>,
}

impl<'a> Workload<'a> {
    /// No commands yet.
    pub fn new(process: &'a EngineProcess, register: Register, environment: Vec<(OsString, OsString)>) -> Workload<'a> {
        Workload {
            process,
            commands: Commands::new(process),
            environment,
            servers: Vec::new(),
            clients: Vec::new(),
            server_failed: None,
            client_killed: None,
            register,
            waits: None,
        }
    }

    /// Measures from now on how long the commands wait for a processor.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn measure_waits(&mut self) -> std::io::Result<()> {
        self.waits = Some(EndWaits::start(self.register.clone())?);
        Ok(())
    }

    /// Waits measured since; none where nothing was to be measured.
    ///
    /// # Errors
    /// When the kernel stopped telling.
    pub fn measured_waits(&mut self) -> std::io::Result<Option<(Waits, Holds)>> {
        self.waits.take().map(EndWaits::finish).transpose()
    }

    /// Error status or signal of the server's command before the client's end, if it failed.
    pub fn server_failed(&self) -> Option<&str> {
        self.server_failed.as_deref()
    }

    /// The signal by which the client's command crashed or was killed, if it was.
    pub fn client_killed(&self) -> Option<&str> {
        self.client_killed.as_deref()
    }

    /// Environment of a command of `user`.
    fn environment(&self, user: Option<&User>) -> Vec<(OsString, OsString)> {
        let of_user = user.into_iter().flat_map(User::environment);
        self.environment.iter().cloned().chain(of_user).collect()
    }

    /// Starts a server's command, that of `user` or of all users, and waits until it listens.
    ///
    /// # Errors
    /// When it ends first or does not listen in time, with what to do.
    pub fn start_server(
        &mut self,
        server: &SessionEnd,
        user: Option<&User>,
        line: &str,
        timeout: Span,
    ) -> Result<Option<Ended>> {
        let mut watch = ListenWatch::begin(server).map_err(Failure::live)?;
        let mut spec = CommandSpec::shell_line(line);
        spec.own_session = true;
        spec.environment = self.environment(user);
        let id = self.commands.start(server, spec).map_err(Failure::live)?;
        self.register.enter(id.pid(), Party::Server);
        self.servers.push(id);
        let begun = Instant::now();
        loop {
            let sockets = watch
                .new_servers()
                .map_err(|error| Failure::new(format!("cannot list the sockets of the server's end: {error}")))?;
            if !sockets.is_empty() {
                return Ok(None);
            }
            if let Some(signal) = self.wait(Duration::from_millis(1))? {
                return Ok(Some(Ended::Interrupted(signal)));
            }
            if let Some(end) = self.commands.ended(id) {
                return Err(Failure::new(format!(
                    "the server's command ended before it listened ({}): {line}\n  \
                     It runs in its own network namespace; let it listen on 0.0.0.0 or [::], and see its output above.",
                    describe(end)
                )));
            }
            if begun.elapsed() >= Duration::from_nanos(timeout.nanos()) {
                return Err(Failure::new(format!(
                    "the server's command did not listen within {timeout}: {line}\n  \
                     Increase --server-timeout, or check that it opens a TCP or UDP socket that the client can reach (not on 127.0.0.1)."
                )));
            }
        }
    }

    /// Starts a client's command, that of `user` where there are several.
    pub fn start_client(&mut self, client: &SessionEnd, user: Option<&User>, words: &[OsString]) -> Result<Started> {
        let mut spec = CommandSpec::from_words(words.iter().cloned())
            .ok_or_else(|| Failure::new("no command is given after `--`"))?;
        spec.environment = self.environment(user);
        match self.commands.start(client, spec) {
            Ok(id) => {
                self.register.enter(id.pid(), Party::Client);
                self.clients.push(id);
                Ok(Started::Runs(id))
            }
            Err(error) => {
                say!("airpath: {error}");
                Ok(Started::Ended(Ended::NotStarted(start_failure_status(&error))))
            }
        }
    }

    /// Waits until the commands of all clients have ended, passing signals on. `stopped` becomes readable
    /// if the engine's loop stops first; then there are no ends to return.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_for_clients(&mut self, started: &[Started], stopped: BorrowedFd<'_>) -> Result<Option<Vec<Ended>>> {
        loop {
            let ends = started.iter().map(|started| match started {
                Started::Runs(id) => self.commands.ended(*id).map(Ended::Command),
                Started::Ended(end) => Some(*end),
            });
            if let Some(ends) = ends.collect::<Option<Vec<Ended>>>() {
                let signal = ends.iter().find_map(|end| match end {
                    Ended::Command(end) => killed(*end),
                    _ => None,
                });
                self.client_killed = signal.map(|signal| signal.to_string());
                return Ok(Some(ends));
            }
            let mut servers = self.servers.iter().filter_map(|id| self.commands.ended(*id));
            if let Some(end) = servers.find(|end| end.exit_status() != 0) {
                self.server_failed.get_or_insert_with(|| describe(end));
            }
            let ends =
                [PollFd::new(self.process.signal_fd(), PollFlags::POLLIN), PollFd::new(stopped, PollFlags::POLLIN)];
            if wait_for(ends, PollTimeout::NONE)?[1] {
                return Ok(None);
            }
            self.hear_signals()?;
        }
    }

    /// Lets the servers' commands end: by themselves within `grace`, else by SIGTERM, else by SIGKILL. Both
    /// go to all that they have started in their sessions, which are waited for as well.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn end_servers(&mut self, grace: Span) -> Result<Vec<Option<CommandEnd>>> {
        if let Some(how) = &self.server_failed {
            say!("airpath: the server's command ended before the client's ({how})");
        }
        let steps = [
            (None, Duration::from_nanos(grace.nanos())),
            (Some(Signal::SIGTERM), KILL_AFTER),
            (Some(Signal::SIGKILL), KILL_AFTER),
        ];
        for (signal, patience) in steps {
            let live: Vec<CommandId> = self.servers.iter().copied().filter(|id| self.lives(*id)).collect();
            if let Some(signal) = signal {
                live.iter().for_each(|id| self.commands.signal_session(*id, signal));
            }
            let begun = Instant::now();
            loop {
                if !live.iter().any(|id| self.lives(*id)) {
                    return Ok(self.ends_of_servers());
                }
                let left = patience.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    break;
                }
                self.wait(left.min(Duration::from_millis(20)))?;
            }
        }
        Ok(self.ends_of_servers())
    }

    /// True if a server's command, or something that it has started in its session, still runs.
    fn lives(&self, id: CommandId) -> bool {
        self.commands.ended(id).is_none() || self.commands.session_lives(id)
    }

    fn ends_of_servers(&self) -> Vec<Option<CommandEnd>> {
        self.servers.iter().map(|id| self.commands.ended(*id)).collect()
    }

    /// Waits for a signal for at most `patience`: reaps what has ended, hands signals to the clients'
    /// commands; a signal that comes while there is none is returned.
    fn wait(&mut self, patience: Duration) -> Result<Option<Signal>> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        wait_for([PollFd::new(self.process.signal_fd(), PollFlags::POLLIN)], timeout)?;
        self.hear_signals()
    }

    fn hear_signals(&mut self) -> Result<Option<Signal>> {
        let mut orphaned = None;
        while let Some(signal) = self.process.read_signal().map_err(Failure::live)? {
            match (signal, !self.clients.is_empty()) {
                (EngineSignal::ChildEnded, _) => {
                    let waits = self.waits.as_ref();
                    let last_look = |pid| waits.into_iter().for_each(|waits| waits.reaping(pid));
                    self.commands.reap(last_look).map_err(Failure::live)?;
                }
                (EngineSignal::Forward(signal), true) => {
                    self.clients.iter().for_each(|client| self.commands.signal(*client, signal));
                }
                (EngineSignal::Forward(signal) | EngineSignal::Terminal(signal), false) => {
                    if matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT) {
                        orphaned = Some(signal);
                    }
                }
                (EngineSignal::Terminal(_), true) => {}
            }
        }
        Ok(orphaned)
    }
}

/// Waits for any of `ends`; which of them are ready.
fn wait_for<const N: usize>(mut ends: [PollFd<'_>; N], timeout: PollTimeout) -> Result<[bool; N]> {
    match poll(&mut ends, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(ends.map(|end| end.any().unwrap_or(false))),
        Err(errno) => Err(Failure::new(format!("cannot wait for signals: {errno}"))),
    }
}

/// The signal of a crash, or of a kill that no program can refuse. Others, such as SIGINT and SIGTERM,
/// are how commands are stopped.
fn killed(end: CommandEnd) -> Option<Signal> {
    use Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP};
    let CommandEnd::Killed(signal) = end else { return None };
    let of_crashes = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP];
    of_crashes.contains(&signal).then_some(signal)
}

/// End of a command, in words.
pub fn describe(end: CommandEnd) -> String {
    match end {
        CommandEnd::Exited(status) => format!("exit status {status}"),
        CommandEnd::Killed(signal) => format!("killed by {signal}"),
    }
}

const _: () = assert!(status::FAILED == airpath_live::supervise::ENGINE_FAILED_STATUS);
