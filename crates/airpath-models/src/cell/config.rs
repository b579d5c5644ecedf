// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a cell: its media by name, and the paths of its users.

use std::any::Any;
use std::sync::Arc;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::medium::{BearerBeginning, SharedMediumConfig, StationBeginning};
use crate::config::{HopConfig, PathConfig};
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

/// A command for one user of a cell.
#[derive(Clone, Debug)]
pub struct CellSetting {
    /// Number of the user.
    pub user: u16,
    /// The command's value, as a path takes it.
    pub setting: Arc<dyn Any + Send + Sync>,
}

/// The hops on a medium, by number as stations, and their bearers.
#[derive(Default)]
pub(super) struct OnMedium<'a> {
    /// Beginning of each station.
    pub(super) stations: Vec<StationBeginning<'a>>,
    /// User and hop of each station.
    pub(super) hops: Vec<(u16, u16)>,
    /// Beginning of each bearer: those of a station one after the other.
    pub(super) bearers: Vec<BearerBeginning>,
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

    /// The hop of this place.
    pub(super) fn hop(&self, place: u16) -> &HopConfig {
        &self.path.hops[usize::from(place)]
    }
}

impl MediumOfCell {
    /// True if `hop` is on the medium in `direction`.
    pub(super) fn carries(&self, hop: &HopConfig, direction: Direction) -> bool {
        hop.link(direction).medium.name() == Some(self.name.as_str())
    }

    /// Name of the bearer of a hop on the medium: that of the user, with that of the hop where the user has several on it.
    fn bearer_name(&self, user: &str, path: &PathConfig, hop: &HopConfig) -> String {
        match path.hops.iter().filter(|hop| self.is_under(hop)).count() {
            1 => user.into(),
            _ => format!("{user}.{}", hop.name),
        }
    }

    /// Names of the bearers on the medium, where these are the paths of the users.
    pub fn bearer_names<'a>(&self, paths: impl Iterator<Item = (&'a str, &'a PathConfig)>) -> Vec<String> {
        let of_path = |(user, path): (&'a str, &'a PathConfig)| {
            let on = path.hops.iter().filter(|hop| self.is_under(hop));
            on.map(|hop| self.bearer_name(user, path, hop)).collect::<Vec<_>>()
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

    /// The hops on the medium: users in order, and of each the client's end first.
    pub(super) fn members<'a>(&self, users: &'a [UserConfig], seeds: &[Seed]) -> OnMedium<'a> {
        let mut members = OnMedium::default();
        for (number, (user, seed)) in users.iter().zip(seeds).enumerate() {
            for (place, hop) in user.path.hops.iter().enumerate().filter(|(_, hop)| self.is_under(hop)) {
                let scope = DrawScope { hop: &hop.name, direction: Direction::Uplink, role: "station", instance: 0 };
                let name = self.bearer_name(&user.name, &user.path, hop);
                members.bearers.push(BearerBeginning { name, station: members.stations.len() as u16 });
                members.stations.push(StationBeginning { hop, key: DrawKey::new(*seed, &scope) });
                members.hops.push((number as u16, place as u16));
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
