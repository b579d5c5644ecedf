// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The user's commands: started in an endpoint's namespaces, signalled, and
//! reaped together with every orphan of the PID namespace.
#![allow(unsafe_code)]

pub mod apart;
mod program;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id as WaitId, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, geteuid};

use crate::capability::{self, Bounds};
use crate::error::{Attempting, LiveError, Result};
use crate::session::SessionEnd;
use crate::side_by_side;
use crate::supervise::{EngineProcess, Inherited};
pub use program::Stream;
use program::{DEFAULT_PATH, Program};

/// A command to run.
#[derive(Debug)]
pub struct CommandSpec {
    /// The program; looked up on PATH unless it holds a slash.
    pub program: OsString,
    /// Its arguments, without the program itself.
    pub arguments: Vec<OsString>,
    /// Variables added to the engine's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard input, output and error.
    pub streams: [Stream; 3],
    /// Run it in a session of its own, out of reach of the terminal's signals
    /// (a server beside an interactive client).
    pub own_session: bool,
}

impl CommandSpec {
    /// `words` is the program and its arguments; everything is inherited.
    /// `None` when there is no program.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        Some(Self {
            program: words.next()?,
            arguments: words.collect(),
            environment: Vec::new(),
            streams: Default::default(),
            own_session: false,
        })
    }

    /// A line for the shell.
    pub fn shell_line(line: impl Into<OsString>) -> Self {
        Self {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), line.into()],
            environment: Vec::new(),
            streams: Default::default(),
            own_session: false,
        }
    }
}

/// Names a started command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandId(Pid);

impl CommandId {
    /// Its process id inside the run's PID namespace.
    pub fn pid(self) -> i32 {
        self.0.as_raw()
    }
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(Signal),
}

impl CommandEnd {
    /// The status a shell would report: 128 + N for signal N.
    pub fn exit_status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => 128 + signal as i32,
        }
    }
}

/// The exit status a shell would report for a command that cannot be started:
/// 127 when it is not found, 126 when it cannot be executed.
pub fn start_failure_status(error: &LiveError) -> i32 {
    match error.raw_os_error() {
        Some(libc::ENOENT) => 127,
        _ => 126,
    }
}

/// A command that only has to be spawned.
#[derive(Debug)]
struct Prepared {
    program: Program,
    entry: Entry,
    name: OsString,
}

impl Prepared {
    fn spawn(self) -> Result<Pid> {
        let Self { program, entry, name } = self;
        let pid = program.spawn(&|| entry.enter(), &|| entry.settle());
        pid.attempting(|| format!("start `{}`", name.to_string_lossy()))
    }
}

/// All commands of a run. Only the engine process (PID 1 of its namespace)
/// may hold one, for it reaps every child there is.
#[derive(Debug)]
pub struct Commands {
    inherited: Inherited,
    working_directory: Option<CString>,
    lost_directory: String,
    running: HashMap<Pid, CommandId>,
    ended: HashMap<CommandId, CommandEnd>,
}

impl Commands {
    /// Begins with no command.
    pub fn new(process: &EngineProcess) -> Self {
        let (working_directory, lost_directory) = working_directory();
        Self {
            inherited: process.inherited(),
            working_directory,
            lost_directory,
            running: HashMap::new(),
            ended: HashMap::new(),
        }
    }

    /// Starts a command in an endpoint's namespaces, as the user who started
    /// the run, with the signal mask, timer slack and CPU affinity that the
    /// run began with.
    ///
    /// # Errors
    /// See [`start_failure_status`].
    pub fn start(&mut self, endpoint: &SessionEnd, spec: CommandSpec) -> Result<CommandId> {
        let pid = self.prepare(endpoint, spec)?.spawn()?;
        Ok(self.enter(pid))
    }

    /// Starts several commands at a time, tells `started` the number of each that runs as soon as it does, and returns
    /// what came of each.
    pub fn start_all(
        &mut self,
        commands: Vec<(&SessionEnd, CommandSpec)>,
        started: impl Fn(usize, CommandId) + Sync,
    ) -> Vec<Result<CommandId>> {
        let prepared = commands.into_iter().map(|(endpoint, spec)| self.prepare(endpoint, spec)).collect();
        // Only this thread reaps: none of them is forgotten before it is entered.
        let pids = side_by_side::map(prepared, |number, prepared: Result<Prepared>| {
            let pid = prepared?.spawn()?;
            started(number, CommandId(pid));
            Ok(pid)
        });
        pids.into_iter().map(|pid| pid.map(|pid| self.enter(pid))).collect()
    }

    fn enter(&mut self, pid: Pid) -> CommandId {
        let id = CommandId(pid);
        self.running.insert(pid, id);
        id
    }

    fn prepare(&self, endpoint: &SessionEnd, spec: CommandSpec) -> Result<Prepared> {
        let CommandSpec { program: name, arguments, environment, streams, own_session } = spec;
        let mounts = endpoint.mounts().ok_or_else(|| {
            LiveError::Request(format!("`{}` cannot be started in a network of others", name.to_string_lossy()))
        })?;
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let of_link = endpoint.link().environment().map(|(name, value)| (name.into(), value.into()));
        variables.extend(of_link);
        variables.extend(search_path().map(|path| ("PATH".into(), path)));
        variables.extend(environment);
        let entry = Entry {
            network: endpoint.network().as_fd().as_raw_fd(),
            mounts: mounts.as_fd().as_raw_fd(),
            working_directory: self.working_directory.clone(),
            lost_directory: self.lost_directory.clone(),
            inherited: self.inherited,
            raise_ambient: !geteuid().is_root(),
            bounds: endpoint.bounds(),
            bounds_are_asked: endpoint.is_confined(),
            own_session,
        };
        let program = Program::new(&name, &arguments, variables, streams, self.inherited.first_own_descriptor())
            .attempting(|| format!("start `{}`", name.to_string_lossy()))?;
        Ok(Prepared { program, entry, name })
    }

    /// Reaps everything that has ended, orphans included, and returns the
    /// commands among it. Call it after [`EngineSignal::ChildEnded`]. `before` is told of each process that
    /// has ended, as long as the kernel still knows what it did.
    ///
    /// [`EngineSignal::ChildEnded`]: crate::supervise::EngineSignal::ChildEnded
    ///
    /// # Errors
    /// The kernel's.
    pub fn reap(&mut self, before: impl Fn(i32)) -> Result<Vec<(CommandId, CommandEnd)>> {
        let mut ended = Vec::new();
        loop {
            let waiting = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            if let Ok(status) = waitid(WaitId::All, waiting)
                && let Some(pid) = status.pid()
            {
                before(pid.as_raw());
            }
            let status = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(Errno::ECHILD) => return Ok(ended),
                Err(Errno::EINTR) => continue,
                other => other.attempting(|| "reap processes".into())?,
            };
            let (pid, end) = match status {
                WaitStatus::Exited(pid, status) => (pid, CommandEnd::Exited(status)),
                WaitStatus::Signaled(pid, signal, _) => (pid, CommandEnd::Killed(signal)),
                WaitStatus::StillAlive => return Ok(ended),
                _ => continue,
            };
            if let Some(id) = self.running.remove(&pid) {
                self.ended.insert(id, end);
                ended.push((id, end));
            }
        }
    }

    /// Exit of a command, once it was reaped.
    pub fn ended(&self, id: CommandId) -> Option<CommandEnd> {
        self.ended.get(&id).copied()
    }

    /// Sends a signal to everything in the session of a command that was started in one of its own:
    /// a shell that ends by SIGTERM does not hand it on to the program that it runs.
    pub fn signal_session(&self, id: CommandId, signal: Signal) {
        // ESRCH: everything in it has ended.
        let _ = kill(Pid::from_raw(-id.0.as_raw()), signal);
    }

    /// True if anything is left in the session of a command that was started in one of its own.
    pub fn session_lives(&self, id: CommandId) -> bool {
        kill(Pid::from_raw(-id.0.as_raw()), None) != Err(Errno::ESRCH)
    }

    /// Sends a signal; nothing happens when the command has ended.
    pub fn signal(&self, id: CommandId, signal: Signal) {
        if self.running.contains_key(&id.0) {
            // ESRCH: it ended just now, and reaping will tell.
            let _ = kill(id.0, signal);
        }
    }
}

/// Working directory for commands, and a message, as a line, if they cannot start there.
pub fn working_directory() -> (Option<CString>, String) {
    let (directory, why) = match std::env::current_dir() {
        Ok(path) => {
            let why = format!("cannot enter the working directory, {}", path.display());
            (CString::new(path.as_os_str().as_bytes()).ok(), why)
        }
        Err(error) => (None, format!("cannot find the working directory ({error})")),
    };
    (directory, format!("airpath: the command {why}; it starts in /\n"))
}

/// PATH with the directory of the running program at its end, so that a command finds `airpath` as
/// well. None when it is there already, cannot stand in a PATH, or cannot be seen from here.
pub fn search_path() -> Option<OsString> {
    let own = std::env::current_exe().ok()?.parent().filter(|own| own.is_dir())?.to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if directories.contains(&own) {
        return None;
    }
    directories.push(own);
    std::env::join_paths(directories).ok()
}

/// Actions of a child before it executes its program.
#[derive(Debug)]
struct Entry {
    network: RawFd,
    mounts: RawFd,
    working_directory: Option<CString>,
    /// Message if it cannot be entered; written beforehand, as a child of `fork` may not allocate.
    lost_directory: String,
    inherited: Inherited,
    raise_ambient: bool,
    bounds: Bounds,
    /// True if the command must not start without them.
    bounds_are_asked: bool,
    own_session: bool,
}

impl Entry {
    /// Enters the namespaces.
    fn enter(&self) -> io::Result<()> {
        let check = |result: libc::c_int| {
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: setns takes a descriptor, which the endpoint keeps open, and
        // a flag.
        check(unsafe { libc::setns(self.network, libc::CLONE_NEWNET) })?;
        // SAFETY: as above.
        check(unsafe { libc::setns(self.mounts, libc::CLONE_NEWNS) })
    }

    /// Becomes what the command is to be.
    fn settle(&self) -> io::Result<()> {
        // Entering a mount namespace moves to its root. A directory that has
        // vanished, or is closed to this user, is no reason to fail: most
        // commands do not care. Those that do must not be led astray in silence.
        let entered = self.working_directory.as_ref().is_some_and(|directory| {
            // SAFETY: the path is a C string that lives over the call.
            unsafe { libc::chdir(directory.as_ptr()) == 0 }
        });
        if !entered {
            let message = self.lost_directory.as_bytes();
            // SAFETY: the message lives over the call; nobody is there to be told if this fails.
            let _ = unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
        }
        if self.own_session {
            // SAFETY: no arguments.
            let _ = unsafe { libc::setsid() };
        }
        // A run nested in another may have no right to give anything up; it has nothing to give up either.
        if let Err(error) = self.bounds.apply()
            && self.bounds_are_asked
        {
            return Err(error);
        }
        if self.raise_ambient {
            capability::raise_ambient(&capability::FOR_COMMANDS)?;
        }
        self.inherited.restore()
    }
}
