// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fetching what another host records, while a run goes on and once it has broken off. A process of its own does that:
//! the one that has run an engine can start no process any more, and the engine's has better things to do.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use airpath_log::files;
use airpath_scenario::{HERE, Part};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::hosts::ssh::{self, COMMAND, Connection};
use crate::hosts::stream::Copied;
use crate::hosts::transfer;
use crate::hosts::wire::{self, Frame, Word};
use crate::terminal::say;

/// Order to leave the copy as it is; the process closes its output once it does.
const STOP: &[u8] = b"stop\n";
/// Order to fetch the whole folder. A process that gets no further order does that, too: whoever gives them was killed.
const FETCH: &[u8] = b"fetch\n";
/// Order to end: everything is here, or nothing began.
const END: &[u8] = b"end\n";
/// Time in ms to stop copying: one write to a disk.
const STOPS_MS: u16 = 5_000;

/// The folder of a run on another host.
#[derive(Clone)]
pub struct Recorded {
    /// The host.
    pub part: Part,
    /// The folder there.
    pub folder: String,
    /// The folder here.
    pub into: PathBuf,
}

/// A process that copies the log of another host while it grows.
pub struct Fetcher(Child);

impl Fetcher {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(recorded: &Recorded) -> Result<Fetcher> {
        let failed = |error: io::Error| Failure::new(format!("cannot start a process: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args([COMMAND, "--fetch"]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let Recorded { part, folder, into } = recorded;
        let request = json!({ "host": part.name, "config": part.config, "folder": folder, "into": into });
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(format!("{request}\n").as_bytes()).map_err(failed)?;
        }
        Ok(Fetcher(child))
    }

    /// Makes it leave the copy alone; also of use in a process that was forked since.
    pub fn stop(&self) {
        let (Some(mut stdin), Some(stdout)) = (self.0.stdin.as_ref(), self.0.stdout.as_ref()) else { return };
        if stdin.write_all(STOP).is_ok() {
            let mut ends = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut ends, STOPS_MS);
        }
    }

    /// Lets it fetch the whole folder, if `all` says so, and waits for its end.
    pub fn finish(mut self, all: bool) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.write_all(if all { FETCH } else { END });
        }
        let _ = self.0.wait();
    }
}

/// Does what standard input says: copies the log that the first line names, until the next line.
///
/// # Errors
/// When it says something else.
pub fn run() -> Result<i32> {
    let orders = Orders;
    let Some(text) = orders.next() else { return Ok(0) };
    let wrong = |error: serde_json::Error| Failure::new(format!("this is no request: {error}"));
    let request: Value = serde_json::from_slice(&text).map_err(wrong)?;
    let word = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    let part = Part {
        name: word("host"),
        host: word("host"),
        config: serde_json::from_value(request["config"].clone()).map_err(wrong)?,
        hops: 0..0,
    };
    let recorded = Recorded { part, folder: word("folder"), into: word("into").into() };
    // What cannot be copied now is fetched at the end, when a message says why that fails.
    // An `ssh` that hangs must not hold up a run that has ended, so that the next order ends this too.
    let stdin = io::stdin();
    if let Ok(connection) = ssh::connect_for_logs(&recorded.part, Some(stdin.as_fd())) {
        let _ = copy(&recorded, connection, &orders);
    }
    loop {
        match orders.next() {
            Some(order) if order == STOP => {
                // Tells that the copy is left alone.
                let _ = nix::unistd::dup2_stdout(io::stderr());
            }
            Some(order) if order == END => return Ok(0),
            // Before the run began there is nothing to fetch.
            None if !recorded.into.parent().is_some_and(|hosts| hosts.join(HERE).join(files::MANIFEST).exists()) => {
                return Ok(0);
            }
            _ => break,
        }
    }
    let Recorded { part, folder, into } = &recorded;
    match fetch(&recorded) {
        Ok(()) => say!("airpath: what {} recorded is in {}", ssh::about(part), into.display()),
        Err(failure) => {
            say!(
                "airpath: what {} recorded is in its folder {folder}, and could not be fetched: {failure}",
                ssh::about(part)
            );
            if into.exists() {
                say!("  What came of it during the run is in {}", into.display());
            }
        }
    }
    Ok(0)
}

/// Lines of standard input.
struct Orders;

impl Orders {
    /// True if there is an order, or nobody is there to give one.
    fn is_any(&self) -> bool {
        let stdin = io::stdin();
        let mut ends = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        poll(&mut ends, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// The next one with its end of line; none at the end of the input.
    fn next(&self) -> Option<Vec<u8>> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\n") {
            if !matches!(nix::unistd::read(io::stdin(), &mut byte), Ok(1)) {
                return None;
            }
            line.push(byte[0]);
        }
        Some(line)
    }
}

/// Copies the log as it grows, until an order comes or the connection ends.
fn copy(recorded: &Recorded, mut connection: Connection, orders: &Orders) -> Result<()> {
    let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
    let copied = connection.say(&Word::Follow { folder: recorded.folder.clone() }).map_err(broke);
    let copied = copied.and_then(|()| {
        let mut copied = Copied::new(recorded.into.clone());
        let taken = take_as_it_comes(&mut connection, &mut copied, orders);
        copied.finish();
        taken
    });
    connection.close(std::time::Duration::ZERO);
    copied
}

/// Takes what comes. It never waits for the rest of a frame, so that an order is heard at once.
fn take_as_it_comes(connection: &mut Connection, copied: &mut Copied, orders: &Orders) -> Result<()> {
    let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
    let (mut waiting, mut buffer): (Vec<u8>, _) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let stdin = io::stdin();
        let mut ends = [stdin.as_fd(), connection.input.as_fd()].map(|end| PollFd::new(end, PollFlags::POLLIN));
        if poll(&mut ends, PollTimeout::NONE).is_err() {
            continue;
        }
        if orders.is_any() {
            return Ok(());
        }
        let count = connection.input.read(&mut buffer).map_err(broke)?;
        if count == 0 {
            return Ok(());
        }
        waiting.extend_from_slice(&buffer[..count]);
        let mut done = 0;
        while let Some((frame, length)) = wire::first_frame(&waiting[done..]).map_err(broke)? {
            match wire::parse(frame).map_err(|what| Failure::new(format!("the other engine sent {what}")))? {
                Frame::Chunk(bytes) => copied.take(bytes)?,
                Frame::Word(word) => match *word {
                    Word::Grown { name, from_byte, bytes } => copied.begin(&name, from_byte, bytes)?,
                    _ => return Err(Failure::new("a word came out of turn")),
                },
                _ => return Ok(()),
            }
            done += length;
        }
        waiting.drain(..done);
    }
}

fn fetch(recorded: &Recorded) -> Result<()> {
    let Recorded { part, folder, into } = recorded;
    let mut connection = ssh::connect_for_logs(part, None)?;
    let taken: Result<()> = (|| {
        let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
        connection.say(&Word::Fetch { folder: folder.clone() }).map_err(broke)?;
        let Word::Finished { files, .. } = connection.hear()? else {
            return Err(Failure::new("it did not tell what there is"));
        };
        transfer::replace(into, files, &mut || connection.hear_piece())?;
        connection.say(&Word::Taken {}).map_err(broke)?;
        match connection.hear()? {
            Word::Removed {} => Ok(()),
            _ => Err(Failure::new("it did not remove its folder")),
        }
    })();
    connection.close(ssh::PATIENCE);
    taken
}
