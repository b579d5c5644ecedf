// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A network namespace held by a descriptor.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
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
        elsewhere(Self::unshared)?
    }

    /// A new one, in which the calling thread is from now on.
    fn unshared() -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| explain_refusal("a network namespace", errno))?;
        Self::current()
    }

    /// The same with a small table of TCP sockets of its own, where the kernel
    /// knows how (Linux 6.1 and later).
    ///
    /// # Errors
    /// Those of [`NetNamespace::create`].
    pub fn create_with_own_tables() -> Result<Self> {
        // The namespace around one decides on its table.
        static AROUND: OnceLock<Option<NetNamespace>> = OnceLock::new();
        elsewhere(|| {
            let around = AROUND.get_or_init(|| {
                let around = Self::unshared().ok()?;
                // /proc/sys/net is the caller's own.
                std::fs::write(CHILD_TABLE, CHILD_TABLE_ENTRIES).is_ok().then_some(around)
            });
            if let Some(around) = around {
                around.enter()?;
            }
            Self::unshared()
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

    /// Moves the calling thread into it.
    fn enter(&self) -> Result<()> {
        setns(&self.descriptor, CloneFlags::CLONE_NEWNET).attempting(|| "enter a network namespace".into())
    }

    /// Runs `work` on a thread that has entered the namespace. What it
    /// opens there (sockets, devices) stays of that namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn run<T, F>(&self, work: F) -> Result<T>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        elsewhere(|| {
            self.enter()?;
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

thread_local! {
    /// The network namespace to which the calling thread returns after work in others; none of a thread that must not
    /// leave its own.
    static HOME: RefCell<Option<NetNamespace>> = const { RefCell::new(None) };
}

/// Lets the calling thread itself work in other network namespaces from now on, one after the other: that spares a
/// thread for each visit. For threads that do nothing else. An ordinary user cannot return to the host's network, and
/// does not leave it.
pub(crate) fn roam() {
    HOME.set(NetNamespace::current().ok().filter(|home| home.enter().is_ok()));
}

/// Brings the thread back into its own namespace.
struct Return(Option<NetNamespace>);

impl Drop for Return {
    fn drop(&mut self) {
        let home = self.0.take();
        // What is opened in a namespace of others would be theirs.
        let is_home = home.as_ref().is_none_or(|home| home.enter().is_ok());
        assert!(is_home, "a thread cannot return to its network namespace");
        HOME.set(home);
    }
}

/// Runs `work`, which changes the network namespace of its thread, and leaves the caller in its own.
fn elsewhere<T, F>(work: F) -> Result<T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    match HOME.take() {
        None => on_helper_thread(work),
        home => {
            let _return = Return(home);
            Ok(work())
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_roams_is_at_home_between_two_visits() {
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                let Ok(other) = NetNamespace::create() else { return };
                let home = NetNamespace::current().unwrap().identity().unwrap();
                roam();
                if HOME.with(|home| home.borrow().is_none()) {
                    return;
                }
                let thread = thread::current().id();
                let seen = other.run(|| (thread::current().id(), NetNamespace::current().unwrap().identity().unwrap()));
                assert_eq!(seen.unwrap(), (thread, other.identity().unwrap()));
                assert_eq!(NetNamespace::current().unwrap().identity().unwrap(), home);
                let new = NetNamespace::create().unwrap().identity().unwrap();
                assert!(new != home && new != other.identity().unwrap());
                assert_eq!(NetNamespace::current().unwrap().identity().unwrap(), home);
            });
            there.join().unwrap();
        });
    }
}
