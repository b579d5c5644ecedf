// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reaching another host by the system's `ssh`, and starting the engine there. A later part of the path on this host
//! is started without `ssh`, and reached the same way.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use airpath_scenario::Part;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::interrupts::{Interrupts, Registered};
use super::patient::Patient;
use super::ssh_log::{SshLog, reason};
use super::transfer::Piece;
use super::wire::{self, Frame, PROTOCOL, STATUS_LINE, Word};
use crate::error::{Failure, Result};
use crate::terminal::say;

/// Name of the hidden command that the far engine is started by.
pub const COMMAND: &str = "remote-hop";
/// Time for the other host to answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Time for `ssh` to end where a run broke off, perhaps because nobody answers any more.
pub const SHORT_PATIENCE: Duration = Duration::from_secs(5);
/// Options of every connection: no question to a user, and an early end where nobody answers.
const OPTIONS: [&str; 5] =
    ["-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oClearAllForwardings=yes", "-oLogLevel=ERROR"];
/// Options of a connection for packets: low latency.
const FOR_PACKETS: &str = "-oIPQoS=af21";
/// Options of a connection for logs beside it: what the packets leave.
const FOR_LOGS: &str = "-oIPQoS=cs1";

/// A connection to the engine of another host.
pub struct Connection {
    /// `ssh`, under a shell that tells its exit status.
    child: Child,
    /// Registration of its end with the command, while a run is set up.
    registered: Option<Registered>,
    /// From the engine.
    pub input: File,
    /// To the engine.
    pub output: File,
    /// Messages of `ssh`, where these are to be had; it opens the file itself, so that this one stays open.
    log: Option<SshLog>,
    /// Identity of the host's clock.
    pub clock_identity: String,
}

/// Reason for a missing engine at the other end.
enum Missing {
    /// It is not there, or is another version; a copy would help.
    Engine(String),
    /// Anything else.
    Other(String),
}

/// Connects to the engine of `part`, which is copied there first where it is missing and `install` says so; a signal to
/// `interrupts` ends that.
///
/// # Errors
/// With what to do: no `ssh`, no such host, no rights, no engine, another version.
pub fn connect(part: &Part, install: bool, interrupts: &Interrupts) -> Result<Connection> {
    let start = |command: &mut Command| {
        let (child, registered) = interrupts.spawn(command)?;
        Ok((child, Some(registered)))
    };
    let mut answer = try_to_connect(part, FOR_PACKETS, None, start);
    if let (Err(Missing::Engine(_)), true) = (&answer, install) {
        install_engine(part, interrupts)?;
        answer = try_to_connect(part, FOR_PACKETS, None, start);
    }
    answer.map_err(|why| explained(why, install))
}

/// Connects to the engine of `part` to fetch its log; gives up at once when `until` is readable.
///
/// # Errors
/// As [`connect`].
pub fn connect_for_logs(part: &Part, until: Option<BorrowedFd<'_>>) -> Result<Connection> {
    let start = |command: &mut Command| Ok((command.spawn()?, None));
    try_to_connect(part, FOR_LOGS, until, start).map_err(|why| explained(why, false))
}

/// The failure for a missing engine, which `--install-engine` was to copy or not.
fn explained(why: Missing, install: bool) -> Failure {
    match why {
        Missing::Other(what) => Failure::new(what),
        Missing::Engine(what) if install => Failure::new(what),
        Missing::Engine(what) => Failure::new(format!(
            "{what}\n  Install this version there, or add --install-engine, which copies this engine to ~/.cache/airpath \
             of the host."
        )),
    }
}

/// Starts `ssh` by `start`, and connects by it.
fn try_to_connect(
    part: &Part,
    quality: &str,
    until: Option<BorrowedFd<'_>>,
    start: impl FnOnce(&mut Command) -> io::Result<(Child, Option<Registered>)>,
) -> std::result::Result<Connection, Missing> {
    if part.config.is_some() && path_of("ssh").is_none() {
        return Err(Missing::Other(format!(
            "host `{}` is reached by `ssh`, which is not on this host: install it (Debian: openssh-client)",
            part.name
        )));
    }
    let name = about(part);
    let failed = |error: io::Error| Missing::Other(format!("{name}: cannot start ssh: {error}"));
    let log = SshLog::create();
    let started = start_command(part, quality, log.as_ref()).and_then(|mut command| start(&mut command));
    let (mut child, registered) = started.map_err(failed)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Missing::Other(format!("{name}: ssh has no standard streams")));
    };
    let (input, output) = (File::from(OwnedFd::from(stdout)), File::from(OwnedFd::from(stdin)));
    let mut connection = Connection { child, registered, input, output, log, clock_identity: String::new() };
    match greet(part, &connection, until) {
        Ok(clock_identity) => {
            connection.clock_identity = clock_identity;
            Ok(connection)
        }
        Err(why) => {
            // One that hangs would outlive the run.
            connection.close(Duration::ZERO);
            Err(why)
        }
    }
}

/// Hears the engine's greeting: the identity of its host's clock, if it is of this version.
fn greet(part: &Part, connection: &Connection, until: Option<BorrowedFd<'_>>) -> std::result::Result<String, Missing> {
    let name = about(part);
    let failed = |error: io::Error| Missing::Other(format!("{name}: {error}"));
    let mut reader = Patient::new(connection.input.try_clone().map_err(failed)?, PATIENCE).until(until);
    let lost = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => Missing::Other(format!("{name}: no answer for {} s", PATIENCE.as_secs())),
        _ => Missing::Other(format!("{name}: {error}")),
    };
    if let Some(status) = wire::skip_to_greeting(&mut reader).map_err(lost)? {
        return Err(refused(part, status, connection.log.as_ref()));
    }
    let frame = wire::read_frame(&mut reader).map_err(lost)?.unwrap_or_default();
    let Ok(Frame::Word(word)) = wire::parse(&frame) else {
        return Err(Missing::Engine(format!(
            "{name}: the engine there speaks another language; it is another version"
        )));
    };
    let Word::Hello { protocol, airpath_version, clock_identity } = *word else {
        return Err(Missing::Other(format!("{name}: the engine there did not say who it is")));
    };
    let ours = env!("CARGO_PKG_VERSION");
    if protocol != PROTOCOL || airpath_version != ours {
        return Err(Missing::Engine(format!(
            "{name}: the engine there is Airpath {airpath_version} (protocol {protocol}), this is {ours} (protocol \
             {PROTOCOL}); both must be the same"
        )));
    }
    Ok(clock_identity)
}

/// Reason for the end of a connection before the engine spoke, by the exit status of `ssh` or of the shell there.
fn refused(part: &Part, status: u8, log: Option<&SshLog>) -> Missing {
    let name = about(part);
    match status {
        255 => Missing::Other(format!(
            "{name}: ssh could not connect{}\n  Test it by: {}; it must need no password",
            reason(log.map(SshLog::file)),
            test_line(part),
        )),
        126 => {
            Missing::Other(format!("{name}: the engine there may not be executed; check its mode and its file system"))
        }
        127 => match part.config.as_ref().and_then(|config| config.engine.as_deref()) {
            Some(engine) => Missing::Other(format!(
                "{name}: there is no engine at {engine}; correct `engine` in the scenario, or leave it out and add \
                 --install-engine"
            )),
            None => Missing::Engine(format!("{name}: there is no engine of Airpath")),
        },
        status if part.config.is_some() && signal_of_ssh(status).is_some() => Missing::Other(format!(
            "{name}: signal {} ended ssh on this host{}",
            signal_of_ssh(status).unwrap_or_default(),
            reason(log.map(SshLog::file)),
        )),
        2 => Missing::Engine(format!("{name}: the engine there does not know `{COMMAND}`; it is another version")),
        status => Missing::Other(format!("{name}: its engine could not be started (exit status {status})")),
    }
}

/// The signal that has ended `ssh` on this host, by its exit status as a shell tells it. An engine at the other host that
/// a signal ends has no exit status there, for which `ssh` ends with 255.
pub fn signal_of_ssh(status: u8) -> Option<u8> {
    (129..255).contains(&status).then(|| status - 128)
}

/// A line for the user's shell that tries the way to the host of `part`.
fn test_line(part: &Part) -> String {
    let Some(config) = &part.config else { return "true".into() };
    let options = config.ssh_options.iter().map(String::as_str);
    let words = ["ssh", "-oBatchMode=yes"].into_iter().chain(options).chain(["--", &config.ssh, "true"]);
    let is_plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=./@:,%+".contains(&byte));
    let words = words.map(|word| if is_plain(word) && !word.is_empty() { word.to_owned() } else { quoted(word) });
    words.collect::<Vec<_>>().join(" ")
}

/// Name of a host in messages, with the way to it.
pub fn about(part: &Part) -> String {
    let ssh = part.config.as_ref().map_or("this host", |config| &config.ssh);
    format!("host `{}` ({ssh})", part.name)
}

/// The command that starts the engine of `part`, whose exit status comes behind its output.
fn start_command(part: &Part, quality: &str, log: Option<&SshLog>) -> io::Result<Command> {
    if part.config.is_some() {
        return Ok(command(part, &start_line(part), quality, log));
    }
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!(r#""$@"; {STATUS_LINE}"#)).arg("airpath").arg(std::env::current_exe()?).arg(COMMAND);
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    Ok(command)
}

/// `ssh` to the host of `part`, whose exit status comes behind the output of `line`; what it says itself goes to `log`.
fn command(part: &Part, line: &str, quality: &str, log: Option<&SshLog>) -> Command {
    let config = part.config.as_ref();
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!(r#"ssh "$@"; {STATUS_LINE}"#)).arg("ssh").args(OPTIONS).arg(quality);
    if let Some(log) = log {
        command.arg("-E").arg(&log.path);
    }
    command.args(config.map_or(&[][..], |config| config.ssh_options.as_slice()));
    command.arg("--").arg(config.map_or("", |config| &config.ssh)).arg(format!("exec sh -c {}", quoted(line)));
    // The terminal's interrupt is for the command at the client's end.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// The folder of copied engines, in the language of the shell there.
const ENGINES: &str = r#""${XDG_CACHE_HOME:-$HOME/.cache}/airpath/engines""#;

/// The line that starts the engine.
fn start_line(part: &Part) -> String {
    let configured = part.config.as_ref().and_then(|config| config.engine.as_deref());
    match configured.map(|engine| (engine, engine.strip_prefix("~/"))) {
        Some((_, Some(inside))) => return format!("exec \"$HOME\"/{} {COMMAND}", quoted(inside)),
        Some((engine, None)) => return format!("exec {} {COMMAND}", quoted(engine)),
        None => {}
    }
    let key = build_key().unwrap_or_default();
    format!(
        "e={ENGINES}/{key}/airpath-engine; [ -x \"$e\" ] && exec \"$e\" {COMMAND}; for e in airpath-engine airpath; do \
         command -v $e >/dev/null 2>&1 && exec $e {COMMAND}; done; exit 127"
    )
}

/// Name of this build of the engine, which no other has.
fn build_key() -> io::Result<String> {
    let about = std::fs::metadata(std::env::current_exe()?)?;
    Ok(format!("{}-{}-{}", env!("CARGO_PKG_VERSION"), about.len(), about.mtime()))
}

/// Copies this engine to the host, in place of copies of other builds.
fn install_engine(part: &Part, interrupts: &Interrupts) -> Result<()> {
    let name = about(part);
    let failed = |error: io::Error| Failure::new(format!("{name}: cannot copy the engine: {error}"));
    if part.config.as_ref().is_some_and(|config| config.engine.is_some()) {
        return Err(Failure::usage(format!(
            "{name}: --install-engine chooses the place of the engine; remove `engine` from the scenario"
        )));
    }
    let (key, machine) = (build_key().map_err(failed)?, std::env::consts::ARCH);
    say!("airpath: {name}: copying the engine");
    let line = format!(
        "[ \"$(uname -s)-$(uname -m)\" = Linux-{machine} ] || {{ uname -sm >&2; exit 3; }}; umask 077; d={ENGINES}; rm -rf \
         \"$d\"; mkdir -p \"$d/{key}\" && cat > \"$d/{key}/new\" && chmod 700 \"$d/{key}/new\" && mv \"$d/{key}/new\" \
         \"$d/{key}/airpath-engine\""
    );
    let engine = File::open(std::env::current_exe().map_err(failed)?).map_err(failed)?;
    let log = SshLog::create();
    let started = interrupts.spawn(command(part, &line, FOR_LOGS, log.as_ref()).stdin(engine));
    let (child, _registered) = started.map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    let status = wire::read_frame(&mut output.stdout.as_slice()).ok().flatten();
    match status.as_deref().map(wire::parse) {
        Some(Ok(Frame::Status(0))) => Ok(()),
        Some(Ok(Frame::Status(3))) => Err(Failure::new(format!(
            "{name} is another kind of machine (above), and this engine is for Linux on {machine}: build Airpath there"
        ))),
        Some(Ok(Frame::Status(255))) | None => Err(Failure::new(format!(
            "{name}: the engine could not be copied: ssh failed{}",
            reason(log.as_ref().map(SshLog::file))
        ))),
        _ => Err(Failure::new(format!("{name}: the engine could not be copied; what the shell there says is above"))),
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The program called `name` of the search path.
fn path_of(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Connection {
    /// Says `word`.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn say(&mut self, word: &Word) -> io::Result<()> {
        wire::write_frame(&mut self.output, &word.to_frame())
    }

    /// Waits for the next word.
    ///
    /// # Errors
    /// When the other engine failed, or the connection is gone.
    pub fn hear(&mut self) -> Result<Word> {
        match self.hear_piece()? {
            Piece::Word(word) => Ok(word),
            Piece::Chunk(_) => Err(Failure::new("a file came out of turn")),
        }
    }

    /// Waits for the next word or part of a file.
    ///
    /// # Errors
    /// As [`Connection::hear`].
    pub fn hear_piece(&mut self) -> Result<Piece> {
        let failed = |error: io::Error| Failure::new(format!("the connection to the other host broke: {error}"));
        let mut reader = Patient::new(self.input.try_clone().map_err(failed)?, PATIENCE);
        let frame = wire::read_frame(&mut reader).map_err(failed)?.unwrap_or_default();
        match wire::parse(&frame).map_err(|what| Failure::new(format!("the other engine sent {what}")))? {
            Frame::Word(word) => match *word {
                Word::Failed { message } => Err(Failure::new(message)),
                word => Ok(Piece::Word(word)),
            },
            Frame::Chunk(bytes) => Ok(Piece::Chunk(bytes.to_vec())),
            Frame::Status(status) => Err(Failure::new(format!("the other engine ended (exit status {status})"))),
            Frame::Packet(_) | Frame::Credit(_) | Frame::Tally(_) => {
                Err(Failure::new("the other engine spoke out of turn"))
            }
        }
    }

    /// The file of what `ssh` says, for whoever reads it later.
    pub fn ssh_log(&self) -> io::Result<Option<File>> {
        self.log.as_ref().map(|log| log.file().try_clone()).transpose()
    }

    /// Closes the connection and waits for its end as [`Ending::wait`] does.
    pub fn close(self, patience: Duration) {
        self.hang_up().wait(patience);
    }

    /// Closes the way to the engine, which ends on that.
    pub fn hang_up(self) -> Ending {
        let Connection { child, registered, input, .. } = self;
        Ending { child, _registered: registered, input }
    }
}

/// A connection that is closed at this end.
pub struct Ending {
    child: Child,
    _registered: Option<Registered>,
    input: File,
}

impl Ending {
    /// Waits for `ssh` to end, which does so when the engine has; it is killed when that takes longer than `patience`.
    pub fn wait(self, patience: Duration) {
        let Ending { mut child, _registered, mut input } = self;
        // What the engine still says is read, as a full pipe would hold it up.
        let begun = Instant::now();
        let mut rest = vec![0; 1 << 16];
        while child.try_wait().is_ok_and(|status| status.is_none()) {
            if begun.elapsed() > patience {
                // The whole group: the shell and ssh.
                let group = nix::unistd::Pid::from_raw(child.id() as i32);
                let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
                let _ = child.wait();
                return;
            }
            let mut ends = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            let said_something = poll(&mut ends, PollTimeout::from(5_u8)).is_ok_and(|count| count > 0);
            if said_something && !input.read(&mut rest).is_ok_and(|count| count > 0) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_tests_the_way_can_be_pasted() {
        let config = |ssh: &str, options: &[&str]| {
            let config = serde_json::json!({ "ssh": ssh, "ssh_options": options });
            Part { name: "a".into(), host: "a".into(), config: serde_json::from_value(config).unwrap(), hops: 0..1 }
        };
        let line = test_line(&config("user@lab2", &["-p", "2222", "-oProxyCommand=nc %h %p"]));
        assert_eq!(line, "ssh -oBatchMode=yes -p 2222 '-oProxyCommand=nc %h %p' -- user@lab2 true");
    }

    #[test]
    fn words_of_a_shell_stay_whole() {
        let word = r#"a 'b' "$c" \d"#;
        let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
    }
}
