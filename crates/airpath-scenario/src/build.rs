// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From checked documents to the configuration of paths: hops as trees of parameters, and from those
//! the types that the models read.

use airpath_core::{Direction, Event, Time};
use airpath_models::filter_list::FilterList;
use airpath_models::{HopConfig, LinkConfig, PathConfig, StateConfig};
use serde::Deserialize;

use crate::background;
use crate::check::{Checker, Finding, Kind, join};
use crate::document::{Node, Place, Table, Value};
use crate::files::Beside;
use crate::format::{LINK, RAW};
use crate::locate::{locate, present};
use crate::media;
use crate::merge::over_defaults;
use crate::named::NamedTable;
use crate::parameter::{self, Side};
use crate::report::Diagnostic;
use crate::states::{StateTree, StayTree};
use crate::tree::HopTree;

/// A path as it was written.
#[derive(Clone, Debug)]
pub struct PathTree {
    pub name: String,
    pub hops: Vec<HopTree>,
    pub states: Vec<StateTree>,
    /// Duration and successor of the initial state.
    pub initial: StayTree,
    pub background: Vec<NamedTable>,
}

impl PathTree {
    /// The path's configuration. `prefix` goes before the names of parameters in messages.
    ///
    /// # Errors
    /// Everything that is wrong with its parameters.
    pub fn config(&self, prefix: &str) -> Result<PathConfig, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let hops = configs(&self.hops, None, prefix, &mut problems);
        for place in PathConfig::other_framings(&hops) {
            let hop = &self.hops[place];
            let name = join(&join(prefix, &hop.name), "link.entity.ppp.stuffing");
            let message = "is \"counted\" as on a hop before, with other fields, FCS or accm of PPP; escapes are \
                           counted once for each packet: write the same `ppp`, or a share of octets";
            problems.push(Diagnostic::at(&hop.place, name, message));
        }
        let names: Vec<&str> =
            std::iter::once(Event::INITIAL_STATE).chain(self.states.iter().map(|state| state.name.as_str())).collect();
        let initial = self.initial.stay(&names, &mut problems);
        let mut states = Vec::new();
        for state in &self.states {
            let stay = state.stay.stay(&names, &mut problems);
            let mut own = Vec::new();
            let trees = self.hops_in(state, prefix, &mut own);
            let hops = configs(&trees, Some(&hops), prefix, &mut own);
            for mut problem in own {
                if !problems.iter().any(|known| same(known, &problem)) {
                    problem.message = format!("{} (in state `{}`)", problem.message, state.name);
                    problems.push(problem);
                }
            }
            states.push(StateConfig { name: state.name.clone(), at: state.at.map(|at| Time::ZERO + at), hops, stay });
        }
        let names: Vec<&str> = self.hops.iter().map(|hop| hop.name.as_str()).collect();
        let mut background = Vec::new();
        for load in &self.background {
            match background::config(load, &names, prefix) {
                Ok(config) => background.push(config),
                Err(more) => problems.extend(more),
            }
        }
        let mut filters = FilterList::default();
        let mut all = std::iter::once(&hops).chain(states.iter().map(|state| &state.hops));
        let too_many: Result<(), String> = all.try_for_each(|hops| filters.add(hops));
        if let (Err(message), Some(first)) = (too_many, self.hops.first()) {
            problems.push(Diagnostic::at(&first.place, prefix.to_string(), message));
        }
        if problems.is_empty() { Ok(PathConfig { hops, states, initial, background }) } else { Err(problems) }
    }

    /// The hops with what `state` sets laid over them.
    pub fn hops_in(&self, state: &StateTree, prefix: &str, problems: &mut Vec<Diagnostic>) -> Vec<HopTree> {
        let mut trees = self.hops.clone();
        for (key, node) in &state.sets {
            let first = key.name.split('.').next();
            let names_load = first == Some(background::KEY);
            if first == Some(media::KEY) && !self.hops.iter().any(|hop| hop.name == media::KEY) {
                let message = "states change parameters of hops; a medium that users share stays as it is";
                problems.push(Diagnostic::at(&key.place, join(prefix, &key.name), message));
            } else if names_load && !self.hops.iter().any(|hop| hop.name == background::KEY) {
                let message = "states change parameters of hops; a background load stays as it is, \
                               from `start` to `stop`";
                problems.push(Diagnostic::at(&key.place, join(prefix, &key.name), message));
            } else if let Err(report) = parameter::apply(&mut trees, &key.name, &key.place, node, prefix) {
                problems.extend(report.problems().iter().cloned());
            }
        }
        trees
    }
}

/// True if both tell of the same mistake at the same place.
pub fn same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.origin, one.offset, &one.message) == (&other.origin, other.offset, &other.message)
}

/// The configurations of `hops`, which at the beginning of the run were `beginning`, unless this is the
/// beginning; what is wrong with them goes to `problems`.
pub fn configs(
    hops: &[HopTree],
    beginning: Option<&[HopConfig]>,
    prefix: &str,
    problems: &mut Vec<Diagnostic>,
) -> Vec<HopConfig> {
    let configs: Vec<HopConfig> = hops
        .iter()
        .map(|hop| {
            let (uplink, of_uplink) = link_config(&hop.uplink, hop);
            let (downlink, of_downlink) = link_config(&hop.downlink, hop);
            problems.extend(of_hop(hop, prefix, of_uplink, of_downlink));
            HopConfig::new(hop.name.clone(), uplink, downlink)
        })
        .collect();
    // A hop with mistakes has the default in their place, which would be told as a change of its kind.
    let comparable = if problems.is_empty() { hops.len() } else { 0 };
    for (index, (hop, config)) in hops.iter().zip(&configs).enumerate().take(comparable) {
        let first = beginning.and_then(|beginning| beginning.get(index)).unwrap_or(config);
        for problem in config.kind_problems(first) {
            let places = [&hop.uplink, &hop.downlink].map(|link| locate(link, &problem.key));
            let place = places.into_iter().flatten().next().unwrap_or(&hop.place).clone();
            let name = join(&join(prefix, &hop.name), &join(Side::Link.name(), &problem.key));
            problems.push(Diagnostic::at(&place, name, problem.message));
        }
    }
    for (index, direction) in PathConfig::windows_behind_bearers(&configs) {
        let hop = &hops[index];
        let link = if direction == Direction::Uplink { &hop.uplink } else { &hop.downlink };
        let place = locate(link, "flow_control").unwrap_or(&hop.place).clone();
        let name = join(&join(prefix, &hop.name), &join(direction.name(), "flow_control"));
        let message = "counts packets that come from a hop with bearers, whose queues have no window in common; leave it \
                       out, or the bearers of the hop before";
        problems.push(Diagnostic::at(&place, name, message));
    }
    configs
}

/// Joins the findings of both directions: what is wrong with `link` is told once.
fn of_hop(hop: &HopTree, prefix: &str, uplink: Vec<Finding>, downlink: Vec<Finding>) -> Vec<Diagnostic> {
    let equal = |one: &Finding, other: &Finding| {
        one.place.is(&other.place) && one.key == other.key && one.message == other.message
    };
    let mut all: Vec<(Side, Finding)> = Vec::new();
    for finding in uplink {
        let both = downlink.iter().any(|other| equal(&finding, other)) || holds(&hop.link, &finding.place);
        all.push((if both { Side::Link } else { Side::Uplink }, finding));
    }
    for finding in downlink {
        if !all.iter().any(|(_, other)| equal(&finding, other)) {
            let both = holds(&hop.link, &finding.place);
            all.push((if both { Side::Link } else { Side::Downlink }, finding));
        }
    }
    // A value which both directions override is still a value that somebody wrote.
    for finding in check_link(&hop.link) {
        if finding.kind == Kind::Value && !all.iter().any(|(_, other)| equal(&finding, other)) {
            all.push((Side::Link, finding));
        }
    }
    let base = |side: Side| join(&join(prefix, &hop.name), side.name());
    all.into_iter().map(|(side, finding)| finding.into_diagnostic(&base(side))).collect()
}

/// True if something in `table` was written at `place`.
fn holds(table: &Table, place: &Place) -> bool {
    table.0.iter().any(|(key, node)| key.place.is(place) || node_holds(node, place))
}

fn node_holds(node: &Node, place: &Place) -> bool {
    node.place.is(place)
        || match &node.value {
            Value::Table(inner) => holds(inner, place),
            Value::Array(nodes) => nodes.iter().any(|node| node_holds(node, place)),
            _ => false,
        }
}

fn check_link(link: &Table) -> Vec<Finding> {
    let mut checker = Checker { root: &RAW, skip: &|_| false, by_name: true, findings: Vec::new() };
    // The place of the table itself is used only for missing keys, of which a link has none.
    if let Some((key, _)) = link.0.first() {
        let node = Node { place: key.place.clone(), value: Value::Table(over_defaults(link)) };
        checker.check(&node, &LINK, "");
    }
    checker.findings
}

/// Advice where `--loss` is what is wrong, because it loses packets.
fn losing_packets(found: &Finding, hop: &str) -> Option<String> {
    let source = &found.place.source;
    if found.key != "errors.per" || source.is_file || !source.name.starts_with("--loss ") {
        return None;
    }
    let probability = source.text.split(',').next().unwrap_or_default().trim();
    Some(format!(
        "loses packets, and this entity puts several packets into a frame; instead of --loss write \
         --set '{hop}.link.errors={{ type = \"bernoulli\", probability = \"{probability}\", per = \"frame\" }}'"
    ))
}

fn link_config(link: &Table, hop: &HopTree) -> (LinkConfig, Vec<Finding>) {
    let findings = check_link(link);
    if !findings.is_empty() {
        return (LinkConfig::default(), findings);
    }
    let tree = over_defaults(link);
    let finding = |key: String, message: String| {
        let place = locate(&tree, &key).unwrap_or(&hop.place).clone();
        Finding { place, key, message, word: None, suggestion: None, kind: Kind::Value }
    };
    match LinkConfig::deserialize(present(&tree, &LINK)) {
        Ok(mut config) => {
            let mut unreadable = Vec::new();
            config.files(&mut |key, file| {
                let place = locate(&tree, key).unwrap_or(&hop.place);
                if let Err(message) = file.load(&mut Beside(&place.source)) {
                    unreadable.push(finding(key.to_string(), message));
                }
            });
            if !unreadable.is_empty() {
                return (LinkConfig::default(), unreadable);
            }
            let mut problems: Vec<Finding> =
                config.problems().into_iter().map(|problem| finding(problem.key, problem.message)).collect();
            for found in &mut problems {
                if let Some(message) = losing_packets(found, &hop.name) {
                    found.message = message;
                }
            }
            (config, problems)
        }
        // The schema said that it was right, so the message has to do without an exact place.
        Err(error) => (LinkConfig::default(), vec![finding(String::new(), error.message().to_string())]),
    }
}

impl Finding {
    /// The finding as told to the user; `base` goes before its key.
    pub fn into_diagnostic(self, base: &str) -> Diagnostic {
        let key = if self.key.is_empty() { base.to_string() } else { join(base, &self.key) };
        let mut diagnostic = Diagnostic::at(&self.place, key.clone(), self.message);
        if let Some((word, valid)) = self.word {
            diagnostic = diagnostic.nearest_of(&word, valid.iter().map(String::as_str));
        }
        if self.suggestion.is_some() {
            diagnostic.suggestion = self.suggestion;
        }
        if let (true, Kind::Unknown, Some(suggestion)) = (self.place.dotted, self.kind, &mut diagnostic.suggestion) {
            let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
            *suggestion = join(parent, suggestion);
        }
        diagnostic
    }
}
