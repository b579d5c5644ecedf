// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From a document to a scenario: which tables there are, and what they are called.

use std::sync::Arc;

use airpath_core::{Event, Span};

use crate::background;
use crate::build::PathTree;
use crate::check::{Checker, join};
use crate::document::{Key, Node, Place, Source, Table, Value, parse_document};
use crate::format::RAW;
use crate::hosts::{self, HostTree};
use crate::media;
use crate::merge::merge;
use crate::named::NamedTable;
use crate::parameter::{Side, in_order};
use crate::report::{Diagnostic, Report};
use crate::scenario::{ONLY_HOP, ONLY_PATH, Scenario};
use crate::states::{StateTree, StayTree, beginning_problem};
use crate::tree::HopTree;

/// Limits on everything: far above what anyone needs, below what would exhaust a machine.
const HOPS: usize = 64;
const STATES: usize = 10_000;
const PATHS: usize = 10_000;
const LOADS: usize = 1_000;
const MEDIA: usize = 1_000;

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
}

/// Reads a document, and goes on after what is wrong.
struct Reader {
    problems: Vec<Diagnostic>,
    source: Arc<Source>,
}

/// True if a key of the document holds parameters, which are checked after they are combined.
fn holds_parameters(key: &str) -> bool {
    let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
    let list = name.strip_suffix(']').and_then(|name| name.split_once('[')).map(|(list, _)| list);
    matches!(list, Some(background::KEY | media::KEY))
        || parent.ends_with(']') && (Side::of(name).is_some() || name == "set")
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
        let paths = self.paths(table);
        let media = self.media(table, &paths);
        Scenario {
            name: text(table, "name"),
            description: text(table, "description"),
            source: text(table, "source"),
            mtu,
            media,
            paths,
            hosts: self.hosts(table),
        }
    }

    fn problem(&mut self, place: &Place, key: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Diagnostic::at(place, key, message));
    }

    /// The media, with names that no path or hop has.
    fn media(&mut self, table: &Table, paths: &[PathTree]) -> Vec<NamedTable> {
        let Some((list, _)) = table.entry(media::KEY) else { return Vec::new() };
        let written = tables(table, media::KEY);
        if written.len() > MEDIA {
            self.problem(&list.place, media::KEY, format!("there are at most {MEDIA} media"));
            return Vec::new();
        }
        let media = self.named(written, media::KEY, media::LIST.noun);
        let of_paths = paths.iter().filter(|path| path.name != ONLY_PATH || paths.len() > 1);
        let of_paths = of_paths.map(|path| ("path", &path.name, None));
        let of_hops = paths.iter().flat_map(|path| &path.hops).map(|hop| ("hop", &hop.name, Some(&hop.place)));
        let mut told: Vec<&str> = Vec::new();
        for (what, name, place) in of_paths.chain(of_hops) {
            let medium = media.iter().find(|medium| medium.name == *name);
            if told.contains(&name.as_str()) || (medium.is_none() && name != media::KEY) {
                continue;
            }
            told.push(name);
            let message = match medium {
                Some(_) => format!(
                    "`{name}` is the name of both a medium and a {what}, which makes their parameters ambiguous"
                ),
                None => format!(
                    "beside [[{name}]] no {what} can be called `{name}`, which begins the names of the media's \
                     parameters; choose another name"
                ),
            };
            let place = medium.map(|medium| &medium.place).or(place).unwrap_or(&list.place).clone();
            self.problem(&place, join(media::KEY, name), message);
        }
        media
    }

    fn hosts(&mut self, table: &Table) -> Vec<HostTree> {
        let mut hosts: Vec<HostTree> = Vec::new();
        for (key, node) in table.get(hosts::KEY).and_then(Node::as_table).map_or(&[][..], |table| table.0.as_slice()) {
            self.name(&key.name, &key.place, hosts::KEY, "host", hosts.iter().map(|host| host.name.as_str()));
            if key.name == hosts::HERE {
                let message = format!("`{}` is the host on which the command runs; choose another name", hosts::HERE);
                self.problem(&key.place, join(hosts::KEY, &key.name), message);
            }
            hosts.extend(HostTree::read(&key.name, &key.place, node));
        }
        hosts
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
            self.problem(place, key, format!("there are two {} called `{name}`", plural(what)));
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
                host: table.entry("host").and_then(|(_, node)| Some((node.as_text()?.to_string(), node.place.clone()))),
                uplink: merge(&link, &side(Side::Uplink)),
                downlink: merge(&link, &side(Side::Downlink)),
                link,
            });
        }
        let (states, initial) = self.states(table, key);
        let background = self.background(table, key);
        PathTree { name, hops, states, initial, background }
    }

    fn background(&mut self, table: &Table, key: &str) -> Vec<NamedTable> {
        let written = tables(table, background::KEY);
        if written.len() > LOADS {
            let place = table.entry(background::KEY).map_or(Place::whole(&self.source), |(key, _)| key.place.clone());
            self.problem(&place, join(key, background::KEY), format!("a path has at most {LOADS} background loads"));
            return Vec::new();
        }
        self.named(written, &join(key, background::KEY), background::LIST.full_noun)
    }

    /// The named tables of the list at `key`.
    fn named(&mut self, written: Vec<(&Node, &Table)>, key: &str, noun: &str) -> Vec<NamedTable> {
        let mut all: Vec<NamedTable> = Vec::new();
        for (node, table) in written {
            let name = text(table, "name").unwrap_or_default();
            if let Some((_, written)) = table.entry("name").filter(|(_, node)| node.as_text().is_some()) {
                self.name(&name, &written.place, key, noun, all.iter().map(|one| one.name.as_str()));
            }
            all.push(NamedTable { name, place: node.place.clone(), table: table.clone() });
        }
        all
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

fn plural(noun: &str) -> String {
    noun.strip_suffix("um").map_or_else(|| format!("{noun}s"), |stem| format!("{stem}a"))
}

/// The key of a `set`: a parameter path.
fn as_path(key: &Key) -> Key {
    Key { name: key.name.clone(), place: Place { dotted: key.name.contains('.'), ..key.place.clone() } }
}
