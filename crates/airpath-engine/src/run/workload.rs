// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands at both ends: started, watched, signalled and ended.

mod lines;
mod servers;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use airpath_core::Span;
use airpath_live::command::{CommandEnd, CommandId, CommandSpec, Commands, Stream, start_failure_status};
use airpath_live::end_waits::{EndWaits, Measured, Party, Register};
use airpath_live::session::SessionEnd;
use airpath_live::supervise::{ENDING, EngineProcess, EngineSignal};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use super::lines::ActiveLines;
use super::loops::Loops;
use super::said::Said;
use crate::error::{Failure, Result};
use crate::status;
use crate::terminal::say;
pub use servers::Server;

/// Time that a server's command has to end when asked to, before it is killed. On a loaded host a program needs
/// seconds to write its results.
const KILL_AFTER: Duration = Duration::from_secs(10);
/// Ways to end a command that does not end by itself.
const BY_FORCE: [(Option<Signal>, Duration); 2] =
    [(Some(Signal::SIGTERM), KILL_AFTER), (Some(Signal::SIGKILL), KILL_AFTER)];

/// Variable that tells a command the name of its user, where there are several.
pub const USER_VARIABLE: &str = "AIRPATH_USER";
/// Variable that tells commands the number of users, where there are several.
pub const USERS_VARIABLE: &str = "AIRPATH_USERS";
/// Variable that tells a command the number of its user, from 0.
pub const USER_INDEX_VARIABLE: &str = "AIRPATH_USER_INDEX";

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time is over.
    Time,
    /// A signal asks the run to end.
    Signal,
    /// The engine's loop has stopped.
    Stopped,
}

/// End of a command, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself or by a signal.
    Command(CommandEnd),
    /// It could not be started; the exit status that a shell would report.
    NotStarted(i32),
    /// There was none.
    Idle,
    /// A signal to the run ended it before the client's command began.
    Interrupted(Signal),
}

impl Ended {
    /// The exit status that a shell would report.
    pub fn exit_status(self) -> i32 {
        match self {
            Ended::Command(end) => end.exit_status(),
            Ended::NotStarted(status) => status,
            Ended::Idle => 0,
            Ended::Interrupted(signal) => status::of_signal(signal as i32),
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

/// The link and the user that a command is of.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// Number of the link.
    pub link: usize,
    /// The user, where there are several.
    pub user: Option<&'a User>,
}

/// Failures of the commands of a link.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// Error status or signal of the server's command before the client's end, if it failed.
    pub server_failed: Option<String>,
    /// The signal by which the client's command crashed or was killed, if it was.
    pub client_killed: Option<String>,
}

/// A client's command to be started.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The end at which it runs.
    pub end: &'a SessionEnd,
    /// The link and the user that it is of.
    pub whose: Whose<'a>,
    /// The command; empty for none.
    pub words: &'a [OsString],
    /// True beside another user at the terminal: it has no standard input, and the run does not wait for its end.
    pub beside: bool,
}

/// The commands of one run.
pub struct Workload<'a> {
    process: &'a EngineProcess,
    commands: Commands,
    /// Additional environment of the commands.
    environment: Vec<(OsString, OsString)>,
    /// With the number of its link, and the name of its user, where each has one.
    servers: Vec<(CommandId, usize, Option<String>)>,
    /// Commands for whose end the run waits, and that get its signals.
    clients: Vec<CommandId>,
    /// Commands of users beside the one at the terminal: in sessions of their own, and ended with the run.
    companions: Vec<CommandId>,
    /// Names of the users of all commands of clients, where there are several.
    user_names: HashMap<CommandId, String>,
    /// Links of all commands of clients.
    links: HashMap<CommandId, usize>,
    /// Error status or signal of the server's command before the client's end, by link.
    server_failed: BTreeMap<usize, String>,
    /// The signal by which the client's command crashed or was killed, by link.
    client_killed: BTreeMap<usize, String>,
    /// Processes of each end.
    register: Register,
    /// Measures how long the commands wait for a processor.
    waits: Option<EndWaits>,
    /// Output of servers that is passed on.
    said: Vec<Said>,
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
            companions: Vec::new(),
            user_names: HashMap::new(),
            links: HashMap::new(),
            server_failed: BTreeMap::new(),
            client_killed: BTreeMap::new(),
            register,
            waits: None,
            said: Vec::new(),
        }
    }

    /// Measures from now on how long the commands of so many links wait for a processor.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn measure_waits(&mut self, links: usize) -> std::io::Result<()> {
        self.waits = Some(EndWaits::start(self.register.clone(), links)?);
        Ok(())
    }

    /// Waits measured since at each link; none where nothing was to be measured.
    ///
    /// # Errors
    /// When the kernel stopped telling.
    pub fn measured_waits(&mut self) -> std::io::Result<Option<Measured>> {
        self.waits.take().map(EndWaits::finish).transpose()
    }

    /// Failures of the commands of a link.
    pub fn failures(&self, link: usize) -> Failures {
        Failures {
            server_failed: self.server_failed.get(&link).cloned(),
            client_killed: self.client_killed.get(&link).cloned(),
        }
    }

    /// Environment of a command of `user`.
    fn environment(&self, user: Option<&User>) -> Vec<(OsString, OsString)> {
        let of_user = user.into_iter().flat_map(User::environment);
        self.environment.iter().cloned().chain(of_user).collect()
    }

    /// Starts the commands of clients, and returns what came of each.
    pub fn start_clients(&mut self, clients: &[Client<'_>]) -> Vec<Started> {
        let (mut commands, mut links) = (Vec::with_capacity(clients.len()), Vec::with_capacity(clients.len()));
        for Client { end, whose, words, beside } in clients {
            let Some(mut spec) = CommandSpec::from_words(words.iter().cloned()) else { continue };
            spec.environment = self.environment(whose.user);
            if *beside {
                spec.own_session = true;
                spec.streams[0] = Stream::Null;
            }
            commands.push((*end, spec));
            links.push(whose.link);
        }
        let register = &self.register;
        let enter = |number: usize, id: CommandId| register.enter(id.pid(), Party::Client, links[number]);
        let mut started = self.commands.start_all(commands, enter).into_iter();
        let entered = clients.iter().map(|client| {
            let started = if client.words.is_empty() { None } else { started.next() };
            started.map_or(Started::Ended(Ended::Idle), |started| self.enter(client, started))
        });
        entered.collect()
    }

    fn enter(&mut self, client: &Client<'_>, started: airpath_live::Result<CommandId>) -> Started {
        let Whose { link, user } = client.whose;
        match started {
            Ok(id) => {
                self.links.insert(id, link);
                self.user_names.extend(user.map(|user| (id, user.name.clone())));
                if client.beside {
                    self.companions.push(id)
                } else {
                    self.clients.push(id)
                }
                Started::Runs(id)
            }
            Err(error) => {
                match user {
                    Some(user) => say!("airpath: {}: {error}", user.name),
                    None => say!("airpath: {error}"),
                }
                Started::Ended(Ended::NotStarted(start_failure_status(&error)))
            }
        }
    }

    /// Waits until the commands of all clients have ended, but for those beside a user at the terminal, passing
    /// signals on. If the engine's loops stop first this returns false, and the commands of a link that is lost are
    /// ended. A line that hangs up ends the commands; without any, a run lasts until then, a signal, or the end of the
    /// servers' commands.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_for_clients(&mut self, loops: &Loops, lines: Option<&ActiveLines>) -> Result<bool> {
        let lasts_as_a_line = self.clients.is_empty() && lines.is_some();
        let mut dismissed = Dismissed::default();
        loop {
            for link in loops.take_lost() {
                let of_link = self.clients.iter().chain(&self.companions).filter(|id| self.links[*id] == link);
                dismissed.dismiss(&self.commands, of_link.copied());
            }
            if lines.is_some_and(|lines| self.hear_lines(lines)) && lasts_as_a_line {
                return Ok(true);
            }
            if lasts_as_a_line && self.servers_have_ended() {
                return Ok(true);
            }
            if !lasts_as_a_line && self.clients.iter().all(|id| self.commands.ended(*id).is_some()) {
                for id in self.clients.iter().chain(&self.companions) {
                    let Some(signal) = self.commands.ended(*id).and_then(killed) else { continue };
                    let name = self.user_names.get(id).map(|name| format!(" (user {name})"));
                    let killed = format!("{signal}{}", name.unwrap_or_default());
                    self.client_killed.entry(self.links[id]).or_insert(killed);
                }
                return Ok(true);
            }
            for (id, link, user) in &self.servers {
                let Some(end) = self.commands.ended(*id).filter(|end| end.exit_status() != 0) else { continue };
                let of_user = user.as_ref().map(|user| format!(", user {user}")).unwrap_or_default();
                self.server_failed.entry(*link).or_insert_with(|| format!("{}{of_user}", describe(end)));
            }
            let news = lines.map_or(loops.stopped(), |lines| lines.listener.as_fd());
            let ends = [self.process.signal_fd(), loops.stopped(), loops.lost(), news];
            if wait_for(ends.map(|end| PollFd::new(end, PollFlags::POLLIN)), dismissed.patience(&self.commands))?[1] {
                return Ok(false);
            }
            if self.hear_signals()?.is_some() && lasts_as_a_line {
                return Ok(true);
            }
        }
    }

    /// Waits until `news` or `stopped` is readable, or a signal comes; one that comes while no command of a client
    /// runs is returned.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_for_news(&mut self, news: BorrowedFd<'_>, stopped: BorrowedFd<'_>) -> Result<Option<Signal>> {
        let ends = [self.process.signal_fd(), news, stopped].map(|end| PollFd::new(end, PollFlags::POLLIN));
        wait_for(ends, PollTimeout::NONE)?;
        self.hear_signals()
    }

    /// Waits until `end`, until a signal asks the run to end, or until `stopped` is readable: then the engine's loop has
    /// stopped.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_until(&mut self, stopped: BorrowedFd<'_>, end: Option<Instant>) -> Result<Woken> {
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Woken::Time);
            }
            // Rounded up: the wait is no busy one.
            let timeout = left.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            });
            let ends =
                [PollFd::new(self.process.signal_fd(), PollFlags::POLLIN), PollFd::new(stopped, PollFlags::POLLIN)];
            if wait_for(ends, timeout)?[1] {
                return Ok(Woken::Stopped);
            }
            if self.hear_signals()?.is_some() {
                return Ok(Woken::Signal);
            }
        }
    }

    /// Ends the commands beside the user at the terminal, by SIGTERM, else by SIGKILL.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn end_companions(&mut self) -> Result<()> {
        self.end_sessions(&self.companions.clone(), &BY_FORCE)
    }

    /// Ends of commands that were started, and of those that were not.
    pub fn ends_of(&self, started: &[Started]) -> Vec<Ended> {
        let end = |started: &Started| match started {
            // Nothing outlives SIGKILL but what the kernel holds.
            Started::Runs(id) => {
                Ended::Command(self.commands.ended(*id).unwrap_or(CommandEnd::Killed(Signal::SIGKILL)))
            }
            Started::Ended(end) => *end,
        };
        started.iter().map(end).collect()
    }

    /// Lets the servers' commands end: by themselves within `grace`, else by SIGTERM, else by SIGKILL. Both
    /// go to all that they have started in their sessions, which are waited for as well.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn end_servers(&mut self, grace: Span) -> Result<Vec<Option<CommandEnd>>> {
        for how in self.server_failed.values() {
            say!("airpath: the server's command ended before the client's ({how})");
        }
        let by_themselves = (None, Duration::from_nanos(grace.nanos()));
        let servers: Vec<CommandId> = self.servers.iter().map(|(id, ..)| *id).collect();
        self.end_sessions(&servers, &[&[by_themselves], &BY_FORCE[..]].concat())?;
        self.said.drain(..).for_each(Said::finish);
        Ok(servers.into_iter().map(|id| self.commands.ended(id)).collect())
    }

    /// Ends commands in sessions of their own, and all that they have started there, in steps: a signal, and the time
    /// that it has to work.
    fn end_sessions(&mut self, sessions: &[CommandId], steps: &[(Option<Signal>, Duration)]) -> Result<()> {
        for (signal, patience) in steps {
            let live: Vec<CommandId> = sessions.iter().copied().filter(|id| self.lives(*id)).collect();
            if let Some(signal) = signal {
                live.iter().for_each(|id| self.commands.signal_session(*id, *signal));
            }
            let begun = Instant::now();
            loop {
                if !live.iter().any(|id| self.lives(*id)) {
                    return Ok(());
                }
                let left = patience.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    break;
                }
                self.wait(left.min(Duration::from_millis(20)))?;
            }
        }
        Ok(())
    }

    /// True if a server's command, or something that it has started in its session, still runs.
    fn lives(&self, id: CommandId) -> bool {
        self.commands.ended(id).is_none() || self.commands.session_lives(id)
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
                (EngineSignal::Forward(signal) | EngineSignal::Group(signal), false) => {
                    if ENDING.contains(&signal) {
                        orphaned = Some(signal);
                    }
                }
                (EngineSignal::Group(_), true) => {}
            }
        }
        Ok(orphaned)
    }
}

/// Commands of links that are lost, asked to end at this time.
#[derive(Default)]
struct Dismissed(Vec<(CommandId, Instant)>);

impl Dismissed {
    fn dismiss(&mut self, commands: &Commands, ids: impl Iterator<Item = CommandId>) {
        for id in ids {
            commands.signal(id, Signal::SIGTERM);
            self.0.push((id, Instant::now()));
        }
    }

    /// Kills those that have had their time, and returns how long to wait for the next one.
    fn patience(&mut self, commands: &Commands) -> PollTimeout {
        self.0.retain(|(id, since)| {
            let has_time = since.elapsed() < KILL_AFTER;
            if !has_time {
                commands.signal(*id, Signal::SIGKILL);
            }
            has_time && commands.ended(*id).is_none()
        });
        let next = self.0.iter().map(|(_, since)| KILL_AFTER.saturating_sub(since.elapsed())).min();
        // Rounded up: the wait is no busy one.
        next.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        })
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
