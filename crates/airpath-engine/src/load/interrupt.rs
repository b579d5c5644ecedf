//! Being asked to end.

use nix::sys::signal::{SigSet, Signal};

use crate::error::{Failure, Result};
use crate::terminal::{finish, say};

/// From now on, when a signal asks this process to end, says what `message` has to say, and ends with
/// 128 + N as a shell reports it. Call it before any thread is started.
///
/// # Errors
/// When the signals cannot be blocked or no thread can be started.
pub fn on_interrupt(message: impl Fn() -> Option<String> + Send + 'static) -> Result<()> {
    let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    // Threads inherit the mask, so that only this one is told.
    signals.thread_block().map_err(|errno| cannot(&errno))?;
    let wait = move || {
        if let Ok(signal) = signals.wait() {
            if let Some(message) = message() {
                say!("airpath: interrupted by {signal}: {message}");
            }
            std::process::exit(finish(128 + signal as i32));
        }
    };
    std::thread::Builder::new().name("airpath-signals".into()).spawn(wait).map(drop).map_err(|error| cannot(&error))
}
