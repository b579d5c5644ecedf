// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Live runs tell other programs of this machine that they are on.
//!
//! A live run needs a processor at its instants; work that has no instants of its own, such as a guest in
//! virtual time, can keep away from one meanwhile. The sign is a name in the abstract socket namespace:
//! every user can see it, and it goes with its process however that ends.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The beginning of the names.
const PREFIX: &str = "airpath-live-run-";
/// The list of the sockets of this network namespace; abstract names begin with an at sign there.
const SOCKETS: &str = "/proc/net/unix";

/// A live run is on for as long as this value exists, in this process or in one that it forked.
#[derive(Debug)]
pub struct Presence {
    _name: UnixListener,
}

impl Presence {
    /// Tells of a live run. None where the kernel refuses: the run goes on all the same.
    pub fn announce() -> Option<Presence> {
        let pid = std::process::id();
        // Two containers may share a network namespace and not their processes.
        (0..16).find_map(|attempt| {
            let name = SocketAddr::from_abstract_name(format!("{PREFIX}{pid}-{attempt}")).ok()?;
            UnixListener::bind_addr(&name).ok().map(|name| Presence { _name: name })
        })
    }
}

/// True if a live run of any user is on in this network namespace.
pub fn live_run_is_on() -> bool {
    fs::read(SOCKETS).is_ok_and(|list| String::from_utf8_lossy(&list).lines().any(is_live_run))
}

fn is_live_run(line: &str) -> bool {
    line.split_whitespace().last().and_then(|name| name.strip_prefix('@')).is_some_and(|name| name.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_on_is_seen() {
        let first = Presence::announce().unwrap();
        let second = Presence::announce().unwrap();
        assert!(live_run_is_on());
        let own = |list: &str| list.lines().filter(|line| is_live_run(line)).count();
        let listed = fs::read_to_string(SOCKETS).unwrap();
        let lines: Vec<_> =
            listed.lines().filter(|line| line.contains(&format!("{PREFIX}{}-", std::process::id()))).collect();
        assert_eq!(own(&lines.join("\n")), 2);
        drop((first, second));
        let after = fs::read_to_string(SOCKETS).unwrap();
        assert!(!after.contains(&format!("{PREFIX}{}-", std::process::id())));
    }

    #[test]
    fn other_sockets_are_no_runs() {
        let line = |name: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 20000 {name}");
        assert!(is_live_run(&line("@airpath-live-run-12-0")));
        for name in ["@airpath-warp-processor-0", "/run/airpath-live-run-12", ""] {
            assert!(!is_live_run(&line(name)), "{name}");
        }
    }
}
