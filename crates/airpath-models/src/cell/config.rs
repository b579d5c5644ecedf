// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a cell: its media by name, and the paths of its users.

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::medium::{BearerBeginning, SharedMediumConfig, StationBeginning};
use crate::config::{HopConfig, PathConfig, Setting};
use crate::file::{VisitFile, under};

/// A medium that several users share. No state changes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Medium")]
pub struct MediumOfCell {
    /// Its name, by which hops refer to it: a letter, then letters, digits, `_` or `-`. It is part of the key of its
    /// random draws.
    pub name: String,
    /// Its parameters.
    #[serde(flatten)]
    pub config: SharedMediumConfig,
}

/// A user of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// Its name: what the user draws depends on it, and not on the place in the list.
    pub name: String,
    /// True if the user is the only one and was given no name; the draws are those of a path alone then.
    pub is_unnamed: bool,
    /// Its path. Hops may name shared media.
    pub path: PathConfig,
}

/// Users and the media that they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellConfig {
    /// The media.
    pub media: Vec<MediumOfCell>,
    /// The users, at least one.
    pub users: Vec<UserConfig>,
}

/// Settings of users of a cell that take effect together.
#[derive(Clone, Debug)]
pub struct CellSettings {
    /// Number of each user, and its setting.
    pub of_users: Vec<(u16, Setting)>,
}

/// The hops on a medium, by number as stations, and their bearers.
#[derive(Default)]
pub(super) struct OnMedium<'a> {
    /// Beginning of each station.
    pub(super) stations: Vec<StationBeginning<'a>>,
    /// Place of the hop of each station in the path of its user.
    pub(super) hops: Vec<usize>,
    /// Beginning of each bearer: those of a station one after the other.
    pub(super) bearers: Vec<BearerBeginning>,
    /// User, and number among all bearers of the user, of each bearer.
    pub(super) places: Vec<(u16, u16)>,
}

impl UserConfig {
    /// Seed of what the user draws.
    pub fn seed(&self, seed: Seed) -> Seed {
        if self.is_unnamed { seed } else { seed.of_user(&self.name) }
    }

    /// The name that the user was given; empty without one.
    pub fn shown_name(&self) -> &str {
        if self.is_unnamed { "" } else { &self.name }
    }
}

impl MediumOfCell {
    /// True if `hop` is on the medium in `direction`.
    pub(super) fn carries(&self, hop: &HopConfig, direction: Direction) -> bool {
        hop.link(direction).medium.name() == Some(self.name.as_str())
    }

    /// Names of the bearers of a hop on the medium: that of the user, with that of the hop where the user has several on
    /// it, and with that of the bearer where the hop has bearers.
    fn bearers_of(&self, user: &str, path: &PathConfig, hop: &HopConfig) -> Vec<String> {
        let station = match path.hops.iter().filter(|hop| self.is_under(hop)).count() {
            1 => user.to_string(),
            _ => format!("{user}.{}", hop.name),
        };
        let own: Vec<String> = hop.bearer_names().map(|name| format!("{station}.{name}")).collect();
        if own.is_empty() { vec![station] } else { own }
    }

    /// Names of the bearers on the medium, where these are the paths of the users.
    pub fn bearer_names<'a>(&self, paths: impl Iterator<Item = (&'a str, &'a PathConfig)>) -> Vec<String> {
        let of_path = |(user, path): (&'a str, &'a PathConfig)| {
            let on = path.hops.iter().filter(|hop| self.is_under(hop));
            on.flat_map(|hop| self.bearers_of(user, path, hop)).collect::<Vec<_>>()
        };
        paths.flat_map(of_path).collect()
    }

    /// True if `hop` is on the medium in a direction.
    fn is_under(&self, hop: &HopConfig) -> bool {
        Direction::ALL.iter().any(|direction| self.carries(hop, *direction))
    }

    /// Key of the medium's own draws.
    pub(super) fn key(&self, seed: Seed) -> DrawKey {
        let direction = Direction::Uplink;
        DrawKey::new(seed, &DrawScope { hop: &self.name, direction, role: "shared medium", instance: 0 })
    }

    /// The hops on the medium, and their bearers: users in order, and of each the client's end first.
    pub(super) fn members<'a>(&self, users: &'a [UserConfig], seeds: &[Seed]) -> OnMedium<'a> {
        let mut members = OnMedium::default();
        for (number, (user, seed)) in users.iter().zip(seeds).enumerate() {
            let mut first = 0;
            for (place, hop) in user.path.hops.iter().enumerate() {
                let numbers = first..first + hop.bearer_count() as u16;
                first = numbers.end;
                if !self.is_under(hop) {
                    continue;
                }
                let station = members.stations.len() as u16;
                let scope = DrawScope { hop: &hop.name, direction: Direction::Uplink, role: "station", instance: 0 };
                members.stations.push(StationBeginning { hop, key: DrawKey::new(*seed, &scope) });
                members.hops.push(place);
                let names = self.bearers_of(&user.name, &user.path, hop).into_iter();
                members.bearers.extend(names.map(|name| BearerBeginning { name, station }));
                members.places.extend(numbers.map(|bearer| (number as u16, bearer)));
            }
        }
        members
    }
}

impl CellConfig {
    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        for medium in &mut self.media {
            medium.config.files(&mut under("media", visit));
        }
        for user in &mut self.users {
            user.path.files(visit);
        }
    }

    /// True if a hop of a user has link entities with a protocol or frames of their own, which keep a log.
    pub fn keeps_links(&self) -> bool {
        self.users.iter().any(|user| user.path.keeps_links())
    }
}
