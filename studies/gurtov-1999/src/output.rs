// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Printing that never ends a measurement: a full disk or a closed pipe behind standard output or error
//! costs the message, not the files.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The first error of writing to standard output.
static REFUSED: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to standard error.
pub fn say(text: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes `line` over the one before on the terminal behind standard error.
pub fn say_over(line: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
}

/// Writes to standard output.
pub fn show(text: Arguments<'_>) {
    if let Err(error) = io::stdout().lock().write_fmt(text) {
        let _ = REFUSED.set(error);
    }
}

/// The exit status after everything has been printed: `status`, or 1 if standard output refused it.
/// A reader that has seen enough (`airpath timing methods | head`) is no failure.
pub fn finish(status: i32) -> i32 {
    if let Err(error) = io::stdout().flush() {
        let _ = REFUSED.set(error);
    }
    match REFUSED.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(format_args!("airpath: cannot write to standard output: {error}"));
            if status == 0 { 1 } else { status }
        }
        _ => status,
    }
}
