// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The outputs of a program, on their way into files of bounded length.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{pipe2, read};
use serde::Serialize;

/// Most of a line that has no end yet that is kept.
const LONGEST_LINE_BYTES: usize = 65536;
/// Most that is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// One output of a program.
#[derive(Debug)]
pub struct Output {
    source: Option<OwnedFd>,
    path: PathBuf,
    target: File,
    limit_bytes: u64,
    total_bytes: u64,
    line: Vec<u8>,
}

/// The length of an output, as the record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Length {
    pub bytes: u64,
    pub cut_off: bool,
}

/// Result of a read.
#[derive(Debug, Default)]
pub struct Taken {
    /// The whole lines that ended with it, if they were asked for; the last line also if it has no end of its own.
    pub lines: Vec<u8>,
    /// It could not be written.
    pub failure: Option<String>,
}

impl Output {
    /// An output that goes into the file at `path`, and the end of the pipe that the program writes to.
    ///
    /// # Errors
    /// A file that cannot be made, or no free descriptor.
    pub fn new(path: &Path, limit_bytes: u64) -> io::Result<(Output, OwnedFd)> {
        let target = File::create(path)?;
        let (source, writer) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&source, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let path = path.to_path_buf();
        let output = Output { source: Some(source), path, target, limit_bytes, total_bytes: 0, line: Vec::new() };
        Ok((output, writer))
    }

    /// The pipe to read from, until the program has closed it.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Takes what the program has written; beyond the limit it is counted and thrown away.
    pub fn take(&mut self, wants_lines: bool) -> Taken {
        let Some(source) = &self.source else { return Taken::default() };
        let mut buffer = vec![0; PIECE_BYTES];
        let piece = match read(source, &mut buffer) {
            Err(Errno::EAGAIN | Errno::EINTR) => return Taken::default(),
            Ok(0) | Err(_) => {
                self.source = None;
                let mut lines = if wants_lines { std::mem::take(&mut self.line) } else { Vec::new() };
                if !lines.is_empty() {
                    lines.push(b'\n');
                }
                return Taken { lines, failure: None };
            }
            Ok(count) => &buffer[..count],
        };
        let room = self.limit_bytes.saturating_sub(self.total_bytes);
        let kept = &piece[..piece.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let written = if kept.is_empty() { Ok(()) } else { self.target.write_all(kept) };
        self.total_bytes += piece.len() as u64;
        Taken {
            lines: if wants_lines { whole_lines(&mut self.line, piece) } else { Vec::new() },
            failure: written.err().map(|error| format!("{}: {}", self.path.display(), without_number(&error))),
        }
    }

    /// Ends the file with a word on what is missing; returns the length of the output.
    pub fn close(&mut self) -> Length {
        let cut_off = self.total_bytes > self.limit_bytes;
        if cut_off {
            // Whoever cannot write this has been told before.
            let _ = write!(self.target, "\n[cut off here, of {} bytes]\n", self.total_bytes);
        }
        Length { bytes: self.total_bytes, cut_off }
    }
}

/// The lines that end in `piece`; `line` is the beginning of the first, and then that of the next.
fn whole_lines(line: &mut Vec<u8>, piece: &[u8]) -> Vec<u8> {
    line.extend_from_slice(piece);
    let end = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let rest = line.split_off(end);
    let lines = std::mem::replace(line, rest);
    line.drain(..line.len().saturating_sub(LONGEST_LINE_BYTES));
    lines
}

/// The reason of an error, without the number that Rust adds.
pub fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_bounded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flood.stdout");
        let (mut output, writer) = Output::new(&path, 5).unwrap();
        nix::unistd::write(&writer, b"abc").unwrap();
        assert!(output.take(false).lines.is_empty());
        nix::unistd::write(&writer, b"defgh").unwrap();
        output.take(false);
        assert!(output.source().is_some());
        drop(writer);
        output.take(false);
        assert!(output.source().is_none());
        assert_eq!(output.close(), Length { bytes: 8, cut_off: true });
        assert_eq!(std::fs::read_to_string(path).unwrap(), "abcde\n[cut off here, of 8 bytes]\n");
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        let mut line = Vec::new();
        assert_eq!(whole_lines(&mut line, b"warming up\nrea"), b"warming up\n");
        assert_eq!(whole_lines(&mut line, b"dy"), b"");
        assert_eq!(whole_lines(&mut line, b"\nmore\nand"), b"ready\nmore\n");
        assert_eq!(line, b"and");
        assert_eq!(whole_lines(&mut line, &[b'x'; 2 * LONGEST_LINE_BYTES]), b"");
        assert_eq!(line.len(), LONGEST_LINE_BYTES);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let folder = tempfile::tempdir().unwrap();
        let (mut output, writer) = Output::new(&folder.path().join("one.stdout"), 100).unwrap();
        nix::unistd::write(&writer, b"first\nlast").unwrap();
        drop(writer);
        assert_eq!(output.take(true).lines, b"first\n");
        assert_eq!(output.take(true).lines, b"last\n");
        assert!(output.source().is_none());
    }

    #[test]
    fn an_error_is_told_without_its_number() {
        assert_eq!(without_number(&io::Error::from_raw_os_error(2)), "No such file or directory");
    }
}
