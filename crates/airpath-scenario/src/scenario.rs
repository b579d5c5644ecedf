// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The scenario: read, changed by name, and turned into the configuration of paths.

use std::sync::Arc;

use airpath_core::{Event, Span};
use airpath_models::PathConfig;

use crate::background::{self, BackgroundTree};
use crate::build::PathTree;
use crate::check::{Checker, join};
use crate::document::{Key, Node, Place, Source, Table, Value, parse_document, parse_value};
use crate::format::RAW;
use crate::merge::merge;
use crate::parameter::{self, Side, in_order};
use crate::report::{Diagnostic, Report};
use crate::states::{StateTree, StayTree, beginning_problem};
use crate::tree::HopTree;

/// A scenario: paths with their hops and states, and what the user says about it.
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

/// Limits on everything: far above what anyone needs, below what would exhaust a machine.
const HOPS: usize = 64;
const STATES: usize = 10_000;
const PATHS: usize = 10_000;
const LOADS: usize = 1_000;

impl Scenario {
    /// Reads a scenario; `origin` is the name of the file for messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(text: &str, origin: &str) -> Result<Scenario, Report> {
        let source = Arc::new(Source { name: origin.into(), text: text.into(), is_file: true });
        let document = parse_document(&source)?;
        let mut reader = Reader { problems: Vec::new(), source };
        let scenario = reader.scenario(&document);
        let mut problems = reader.problems;
        if let Err(report) = scenario.paths() {
            problems.extend(report.problems().iter().cloned());
        }
        if problems.is_empty() {
            return Ok(scenario);
        }
        problems.sort_by_key(|problem| problem.offset);
        Err(Report::new(problems))
    }

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
        Scenario { name: None, description: None, source: None, mtu: None, paths: vec![path] }
    }

    /// The configuration of every path.
    ///
    /// # Errors
    /// Everything that is wrong with the parameters, where [`Scenario::set`] or
    /// [`Scenario::apply_plain`] made them wrong.
    pub fn paths(&self) -> Result<Vec<NamedPath>, Report> {
        let (mut paths, mut problems) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let prefix = if self.paths.len() > 1 { path.name.as_str() } else { "" };
            match path.config(prefix) {
                Ok(config) => paths.push(NamedPath { name: path.name.clone(), config }),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(paths) } else { Err(Report::new(problems)) }
    }

    /// Sets one parameter of the beginning: `radio.link.rate=64 kbit/s`. The value is TOML, or text
    /// whose quotes the shell has eaten. States build on the changed parameters; what a state sets
    /// itself stays. With several paths the name may begin with that of one of them; otherwise it
    /// concerns every path that has the hop. `background.NAME.KEY` is a parameter of a background load.
    ///
    /// # Errors
    /// When the assignment names no hop or direction. Whether the key exists and the value fits, and
    /// whether all fits together, is told by [`Scenario::paths`], once everything has been set.
    pub fn set(&mut self, assignment: &str) -> Result<(), Report> {
        Assignment::read(assignment, &format!("--set {assignment}"))?.apply(self)
    }

    pub(crate) fn set_node(&mut self, path: &str, place: &Place, node: &Node) -> Result<(), Report> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let several = self.paths.len() > 1;
        if several && let Some(named) = self.paths.iter_mut().find(|named| named.name == first.trim()) {
            return match background_of(named, rest) {
                Some(rest) => background::set(named.background.iter_mut(), rest, place, node, first),
                None => parameter::apply(&mut named.hops, rest, place, node, first),
            };
        }
        if self.paths.iter().all(|one| background_of(one, path).is_some()) {
            let loads = self.paths.iter_mut().flat_map(|path| &mut path.background);
            return background::set(loads, rest, place, node, "");
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

/// Reads a document, and goes on after what is wrong.
struct Reader {
    problems: Vec<Diagnostic>,
    source: Arc<Source>,
}

/// True if a key of the document holds parameters, which are checked after they are combined.
fn holds_parameters(key: &str) -> bool {
    let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
    let is_load = name.strip_suffix(']').and_then(|name| name.split_once('[')).map(|(list, _)| list);
    is_load == Some(background::KEY) || parent.ends_with(']') && (Side::of(name).is_some() || name == "set")
}

fn tables<'a>(table: &'a Table, key: &str) -> Vec<(&'a Node, &'a Table)> {
    match table.get(key).map(|node| &node.value) {
        Some(Value::Array(nodes)) => nodes.iter().filter_map(|node| Some((node, node.as_table()?))).collect(),
        _ => Vec::new(),
    }
}

fn text(table: &Table, key: &str) -> Option<String> {
    Some(table.get(key)?.as_text()?.to_string())
}

impl Reader {
    fn scenario(&mut self, document: &Node) -> Scenario {
        let mut checker = Checker { root: &RAW, skip: &holds_parameters, by_name: false, findings: Vec::new() };
        checker.check(document, &RAW, "");
        self.problems.extend(checker.findings.into_iter().map(|finding| finding.into_diagnostic("")));
        let empty = Table::default();
        let table = document.as_table().unwrap_or(&empty);
        let mtu = match table.get("mtu").map(|node| &node.value) {
            Some(Value::Integer(number)) => u32::try_from(*number).ok(),
            _ => None,
        };
        Scenario {
            name: text(table, "name"),
            description: text(table, "description"),
            source: text(table, "source"),
            mtu,
            paths: self.paths(table),
        }
    }

    fn problem(&mut self, place: &Place, key: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Diagnostic::at(place, key, message));
    }

    fn paths(&mut self, table: &Table) -> Vec<PathTree> {
        let Some((paths_key, _)) = table.entry("paths") else {
            if table.get("hops").is_none() {
                let place = Place { source: self.source.clone(), span: 0..0, dotted: false };
                self.problem(&place, "hops", "there is no hop; a scenario has at least one [[hops]]");
            }
            return vec![self.path(table, ONLY_PATH.into(), "")];
        };
        for key in ["hops", "states", background::KEY] {
            if let Some((own, _)) = table.entry(key) {
                let message = format!("beside [[paths]] there are no [[{key}]]; write them as [[paths.{key}]]");
                self.problem(&own.place, key, message);
            }
        }
        let written = tables(table, "paths");
        if written.is_empty() || written.len() > PATHS {
            self.problem(&paths_key.place, "paths", format!("there must be from 1 to {PATHS} paths"));
            return Vec::new();
        }
        let mut paths: Vec<PathTree> = Vec::new();
        for (index, (node, table)) in written.into_iter().enumerate() {
            let key = format!("paths[{index}]");
            let name = text(table, "name").unwrap_or_default();
            let place = table.entry("name").map_or(&node.place, |(_, node)| &node.place).clone();
            self.name(&name, &place, &key, "path", paths.iter().map(|path| path.name.as_str()));
            let path = self.path(table, name, &key);
            paths.push(path);
        }
        for path in &paths {
            if let Some(hop) = paths.iter().flat_map(|path| &path.hops).find(|hop| hop.name == path.name) {
                let message = format!(
                    "`{}` is the name of both a path and a hop, which makes their parameters ambiguous",
                    hop.name
                );
                self.problem(&hop.place.clone(), "paths", message);
            }
        }
        paths
    }

    /// Checks the syntax of a name and that it is the first of its kind.
    fn name<'a>(
        &mut self,
        name: &str,
        place: &Place,
        key: &str,
        what: &str,
        others: impl IntoIterator<Item = &'a str>,
    ) {
        let key = join(key, "name");
        let valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if others.into_iter().any(|other| other == name) && !name.is_empty() {
            self.problem(place, key, format!("there are two {what}s called `{name}`"));
        } else if Side::of(name).is_some() {
            self.problem(place, key, format!("`{name}` names a direction and cannot be the name of a {what}"));
        } else if !valid && !self.problems.iter().any(|problem| problem.key == key) {
            let message = format!(
                "`{name}` is not a valid name for a {what}; use a letter, then letters, digits, `_` or `-`, as in `{what}-1`"
            );
            self.problem(place, key, message);
        }
    }

    fn path(&mut self, table: &Table, name: String, key: &str) -> PathTree {
        let written = tables(table, "hops");
        let count = written.len();
        if let Some((own, node)) = table.entry("hops")
            && matches!(&node.value, Value::Array(nodes) if nodes.is_empty() || nodes.len() > HOPS)
        {
            self.problem(&own.place, join(key, "hops"), format!("a path has from 1 to {HOPS} hops"));
        } else if !key.is_empty() && table.get("hops").is_none() {
            let message = "there is no hop; a path has at least one [[paths.hops]]";
            let place = table.0.first().map(|(key, _)| key.place.clone());
            self.problem(&place.unwrap_or(Place::whole(&self.source)), join(key, "hops"), message);
        }
        let mut hops: Vec<HopTree> = Vec::new();
        for (index, (node, table)) in written.into_iter().enumerate() {
            let key = join(key, &format!("hops[{index}]"));
            let default = if count == 1 { ONLY_HOP.to_string() } else { format!("hop{}", index + 1) };
            let name = text(table, "name").unwrap_or(default);
            let place = table.entry("name").map_or(&node.place, |(_, node)| &node.place).clone();
            self.name(&name, &place, &key, "hop", hops.iter().map(|hop| hop.name.as_str()));
            let side = |side: Side| table.get(side.name()).and_then(Node::as_table).cloned().unwrap_or_default();
            let link = side(Side::Link);
            hops.push(HopTree {
                name,
                place,
                uplink: merge(&link, &side(Side::Uplink)),
                downlink: merge(&link, &side(Side::Downlink)),
                link,
            });
        }
        let (states, initial) = self.states(table, key);
        let background = self.background(table, key);
        PathTree { name, hops, states, initial, background }
    }

    fn background(&mut self, table: &Table, key: &str) -> Vec<BackgroundTree> {
        let mut loads: Vec<BackgroundTree> = Vec::new();
        let written = tables(table, background::KEY);
        if written.len() > LOADS {
            let place = table.entry(background::KEY).map_or(Place::whole(&self.source), |(key, _)| key.place.clone());
            self.problem(&place, join(key, background::KEY), format!("a path has at most {LOADS} background loads"));
            return loads;
        }
        for (node, table) in written {
            let name = text(table, "name").unwrap_or_default();
            if let Some((_, written)) = table.entry("name").filter(|(_, node)| node.as_text().is_some()) {
                let others = loads.iter().map(|load| load.name.as_str());
                self.name(&name, &written.place, &join(key, background::KEY), "background load", others);
            }
            loads.push(BackgroundTree { name, place: node.place.clone(), table: table.clone() });
        }
        loads
    }

    /// The states, and what is said of the beginning's.
    fn states(&mut self, table: &Table, key: &str) -> (Vec<StateTree>, StayTree) {
        let mut states: Vec<StateTree> = Vec::new();
        let mut initial = None;
        let written = tables(table, "states");
        if written.len() > STATES {
            let place = table.entry("states").map_or(Place::whole(&self.source), |(key, _)| key.place.clone());
            self.problem(&place, join(key, "states"), format!("a path has at most {STATES} states"));
            return (states, StayTree::default());
        }
        for (index, (node, table)) in written.into_iter().enumerate() {
            let key = join(key, &format!("states[{index}]"));
            let name = text(table, "name").unwrap_or_default();
            let place = table.entry("name").map_or(&node.place, |(_, node)| &node.place).clone();
            if name == Event::INITIAL_STATE {
                if initial.is_some() {
                    self.problem(&place, join(&key, "name"), format!("there are two states called `{name}`"));
                }
                self.problems.extend(beginning_problem(table, &place, &key));
                initial = Some(StayTree::of(table, &key));
                continue;
            }
            self.name(&name, &place, &key, "state", states.iter().map(|state| state.name.as_str()));
            let at = table.get("at").and_then(Node::as_text).and_then(|text| text.parse::<Span>().ok());
            if let Some(other) = states.iter().find(|state| at.is_some() && state.at == at) {
                let message = format!("state `{}` begins at the same time", other.name);
                let place = table.get("at").map_or(&place, |node| &node.place).clone();
                self.problem(&place, join(&key, "at"), message);
            }
            let set = table.get("set").and_then(Node::as_table).cloned().unwrap_or_default();
            let sets = in_order(&set).into_iter().map(|(key, node)| (as_path(key), node.clone())).collect();
            states.push(StateTree { name, at, sets, stay: StayTree::of(table, &key) });
        }
        (states, initial.unwrap_or_default())
    }
}

/// The key of a `set`: a parameter path.
fn as_path(key: &Key) -> Key {
    Key { name: key.name.clone(), place: Place { dotted: key.name.contains('.'), ..key.place.clone() } }
}
