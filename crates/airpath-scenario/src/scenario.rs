// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The scenario, and parameters of it by name.

use std::sync::Arc;

use airpath_core::nearest::nearest;
use airpath_models::PathConfig;

use crate::background;
use crate::build::PathTree;
use crate::check::join;
use crate::document::{Node, Place, Source, Table, Value, parse_value};
use crate::hosts::HostTree;
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
    pub(crate) hosts: Vec<HostTree>,
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
pub const ONLY_HOP: &str = "radio";

impl Scenario {
    /// A scenario of one hop called `radio` that changes nothing: no delay, no rate limit, no errors.
    pub fn transparent() -> Scenario {
        let source = Arc::new(Source { name: "built in".into(), text: String::new(), is_file: false });
        let place = Place::whole(&source);
        let hop = HopTree {
            name: ONLY_HOP.into(),
            place,
            host: None,
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
        Scenario {
            name: None,
            description: None,
            source: None,
            mtu: None,
            media: Vec::new(),
            paths: vec![path],
            hosts: Vec::new(),
        }
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

    /// The paths that a parameter of hops concerns: that whose name comes first, or all that have the hop.
    pub(crate) fn concerned<'a>(&self, parameter: &'a str) -> Concerned<'a> {
        let (first, rest) = parameter.split_once('.').unwrap_or((parameter, ""));
        let first = first.trim();
        if self.has_named_paths()
            && let Some(number) = self.paths.iter().position(|path| path.name == first)
        {
            return Concerned { paths: vec![number], parameter: rest, named: Some(first) };
        }
        let has_hop = |number: &usize| self.paths[*number].hops.iter().any(|hop| hop.name == first);
        Concerned { paths: (0..self.paths.len()).filter(has_hop).collect(), parameter, named: None }
    }

    /// True if names of parameters may begin with that of a path.
    fn has_named_paths(&self) -> bool {
        self.paths.len() > 1 || self.is_cell()
    }

    /// The error for a parameter that concerns no path.
    pub(crate) fn unknown_hop(&self, parameter: &str, place: &Place) -> Diagnostic {
        let mut names: Vec<&str> = self.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut problem = parameter::unknown_hop(parameter, place, names, "");
        if self.paths.len() > 1 {
            let (first, rest) = parameter.split_once('.').unwrap_or((parameter, ""));
            let first = first.trim();
            let paths = || self.paths.iter().map(|path| path.name.as_str());
            problem.message = format!(
                "there is no user or hop `{first}`; a parameter is named HOP.link.KEY for all users who have the hop, \
                 or USER.HOP.link.KEY for one"
            );
            problem.valid.extend(paths().take(SHOWN_PATHS).map(|path| format!("{path}.…")));
            if self.paths.len() > SHOWN_PATHS {
                problem.valid.push(format!("and {} more users", self.paths.len() - SHOWN_PATHS));
            }
            let nearest = nearest(first, paths()).map(|path| join(path, rest));
            problem.suggestion = problem.suggestion.or(nearest);
        }
        problem
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
        if self.has_named_paths()
            && let Some(named) = self.paths.iter_mut().find(|named| named.name == first.trim())
        {
            return match background_of(named, rest) {
                Some(rest) => named::set(&background::LIST, named.background.iter_mut(), rest, place, node, first),
                None => parameter::apply(&mut named.hops, rest, place, node, first),
            };
        }
        if self.paths.iter().all(|one| background_of(one, path).is_some()) {
            let loads = self.paths.iter_mut().flat_map(|path| &mut path.background);
            return named::set(&background::LIST, loads, rest, place, node, "");
        }
        let Concerned { paths, .. } = self.concerned(path);
        if paths.is_empty() {
            return Err(self.unknown_hop(path, place).into());
        }
        paths.into_iter().try_for_each(|number| parameter::apply(&mut self.paths[number].hops, path, place, node, ""))
    }
}

/// Number of paths that an error names.
const SHOWN_PATHS: usize = 20;

/// The paths that a parameter of hops concerns.
#[derive(Debug)]
pub(crate) struct Concerned<'a> {
    /// Their numbers, in order; none where no path has the hop.
    pub(crate) paths: Vec<usize>,
    /// Its name in each of them.
    pub(crate) parameter: &'a str,
    /// Name of the path, where the parameter's begins with it.
    pub(crate) named: Option<&'a str>,
}

/// A parameter and its value, as in `radio.link.rate=64 kbit/s`.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    path: String,
    /// Prefix in messages.
    prefix: String,
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
        Ok(Assignment { path: path.trim().into(), prefix: String::new(), place, node })
    }

    /// The same in a run that goes on: the numbers of the paths that it concerns, and what is assigned in each.
    pub(crate) fn of_running(self, scenario: &Scenario) -> Result<(Vec<usize>, Assignment), Report> {
        if scenario.is_cell() && self.path.split('.').next().map(str::trim) == Some(media::KEY) {
            let message = "a medium that users share stays as it is during a run; parameters of hops can change";
            return Err(Diagnostic::at(&self.place, self.path.as_str(), message).into());
        }
        let Concerned { paths, parameter, named } = scenario.concerned(&self.path);
        if paths.is_empty() {
            return Err(scenario.unknown_hop(&self.path, &self.place).into());
        }
        let prefix = named.filter(|_| scenario.paths.len() > 1).unwrap_or_default().to_string();
        Ok((paths, Assignment { path: parameter.into(), prefix, ..self }))
    }

    /// Sets the parameter at the beginning of `scenario`.
    fn apply(&self, scenario: &mut Scenario) -> Result<(), Report> {
        scenario.set_node(&self.path, &self.place, &self.node)
    }

    /// Sets the parameter of one of `hops`.
    pub(crate) fn apply_to(&self, hops: &mut [HopTree]) -> Result<(), Report> {
        parameter::apply(hops, &self.path, &self.place, &self.node, &self.prefix)
    }
}

/// Rest of the name of a parameter, if it is that of a background load.
fn background_of<'a>(path: &PathTree, parameter: &'a str) -> Option<&'a str> {
    let (first, rest) = parameter.split_once('.').unwrap_or((parameter, ""));
    let is_hop = path.hops.iter().any(|hop| hop.name == background::KEY);
    (first.trim() == background::KEY && !is_hop).then_some(rest)
}
