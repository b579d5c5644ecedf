// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A timeout submitted to an io_uring, and its completion waited for.
#![allow(unsafe_code)]

use std::io;

use io_uring::types::Timespec;
use io_uring::{IoUring, opcode};

use super::{Method, Sleep, Unavailable, Waiting};

struct Ring(IoUring);

impl Ring {
    fn wait(&mut self, span_ns: u64) -> io::Result<()> {
        let span = Timespec::new().sec(span_ns / 1_000_000_000).nsec((span_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&span).build();
        // SAFETY: the kernel reads the timespec on submission, over which it lives.
        unsafe { self.0.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.0.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if let Some(completion) = self.0.completion().next() {
                return match -completion.result() {
                    0 | libc::ETIME => Ok(()),
                    errno => Err(io::Error::from_raw_os_error(errno)),
                };
            }
        }
    }
}

impl Sleep for Ring {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        self.wait(span_ns)
    }
}

fn open() -> Result<Box<dyn Sleep>, Unavailable> {
    let because = |error: io::Error| {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "; `sysctl kernel.io_uring_disabled` says whether the system forbids it (0 allows it), and \
                 containers often filter it"
            }
            Some(libc::ENOSYS) => "; the kernel has none, or a container filters it",
            Some(libc::ENOMEM) => "; the limit on locked memory (`ulimit -l`) may be too low",
            _ => "",
        };
        format!("the kernel refuses an io_uring: {error}{hint}")
    };
    let mut ring = Ring(IoUring::new(2).map_err(because)?);
    ring.wait(0).map_err(because)?;
    Ok(Box::new(ring))
}

pub const METHOD: Method = Method {
    name: "io_uring",
    what: "a timeout in an io_uring",
    needs: "Linux 5.4, and io_uring allowed",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| open(),
};
