// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Being asked to end.

use crate::error::Result;
use crate::signals;
use crate::status::of_signal;
use crate::terminal::{finish, say};

/// From now on, when a signal asks this process to end, says what `message` has to say, and ends with
/// 128 + N as a shell reports it. Call it before any thread is started.
///
/// # Errors
/// Those of [`signals::on_each`].
pub fn on_interrupt(message: impl Fn() -> Option<String> + Send + 'static) -> Result<()> {
    signals::on_each(move |signal| {
        if let Some(message) = message() {
            say!("airpath: interrupted by {signal}: {message}");
        }
        std::process::exit(finish(of_signal(signal as i32)));
    })
}
