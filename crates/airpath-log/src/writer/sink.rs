// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A growing file that survives a full disk: what it holds always ends on a whole block.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::error::LogError;
use crate::place;

/// Destination of bytes; a file, or a stand-in for a broken one.
pub(crate) trait Disk: Write + Send {
    /// Shortens what was written to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// True if the written data can no longer be found under any name.
    fn vanished(&self) -> bool;
    /// Writes `bytes` over the beginning.
    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl Disk for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn vanished(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Whatever is written in append mode goes to the end, wherever it is meant to go.
        let flags = OFlag::from_bits_retain(fcntl(&*self, FcntlArg::F_GETFL)?);
        fcntl(&*self, FcntlArg::F_SETFL(flags - OFlag::O_APPEND))?;
        self.write_all_at(bytes, 0)
    }
}

/// A file that is written in whole blocks until the first failure, and never after it.
pub(crate) struct Sink {
    path: PathBuf,
    medium: Box<dyn Disk>,
    written: u64,
    /// Length of the parts of a block that is not yet complete.
    begun: u64,
    spent: Duration,
    failure: Option<String>,
}

impl Sink {
    /// A new file at `path`.
    pub fn create(path: PathBuf) -> Result<Sink, LogError> {
        // Append mode, so that shortening the file after a failure also moves where writing goes on.
        let file = place::create_appending(&path).map_err(|source| LogError::io("create", &path, source))?;
        // Tells others that the log is being written, for as long as this process lives; a file system without
        // locks tells nothing.
        let _ = file.try_lock();
        Ok(Sink::over(path, Box::new(file)))
    }

    pub fn over(path: PathBuf, medium: Box<dyn Disk>) -> Sink {
        Sink { path, medium, written: 0, begun: 0, spent: Duration::ZERO, failure: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Time spent on writing so far.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// Reason for an early end of writing.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes `block`, whole or not at all.
    pub fn append(&mut self, block: &[u8]) {
        self.append_part(block);
        self.complete();
    }

    /// Writes a part of a block. The block is there once it is [complete](Sink::complete).
    pub fn append_part(&mut self, part: &[u8]) {
        if self.failure.is_some() || part.is_empty() {
            return;
        }
        let start = Instant::now();
        let outcome = self.medium.write_all(part);
        self.spent += start.elapsed();
        match outcome {
            Ok(()) => self.begun += part.len() as u64,
            Err(error) => {
                // If cutting fails too, the torn block stays, and readers drop it.
                let _ = self.medium.cut(self.written);
                self.failure = Some(format!(
                    "{}; its first {} bytes are readable, the rest is missing",
                    LogError::io("write", &self.path, error),
                    self.written,
                ));
            }
        }
    }

    /// Ends a block of parts.
    pub fn complete(&mut self) {
        if self.failure.is_none() {
            self.written += std::mem::take(&mut self.begun);
        }
    }

    /// Writes `end` behind everything and then `beginning` over the beginning: what was whole without the two stays
    /// so until both are there, and if they cannot be written.
    ///
    /// # Errors
    /// The system's.
    pub fn end_as(&mut self, beginning: &[u8], end: &[u8]) -> io::Result<()> {
        let start = Instant::now();
        let outcome = self.medium.write_all(end).and_then(|()| self.medium.overwrite(beginning));
        self.spent += start.elapsed();
        outcome.inspect_err(|_| {
            let _ = self.medium.cut(self.written);
        })
    }

    /// Notices a file that was removed under our hands.
    pub fn check(&mut self) {
        if self.failure.is_none() && self.medium.vanished() {
            self.failure = Some(format!(
                "{} was removed during the run and is lost; do not touch the run's directory until it ends",
                self.path.display()
            ));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk with room for so many bytes.
    pub(crate) struct SmallDisk {
        pub room: usize,
        pub content: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut content = self.content.lock().unwrap();
            let fits = bytes.len().min(self.room - content.len());
            if fits == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            content.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Disk for SmallDisk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.content.lock().unwrap().truncate(length as usize);
            Ok(())
        }

        fn vanished(&self) -> bool {
            false
        }

        fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.content.lock().unwrap()[..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn a_block_of_parts_is_there_whole_or_not_at_all() {
        let content = Arc::new(Mutex::new(Vec::new()));
        let mut sink = Sink::over("x".into(), Box::new(SmallDisk { room: 10, content: content.clone() }));
        sink.append_part(b"aa");
        sink.append_part(b"bb");
        sink.complete();
        sink.append_part(b"cc");
        sink.append_part(b"ddddd");
        sink.complete();
        assert_eq!(content.lock().unwrap().as_slice(), b"aabb");
        assert!(sink.failure().unwrap().contains("first 4 bytes are readable"));
    }

    #[test]
    fn what_cannot_end_stays_as_it_is() {
        for (room, expected, is_ended) in [(10, &b"AAaaeeeee"[..], true), (8, b"aaaa", false)] {
            let content = Arc::new(Mutex::new(Vec::new()));
            let mut sink = Sink::over("x".into(), Box::new(SmallDisk { room, content: content.clone() }));
            sink.append(b"aaaa");
            assert_eq!(sink.end_as(b"AA", b"eeeee").is_ok(), is_ended);
            assert_eq!(content.lock().unwrap().as_slice(), expected);
        }
    }

    #[test]
    fn a_file_is_ended_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::create(folder.path().join("x")).unwrap();
        sink.append(b"aaaa");
        sink.end_as(b"AA", b"ee").unwrap();
        assert_eq!(std::fs::read(sink.path()).unwrap(), b"AAaaee");
    }

    #[test]
    fn a_full_disk_keeps_whole_blocks_and_says_so_once() {
        let content = Arc::new(Mutex::new(Vec::new()));
        let disk = SmallDisk { room: 10, content: content.clone() };
        let mut sink = Sink::over("dir/events.arrow".into(), Box::new(disk));
        for block in [b"aaaa", b"bbbb", b"cccc", b"dddd"] {
            sink.append(block);
        }
        assert_eq!(content.lock().unwrap().as_slice(), b"aaaabbbb");
        let failure = sink.failure().unwrap();
        assert!(failure.contains("dir/events.arrow") && failure.contains("free space"), "{failure}");
        assert!(failure.contains("first 8 bytes are readable"), "{failure}");
    }

    #[test]
    fn a_removed_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::create(folder.path().join("x")).unwrap();
        sink.append(b"aaaa");
        sink.check();
        assert_eq!(sink.failure(), None);
        std::fs::remove_file(sink.path()).unwrap();
        sink.check();
        assert!(sink.failure().unwrap().contains("removed during the run"));
    }
}
