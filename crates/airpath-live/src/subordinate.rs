// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Further users and groups in a user namespace: the subordinate ids that
//! /etc/subuid and /etc/subgid give to an ordinary user. Only the set-uid
//! programs newuidmap and newgidmap may map them, and only from outside.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::unistd::{Gid, Uid, User, getpid};

/// The shell waits until the namespace is there, maps both kinds of ids, and says what worked.
const MAP: &str = "read -r go || exit 0; newuidmap $0 $1 && echo users; newgidmap $0 $2 && echo groups";

/// Ids from `first` on that belong to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u32,
    count: u32,
}

/// Kinds of ids that were mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Users.
    pub users: bool,
    /// Groups.
    pub groups: bool,
}

/// A process outside of the namespace to come, which will map ids into it.
#[derive(Debug)]
pub(crate) struct Mapper {
    child: Child,
    go: ChildStdin,
}

impl Mapper {
    /// The mapper for this process; none where the user has no subordinate ids. `inside` are the user's own two
    /// ids in the namespace. It is started before the namespace is entered.
    pub(crate) fn start(own: (Uid, Gid), inside: (u32, u32)) -> Option<Self> {
        let name = User::from_uid(own.0).ok().flatten().map(|user| user.name);
        let of = |file: &str| ranges(&fs::read_to_string(file).unwrap_or_default(), name.as_deref(), own.0.as_raw());
        let (users, groups) = (of("/etc/subuid"), of("/etc/subgid"));
        if users.is_empty() || groups.is_empty() {
            return None;
        }
        let words =
            [getpid().to_string(), map(own.0.as_raw(), inside.0, &users), map(own.1.as_raw(), inside.1, &groups)];
        let mut child = Command::new("/bin/sh")
            .args(["-c", MAP])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let go = child.stdin.take()?;
        Some(Self { child, go })
    }

    /// Maps the ids, once the user namespace is entered.
    pub(crate) fn map(mut self) -> Mapped {
        let mut told = String::new();
        if self.go.write_all(b"go\n").is_ok()
            && let Some(output) = &mut self.child.stdout
        {
            let _ = output.read_to_string(&mut told);
        }
        // Where this process ignores SIGCHLD nothing is left to wait for.
        let _ = self.child.wait();
        let said = |word| told.lines().any(|line| line == word);
        Mapped { users: said("users"), groups: said("groups") }
    }
}

/// The ranges of a user in a file of the form of /etc/subuid, `NAME:FIRST:COUNT`. A range that overlaps an earlier
/// one is left out, as the kernel takes none such.
fn ranges(file: &str, name: Option<&str>, number: u32) -> Vec<Range> {
    let mut found: Vec<Range> = Vec::new();
    for line in file.lines() {
        let words: Vec<&str> = line.trim().split(':').collect();
        let [owner, first, count] = words[..] else { continue };
        if Some(owner) != name && owner.parse() != Ok(number) {
            continue;
        }
        let (Ok(first), Ok(count)) = (first.parse(), count.parse()) else { continue };
        let range = Range { first, count };
        if count > 0 && first.checked_add(count).is_some() && !found.iter().any(|other| overlap(*other, range)) {
            found.push(range);
        }
    }
    found
}

fn overlap(one: Range, other: Range) -> bool {
    one.first < other.first + other.count && other.first < one.first + one.count
}

/// The arguments of newuidmap: `own` stays outside and becomes `inside`, and all other ids from 0 on are those of
/// `ranges`.
fn map(own: u32, inside: u32, ranges: &[Range]) -> String {
    let mut words = vec![format!("{inside} {own} 1")];
    let mut next = 0;
    for range in ranges {
        let Range { mut first, mut count } = *range;
        while count > 0 {
            if next == inside {
                next += 1;
            }
            let room = if next < inside { inside - next } else { u32::MAX - next };
            let part = count.min(room);
            if part == 0 {
                return words.join(" ");
            }
            words.push(format!("{next} {first} {part}"));
            (next, first, count) = (next + part, first + part, count - part);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "root:100000:65536\nann:165536:1000\n1001:400000:500\n\nann:165600:10\nbob:1:2:3\nann:x:1\n";

    #[test]
    fn ranges_are_found_by_name_and_by_number() {
        let both = ranges(FILE, Some("ann"), 1001);
        assert_eq!(both, [Range { first: 165_536, count: 1000 }, Range { first: 400_000, count: 500 }]);
        assert_eq!(ranges(FILE, None, 1001), [Range { first: 400_000, count: 500 }]);
        assert_eq!(ranges(FILE, Some("bob"), 1002), []);
        assert_eq!(ranges("ann:4294967290:100\nann:5:0\n", Some("ann"), 1), []);
    }

    #[test]
    fn the_own_id_keeps_its_place_among_the_others() {
        let two = [Range { first: 100_000, count: 600 }, Range { first: 200_000, count: 65_536 }];
        assert_eq!(map(1001, 1001, &two), "1001 1001 1 0 100000 600 600 200000 401 1002 200401 65135");
        assert_eq!(map(1001, 0, &two), "0 1001 1 1 100000 600 601 200000 65536");
        assert_eq!(map(7, 7, &[Range { first: 9, count: 7 }]), "7 7 1 0 9 7");
        assert_eq!(map(7, 7, &[Range { first: 9, count: 8 }]), "7 7 1 0 9 7 8 16 1");
    }

    #[test]
    fn every_id_of_the_ranges_is_mapped_once() {
        let all = [Range { first: 1000, count: 40 }, Range { first: 5000, count: 3 }, Range { first: 7000, count: 30 }];
        for inside in 0..100 {
            let words: Vec<u32> = map(1, inside, &all).split(' ').map(|word| word.parse().unwrap()).collect();
            let mut ids: Vec<(u32, u32)> = Vec::new();
            for part in words.chunks(3) {
                ids.extend((0..part[2]).map(|step| (part[0] + step, part[1] + step)));
            }
            let expected = all.iter().flat_map(|range| range.first..range.first + range.count);
            let outside: Vec<u32> = ids.iter().skip(1).map(|(_, outside)| *outside).collect();
            assert!(outside.into_iter().eq(expected), "{inside}");
            ids.sort_unstable();
            assert!(ids.windows(2).all(|pair| pair[0].0 < pair[1].0), "{inside}");
        }
    }
}
