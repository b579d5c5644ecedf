// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Static assignment: each resource belongs to one bearer.
//!
//! Source: Alfredsson, Brunstrom and Sternad, "Transport protocol performance over 4G links: emulation methodology and
//! results" (2006), "static channel": one user on always the same one of 25 frequency bins.
//!
//! A resource whose owner has nothing to send, or cannot use it, stays free: the scheduler is not work conserving.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Beginning, EXAMPLE_BEARERS, InCell, NOBODY, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Parameters of the static assignment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaticConfig {
    /// Owners of the first resource, the second and so on; resources behind the list stay free. Without a list
    /// resource r belongs to bearer r modulo their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owners: Option<Vec<String>>,
}

impl InCell for StaticConfig {
    fn names(&self) -> Vec<(String, &str)> {
        let owners = self.owners.iter().flatten().enumerate();
        owners.map(|(resource, name)| (format!("owners.{resource}"), name.as_str())).collect()
    }

    fn problems_with(&self, resources: usize) -> Vec<Problem> {
        let owners = self.owners.as_ref().map_or(0, Vec::len);
        if owners <= resources {
            return Vec::new();
        }
        vec![Problem::new("owners", format!("are {owners}, but the cell has {resources} resources; shorten the list"))]
    }
}

impl Configured<Beginning<'_>> for StaticConfig {
    type Model = Static;

    fn build(&self, beginning: Beginning<'_>) -> Static {
        let number_of = |name: &String| beginning.bearers.iter().position(|bearer| bearer == name);
        let bearers = beginning.bearers.len();
        let owner = |resource: usize| match &self.owners {
            None => Some(resource % bearers),
            Some(owners) => owners.get(resource).and_then(number_of),
        };
        let owners = (0..beginning.resources).map(|resource| owner(resource).map_or(NOBODY, |owner| owner as u16));
        Static { owners: owners.collect(), left: Vec::with_capacity(bearers) }
    }

    fn examples() -> Vec<StaticConfig> {
        let owners = EXAMPLE_BEARERS[..1].iter().map(|name| name.to_string()).collect();
        vec![StaticConfig { owners: None }, StaticConfig { owners: Some(owners) }]
    }
}

/// Resources with owners.
#[derive(Clone, Debug)]
pub struct Static {
    owners: Vec<u16>,
    /// By place: number of bits left to send.
    left: Vec<u64>,
}

impl Scheduler for Static {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        self.left.clear();
        self.left.extend(slot.contenders.iter().map(|contender| contender.backlog_bits));
        for ((resource, to), owner) in to.iter_mut().enumerate().zip(&self.owners) {
            *to = NOBODY;
            let Ok(place) = slot.contenders.binary_search_by_key(owner, |contender| contender.bearer) else { continue };
            let bits = u64::from(slot.bits_of(place, resource));
            if bits > 0 && self.left[place] > 0 {
                self.left[place] = self.left[place].saturating_sub(bits);
                *to = place as u16;
            }
        }
    }

    fn is_work_conserving(&self) -> bool {
        false
    }
}
