// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Disturbing loads: processes of this program that use up one thing, and end with it.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::testbed::Failure;

/// Amount written before the disk is waited for, in bytes.
const WRITTEN_BYTES: usize = 8 << 20;
/// A file of this size is written over and over.
const FILE_BYTES: u64 = 256 << 20;
/// Memory limit of the group of processes, in bytes.
const GROUP_BYTES: u64 = 512 << 20;
/// Amount of it that the load takes for itself.
const TAKEN_BYTES: usize = 448 << 20;

/// Resource that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Nothing,
    /// Every processor.
    Processors,
    /// The disk that the log goes to: written and waited for without end.
    Disk,
    /// Memory: the engine shares a small group with a process that takes nearly all of it.
    Memory,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Load::Nothing => "nothing",
            Load::Processors => "cpu",
            Load::Disk => "disk",
            Load::Memory => "memory",
        })
    }
}

/// A load that goes on until it is dropped.
pub struct Running {
    children: Vec<Child>,
    group: Option<Group>,
    _folder: Option<TempDir>,
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Empty now but for this process, which leaves it.
        self.group = None;
    }
}

impl Load {
    /// Starts it.
    ///
    /// # Errors
    /// When processes, files or groups cannot be had.
    pub fn start(self) -> Result<Running, Failure> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = match self {
            Load::Nothing => return Ok(Running { children: Vec::new(), group: None, _folder: None }),
            Load::Processors => processors,
            Load::Disk | Load::Memory => 1,
        };
        // Beside the log, which the benchmark also writes to a temporary folder.
        let folder = TempDir::new()?;
        let group = if self == Load::Memory { Some(Group::enter()?) } else { None };
        let mut running = Running { children: Vec::new(), group, _folder: None };
        for _ in 0..count {
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(["--disturb", &self.to_string()])
                .arg(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            airpath_live::supervise::bind_to_this_process(&mut command, None);
            running.children.push(command.spawn()?);
        }
        running._folder = Some(folder);
        Ok(running)
    }
}

/// Is a load, until killed.
///
/// # Errors
/// When the disk refuses.
pub fn disturb(load: &str, folder: &Path) -> Result<(), Failure> {
    match load {
        "cpu" => loop {
            std::hint::spin_loop();
        },
        "disk" => write_for_ever(folder),
        "memory" => take_memory_for_ever(folder),
        other => Err(format!("there is no load `{other}`").into()),
    }
}

fn write_for_ever(folder: &Path) -> Result<(), Failure> {
    let mut file = File::create(folder.join("load"))?;
    let block = vec![7; WRITTEN_BYTES];
    loop {
        file.rewind()?;
        while file.stream_position()? < FILE_BYTES {
            file.write_all(&block)?;
            file.sync_data()?;
        }
    }
}

/// Holds most of the group's memory and reads a file larger than the rest, so that pages are needed all
/// the time.
fn take_memory_for_ever(folder: &Path) -> Result<(), Failure> {
    // If memory runs out after all, this goes first.
    fs::write("/proc/self/oom_score_adj", "1000")?;
    let path = folder.join("load");
    let mut file = File::create_new(&path)?;
    let mut block = vec![7; WRITTEN_BYTES];
    while file.stream_position()? < FILE_BYTES {
        file.write_all(&block)?;
    }
    file.sync_data()?;
    let mut taken = vec![0_u8; TAKEN_BYTES];
    let mut file = File::open(&path)?;
    loop {
        taken.chunks_mut(4096).for_each(|page| page[0] = page[0].wrapping_add(1));
        std::hint::black_box(&taken);
        file.rewind()?;
        while file.read(&mut block)? > 0 {}
    }
}

/// A group of processes with little memory, in which this process is for a while.
struct Group {
    folder: PathBuf,
    parent: PathBuf,
}

impl Group {
    fn enter() -> Result<Group, Failure> {
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        let own = memberships.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            (fields.next()? == "memory").then(|| fields.next().unwrap_or("/").trim_start_matches('/').to_owned())
        });
        let own = own.ok_or("there is no memory controller of cgroup v1 here")?;
        let parent = Path::new("/sys/fs/cgroup/memory").join(own);
        let folder = parent.join(format!("airpath-bench-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let group = Group { folder, parent };
        fs::write(group.folder.join("memory.limit_in_bytes"), GROUP_BYTES.to_string())?;
        fs::write(group.folder.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.parent.join("cgroup.procs"), std::process::id().to_string());
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("airpath-bench: cannot remove {}: {error}", self.folder.display());
        }
    }
}
