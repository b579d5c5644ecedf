// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Being asked to end a run in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::error::Result;
use crate::signals;
use crate::status::of_signal;
use crate::terminal::finish;

/// Time after the first signal from which another one is a second one.
const IMPATIENT_AFTER: Duration = Duration::from_millis(300);

/// Flag set by a signal that asks this process to end. The first lets runs end in good order, a second one ends
/// the process at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Listens from now on. Call it before any thread is started.
    ///
    /// # Errors
    /// Those of [`signals::on_each`].
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let asked = interrupt.0.clone();
        let mut first: Option<Instant> = None;
        signals::on_each(move |signal| {
            let since_first = first.get_or_insert_with(Instant::now).elapsed();
            if since_first > IMPATIENT_AFTER {
                std::process::exit(finish(of_signal(signal as i32)));
            }
            // Whoever sends one to a process and to its group means one: the first stays.
            let _ = asked.compare_exchange(0, signal as i32, Ordering::Relaxed, Ordering::Relaxed);
        })?;
        Ok(interrupt)
    }

    /// The signal that came, if any.
    pub fn asked(&self) -> Option<Signal> {
        Signal::try_from(self.0.load(Ordering::Relaxed)).ok()
    }
}
