// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Keeping every processor busy, as other people's programs would.

use std::io;
use std::process::{Child, Command, Stdio};

/// Processes that spin, one for each processor, until this is dropped.
pub struct Busy(Vec<Child>);

impl Busy {
    /// Starts them.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn start() -> io::Result<Busy> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Whatever becomes of the benchmark, they look every moment whether it is there.
        let line = format!(
            "while kill -0 {} 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done",
            std::process::id()
        );
        let mut busy = Busy(Vec::new());
        for _ in 0..processors {
            let child = Command::new("/bin/sh").args(["-c", &line]).stdin(Stdio::null()).spawn()?;
            busy.0.push(child);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
