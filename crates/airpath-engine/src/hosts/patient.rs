// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading with a limit on the wait.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A reader that gives up when nothing has come for a while.
pub struct Patient<'a> {
    file: File,
    patience: Duration,
    /// Readable once nobody waits for the rest.
    until: Option<BorrowedFd<'a>>,
}

impl<'a> Patient<'a> {
    /// A reader of `file`.
    pub fn new(file: File, patience: Duration) -> Patient<'a> {
        Patient { file, patience, until: None }
    }

    /// Changes how long a silence may be.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The same reader, which gives up at once when `until` is readable.
    #[must_use]
    pub fn until(self, until: Option<BorrowedFd<'a>>) -> Patient<'a> {
        Patient { until, ..self }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ends = std::iter::once(self.file.as_fd()).chain(self.until);
        let mut ends: Vec<PollFd<'_>> = ends.map(|end| PollFd::new(end, PollFlags::POLLIN)).collect();
        match poll(&mut ends, PollTimeout::try_from(self.patience).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) if ends.get(1).is_some_and(|until| until.any() == Some(true)) => {
                Err(io::Error::other("nobody waits for it any more"))
            }
            Ok(_) => self.file.read(buffer),
            Err(errno) => Err(errno.into()),
        }
    }
}
