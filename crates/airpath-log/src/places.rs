// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The places of events: which user, and which hop of the user's path.
//!
//! A machine numbers its places: with H the most hops of a user, hop h of user u is u·(H + 1) + h, and the whole path
//! of u is the place before its first hop. Tables name hops, users and states by words, each once, whatever users have
//! in common.

use airpath_core::{End, Event, PortId};
use serde::{Deserialize, Serialize};

/// The names of a user, of its hops and of its states.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UserNames {
    /// The user's name; empty for the only user of a run, where it was given none.
    pub name: String,
    /// The hops, from the client to the server.
    pub hops: Vec<String>,
    /// The states, the initial one first.
    pub states: Vec<String>,
}

/// The users of a run, and the words by which its tables name places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    users: Vec<UserNames>,
    /// Names of the users, by number.
    names: Vec<String>,
    /// Names of hops and states, each once.
    hops: Vec<String>,
    states: Vec<String>,
    /// Places of each user.
    stride: u16,
    /// Numbers of the words of hops and states, by user and index.
    hop_words: Vec<Vec<u16>>,
    state_words: Vec<Vec<u16>>,
}

/// A place of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// Its number in events.
    pub number: u16,
    /// Name of the user.
    pub user: &'a str,
    /// Name of the hop; none for the whole path.
    pub hop: Option<&'a str>,
}

/// Number of `name` among `words`, where it is added if it is new.
fn word(words: &mut Vec<String>, name: &str) -> u16 {
    let known = words.iter().position(|known| known == name);
    known.unwrap_or_else(|| {
        words.push(name.into());
        words.len() - 1
    }) as u16
}

impl Places {
    /// Those of a path alone.
    pub fn of_path(hops: Vec<String>, states: Vec<String>) -> Places {
        Places::of_users(vec![UserNames { name: String::new(), hops, states }])
    }

    /// Those of these users.
    pub fn of_users(users: Vec<UserNames>) -> Places {
        let (mut hops, mut states) = (Vec::new(), Vec::new());
        let words = |names: &[String], all: &mut Vec<String>| names.iter().map(|name| word(all, name)).collect();
        Places {
            hop_words: users.iter().map(|user| words(&user.hops, &mut hops)).collect(),
            state_words: users.iter().map(|user| words(&user.states, &mut states)).collect(),
            names: users.iter().map(|user| user.name.clone()).collect(),
            stride: users.iter().map(|user| user.hops.len()).max().unwrap_or(0) as u16 + 1,
            users,
            hops,
            states,
        }
    }

    /// The users, by number.
    pub fn users(&self) -> &[UserNames] {
        &self.users
    }

    /// Users that have names; none for a path alone.
    pub fn named_users(&self) -> &[UserNames] {
        if self.users.iter().all(|user| user.name.is_empty()) { &[] } else { &self.users }
    }

    /// Names of the users, by number.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Names of the hops, each once, in the order in which users have them.
    pub fn hops(&self) -> &[String] {
        &self.hops
    }

    /// Names of the states, likewise.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// Places of each user: one for the whole path, and one for each hop.
    pub fn stride(&self) -> u16 {
        self.stride
    }

    /// All places, those of the first user first, and of each the whole path.
    pub fn all(&self) -> impl Iterator<Item = Place<'_>> {
        self.users.iter().enumerate().flat_map(|(number, user)| {
            let first = number as u16 * self.stride;
            let path = Place { number: first.wrapping_sub(1), user: &user.name, hop: None };
            let hops = (first..).zip(&user.hops);
            let hops = hops.map(|(number, hop)| Place { number, user: &user.name, hop: Some(hop) });
            std::iter::once(path).chain(hops)
        })
    }

    /// The place with this number; none if the run has no such place.
    pub fn find(&self, place: u16) -> Option<Place<'_>> {
        let (user, hop) = self.parts(place);
        let user = self.users.get(usize::from(user))?;
        let hop = match hop {
            0 => None,
            hop => Some(user.hops.get(usize::from(hop) - 1)?.as_str()),
        };
        Some(Place { number: place, user: &user.name, hop })
    }

    /// Number of the user, and that of the hop, from 1; 0 is the whole path.
    #[inline]
    fn parts(&self, place: u16) -> (u16, u16) {
        let index = place.wrapping_add(1);
        (index / self.stride, index % self.stride)
    }

    /// Number of the user at a place.
    #[inline]
    pub(crate) fn user(&self, place: u16) -> u16 {
        self.parts(place).0
    }

    /// Number of the user at a port.
    pub(crate) fn user_of_port(port: u16) -> u16 {
        PortId(port).user()
    }

    /// Number of the word for the hop at a place, from 1; 0 is the whole path.
    #[inline]
    pub(crate) fn hop_word(&self, place: u16) -> u16 {
        if place == Event::WHOLE_PATH {
            return 0;
        }
        let (user, hop) = self.parts(place);
        let Some(index) = hop.checked_sub(1) else { return 0 };
        let words = self.hop_words.get(usize::from(user));
        words.and_then(|words| words.get(usize::from(index))).map_or(u16::MAX, |word| word + 1)
    }

    /// Number of the word for a state of the user at a place.
    #[inline]
    pub(crate) fn state_word(&self, place: u16, state: u16) -> u16 {
        let words = self.state_words.get(usize::from(self.user(place)));
        words.and_then(|words| words.get(usize::from(state))).copied().unwrap_or(u16::MAX)
    }

    /// Names of the ports, by number: "client" and "server", with the user's name before them where there are several.
    pub fn ports(&self) -> Vec<String> {
        let is_alone = self.users.len() == 1;
        let of_user = |user: &UserNames| {
            End::ALL.map(|end| if is_alone { end.name().to_string() } else { format!("{}-{end}", user.name) })
        };
        self.users.iter().flat_map(of_user).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn places_of_a_path_are_its_hops() {
        let places = Places::of_path(names(&["radio", "core"]), names(&["initial"]));
        let words: Vec<u16> = [Event::WHOLE_PATH, 0, 1].into_iter().map(|place| places.hop_word(place)).collect();
        assert_eq!((words, places.stride()), (vec![0, 1, 2], 3));
        assert_eq!((places.ports(), places.named_users()), (names(&["client", "server"]), &[][..]));
        assert_eq!(places.find(1).unwrap().hop, Some("core"));
    }

    #[test]
    fn users_share_words_and_not_places() {
        let user = |name: &str, hops: &[&str], states: &[&str]| UserNames {
            name: name.into(),
            hops: names(hops),
            states: names(states),
        };
        let alice = user("alice", &["radio", "core"], &["initial", "fade"]);
        let bob = user("bob", &["core"], &["initial", "dark", "fade"]);
        let places = Places::of_users(vec![alice, bob]);
        assert_eq!(
            (places.hops(), places.states()),
            (&names(&["radio", "core"])[..], &names(&["initial", "fade", "dark"])[..])
        );
        // With two hops at most a user has three places: the whole path is the one before the first hop.
        let all: Vec<_> = places.all().map(|place| (place.number, place.user, place.hop)).collect();
        let expected = [
            (u16::MAX, "alice", None),
            (0, "alice", Some("radio")),
            (1, "alice", Some("core")),
            (2, "bob", None),
            (3, "bob", Some("core")),
        ];
        assert_eq!(all, expected);
        assert!(places.all().all(|place| places.find(place.number) == Some(place)));
        assert_eq!((places.find(4), places.hop_word(4), places.state_word(3, 3)), (None, u16::MAX, u16::MAX));
        assert_eq!([0, 1, 2, 3].map(|place| places.hop_word(place)), [1, 2, 0, 2]);
        assert_eq!([0, 3].map(|place| places.state_word(place, 1)), [1, 2]);
        assert_eq!([u16::MAX, 1, 2, 3].map(|place| places.user(place)), [0, 0, 1, 1]);
        assert_eq!(places.ports(), names(&["alice-client", "alice-server", "bob-client", "bob-server"]));
    }
}
