// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The machine that a scenario describes: a path, or a cell of users that share media.

use std::any::Any;
use std::sync::Arc;

use airpath_core::{Direction, LinkRate, Machine, Seed};

use crate::cell::{Cell, CellConfig, CellSettings};
use crate::config::{PathConfig, Setting};
use crate::filter::Filter;
use crate::filter_list::FilterList;
use crate::path::Path;

/// Parameters of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum MachineConfig {
    /// A path that shares nothing.
    Path(PathConfig),
    /// Users and the media that they share.
    Cell(CellConfig),
}

/// A user of a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineUser<'a> {
    /// Its name; empty for the only user of a machine, where it was given none.
    pub name: &'a str,
    /// Its path.
    pub path: &'a PathConfig,
}

impl MachineConfig {
    /// The machine at the beginning of a run with `seed`. A path alone is run as a path, without the work of a cell.
    pub fn build(&self, seed: Seed) -> Box<dyn Machine> {
        match self {
            MachineConfig::Path(path) => Box::new(Path::new(path, seed)),
            MachineConfig::Cell(cell) => Box::new(Cell::new(cell, seed)),
        }
    }

    /// The users, by their number; a path is that of one user without a name.
    pub fn users(&self) -> Vec<MachineUser<'_>> {
        match self {
            MachineConfig::Path(path) => vec![MachineUser { name: "", path }],
            MachineConfig::Cell(cell) => {
                cell.users.iter().map(|user| MachineUser { name: user.shown_name(), path: &user.path }).collect()
            }
        }
    }

    /// True if a hop of a user has link entities with a protocol or frames of their own, which keep a log.
    pub fn keeps_links(&self) -> bool {
        match self {
            MachineConfig::Path(path) => path.keeps_links(),
            MachineConfig::Cell(cell) => cell.keeps_links(),
        }
    }

    /// True if a medium has resources, each of which carries a frame of its own in each slot.
    pub fn has_resources(&self) -> bool {
        match self {
            MachineConfig::Path(_) => false,
            MachineConfig::Cell(cell) => cell.media.iter().any(|medium| medium.config.has_resources()),
        }
    }

    /// True if escapes of the packets of a user are to be counted.
    pub fn counts_escapes(&self) -> bool {
        self.users().iter().any(|user| Direction::ALL.iter().any(|way| user.path.framing(*way).is_some()))
    }

    /// True if lengths depend on the headers of the packets of a user.
    pub fn reads_headers(&self) -> bool {
        self.users().iter().any(|user| Direction::ALL.iter().any(|way| user.path.reads_headers(*way)))
    }

    /// Filters of packets of all users, each once, in the order of the scenario.
    pub fn filters(&self) -> Vec<Filter> {
        let mut all: Vec<Filter> = Vec::new();
        for user in self.users() {
            let (_, filters) = FilterList::of(user.path);
            all.extend(filters.iter().filter(|filter| !all.contains(filter)).cloned().collect::<Vec<_>>());
        }
        all
    }

    /// True if nothing on the way of a user has a rate in `direction` at the beginning.
    pub fn is_unlimited(&self, user: usize, direction: Direction) -> bool {
        let users = self.users();
        let Some(user) = users.get(user) else { return false };
        user.path.hops.iter().map(|hop| hop.link(direction)).all(|link| match (link.medium.name(), self) {
            (Some(name), MachineConfig::Cell(cell)) => {
                let medium = cell.media.iter().find(|medium| medium.name == name);
                medium.is_some_and(|medium| medium.config.is_unlimited(direction))
            }
            _ => link.rate.constant() == Some(LinkRate::Unlimited),
        })
    }

    /// The value of the command that puts settings of users, with their numbers, in force together.
    pub fn settings(&self, mut of_users: Vec<(u16, Setting)>) -> Arc<dyn Any + Send + Sync> {
        match (self, of_users.pop()) {
            (MachineConfig::Path(_), Some((_, setting))) => Arc::new(setting),
            (_, last) => {
                of_users.extend(last);
                Arc::new(CellSettings { of_users })
            }
        }
    }
}
