// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Handing on what the guest writes: it appends to a file, and this follows the file's end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;

/// Size of the pieces in which handed-on output is given back to the file system.
const GIVE_BACK_BYTES: u64 = 1 << 20;

/// A file that grows, and where its content goes.
#[derive(Debug)]
pub struct Relay<'a> {
    file: File,
    target: BorrowedFd<'a>,
    handed_on: u64,
    given_back: u64,
    /// The reader has gone: the rest goes nowhere.
    deaf: bool,
}

impl<'a> Relay<'a> {
    /// Makes the file at `path`, empty, for what goes to `target`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(path: &Path, target: BorrowedFd<'a>) -> io::Result<Relay<'a>> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Relay { file, target, handed_on: 0, given_back: 0, deaf: false })
    }

    /// Hands on what has been written since the last time.
    ///
    /// # Errors
    /// When the file cannot be read. A target that takes nothing more is no error, as for a pipe's
    /// writer that ignores SIGPIPE.
    pub fn hand_on(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 << 10];
        loop {
            let count = self.file.read_at(&mut buffer, self.handed_on)?;
            if count == 0 {
                break;
            }
            self.handed_on += count as u64;
            if !self.deaf {
                self.deaf = write_all(self.target, &buffer[..count]).is_err();
            }
        }
        if self.handed_on - self.given_back >= GIVE_BACK_BYTES {
            // Whole pages only: the guest writes its last page again when it grows.
            let end = self.handed_on / 4096 * 4096;
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            let length = (end - self.given_back) as i64;
            // A file system that cannot give it back keeps it until the end.
            let _ = fallocate(&self.file, hole, self.given_back as i64, length);
            self.given_back = end;
        }
        Ok(())
    }
}

fn write_all(target: BorrowedFd<'_>, mut bytes: &[u8]) -> nix::Result<()> {
    while !bytes.is_empty() {
        match write(target, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            // Somebody else made it non-blocking.
            Err(Errno::EAGAIN) => {
                poll(&mut [PollFd::new(target.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn every_byte_is_handed_on_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut target = tempfile::tempfile().unwrap();
        let fd = target.try_clone().unwrap();
        let mut relay = Relay::new(&path, fd.as_fd()).unwrap();
        let mut writer = File::options().append(true).open(&path).unwrap();
        let mut expected = Vec::new();
        for piece in 0..40u32 {
            let bytes: Vec<u8> = (0..100_000u32).map(|index| (index * 7 + piece) as u8).collect();
            writer.write_all(&bytes).unwrap();
            expected.extend_from_slice(&bytes);
            relay.hand_on().unwrap();
        }
        let mut content = Vec::new();
        io::Seek::rewind(&mut target).unwrap();
        target.read_to_end(&mut content).unwrap();
        assert!(content == expected);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(reader);
        let mut relay = Relay::new(&path, writer.as_fd()).unwrap();
        std::fs::write(&path, "lost").unwrap();
        relay.hand_on().unwrap();
    }
}
