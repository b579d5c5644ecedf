// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading with a limit on the wait.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A reader that gives up when nothing has come for a while.
pub struct Patient {
    file: File,
    patience: Duration,
}

impl Patient {
    /// A reader of `file`.
    pub fn new(file: File, patience: Duration) -> Patient {
        Patient { file, patience }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ends = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ends, PollTimeout::try_from(self.patience).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => self.file.read(buffer),
            Err(errno) => Err(errno.into()),
        }
    }
}
