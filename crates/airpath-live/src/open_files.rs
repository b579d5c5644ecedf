// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limit on open files: a run of many users needs more than the usual 1024.

use std::os::fd::{AsFd, OwnedFd};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::LiveError;

/// Limit in force, and the one to which it may be raised.
pub type Limits = (u64, u64);

/// Descriptors that a user needs once its link is there: captures, sockets that watch its interfaces and its TCP.
const OF_A_USER: usize = 8;
/// Descriptors that a user takes altogether: those, its namespaces, and its files.
const OF_A_USER_IN_ALL: usize = 24;
/// Descriptors that a run needs beside those of its users.
const OF_A_RUN: usize = 64;
/// The smallest limit that is advised.
const LEAST_ADVICE: usize = 16_384;

/// Those of this process.
pub fn limits() -> Option<Limits> {
    getrlimit(Resource::RLIMIT_NOFILE).ok()
}

/// Sets them. Makes one system call and nothing else, so that it may run between `fork` and `execve`.
///
/// # Errors
/// When more is asked for than is allowed.
pub fn set_limits(limits: Limits) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_NOFILE, limits.0, limits.1)
}

/// Allows this process as many open files as it may have. Commands get what the run began with.
pub fn allow_most() {
    if let Some((_, most)) = limits() {
        let _ = set_limits((most, most));
    }
}

/// True if so many users still find the descriptors that they will need, of which `like` is one.
pub fn suffice_for(users: usize, like: impl AsFd) -> bool {
    let needed = OF_A_RUN + users * OF_A_USER;
    let held: Result<Vec<OwnedFd>, _> = (0..needed).map(|_| like.as_fd().try_clone_to_owned()).collect();
    held.is_ok()
}

/// The error, or where descriptors ran out what to do for so many users.
pub(crate) fn explain(error: LiveError, users: usize) -> LiveError {
    if users > 1 && error.raw_os_error() == Some(libc::EMFILE) { too_many_users(users) } else { error }
}

/// The error for users who need more open files than there may be.
pub fn too_many_users(users: usize) -> LiveError {
    let most = limits().map_or_else(String::new, |(most, _)| format!(" ({most})"));
    LiveError::Missing(format!(
        "{users} users need more open files than this process may have{most}; raise the limit, as root with \
         `ulimit -n {}`",
        (OF_A_RUN + users * OF_A_USER_IN_ALL).next_power_of_two().max(LEAST_ADVICE)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_without_descriptors_are_told_before_the_run() {
        let (soft, _) = limits().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(suffice_for(1, &file));
        assert!(!suffice_for(soft as usize / OF_A_USER + 1, &file));
        let full = LiveError::system("open", nix::errno::Errno::EMFILE);
        assert!(
            explain(full, 2)
                .to_string()
                .contains(&format!("2 users need more open files than this process may have ({soft})"))
        );
        assert!(too_many_users(2).to_string().ends_with("`ulimit -n 16384`"));
        assert!(too_many_users(1000).to_string().ends_with("`ulimit -n 32768`"));
        let other = LiveError::system("open", nix::errno::Errno::EACCES);
        assert!(!explain(other, 2).to_string().contains("ulimit"));
    }
}
