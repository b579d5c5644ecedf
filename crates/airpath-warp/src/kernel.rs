// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A kernel file: is it one that can travel in time, and where does it keep the time?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol};

use crate::error::{Attempting, Result, WarpError};

/// The kernel's variable that holds the virtual time, in ns since its boot.
const TIME_SYMBOL: &str = "time_travel_time";
/// The variable that our patch adds for entropy from a seed.
const SEED_SYMBOL: &str = "airpath_seed_state";

/// The variable that points to the task that is running.
const RUNNING_SYMBOL: &str = "cpu_tasks";
/// The first task, in which the place of the name is found by the name that it has.
const FIRST_TASK_SYMBOL: &str = "init_task";
const FIRST_TASK_NAME: &[u8] = b"swapper\0";

/// Position of the running task in a kernel's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTask {
    /// Here is the address of the task that is running.
    pub pointer_address: u64,
    /// So far behind the task's beginning is its name, of 16 bytes at most.
    pub name_offset: u64,
}

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    path: PathBuf,
    time_address: u64,
    running_task: Option<RunningTask>,
    seeded: bool,
}

impl Kernel {
    /// Looks at the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no user-mode Linux with time travel.
    pub fn open(path: &Path) -> Result<Kernel> {
        let content = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WarpError::Missing(format!(
                    "no kernel at {}; `airpath warp setup` builds one",
                    path.display()
                )));
            }
            other => other.attempting(|| format!("read the kernel {}", path.display()))?,
        };
        let path = path.canonicalize().attempting(|| format!("find {}", path.display()))?;
        Kernel::parse(&content, path)
    }

    fn parse(content: &[u8], path: PathBuf) -> Result<Kernel> {
        let refuse = |what: &str| {
            WarpError::Missing(format!("{} {what}; `airpath warp setup` builds a suitable kernel", path.display()))
        };
        let file = object::File::parse(content).map_err(|error| refuse(&format!("is not an executable ({error})")))?;
        let address = |name: &str| file.symbols().find(|one| one.name() == Ok(name)).map(|one| one.address());
        let time_address = address(TIME_SYMBOL)
            .ok_or_else(|| refuse("is not a user-mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT, or has no symbols"))?;
        let seeded = address(SEED_SYMBOL).is_some();
        Ok(Kernel { path, time_address, running_task: running_task(&file), seeded })
    }

    /// Path of the kernel.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Address, in its own memory, of the virtual time: 64 bits, in ns since its boot.
    pub fn time_address(&self) -> u64 {
        self.time_address
    }

    /// Position of the running task in its memory; none if it is not found, as in a kernel of another make.
    pub fn running_task(&self) -> Option<RunningTask> {
        self.running_task
    }

    /// True if its entropy comes from a seed, so that runs can be repeated.
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }
}

fn running_task(file: &object::File) -> Option<RunningTask> {
    let symbol = |name: &str| file.symbols().find(|one| one.name() == Ok(name));
    let first = symbol(FIRST_TASK_SYMBOL)?;
    let section = file.section_by_index(first.section_index()?).ok()?;
    let content = section.data_range(first.address(), first.size()).ok()??;
    let name_offset = content.windows(FIRST_TASK_NAME.len()).position(|bytes| bytes == FIRST_TASK_NAME)?;
    Some(RunningTask { pointer_address: symbol(RUNNING_SYMBOL)?.address(), name_offset: name_offset as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_kernel_is_refused_with_the_reason() {
        let error = Kernel::parse(b"#!/bin/sh\n", "/k".into()).unwrap_err().to_string();
        assert!(error.contains("/k is not an executable") && error.contains("warp setup"), "{error}");
        let own = fs::read("/proc/self/exe").unwrap();
        let error = Kernel::parse(&own, "/k".into()).unwrap_err().to_string();
        assert!(error.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT"), "{error}");
        let error = Kernel::open(Path::new("/nowhere/linux")).unwrap_err().to_string();
        assert!(error.contains("no kernel at /nowhere/linux"), "{error}");
    }
}
