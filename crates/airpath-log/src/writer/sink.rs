// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A growing file that survives a full disk: what it holds always ends on a whole block.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::LogError;
use crate::place;

/// Destination of bytes; a file, or a stand-in for a broken one.
pub(crate) trait Disk: Write + Send {
    /// Shortens what was written to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// True if the written data can no longer be found under any name.
    fn vanished(&self) -> bool;
}

impl Disk for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn vanished(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }
}

/// A file that is written in whole blocks until the first failure, and never after it.
pub(crate) struct Sink {
    path: PathBuf,
    medium: Box<dyn Disk>,
    written: u64,
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
        Sink { path, medium, written: 0, spent: Duration::ZERO, failure: None }
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
        if self.failure.is_some() || block.is_empty() {
            return;
        }
        let begun = Instant::now();
        let outcome = self.medium.write_all(block);
        self.spent += begun.elapsed();
        match outcome {
            Ok(()) => self.written += block.len() as u64,
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
