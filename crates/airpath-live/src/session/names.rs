// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Names by which the ends of links are found.

use crate::addressing::{End, Link};
use crate::error::{LiveError, Result};
use crate::namespaces::HostNames;

/// Refuses users whose names cannot be those of hosts beside the names that a run has.
pub(super) fn check(users: &[&str]) -> Result<()> {
    for (number, user) in users.iter().enumerate() {
        if is_reserved(user) {
            return Err(LiveError::Request(format!(
                "a user cannot be called `{user}` in a run of real programs, for whom that is the name of an end or of \
                 the host itself; rename its [[paths]]"
            )));
        }
        if let Some(other) = users[..number].iter().find(|other| other.eq_ignore_ascii_case(user)) {
            return Err(LiveError::Request(format!(
                "the users `{other}` and `{user}` differ in case only, which names of hosts do not; rename one of them"
            )));
        }
    }
    Ok(())
}

/// True for `localhost` and the names of ends: those of this run, and numbered ones of runs around and inside.
fn is_reserved(user: &str) -> bool {
    let name = user.to_ascii_lowercase();
    let is_end = |end: End| name.strip_prefix(end.name()).is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
    name == "localhost" || End::ALL.into_iter().any(is_end)
}

/// The names of the ends of `link`, which is that of `user`.
pub(super) fn of_link(link: Link, with_ipv6: bool, user: &str) -> HostNames {
    let mut names = HostNames::default();
    for end in [End::Client, End::Server] {
        for address in link.addresses(end, with_ipv6) {
            // The second name stays valid inside nested runs, where the first
            // means the innermost link's end.
            let numbered = format!("{}{}", end.name(), link.depth());
            let mut of_address = vec![end.name().to_owned(), numbered];
            if end == End::Client && !user.is_empty() {
                of_address.push(user.to_owned());
            }
            names.entries.push((address, of_address));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_of_hosts_of_their_own() {
        assert!(check(&[""]).is_ok());
        assert!(check(&["alice", "bob-2", "servers", "client-1", "server_2"]).is_ok());
        for name in ["server", "Client", "server0", "client12", "localhost"] {
            assert!(check(&["alice", name]).unwrap_err().to_string().contains(name), "{name}");
        }
        let error = check(&["alice", "bob", "Alice"]).unwrap_err().to_string();
        assert!(error.contains("`alice` and `Alice` differ in case only"), "{error}");
    }
}
