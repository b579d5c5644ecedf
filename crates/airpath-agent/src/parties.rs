// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages between the ends: a file for each, put up at once or not at all, and a pipe of each end that is written
//! to when there is a new one.
//!
//! The ends know each other as parties: `client`, `client-1` and so on for the clients of users 0, 1 and so on, and
//! `server`. The first client leads.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{mkfifo, read, write};
use serde_json::Value;

use crate::specification::{End, Specification};

/// The party that settles t = 0.
pub const LEADER: &str = "client";

/// One party among the others.
#[derive(Debug)]
pub struct Parties {
    folder: PathBuf,
    own: String,
    others: Vec<String>,
    /// Pipe that the others write to; none where the folder's file system has no pipes.
    bell: Option<OwnedFd>,
}

impl Parties {
    /// The party of `specification`'s end, of user number `user` among `users`.
    pub fn new(specification: &Specification, user: usize, users: usize) -> Parties {
        let mut parties = vec![LEADER.to_string()];
        parties.extend((1..users).map(|number| format!("client-{number}")));
        let own = match specification.end {
            End::Client => parties.get(user).cloned().unwrap_or_else(|| format!("client-{user}")),
            End::Server => End::Server.name().to_string(),
        };
        if !specification.alone {
            parties.push(End::Server.name().to_string());
        }
        parties.retain(|party| *party != own);
        let path = specification.folder.join(format!("{own}.bell"));
        // Looking again and again for the other end's files would be most of what a guest in virtual time has to do.
        // The runner has made the pipe already, unless it is that of a further user.
        let _ = mkfifo(&path, Mode::from_bits_truncate(0o644));
        let bell = open(&path, OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty()).ok();
        Parties { folder: specification.folder.clone(), own, others: parties, bell }
    }

    /// The others.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// True if this one settles t = 0.
    pub fn leads(&self) -> bool {
        self.own == LEADER
    }

    /// Becomes readable when another party has said something.
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }

    /// Makes the bell unreadable again.
    pub fn hear_bell(&self) {
        if let Some(bell) = &self.bell {
            let _ = read(bell, &mut [0; 4096]);
        }
    }

    /// Tells the other parties something.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn say(&self, word: &str, content: &impl serde::Serialize) -> io::Result<()> {
        let path = self.folder.join(format!("{}.{word}", self.own));
        let fresh = path.with_added_extension("new");
        let text = serde_json::to_string(content)?;
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        for party in &self.others {
            let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            // Without anybody to hear it (ENXIO): who begins later looks for files first.
            if let Ok(bell) = open(&self.folder.join(format!("{party}.bell")), flags, Mode::empty()) {
                // Full: it rings already.
                let _ = write(&bell, b"!");
            }
        }
        Ok(())
    }

    /// Content of what another party said, if it has.
    pub fn heard(&self, word: &str, party: &str) -> Option<Value> {
        let text = fs::read(self.folder.join(format!("{party}.{word}"))).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
