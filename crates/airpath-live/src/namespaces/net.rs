// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A network namespace held by a descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Attempting, Result};
use crate::refusal::explain_refusal;

/// The setting that decides on the tables of namespaces made in this one.
const CHILD_TABLE: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";

/// Enough for hundreds of connections.
const CHILD_TABLE_ENTRIES: &str = "1024";

/// A network namespace that lives as long as something holds it: this
/// descriptor, a process in it, or a socket of it.
#[derive(Debug)]
pub struct NetNamespace {
    descriptor: OwnedFd,
}

impl NetNamespace {
    /// Makes a new, empty one. The caller stays where it is.
    ///
    /// # Errors
    /// [`LiveError::Forbidden`](crate::LiveError::Forbidden) says what to
    /// change where the kernel refuses.
    pub fn create() -> Result<Self> {
        on_helper_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| explain_refusal("a network namespace", errno))?;
            Self::current()
        })?
    }

    /// The same with a small table of TCP sockets of its own, where the kernel
    /// knows how (Linux 6.1 and later).
    ///
    /// # Errors
    /// Those of [`NetNamespace::create`].
    pub fn create_with_own_tables() -> Result<Self> {
        on_helper_thread(|| {
            let new =
                || unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| explain_refusal("a network namespace", errno));
            new()?;
            // The namespace around one decides on its table, so there is one
            // more, which goes at once. /proc/sys/net is the caller's own.
            if std::fs::write(CHILD_TABLE, CHILD_TABLE_ENTRIES).is_ok() {
                new()?;
            }
            Self::current()
        })?
    }

    /// The one the calling thread is in.
    ///
    /// # Errors
    /// When /proc is not mounted.
    pub fn current() -> Result<Self> {
        let file = File::open("/proc/thread-self/ns/net")
            .attempting(|| "open /proc/thread-self/ns/net (is /proc mounted?)".into())?;
        Ok(Self { descriptor: file.into() })
    }

    /// The one at `path`, such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// The kernel's, as it is.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { descriptor: File::open(path)?.into() })
    }

    /// Device and inode, which tell it from all others.
    ///
    /// # Errors
    /// The kernel's.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let status = nix::sys::stat::fstat(&self.descriptor)?;
        Ok((status.st_dev, status.st_ino))
    }

    /// Runs `work` on a helper thread that has entered the namespace. What it
    /// opens there (sockets, devices) stays of that namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn run<T, F>(&self, work: F) -> Result<T>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        on_helper_thread(|| {
            setns(&self.descriptor, CloneFlags::CLONE_NEWNET).attempting(|| "enter a network namespace".into())?;
            Ok(work())
        })?
    }

    /// A second descriptor of the same namespace.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { descriptor: self.descriptor.try_clone()? })
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Namespaces belong to threads: a helper that ends afterwards leaves the
/// callers of this crate in theirs.
pub(super) fn on_helper_thread<T, F>(work: F) -> Result<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    thread::scope(|scope| {
        let helper = thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, work)
            .attempting(|| "start a helper thread".into())?;
        match helper.join() {
            Ok(value) => Ok(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
