// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Printing that never stops a run: a full disk or a closed pipe behind standard output or error
//! costs the message, not the run's exit status or its files.
//!
//! Names and messages come from other hosts and from files, too. Whatever is printed, their control characters are
//! shown as text (`\u001b`, as JSON and TOML write them): they must neither move the cursor nor give the terminal
//! commands.

use std::borrow::Cow;
use std::fmt::{self, Arguments};
use std::io::{self, Write};
use std::sync::OnceLock;

use crate::status::{DONE, UNWRITABLE};

/// The first error of writing to standard output.
static REFUSED: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to standard error, as `eprintln!` does where that can be written.
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::write_error(format_args!($($text)*)) };
}

/// Writes to standard output, as `print!` does where that can be written.
macro_rules! show {
    ($($text:tt)*) => { $crate::terminal::write_output(format_args!($($text)*)) };
}

pub(crate) use {say, show};

/// See [`say`].
pub fn write_error(text: Arguments<'_>) {
    // One call of the system, so that lines of several programs do not mix.
    let _ = io::stderr().lock().write_all(format!("{}\n", visible(&text.to_string())).as_bytes());
}

/// See [`show`].
pub fn write_output(text: Arguments<'_>) {
    if let Err(error) = io::stdout().lock().write_all(visible(&text.to_string()).as_bytes()) {
        let _ = REFUSED.set(error);
    }
}

/// `text` with its control characters, other than ends of lines and tabs, as text.
fn visible(text: &str) -> Cow<'_, str> {
    // Octets are quicker to look through than characters.
    if !text.bytes().any(may_begin_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_control() && !is_layout(character) {
            let _ = fmt::Write::write_fmt(&mut shown, format_args!("\\u{:04x}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

/// True if a control character that is to be shown may begin with `octet` in UTF-8.
fn may_begin_hidden(octet: u8) -> bool {
    const OF_U_0080: u8 = 0xc2;
    (octet.is_ascii_control() && !is_layout(char::from(octet))) || octet == OF_U_0080
}

/// A writer of text that shows control characters as [`say`] and [`show`] do, for what is too long to be one text.
pub struct Visible<W> {
    to: W,
    /// The beginning of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl<W: Write> Visible<W> {
    /// A writer to `to`.
    pub fn new(to: W) -> Visible<W> {
        Visible { to, begun: Vec::new() }
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let mut all = Cow::Borrowed(octets);
        if !self.begun.is_empty() {
            all = Cow::Owned([&std::mem::take(&mut self.begun), octets].concat());
        }
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.to.write_all(visible(chunk.valid()).as_bytes())?;
            let rest = chunk.invalid();
            let is_begun = || std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && is_begun() {
                self.begun = rest.to_vec();
            } else if !rest.is_empty() {
                self.to.write_all("\u{fffd}".as_bytes())?;
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The exit status after everything has been printed: `status`, or [`UNWRITABLE`] if standard output refused it.
/// A reader that has seen enough (`airpath profiles | head`) is no failure.
pub fn finish(status: i32) -> i32 {
    if let Err(error) = io::stdout().flush() {
        let _ = REFUSED.set(error);
    }
    match REFUSED.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say!("airpath: cannot write to standard output: {error}");
            if status == DONE { UNWRITABLE } else { status }
        }
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_text() {
        assert_eq!(visible("host `a\x1b[2Jb`:\n\tover"), "host `a\\u001b[2Jb`:\n\tover");
        assert_eq!(visible("a\r\x07\x7f\u{9b}31m é"), "a\\u000d\\u0007\\u007f\\u009b31m é");
        assert_eq!(visible("1 °, 2 µs"), "1 °, 2 µs");
        assert!(matches!(visible("Kanäle — 1 m"), Cow::Borrowed(_)));
        let document = serde_json::json!({ "name": "a\x1b\x7f\u{9b}" });
        let printed = document.to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&visible(&printed)).unwrap(), document);
    }

    #[test]
    fn a_writer_shows_them_wherever_writes_are_cut() {
        let text = "é\u{9b}1m\x1b[0m € end\n".as_bytes();
        for cut in 0..=text.len() {
            let mut shown = Vec::new();
            let mut writer = Visible::new(&mut shown);
            for part in [&text[..cut], &text[cut..]] {
                writer.write_all(part).unwrap();
            }
            assert_eq!(String::from_utf8(shown).unwrap(), "é\\u009b1m\\u001b[0m € end\n");
        }
        let mut shown = Vec::new();
        Visible::new(&mut shown).write_all(b"a\x9b\xffb").unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), "a\u{fffd}\u{fffd}b");
    }
}
