// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! States as they are written: how long they stay, and what follows them by name.

use airpath_core::{Event, Probability, Span};
use airpath_models::random::Random;
use airpath_models::states::Stay;
use serde::Deserialize;

use crate::check::join;
use crate::document::{Key, Node, Place, Table, Value};
use crate::files::Beside;
use crate::report::Diagnostic;

/// A state as it was written.
#[derive(Clone, Debug)]
pub struct StateTree {
    pub name: String,
    pub at: Option<Span>,
    /// Parameter paths and values.
    pub sets: Vec<(Key, Node)>,
    pub stay: StayTree,
}

/// Duration and successor of a state, as written.
#[derive(Clone, Debug, Default)]
pub struct StayTree {
    /// Key of the state in the document, as in `states[2]`.
    pub key: String,
    pub duration: Option<Node>,
    pub next: Option<Node>,
}

impl StayTree {
    /// Reads duration and successor of the state in `table`, written at `key`.
    pub fn of(table: &Table, key: &str) -> StayTree {
        let get = |name: &str| table.get(name).cloned();
        StayTree { key: key.into(), duration: get("duration"), next: get("next") }
    }

    /// The stay; `names` are those of the states, by number. What is wrong goes to `problems`, but for
    /// values of the wrong form, which the check of the document tells.
    pub fn stay(&self, names: &[&str], problems: &mut Vec<Diagnostic>) -> Stay {
        let before = problems.len();
        let duration = self.duration.as_ref().map(|node| self.read_duration(node, problems));
        let next = self.next.as_ref().map(|node| self.read_next(node, names, problems));
        if duration == Some(None) || next == Some(None) || problems.len() > before {
            return Stay::default();
        }
        let stay = Stay { duration: duration.flatten(), next: next.flatten().unwrap_or_default() };
        for problem in stay.problems() {
            let node = if problem.key.starts_with("next") { &self.next } else { &self.duration };
            if let Some(node) = node {
                problems.push(Diagnostic::at(&node.place, join(&self.key, &problem.key), problem.message));
            }
        }
        stay
    }

    fn read_duration(&self, node: &Node, problems: &mut Vec<Diagnostic>) -> Option<Random<Span>> {
        let mut duration = Random::<Span>::deserialize(node.to_toml()).ok()?;
        duration.files(&mut |inner, file| {
            if let Err(message) = file.load(&mut Beside(&node.place.source)) {
                problems.push(Diagnostic::at(&node.place, join(&join(&self.key, "duration"), inner), message));
            }
        });
        Some(duration)
    }

    fn read_next(
        &self,
        node: &Node,
        names: &[&str],
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Vec<(u16, Probability)>> {
        let mut number = |name: &str, place: &Place| {
            let found = names.iter().position(|known| *known == name);
            if found.is_none() {
                let problem = Diagnostic::at(place, join(&self.key, "next"), format!("there is no state `{name}`"));
                problems.push(problem.nearest_of(name, names.iter().copied()));
            }
            found.unwrap_or_default() as u16
        };
        match &node.value {
            Value::Text(name) => Some(vec![(number(name, &node.place), Probability::ONE)]),
            Value::Table(table) => {
                let follow = |(name, node): &(Key, Node)| {
                    let state = number(&name.name, &name.place);
                    Some((state, Probability::deserialize(node.to_toml()).ok()?))
                };
                table.0.iter().map(follow).collect()
            }
            _ => None,
        }
    }
}

/// The keys that a table with the name of the beginning does not have.
pub fn beginning_problem(table: &Table, place: &Place, key: &str) -> Option<Diagnostic> {
    let name = Event::INITIAL_STATE;
    if let Some((own, _)) = table.0.iter().find(|(own, _)| !["name", "duration", "next"].contains(&own.name.as_str())) {
        let message = format!(
            "`{name}` is the initial state, with the parameters of the hops; it may have only a `duration` and a \
             `next`. Use another name for a state with its own time or parameters"
        );
        return Some(Diagnostic::at(&own.place, join(key, &own.name), message));
    }
    table.get("duration").is_none().then(|| {
        let message = format!("`{name}` is the initial state; give its `duration`, or omit it");
        Diagnostic::at(place, join(key, "name"), message)
    })
}
