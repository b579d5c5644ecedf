// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engine at a host of later hops: the hidden command that `ssh` starts there.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airpath_clocks::identity;
use airpath_core::End;
use airpath_live::clock;
use airpath_log::Manifest;
use airpath_scenario::{HERE, Scenario};
use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::{dup2_stdin, dup2_stdout};
use serde_json::Value;

use super::launch::launch;
use crate::cli::{self, Command, ExecArgs};
use crate::error::{Failure, Result};
use crate::hosts::Patient;
use crate::hosts::channel::{Border, Channels, Join};
use crate::hosts::mouth::{PREPARATION, SILENCE};
use crate::hosts::ssh::COMMAND;
use crate::hosts::stream::Growing;
use crate::hosts::transfer::{self, Piece};
use crate::hosts::tunnel::Tunnel;
use crate::hosts::wire::{self, Frame, GREETING, PROTOCOL, Window, Word};
use crate::link::usage;
use crate::run::Report;
use crate::run::{RunRequest, calibrated, conclude, from_options, live};
use crate::status;

/// Folder of the run within that of a connection.
const RUN: &str = "run";
/// Folder of the scenario and its files.
const SENT: &str = "sent";
/// Interval between looks at a log that grows, in ms.
const LOOKS_MS: u8 = 250;
/// Time for an engine that lost its connection to end: longer than its silence, shorter than the patience of whoever
/// asks for its folder.
const ENGINES_END: Duration = Duration::from_secs(20);
/// Time for the near engine to take note of a failure.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves one run; the exit status is that of the engine.
///
/// # Errors
/// When there is nobody to serve.
pub fn run() -> Result<i32> {
    let failed = |error: io::Error| Failure::new(format!("airpath {COMMAND}: {error}; it is started by ssh"));
    let mut line = Line::of_standard_streams().map_err(failed)?;
    line.output.write_all(GREETING).map_err(failed)?;
    let clock_identity = identity::written(identity::identity());
    line.say(&Word::Hello { protocol: PROTOCOL, airpath_version: env!("CARGO_PKG_VERSION").into(), clock_identity })
        .map_err(failed)?;
    loop {
        let word = match line.hear(PREPARATION) {
            Ok(Some(Piece::Word(word))) => word,
            // Whoever connected only wanted to know who is here.
            Ok(None) => return Ok(0),
            Ok(Some(Piece::Chunk(_))) => return Err(Failure::new("a file came out of turn")),
            Err(error) => return Err(error),
        };
        match word {
            Word::Probe { number } => {
                let receive_ns = clock::realtime_ns();
                let ahead_ns = receive_ns as i64 - clock::monotonic_ns() as i64;
                let told = Word::Told { number, receive_ns, transmit_ns: clock::realtime_ns(), ahead_ns };
                line.say(&told).map_err(failed)?;
            }
            Word::Fetch { .. } | Word::Follow { .. } | Word::Setup { .. } => {
                let served = match word {
                    Word::Fetch { folder } => line.hand_over(&folder),
                    Word::Follow { folder } => line.send_as_it_grows(&folder),
                    word => line.serve(word),
                };
                return served.or_else(|failure| {
                    let _ = line.say(&Word::Failed { message: failure.to_string() });
                    Ok(failure.status())
                });
            }
            _ => return Err(Failure::new("a word came out of turn")),
        }
    }
}

/// The standard streams, taken from commands: what those print goes to standard error.
struct Line {
    input: File,
    output: File,
}

impl Line {
    fn of_standard_streams() -> io::Result<Line> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(io::stderr())?;
        Ok(Line { input, output })
    }

    fn say(&mut self, word: &Word) -> io::Result<()> {
        wire::write_frame(&mut self.output, &word.to_frame())
    }

    fn hear(&mut self, patience: Duration) -> Result<Option<Piece>> {
        let failed = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
        let mut reader = Patient::new(self.input.try_clone().map_err(failed)?, patience);
        let Some(frame) = wire::read_frame(&mut reader).map_err(failed)? else { return Ok(None) };
        match wire::parse(&frame).map_err(|what| Failure::new(format!("the other engine sent {what}")))? {
            Frame::Word(word) => Ok(Some(Piece::Word(*word))),
            Frame::Chunk(bytes) => Ok(Some(Piece::Chunk(bytes.to_vec()))),
            _ => Err(Failure::new("a packet came out of turn")),
        }
    }

    fn hear_piece(&mut self) -> Result<Piece> {
        self.hear(3 * SILENCE)?.ok_or_else(|| Failure::new("the connection ended"))
    }

    /// Sends the log of a run as it grows, until whoever asked for it ends the connection, or the folder is gone.
    fn send_as_it_grows(&mut self, folder: &str) -> Result<i32> {
        let run = known_folder(folder)?.join(RUN);
        let mut growing = Growing::default();
        loop {
            let mut ends = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
            let asked = poll(&mut ends, LOOKS_MS).map_err(|errno| Failure::new(format!("cannot wait: {errno}")))?;
            if asked > 0 {
                return Ok(0);
            }
            let output = &mut self.output;
            let looked = growing.look(&run, &mut |frame| wire::write_frame(output, frame));
            match looked {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Ok(0),
                _ if run.parent().is_none_or(|folder| !folder.exists()) => return Ok(0),
                _ => {}
            }
        }
    }

    /// Sends what a run that broke off has left, and removes it once it has come.
    fn hand_over(&mut self, folder: &str) -> Result<i32> {
        let folder = known_folder(folder)?;
        let failed = |error: io::Error| Failure::new(format!("cannot read {}: {error}", folder.display()));
        // The engine that ran may still finish its log.
        let _lock = claim(&folder, ENGINES_END).map_err(failed)?;
        let run = folder.join(RUN);
        let files = transfer::list(&run).map_err(failed)?;
        let finished = Word::Finished {
            manifest: Box::default(),
            summary: Box::default(),
            before: airpath_log::Distribution::default(),
            behind: airpath_log::Distribution::default(),
            files: files.len() as u32,
        };
        self.say(&finished).map_err(failed)?;
        for file in files {
            let output = &mut self.output;
            let mut say = |frame: &[u8]| drop(wire::write_frame(output, frame));
            transfer::send(&run.join(&file), &file.display().to_string(), &mut say).map_err(failed)?;
        }
        if matches!(self.hear_piece()?, Piece::Word(Word::Taken {})) {
            fs::remove_dir_all(&folder)
                .map_err(|error| Failure::new(format!("cannot remove {}: {error}", folder.display())))?;
            self.say(&Word::Removed {}).map_err(failed)?;
        }
        Ok(0)
    }

    /// Runs what `setup` describes.
    fn serve(&mut self, setup: Word) -> Result<i32> {
        let Word::Setup { host, number, scenario, arguments, records, files, before, behind } = setup else {
            return Err(Failure::new("no description of a run"));
        };
        let (folder, _lock) = new_folder()?;
        let prepared: Result<(RunRequest, Join, Vec<Border>)> = (|| {
            transfer::take(&folder.join(SENT), files, &mut || self.hear_piece())?;
            let request = request(&host, &scenario, arguments, records.then(|| folder.join(RUN)), &folder.join(SENT))?;
            let neighbours = [(End::Client, Some(&before)), (End::Server, behind.as_ref())];
            let borders = neighbours.into_iter().filter_map(|(end, neighbour)| Some((end, neighbour?)));
            let borders = borders.map(|(end, neighbour)| {
                let tunnel = neighbour.udp.as_ref().map(Tunnel::open).transpose()?;
                Ok(Border { end, tunnel, credit: Window::first_credit(neighbour.window) })
            });
            let borders = borders.collect::<Result<Vec<Border>>>()?;
            let told = folder.display().to_string();
            self.say(&Word::Prepared { folder: told })
                .map_err(|error| Failure::new(format!("the connection broke: {error}")))?;
            let clone = |file: &File| file.try_clone().map_err(|error| Failure::new(error.to_string()));
            let join = Join {
                host: HERE.into(),
                input: clone(&self.input)?,
                output: clone(&self.output)?,
                hops: Vec::new(),
                clocks: None,
                by_ssh: false,
                ssh_log: None,
            };
            Ok((request, join, borders))
        })();
        let (request, join, borders) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                let _ = fs::remove_dir_all(&folder);
                return Err(failure);
            }
        };
        let status = launch(request, |process, request| {
            let (mut channels, ports) = match Channels::start(std::slice::from_ref(&join), &borders, number) {
                Ok(started) => started,
                Err(failure) => return failure.status(),
            };
            let outcome = live::run(&process, request, Some((&mut channels, ports)));
            let delivered = outcome
                .and_then(|outcome| conclude::finish(request, outcome))
                .and_then(|finished| deliver(&channels, request.out.as_deref(), &finished));
            match delivered {
                Ok(()) => 0,
                Err(failure) => {
                    for channel in &channels.all {
                        channel.say(&Word::Failed { message: failure.to_string() });
                        channel.wait_for_end(FAREWELL);
                    }
                    failure.status()
                }
            }
        })?;
        // What could not be delivered stays for whoever asks for it.
        if status == 0 || !folder.join(RUN).exists() {
            let _ = fs::remove_dir_all(&folder);
        }
        Ok(status)
    }
}

/// The folder of all runs here, which is this user's alone.
fn runs_folder() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or_else(home).ok_or_else(|| Failure::new("there is no home folder on the other host"))?;
    Ok(cache.join("airpath/hosts"))
}

/// The folder of a run that the near engine names.
fn known_folder(folder: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(folder);
    if folder.parent() != Some(&runs_folder()?) || folder.file_name().is_none() {
        return Err(Failure::new(format!("{} is no folder of a run", folder.display())));
    }
    Ok(folder)
}

/// Claims `folder`, which the processes of the engine that writes there do for as long as they live; waits for them for
/// at most `patience`.
fn claim(folder: &Path, patience: Duration) -> io::Result<File> {
    let lock = File::open(folder)?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("its engine still runs")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes folders of engines that were killed before their run was set up: nobody asks for these.
fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let folder = entry.path();
        // One that is being made is not locked yet.
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|made| made.elapsed().ok());
        let is_old = age.is_some_and(|age| age > ENGINES_END);
        if is_old && !folder.join(RUN).exists() && claim(&folder, Duration::ZERO).is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// A folder for a run, with the claim to it.
fn new_folder() -> Result<(PathBuf, File)> {
    use std::os::unix::fs::DirBuilderExt;
    let runs = runs_folder()?;
    sweep(&runs);
    let folder = runs.join(format!("{}-{}", clock::realtime_ns(), std::process::id()));
    let mut builder = fs::DirBuilder::new();
    let made =
        builder.recursive(true).mode(0o700).create(folder.join(SENT)).and_then(|()| claim(&folder, Duration::ZERO));
    let lock = made.map_err(|error| {
        Failure::new(format!("cannot make the folder of the run on the other host, {}: {error}", folder.display()))
    })?;
    Ok((folder, lock))
}

/// The request for the run of this host's part.
fn request(
    host: &str,
    scenario: &str,
    mut arguments: Vec<String>,
    out: Option<PathBuf>,
    sent: &Path,
) -> Result<RunRequest> {
    let file = sent.join("scenario.toml");
    let scenario = Scenario::from_toml(scenario, &file.display().to_string()).map_err(usage)?;
    arguments.splice(0..0, ["airpath".to_owned(), "exec".to_owned()]);
    arguments.extend(["--".to_owned(), "true".to_owned()]);
    let args = match cli::parse(arguments.into_iter().map(OsString::from)) {
        Ok(cli) => match cli.command {
            Command::Exec(args) => args,
            _ => return Err(Failure::usage("these are not the options of a run")),
        },
        Err(cli::Mistake::Told(message)) => return Err(Failure::usage(message)),
        Err(cli::Mistake::Parser(error)) => return Err(Failure::usage(error.to_string())),
    };
    let ExecArgs { server, server_ready, server_timeout, server_grace, .. } = args.clone();
    let mut request = from_options::request(&args.run, scenario, Vec::new())?;
    request.server = server;
    request.server_ready = server_ready.unwrap_or_default();
    request.server_timeout = server_timeout;
    request.server_grace = server_grace;
    request.out = out;
    request.report = Report::Nothing;
    request.part_of = Some(host.to_owned());
    calibrated::apply(&mut request, &args.run)?;
    Ok(request)
}

/// Sends what came of the run to the near engine.
fn deliver(channels: &Channels, out: Option<&Path>, finished: &conclude::Finished) -> Result<()> {
    let Some(channel) = channels.all.first() else { return Err(Failure::new("there is nobody to tell")) };
    let failed = |error: io::Error| Failure::new(format!("cannot read the folder of the run: {error}"));
    let files = out.map(transfer::list).transpose().map_err(failed)?.unwrap_or_default();
    let mouth = channel.mouth()?;
    // The near engine knows the scenario, and a word has to fit into one datagram.
    let manifest = Manifest { scenario: Value::Null, scenario_toml: String::new(), ..finished.manifest.clone() };
    mouth.say(&Word::Finished {
        manifest: Box::new(serde_json::to_value(&manifest).unwrap_or(Value::Null)),
        summary: Box::new(finished.summary.to_json()),
        before: channels.transit(End::Client),
        behind: channels.transit(End::Server),
        files: files.len() as u32,
    });
    for file in &files {
        let path = out.unwrap_or(Path::new("")).join(file);
        transfer::send(&path, &file.display().to_string(), &mut |frame| mouth.send(frame)).map_err(failed)?;
    }
    match channel.hear_word(6 * SILENCE)? {
        Word::Taken {} => Ok(()),
        _ => Err(Failure::new("the near engine did not take the results")),
    }
}

const _: () = assert!(status::USAGE == 2, "ssh tells the exit status of a command line that was not understood");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_claimed_once_and_swept_when_nobody_asks_for_it() {
        let runs = tempfile::tempdir().unwrap();
        let folder = |name: &str, inner: &str| {
            let folder = runs.path().join(name);
            fs::create_dir_all(folder.join(inner)).unwrap();
            folder
        };
        let [dead, recorded, alive, new] = [("dead", SENT), ("recorded", RUN), ("alive", SENT), ("new", SENT)]
            .map(|(name, inner)| folder(name, inner));
        let lock = claim(&alive, Duration::ZERO).unwrap();
        assert!(claim(&alive, Duration::from_millis(50)).unwrap_err().to_string().contains("still runs"));
        let long_ago = std::time::SystemTime::now() - 2 * ENGINES_END;
        for folder in [&dead, &recorded, &alive] {
            File::open(folder).unwrap().set_times(fs::FileTimes::new().set_modified(long_ago)).unwrap();
        }
        sweep(runs.path());
        assert_eq!([&dead, &recorded, &alive, &new].map(|folder| folder.exists()), [false, true, true, true]);
        drop(lock);
        sweep(runs.path());
        assert!(!alive.exists());
    }
}
