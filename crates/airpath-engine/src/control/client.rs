// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Finding an active run, and talking to it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use airpath_warp::guest::is_guest;
use serde_json::Value;

use super::folder::{self, Folder};
use super::protocol::Request;
use crate::error::{Failure, Result};

/// Maximum time for an answer of a run.
const PATIENCE: Duration = Duration::from_secs(10);

/// An active run.
pub struct ActiveRun {
    stream: BufReader<UnixStream>,
    /// The run's description of itself.
    pub about: Value,
}

impl ActiveRun {
    /// The run of that number, if it answers.
    pub fn connect(folder: &Folder, number: u32) -> Option<ActiveRun> {
        let stream = folder.connect(number).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut run = ActiveRun { stream: BufReader::new(stream), about: Value::Null };
        // A killed run that still closed its socket has left a stale one by now, which another attempt removes.
        let stale = |_: &Failure| drop(folder.connect(number));
        run.about = run.ask(&Request::Describe {}).inspect_err(stale).ok()?;
        Some(run)
    }

    /// Asks and returns the answer.
    ///
    /// # Errors
    /// What the run says, or that it is gone.
    pub fn ask(&mut self, request: &Request) -> Result<Value> {
        let gone = |error: std::io::Error| Failure::program(format!("the run does not answer: {error}"));
        self.stream.get_mut().write_all(format!("{}\n", request.line()).as_bytes()).map_err(gone)?;
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(gone)?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| Failure::program("the run has ended"))?;
        match answer["error"]["message"].as_str() {
            None => Ok(answer),
            Some(message) if answer["error"]["kind"] == "ended" => Err(Failure::program(message)),
            Some(message) => Err(Failure::usage(message)),
        }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.about["run"].as_u64().unwrap_or_default()
    }

    /// Its folder, if it writes into one.
    pub fn folder(&self) -> Option<&str> {
        self.about["folder"].as_str()
    }

    /// True if `word` means it: its number, its folder, or the last part of that.
    fn is_meant_by(&self, word: &str) -> bool {
        let Some(folder) = self.folder().map(Path::new) else { return word == self.number().to_string() };
        let path = Path::new(word).canonicalize();
        word == self.number().to_string()
            || path.is_ok_and(|path| path == folder)
            || folder.file_name().is_some_and(|name| name == word)
    }
}

/// All runs of this user that go on; sockets that killed runs have left are removed.
pub fn runs() -> Vec<ActiveRun> {
    // In virtual time no run has a socket, and sockets of the host's runs have no listener in this kernel: they would
    // look like those of killed runs.
    if is_guest() {
        return Vec::new();
    }
    let Ok(folder) = Folder::open(&folder::path(), false) else { return Vec::new() };
    let runs =
        folder.numbers().into_iter().filter_map(|number| ActiveRun::connect(&folder, number)).collect::<Vec<_>>();
    if runs.is_empty() {
        folder.tidy();
    }
    runs
}

/// The run that `word` means, or the only one.
///
/// # Errors
/// When there is none, or it is not clear which.
pub fn find(word: Option<&str>) -> Result<ActiveRun> {
    let mut runs = runs();
    let names = |runs: &[ActiveRun]| {
        let name = |run: &ActiveRun| match run.folder() {
            Some(folder) => format!("{} ({folder})", run.number()),
            None => run.number().to_string(),
        };
        runs.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    if runs.is_empty() {
        return Err(Failure::usage(format!("no active runs; {}", advice(is_guest()))));
    }
    let Some(word) = word else {
        return match (runs.pop(), runs.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                runs.extend(last);
                Err(Failure::usage(format!("several runs are active; name one of them: {}", names(&runs))))
            }
        };
    };
    let known = names(&runs);
    let mut meant: Vec<ActiveRun> = runs.into_iter().filter(|run| run.is_meant_by(word)).collect();
    match (meant.pop(), meant.len()) {
        (Some(run), 0) => Ok(run),
        (Some(_), _) => Err(Failure::usage(format!("several runs match `{word}`; use the number of the run: {known}"))),
        (None, _) => Err(Failure::usage(format!("no active run `{word}`; active runs: {known}"))),
    }
}

/// Words on where runs that can be controlled come from, in virtual time or outside.
pub fn advice(in_virtual_time: bool) -> &'static str {
    if in_virtual_time {
        "a run in virtual time cannot be changed from outside, nor by a program in it: write [[states]] with their times \
         (`at`) in the scenario"
    } else {
        "`airpath exec` and `airpath shell` start runs, and only their owner can control them"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn in_virtual_time_states_are_named() {
        assert!(advice(true).contains("[[states]]"));
        assert!(advice(false).contains("`airpath exec`"));
    }

    #[test]
    fn the_socket_of_a_run_that_ends_while_it_is_asked_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("airpath");
        let folder = Folder::open(&path, true).unwrap();
        let listener = UnixListener::bind(path.join("1.sock")).unwrap();
        // The kernel closes the listener of a killed process, and with it what nobody has accepted.
        let dying = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(listener);
        });
        let found = ActiveRun::connect(&folder, 1).is_some();
        dying.join().unwrap();
        assert_eq!((found, folder.numbers()), (false, vec![]));
    }
}
