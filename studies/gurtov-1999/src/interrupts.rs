// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Signals that ask for an early end.

use nix::sys::signal::{SigSet, Signal};

use crate::error::{Result, TimingError};

/// Calls `handle` from now on, on a thread of its own, with each SIGINT, SIGTERM and SIGHUP. Call this
/// before any thread is started.
///
/// # Errors
/// When the signals cannot be blocked or no thread can be started.
pub fn on_each(mut handle: impl FnMut(Signal) + Send + 'static) -> Result<()> {
    let cannot = |error: &dyn std::fmt::Display| TimingError::System(format!("cannot wait for signals: {error}"));
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    // Threads inherit the mask, so that only this one is told.
    signals.thread_block().map_err(|errno| cannot(&errno))?;
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            handle(signal);
        }
    };
    std::thread::Builder::new().name("airpath-signals".into()).spawn(wait).map(drop).map_err(|error| cannot(&error))
}
