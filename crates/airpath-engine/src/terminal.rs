// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Printing that never stops a run: a full disk or a closed pipe behind standard output or error
//! costs the message, not the run's exit status or its files.

use std::fmt::Arguments;
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
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// See [`show`].
pub fn write_output(text: Arguments<'_>) {
    if let Err(error) = io::stdout().lock().write_fmt(text) {
        let _ = REFUSED.set(error);
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
