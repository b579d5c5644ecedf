// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Serial lines and pseudo-terminals, opened and read without blocking.

mod pty;
mod spec;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::termios::{BaudRate, ControlFlags, SetArg, Termios, cfmakeraw, cfsetspeed, tcgetattr, tcsetattr};

use super::would_block;
use crate::error::{Attempting, LiveError, Result};
pub use spec::{Baud, LineSpec};

/// Maximum number of reads before the loop does other work: a line may never pause.
const READS_A_TURN: usize = 16;
/// Number of bytes that one read takes.
const READ_BYTES: usize = 4096;

/// A serial line, or the engine's end of a pseudo-terminal. Its descriptor is readable when the line has bytes, or takes
/// bytes that wait.
#[derive(Debug)]
pub struct SerialLine {
    device: Device,
    /// Name in messages.
    name: String,
    /// Modes of the terminal before.
    modes_before: Option<Termios>,
    events: Epoll,
    /// Bytes that wait for the line.
    waiting: VecDeque<u8>,
    waits_for_line: bool,
    is_watched: bool,
}

#[derive(Debug)]
enum Device {
    Terminal(Flock<File>),
    Pseudo(pty::Pty),
}

impl Device {
    fn file(&self) -> &File {
        match self {
            Self::Terminal(file) => file,
            Self::Pseudo(pty) => pty.master(),
        }
    }
}

impl SerialLine {
    /// Opens the line, raw and without flow control, at `baud` (none: at the speed that it has).
    ///
    /// # Errors
    /// When it is no terminal, is in use, or cannot be opened or set.
    pub fn open(spec: &LineSpec, baud: Option<Baud>) -> Result<Self> {
        let (device, name) = match spec {
            LineSpec::Device(path) => (Device::Terminal(open_terminal(path)?), path.display().to_string()),
            LineSpec::Pseudo { link } => {
                let pty = pty::Pty::make(link.as_deref())?;
                let name = pty.path().display().to_string();
                (Device::Pseudo(pty), name)
            }
        };
        let before = set_modes(device.file(), &name, baud.map(Baud::rate))?;
        let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).attempting(|| format!("wait for {name}"))?;
        let mut line = Self {
            modes_before: matches!(device, Device::Terminal(_)).then_some(before),
            device,
            name,
            events,
            waiting: VecDeque::new(),
            waits_for_line: false,
            is_watched: false,
        };
        line.watch(true).attempting(|| format!("wait for {}", line.name))?;
        Ok(line)
    }

    /// Name of the line in messages: the path at which a peer finds it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True for a pseudo-terminal of our own, whose other end may be closed and opened again.
    pub fn is_pseudo(&self) -> bool {
        matches!(self.device, Device::Pseudo(_))
    }

    /// The events of the line, to which others may be added: number 0 is the line's.
    pub fn events(&self) -> &Epoll {
        &self.events
    }

    /// Hands what the line has to `take`, as much as one turn allows.
    ///
    /// # Errors
    /// `BrokenPipe` when the line hung up, and the kernel's others.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        for _ in 0..READS_A_TURN {
            match self.device.file().read(&mut bytes) {
                Ok(0) => return Err(hung_up()),
                Ok(read) => take(&bytes[..read]),
                Err(error) if would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(())
    }

    /// Number of bytes that wait for the line.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Puts bytes behind those that wait for the line, which [`SerialLine::write`] writes.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
    }

    /// Forgets what waits for the line.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Writes what waits, as far as the line takes it.
    ///
    /// # Errors
    /// `BrokenPipe` when the line hung up, and the kernel's others.
    pub fn write(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let (first, _) = self.waiting.as_slices();
            match self.device.file().write(first) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
        self.watch(true)
    }

    /// Watches the line, or leaves it alone: one that hung up would wake the loop without end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(&mut self, watch: bool) -> io::Result<()> {
        let waits = !self.waiting.is_empty();
        let flags = if waits { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
        let file = self.device.file();
        match (self.is_watched, watch) {
            (false, true) => self.events.add(file, EpollEvent::new(flags, 0))?,
            (true, false) => self.events.delete(file)?,
            (true, true) if waits != self.waits_for_line => {
                self.events.modify(file, &mut EpollEvent::new(flags, 0))?;
            }
            _ => {}
        }
        (self.is_watched, self.waits_for_line) = (watch, waits);
        Ok(())
    }
}

impl AsFd for SerialLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.0.as_fd()
    }
}

impl Drop for SerialLine {
    fn drop(&mut self) {
        if let Some(modes) = &self.modes_before {
            // A line that hung up has no modes left to restore.
            let _ = tcsetattr(self.device.file(), SetArg::TCSANOW, modes);
        }
    }
}

fn open_terminal(path: &Path) -> Result<Flock<File>> {
    let shown = path.display();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(|error| match error
        .raw_os_error()
    {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::EIO) => LiveError::Request(format!(
            "{shown}: no such serial line; `ls /dev/ttyS* /dev/ttyUSB* /dev/ttyACM*` lists lines, and `pty` makes a \
                 pseudo-terminal"
        )),
        Some(libc::EACCES | libc::EPERM) => LiveError::Forbidden(format!(
            "{shown} cannot be opened ({error}): join the group that owns it, often `dialout`"
        )),
        Some(libc::EBUSY) => in_use(path, ""),
        _ => LiveError::Request(format!("{shown} cannot be opened: {error}")),
    })?;
    tcgetattr(&file).map_err(|error| {
        LiveError::Request(format!("{shown} is no terminal ({error}): give a serial line or a pseudo-terminal"))
    })?;
    if let Some(owner) = lock_file_owner(path) {
        return Err(in_use(path, &format!(" (process {owner}, by its lock file)")));
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| in_use(path, ""))
}

fn in_use(path: &Path, by: &str) -> LiveError {
    let shown = path.display();
    LiveError::Request(format!("{shown} is in use by another program{by}; `fuser {shown}` tells which"))
}

/// The live process that has locked the line as `pppd`, `minicom` and others do, by a file with its number.
fn lock_file_owner(path: &Path) -> Option<i32> {
    let name = std::fs::canonicalize(path).ok()?.strip_prefix("/dev").ok()?.to_str()?.replace('/', "_");
    let text = std::fs::read_to_string(PathBuf::from("/var/lock").join(format!("LCK..{name}"))).ok()?;
    let owner = text.trim().parse().ok()?;
    Path::new("/proc").join(text.trim()).exists().then_some(owner)
}

/// Makes a terminal raw; its modes before.
fn set_modes(file: &File, name: &str, rate: Option<BaudRate>) -> Result<Termios> {
    let before = tcgetattr(file).attempting(|| format!("read the modes of {name}"))?;
    let mut modes = before.clone();
    cfmakeraw(&mut modes);
    modes.control_flags |= ControlFlags::CLOCAL | ControlFlags::CREAD;
    modes.control_flags &= !ControlFlags::CRTSCTS;
    if let Some(rate) = rate {
        cfsetspeed(&mut modes, rate).attempting(|| format!("set the speed of {name}"))?;
    }
    // What waits unread is older than the run.
    tcsetattr(file, SetArg::TCSAFLUSH, &modes).attempting(|| format!("set the modes of {name}"))?;
    Ok(before)
}

/// The error of a line that hung up.
pub(super) fn hung_up() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the serial line hung up")
}

/// EIO is what a terminal says whose other end is closed, or whose device is gone.
fn broken(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENXIO | libc::ENODEV) => hung_up(),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
