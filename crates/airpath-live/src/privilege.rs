// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! May this process make namespaces? Either it holds the capabilities already
//! (root, or a run nested in another), or it enters a user namespace of its
//! own, where an ordinary user holds them.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::capability::{Capabilities, number};
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::refusal::{explain_refusal, restricting_setting};
use crate::subordinate::Mapper;

/// Source of this process's right to make namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// It held CAP_SYS_ADMIN and CAP_NET_ADMIN already.
    Privileged,
    /// It entered a user namespace; `as_root` tells whether it is uid 0 there.
    UserNamespace {
        /// uid 0 inside, or the user's own uid.
        as_root: bool,
    },
}

impl Privilege {
    /// True if the namespaces of the caller (not only those made from now on) may be configured.
    pub fn owns_current_namespaces(self) -> bool {
        self == Self::Privileged
    }

    /// One word for the manifest of a run.
    pub fn label(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::UserNamespace { as_root: false } => "user namespace",
            Self::UserNamespace { as_root: true } => "user namespace as root",
        }
    }
}

/// True if namespaces can be made and configured with the capabilities that are in force now.
///
/// # Errors
/// Only if the capabilities cannot be read.
pub fn is_privileged() -> Result<bool> {
    let held = Capabilities::current().attempting(|| "read this process's capabilities".into())?;
    Ok([number::SYS_ADMIN, number::NET_ADMIN, number::NET_RAW, number::SYS_CHROOT]
        .iter()
        .all(|capability| held.has(*capability)))
}

/// Detects privilege or enters a user namespace. Must be called while the
/// process has one thread only (a rule of the kernel). With `as_root` an
/// ordinary user becomes uid 0 of the new user namespace; otherwise the uid
/// stays what it is. Where the user has subordinate ids, they are the other users
/// and groups in it.
///
/// # Errors
/// [`LiveError::Forbidden`] names the setting that has to change.
pub fn acquire(as_root: bool) -> Result<Privilege> {
    let (uid, gid) = (geteuid(), getegid());
    if is_privileged()? && (!as_root || uid.is_root()) {
        return Ok(Privilege::Privileged);
    }
    let (inside_uid, inside_gid) = if as_root { (0, 0) } else { (uid.as_raw(), gid.as_raw()) };
    let mapper = Mapper::start((uid, gid), (inside_uid, inside_gid));
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| explain_refusal("a user namespace", errno))?;
    let mapped = mapper.map(Mapper::map).unwrap_or_default();
    if !mapped.groups {
        give_up_setgroups()?;
        fs::write("/proc/self/gid_map", format!("{inside_gid} {gid} 1")).map_err(map_refused)?;
    }
    if !mapped.users {
        fs::write("/proc/self/uid_map", format!("{inside_uid} {uid} 1")).map_err(map_refused)?;
    }
    Ok(Privilege::UserNamespace { as_root })
}

/// Lets an ordinary user map a gid.
fn give_up_setgroups() -> Result<()> {
    // An unprivileged user may map a gid only after giving up setgroups. The
    // file is absent on kernels that have no such rule.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(map_refused(error)),
        _ => Ok(()),
    }
}

/// True if the network namespace may be configured with the capabilities in force: it belongs to this process's
/// user namespace or one below.
pub(crate) fn owns_network(network: &NetNamespace) -> Result<bool> {
    // The kernel checks CAP_SYS_ADMIN over the user namespace that owns the
    // network namespace, which is just the question.
    match network.run(|| ()) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(false),
        Err(error) => Err(error),
    }
}

fn map_refused(error: io::Error) -> LiveError {
    if let Some(text) = restricting_setting(Path::new("/proc/sys")) {
        return LiveError::Forbidden(format!(
            "the user namespace was made but its ids cannot be mapped ({error}): {text}"
        ));
    }
    LiveError::system("map this user into its new user namespace", error)
}

/// True if this process is in a user namespace other than the host's, as an ordinary user's engine is.
pub(crate) fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}
