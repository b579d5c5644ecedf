// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fetching what the other host has recorded of a run that broke off. A process of its own does that: the one that
//! has run an engine can start no process any more.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use airpath_scenario::Part;
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::hosts::ssh::{self, COMMAND};
use crate::hosts::transfer;
use crate::hosts::wire::Word;
use crate::terminal::say;

/// The folder of a run on another host.
pub struct Leftovers {
    /// The host.
    pub part: Part,
    /// The folder there.
    pub folder: String,
    /// The folder here.
    pub into: PathBuf,
}

/// A process that waits for the end of a run.
pub struct Fetcher(Child);

impl Fetcher {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start() -> Result<Fetcher> {
        let failed = |error: io::Error| Failure::new(format!("cannot start a process: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args([COMMAND, "--fetch"]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map(Fetcher).map_err(failed)
    }

    /// Lets it fetch `leftovers`, if there are any, and waits for its end.
    pub fn finish(mut self, leftovers: Option<Leftovers>) {
        if let (Some(mut stdin), Some(Leftovers { part, folder, into })) = (self.0.stdin.take(), leftovers) {
            let request = json!({ "host": part.name, "config": part.config, "folder": folder, "into": into });
            let _ = stdin.write_all(request.to_string().as_bytes());
        }
        let _ = self.0.wait();
    }
}

/// Does what standard input says; nothing where that is empty.
///
/// # Errors
/// When it says something else.
pub fn run() -> Result<i32> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| Failure::new(error.to_string()))?;
    if text.is_empty() {
        return Ok(0);
    }
    let wrong = |error: serde_json::Error| Failure::new(format!("this is no request: {error}"));
    let request: Value = serde_json::from_str(&text).map_err(wrong)?;
    let word = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    let part = Part {
        name: word("host"),
        host: word("host"),
        config: serde_json::from_value(request["config"].clone()).map_err(wrong)?,
        hops: 0..0,
    };
    let leftovers = Leftovers { part, folder: word("folder"), into: word("into").into() };
    match fetch(&leftovers) {
        Ok(()) => say!("airpath: what {} recorded is in {}", ssh::about(&leftovers.part), leftovers.into.display()),
        Err(failure) => say!(
            "airpath: what {} recorded is in its folder {}, and could not be fetched: {failure}",
            ssh::about(&leftovers.part),
            leftovers.folder
        ),
    }
    Ok(0)
}

fn fetch(leftovers: &Leftovers) -> Result<()> {
    let Leftovers { part, folder, into } = leftovers;
    let mut connection = ssh::connect(part, false)?;
    let taken: Result<()> = (|| {
        let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
        connection.say(&Word::Fetch { folder: folder.clone() }).map_err(broke)?;
        let Word::Finished { files, .. } = connection.hear()? else {
            return Err(Failure::new("it did not tell what there is"));
        };
        let _ = fs::remove_dir_all(into);
        transfer::take(into, files, &mut || connection.hear_piece())?;
        connection.say(&Word::Taken {}).map_err(broke)?;
        match connection.hear()? {
            Word::Removed {} => Ok(()),
            _ => Err(Failure::new("it did not remove its folder")),
        }
    })();
    connection.close(ssh::PATIENCE);
    taken
}
