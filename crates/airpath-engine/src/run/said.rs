// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Output of a command, passed on while a text is looked for in it.

use std::io::{self, PipeReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airpath_live::command::Stream;

/// Time that a command's last output has to be passed on once the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Standard output and error of a command, in which a text is looked for.
#[derive(Debug)]
pub struct Said {
    found: Arc<AtomicBool>,
    copies: Vec<JoinHandle<()>>,
}

impl Said {
    /// Begins to look for `text`, and returns the standard output and error for the command.
    ///
    /// # Errors
    /// When there is no descriptor or thread left.
    pub fn begin(text: &str) -> io::Result<(Said, [Stream; 2])> {
        let found = Arc::new(AtomicBool::new(false));
        let copy = |to: fn() -> Box<dyn Write>| -> io::Result<(JoinHandle<()>, Stream)> {
            let (reader, writer) = io::pipe()?;
            let (found, text) = (Arc::clone(&found), text.as_bytes().to_vec());
            let thread =
                thread::Builder::new().name("output".into()).spawn(move || pass_on(reader, to(), &text, &found))?;
            Ok((thread, Stream::To(writer.into())))
        };
        let (output, of_output) = copy(|| Box::new(io::stdout()))?;
        let (error, of_error) = copy(|| Box::new(io::stderr()))?;
        Ok((Said { found, copies: vec![output, error] }, [of_output, of_error]))
    }

    /// True if the text was there.
    pub fn is_found(&self) -> bool {
        self.found.load(Ordering::Acquire)
    }

    /// Waits until everything was passed on; not for long, as a process that outlives its command may keep the pipe.
    pub fn finish(self) {
        let begun = Instant::now();
        while begun.elapsed() < LAST_WORDS && !self.copies.iter().all(JoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pass_on(mut from: PipeReader, mut to: Box<dyn Write>, text: &[u8], found: &AtomicBool) {
    let mut buffer = [0; 8192];
    let mut tail: Vec<u8> = Vec::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        // A reader that is gone is no reason to stop the command.
        let _ = to.write_all(&buffer[..read]).and_then(|()| to.flush());
        if found.load(Ordering::Relaxed) {
            continue;
        }
        tail.extend_from_slice(&buffer[..read]);
        if tail.windows(text.len()).any(|window| window == text) {
            found.store(true, Ordering::Release);
        }
        // The text may have been cut by the end of the buffer.
        tail.drain(..tail.len().saturating_sub(text.len() - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_also_where_writes_cut_it() {
        let (reader, mut writer) = io::pipe().unwrap();
        let found = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&found);
        let copy = thread::spawn(move || pass_on(reader, Box::new(io::sink()), b"ready now", &seen));
        writer.write_all(b"not rea").unwrap();
        writer.write_all(b"dy").unwrap();
        assert!(!found.load(Ordering::Acquire));
        writer.write_all(b" now, listening").unwrap();
        drop(writer);
        copy.join().unwrap();
        assert!(found.load(Ordering::Acquire));
    }
}
