// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The scenario, and parameters of it by name.

use std::sync::Arc;

use airpath_models::PathConfig;

use crate::background;
use crate::build::PathTree;
use crate::document::{Node, Place, Source, Table, Value, parse_value};
use crate::media;
use crate::named::{self, NamedTable};
use crate::parameter;
use crate::report::{Diagnostic, Report};
use crate::states::StayTree;
use crate::tree::HopTree;

/// A scenario: paths with their hops and states, media that they share, and what the user says about it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name.
    pub name: Option<String>,
    /// Description of the scenario.
    pub description: Option<String>,
    /// Source of its numbers.
    pub source: Option<String>,
    /// The IP MTU of the endpoints in bytes.
    pub mtu: Option<u32>,
    pub(crate) media: Vec<NamedTable>,
    pub(crate) paths: Vec<PathTree>,
}

/// One path of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPath {
    /// Its name; `path` if the scenario has only one.
    pub name: String,
    /// Its parameters, checked.
    pub config: PathConfig,
}

/// The name of the only path of a scenario.
pub(crate) const ONLY_PATH: &str = "path";
/// The name of the only hop of a path.
pub(crate) const ONLY_HOP: &str = "radio";

impl Scenario {
    /// A scenario of one hop called `radio` that changes nothing: no delay, no rate limit, no errors.
    pub fn transparent() -> Scenario {
        let source = Arc::new(Source { name: "built in".into(), text: String::new(), is_file: false });
        let place = Place::whole(&source);
        let hop = HopTree {
            name: ONLY_HOP.into(),
            place,
            link: Table::default(),
            uplink: Table::default(),
            downlink: Table::default(),
        };
        let path = PathTree {
            name: ONLY_PATH.into(),
            hops: vec![hop],
            states: Vec::new(),
            initial: StayTree::default(),
            background: Vec::new(),
        };
        Scenario { name: None, description: None, source: None, mtu: None, media: Vec::new(), paths: vec![path] }
    }

    /// True if paths share media, so that they are users of a cell.
    pub fn is_cell(&self) -> bool {
        !self.media.is_empty()
    }

    /// The scenario with the first `count` of its users. The only user of a cell is copied instead, with the numbers
    /// from 1 behind its name; states and background loads are copied with it.
    ///
    /// # Errors
    /// In words, when there are fewer users, or no medium that they could share.
    pub fn with_users(&self, count: usize) -> Result<Scenario, String> {
        let mut scenario = self.clone();
        let there = scenario.paths.len();
        match (scenario.paths.first(), there) {
            (Some(_), there) if there >= count => scenario.paths.truncate(count),
            (Some(only), 1) if self.is_cell() => {
                let stem = if only.name == ONLY_PATH { "user" } else { &only.name };
                let copy = |number| PathTree { name: format!("{stem}-{number}"), ..only.clone() };
                scenario.paths = (1..=count).map(copy).collect();
            }
            (_, 1) => {
                return Err(format!(
                    "{count} users need a medium that they share: add [[media]], and name it in the hop of the path"
                ));
            }
            _ => {
                return Err(format!(
                    "the scenario has only {there} users; add [[paths]], or keep one, which is copied"
                ));
            }
        }
        Ok(scenario)
    }

    /// The name of a parameter without that of the only user of a cell before it.
    pub(crate) fn in_path<'a>(&self, parameter: &'a str) -> &'a str {
        match (self.paths.as_slice(), parameter.split_once('.')) {
            ([path], Some((first, rest))) if self.is_cell() && first.trim() == path.name => rest,
            _ => parameter,
        }
    }

    /// Sets one parameter of the beginning: `radio.link.rate=64 kbit/s`. The value is TOML, or text
    /// whose quotes the shell has eaten. States build on the changed parameters; what a state sets
    /// itself stays. With several paths the name may begin with that of one of them; otherwise it
    /// concerns every path that has the hop. `background.NAME.KEY` is a parameter of a background load,
    /// `media.NAME.KEY` one of a shared medium.
    ///
    /// # Errors
    /// When the assignment names no hop or direction. Whether the key exists and the value fits, and
    /// whether all fits together, is told by [`Scenario::paths`], once everything has been set.
    pub fn set(&mut self, assignment: &str) -> Result<(), Report> {
        Assignment::read(assignment, &format!("--set {assignment}"))?.apply(self)
    }

    pub(crate) fn set_node(&mut self, path: &str, place: &Place, node: &Node) -> Result<(), Report> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        if self.is_cell() && first.trim() == media::KEY {
            return named::set(&media::LIST, self.media.iter_mut(), rest, place, node, "");
        }
        let several = self.paths.len() > 1 || self.is_cell();
        if several && let Some(named) = self.paths.iter_mut().find(|named| named.name == first.trim()) {
            return match background_of(named, rest) {
                Some(rest) => named::set(&background::LIST, named.background.iter_mut(), rest, place, node, first),
                None => parameter::apply(&mut named.hops, rest, place, node, first),
            };
        }
        if self.paths.iter().all(|one| background_of(one, path).is_some()) {
            let loads = self.paths.iter_mut().flat_map(|path| &mut path.background);
            return named::set(&background::LIST, loads, rest, place, node, "");
        }
        let mut found = false;
        for one in &mut self.paths {
            if one.hops.iter().any(|hop| hop.name == first.trim()) {
                found = true;
                parameter::apply(&mut one.hops, path, place, node, "")?;
            }
        }
        if found {
            return Ok(());
        }
        let mut names: Vec<&str> = self.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        Err(parameter::unknown_hop(path, place, names, "").into())
    }
}

/// A parameter and its value, as in `radio.link.rate=64 kbit/s`.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    path: String,
    place: Place,
    node: Node,
}

impl Assignment {
    /// Reads `text`; `origin` is what messages call it.
    pub(crate) fn read(text: &str, origin: &str) -> Result<Assignment, Report> {
        let source = Arc::new(Source { name: origin.into(), text: text.into(), is_file: false });
        let place = Place::whole(&source);
        let Some((path, value)) = text.split_once('=') else {
            let message = "an assignment needs `=`, as in `radio.link.rate=64 kbit/s`";
            return Err(Diagnostic::at(&place, "", message).into());
        };
        let node = match parse_value(&source, path.len() + 1) {
            Ok(node) => node,
            Err(report) if value.trim_start().starts_with(['"', '\'', '[', '{']) => return Err(report),
            Err(_) => Node { value: Value::Text(value.trim().into()), place: place.clone() },
        };
        Ok(Assignment { path: path.trim().into(), place, node })
    }

    /// The same for the only user of a run that goes on, whose name may come first.
    pub(crate) fn of_running(self, scenario: &Scenario) -> Result<Assignment, Report> {
        if scenario.is_cell() && self.path.split('.').next().map(str::trim) == Some(media::KEY) {
            let message = "a medium that users share stays as it is during a run; parameters of hops can change";
            return Err(Diagnostic::at(&self.place, self.path.as_str(), message).into());
        }
        Ok(Assignment { path: scenario.in_path(&self.path).into(), ..self })
    }

    /// Sets the parameter at the beginning of `scenario`.
    pub(crate) fn apply(&self, scenario: &mut Scenario) -> Result<(), Report> {
        scenario.set_node(&self.path, &self.place, &self.node)
    }

    /// Sets the parameter of one of `hops`.
    pub(crate) fn apply_to(&self, hops: &mut [HopTree]) -> Result<(), Report> {
        parameter::apply(hops, &self.path, &self.place, &self.node, "")
    }
}

/// Rest of the name of a parameter, if it is that of a background load.
fn background_of<'a>(path: &PathTree, parameter: &'a str) -> Option<&'a str> {
    let (first, rest) = parameter.split_once('.').unwrap_or((parameter, ""));
    let is_hop = path.hops.iter().any(|hop| hop.name == background::KEY);
    (first.trim() == background::KEY && !is_hop).then_some(rest)
}
