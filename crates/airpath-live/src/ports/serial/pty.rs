// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Pseudo-terminals of our own.

use std::fs::{self, File};
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

use crate::error::{Attempting, LiveError, Result};

/// The master of a pseudo-terminal; a peer opens the other end. Nobody has opened that before, so that the master does
/// not look hung up.
#[derive(Debug)]
pub(super) struct Pty {
    master: File,
    terminal: PathBuf,
    link: Option<PathBuf>,
}

impl Pty {
    pub(super) fn make(link: Option<&Path>) -> Result<Self> {
        let make = || -> nix::Result<_> {
            let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let terminal = ptsname_r(&master)?;
            Ok((master, terminal))
        };
        let (master, terminal) = make().attempting(|| "make a pseudo-terminal".into())?;
        // SAFETY: the descriptor was given up by its only owner.
        let master = unsafe { File::from_raw_fd(master.into_raw_fd()) };
        let mut pty = Self { master, terminal: terminal.into(), link: None };
        if let Some(link) = link {
            pty.put_link(link)?;
        }
        Ok(pty)
    }

    fn put_link(&mut self, link: &Path) -> Result<()> {
        // What a killed run left leads to a terminal that is gone.
        if fs::read_link(link).is_ok_and(|target| target.starts_with("/dev/pts") && !target.exists()) {
            let _ = fs::remove_file(link);
        }
        symlink(&self.terminal, link).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                LiveError::Request(format!("{} exists already: choose another path, or remove it", link.display()))
            }
            _ => LiveError::Request(format!("the link {} cannot be made: {error}", link.display())),
        })?;
        self.link = Some(link.to_owned());
        Ok(())
    }

    pub(super) fn master(&self) -> &File {
        &self.master
    }

    /// Path at which a peer finds its end.
    pub(super) fn path(&self) -> &Path {
        self.link.as_deref().unwrap_or(&self.terminal)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if let Some(link) = &self.link
            && fs::read_link(link).is_ok_and(|target| target == self.terminal)
        {
            let _ = fs::remove_file(link);
        }
    }
}
