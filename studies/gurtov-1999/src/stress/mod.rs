// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Stress on the machine while series are measured: one process for each processor, tied to it. They die
//! with the thread that started them, however it ends.

mod cpu;
mod disk;
mod network;
mod process;

pub use process::Stress;

use std::io;

use crate::error::{Result, unknown};

/// Work that continues until the process is killed; an error ends it.
pub(crate) trait Work {
    /// Does a little of it.
    ///
    /// # Errors
    /// The kernel's.
    fn step(&mut self) -> io::Result<()>;
}

/// A kind of stress, as `--load` names it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Its description, in one line.
    pub what: &'static str,
    /// Prepares one process's work, before the process is made.
    pub(crate) prepare: fn() -> io::Result<Box<dyn Work>>,
}

/// All kinds of stress.
pub static KINDS: &[Kind] = &[cpu::KIND, disk::KIND, network::KIND];

/// The name of no stress.
pub const NONE: &str = "none";

/// The kind called `name`; none for [`NONE`].
///
/// # Errors
/// When there is no such kind.
pub fn find(name: &str) -> Result<Option<&'static Kind>> {
    if name == NONE {
        return Ok(None);
    }
    let names = std::iter::once(NONE).chain(KINDS.iter().map(|kind| kind.name));
    KINDS.iter().find(|kind| kind.name == name).map(Some).ok_or_else(|| unknown(name, "loads", names))
}
