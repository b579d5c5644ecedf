// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Terminals for those who log in at an end of an ordinary user's run. A log-in
//! service hands a terminal to the group `tty`, which it can only where the
//! user namespace has that group.

use std::fs;

use nix::mount::{MsFlags, mount};
use nix::unistd::Group;

const TERMINALS: &str = "/dev/pts";
/// The file of groups.
pub(super) const GROUPS: &str = "/etc/group";
const NAME: &str = "tty";

/// Gives the calling thread's mount namespace terminals of its own, whose group is `tty` already. Where the user
/// namespace has no such group, returns a file of groups without it, which makes services keep the user's own.
pub(super) fn provide() -> Option<String> {
    let group = Group::from_name(NAME).ok().flatten()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = format!("newinstance,ptmxmode=0666,mode=620,gid={}", group.gid);
    match mount(Some("devpts"), TERMINALS, Some("devpts"), flags, Some(options.as_str())) {
        Ok(()) => None,
        Err(_) => fs::read_to_string(GROUPS).ok().map(|groups| without(&groups)),
    }
}

/// The file of groups without `tty`.
fn without(groups: &str) -> String {
    let kept = groups.lines().filter(|line| line.split(':').next() != Some(NAME));
    kept.fold(String::with_capacity(groups.len()), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_group_is_taken_out() {
        let groups = "root:x:0:\ntty:x:5:ann\nttys:x:6:\n";
        assert_eq!(without(groups), "root:x:0:\nttys:x:6:\n");
        assert_eq!(without(""), "");
    }
}
