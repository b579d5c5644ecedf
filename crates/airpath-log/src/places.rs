// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The places of events: which user, which hop of the user's path, and which bearer of the hop.
//!
//! A machine numbers its places: with B the most bearers of a user (a hop without bearers is one), bearer b of user u is
//! u·(B + 1) + b, and the whole path of u is the place before its first one. Bearers count from the first hop's first
//! to the last hop's last. Tables name hops, bearers, users and states by words, each once, whatever users have in
//! common.

use airpath_core::{End, Event, PortId};
use serde::{Deserialize, Serialize};

/// The names of a user, of its hops with their bearers, and of its states.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UserNames {
    /// The user's name; empty for the only user of a run, where it was given none.
    pub name: String,
    /// The hops, from the client to the server.
    pub hops: Vec<String>,
    /// The states, the initial one first.
    pub states: Vec<String>,
    /// The bearers of each hop; of no hop where none has any.
    #[serde(default, skip_serializing_if = "has_none")]
    pub bearers: Vec<Vec<String>>,
}

fn has_none(bearers: &[Vec<String>]) -> bool {
    bearers.iter().all(Vec::is_empty)
}

impl UserNames {
    /// The names of the hop and of the bearer at each place behind that of the whole path; no name of a bearer where a
    /// hop has none.
    fn places(&self) -> impl Iterator<Item = (&String, &str)> {
        let of_hop = |(number, hop)| {
            let bearers = self.bearers.get(number).filter(|bearers: &&Vec<String>| !bearers.is_empty());
            let names: Vec<&str> = bearers.map_or(vec![""], |bearers| bearers.iter().map(String::as_str).collect());
            names.into_iter().map(move |bearer| (hop, bearer))
        };
        self.hops.iter().enumerate().flat_map(of_hop)
    }
}

/// The users of a run, and the words by which its tables name places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    users: Vec<UserNames>,
    /// Names of the users, by number.
    names: Vec<String>,
    /// Names of hops, bearers and states, each once. The first bearer has no name: it stands where there is none.
    hops: Vec<String>,
    bearers: Vec<String>,
    states: Vec<String>,
    /// Places of each user.
    stride: u16,
    /// Numbers of the words of hops and bearers, by user and place.
    hop_words: Vec<Vec<(u16, u16)>>,
    /// Numbers of the words of states, by user and index.
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
    /// Name of the bearer; empty where the hop has none, and for the whole path.
    pub bearer: &'a str,
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
        Places::of_users(vec![UserNames { hops, states, ..UserNames::default() }])
    }

    /// Those of these users.
    pub fn of_users(users: Vec<UserNames>) -> Places {
        let (mut hops, mut bearers, mut states) = (Vec::new(), vec![String::new()], Vec::new());
        let words = |names: &[String], all: &mut Vec<String>| names.iter().map(|name| word(all, name)).collect();
        let mut places = |user: &UserNames| {
            let of_place = |(hop, bearer): (&String, &str)| (word(&mut hops, hop), word(&mut bearers, bearer));
            user.places().map(of_place).collect::<Vec<_>>()
        };
        let hop_words: Vec<_> = users.iter().map(&mut places).collect();
        Places {
            state_words: users.iter().map(|user| words(&user.states, &mut states)).collect(),
            names: users.iter().map(|user| user.name.clone()).collect(),
            stride: hop_words.iter().map(Vec::len).max().unwrap_or(0) as u16 + 1,
            hop_words,
            users,
            hops,
            bearers,
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

    /// True if a hop of a user has bearers.
    pub fn has_bearers(&self) -> bool {
        self.bearers.len() > 1
    }

    /// Names of the users, by number.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Names of the hops, each once, in the order in which users have them.
    pub fn hops(&self) -> &[String] {
        &self.hops
    }

    /// Names of the bearers, each once, behind an empty one, which stands where there is none.
    pub(crate) fn bearers(&self) -> &[String] {
        &self.bearers
    }

    /// Names of the states, likewise.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// Places of each user: one for the whole path, and one for each hop or each of its bearers.
    pub fn stride(&self) -> u16 {
        self.stride
    }

    /// All places, those of the first user first, and of each the whole path.
    pub fn all(&self) -> impl Iterator<Item = Place<'_>> {
        self.users.iter().enumerate().flat_map(|(number, user)| {
            let first = number as u16 * self.stride;
            let path = Place { number: first.wrapping_sub(1), user: &user.name, hop: None, bearer: "" };
            let hops = (first..).zip(user.places());
            let hops = hops.map(|(number, (hop, bearer))| Place { number, user: &user.name, hop: Some(hop), bearer });
            std::iter::once(path).chain(hops)
        })
    }

    /// The place with this number; none if the run has no such place.
    pub fn find(&self, place: u16) -> Option<Place<'_>> {
        let (user, index) = self.parts(place);
        let (hop, bearer) = match index {
            0 => (None, ""),
            index => {
                let (hop, bearer) = *self.hop_words.get(usize::from(user))?.get(usize::from(index) - 1)?;
                (Some(self.hops[usize::from(hop)].as_str()), self.bearers[usize::from(bearer)].as_str())
            }
        };
        let user = &self.users.get(usize::from(user))?.name;
        Some(Place { number: place, user, hop, bearer })
    }

    /// Number of the user, and that of the bearer among the user's, from 1; 0 is the whole path.
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
        self.words(place).map_or(u16::MAX, |(hop, _)| hop)
    }

    /// Number of the word for the bearer at a place; 0 where there is none.
    #[inline]
    pub(crate) fn bearer_word(&self, place: u16) -> u16 {
        self.words(place).map_or(0, |(_, bearer)| bearer)
    }

    /// The same for both; none if the run has no such place.
    #[inline]
    fn words(&self, place: u16) -> Option<(u16, u16)> {
        if place == Event::WHOLE_PATH {
            return Some((0, 0));
        }
        let (user, index) = self.parts(place);
        let Some(index) = index.checked_sub(1) else { return Some((0, 0)) };
        let (hop, bearer) = *self.hop_words.get(usize::from(user))?.get(usize::from(index))?;
        Some((hop + 1, bearer))
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
            bearers: Vec::new(),
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

    #[test]
    fn bearers_of_a_hop_have_places_side_by_side() {
        let user = |name: &str, bearers: &[&[&str]]| UserNames {
            name: name.into(),
            hops: names(&["radio", "core"]),
            states: names(&["initial"]),
            bearers: bearers.iter().map(|bearers| names(bearers)).collect(),
        };
        let places = Places::of_users(vec![user("alice", &[&["voice", "rest"], &[]]), user("bob", &[])]);
        let all: Vec<_> = places.all().map(|place| (place.number, place.user, place.hop, place.bearer)).collect();
        let expected = [
            (u16::MAX, "alice", None, ""),
            (0, "alice", Some("radio"), "voice"),
            (1, "alice", Some("radio"), "rest"),
            (2, "alice", Some("core"), ""),
            (3, "bob", None, ""),
            (4, "bob", Some("radio"), ""),
            (5, "bob", Some("core"), ""),
        ];
        assert_eq!(all, expected);
        assert!(places.all().all(|place| places.find(place.number) == Some(place)));
        assert_eq!([u16::MAX, 0, 1, 2, 3, 4, 6].map(|place| places.hop_word(place)), [0, 1, 1, 2, 0, 1, u16::MAX]);
        assert_eq!([u16::MAX, 0, 1, 2, 3, 4, 6].map(|place| places.bearer_word(place)), [0, 1, 2, 0, 0, 0, 0]);
        assert_eq!((places.bearers(), places.stride()), (&names(&["", "voice", "rest"])[..], 4));
        // What has no bearers is written as it was before there were any.
        let [alice, bob] = [0, 1].map(|user| serde_json::to_value(&places.users()[user]).unwrap());
        assert_eq!((alice["bearers"][0][1].as_str(), bob.get("bearers")), (Some("rest"), None));
    }
}
