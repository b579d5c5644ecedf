//! Being asked to end a run in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::error::{Failure, Result};
use crate::terminal::finish;

/// How long after the first signal another one is a second one.
const IMPATIENT_AFTER: Duration = Duration::from_millis(300);

/// Whether a signal has asked this process to end. The first lets runs end in good order, a second
/// one ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Listens from now on. Call it before any thread is started.
    ///
    /// # Errors
    /// When the signals cannot be blocked or no thread can be started.
    pub fn listen() -> Result<Interrupt> {
        let cannot = |error: &dyn std::fmt::Display| Failure::new(format!("cannot wait for signals: {error}"));
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        // Threads inherit the mask, so that only this one is told.
        signals.thread_block().map_err(|errno| cannot(&errno))?;
        let interrupt = Interrupt::default();
        let asked = interrupt.0.clone();
        let wait = move || {
            let mut first: Option<Instant> = None;
            while let Ok(signal) = signals.wait() {
                match first {
                    None => first = Some(Instant::now()),
                    Some(first) if first.elapsed() > IMPATIENT_AFTER => {
                        std::process::exit(finish(128 + signal as i32));
                    }
                    // Whoever sends one to a process and to its group means one.
                    Some(_) => continue,
                }
                asked.store(signal as i32, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("airpath-signals".into()).spawn(wait).map_err(|error| cannot(&error))?;
        Ok(interrupt)
    }

    /// The signal that came, if any.
    pub fn asked(&self) -> Option<Signal> {
        Signal::try_from(self.0.load(Ordering::Relaxed)).ok()
    }
}
