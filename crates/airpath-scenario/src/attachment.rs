// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The attachment of hops to media that users share: which medium a hop names, and whether the two fit.

use airpath_core::Direction;
use airpath_models::HopConfig;
use airpath_models::cell::MediumOfCell;

use crate::build::{PathTree, same};
use crate::check::join;
use crate::document::{Place, Table};
use crate::locate::locate;
use crate::media::KEY;
use crate::named::NamedTable;
use crate::parameter::Side;
use crate::report::Diagnostic;
use crate::scenario::NamedPath;
use crate::tree::HopTree;

/// The key of a link that names a medium.
const MEDIUM: &str = "medium";

/// Errors in the attachment of `paths`, which were written as `trees`, to the media written as `tables` and read as
/// `media`. `prefixed` says that names of parameters begin with that of a path.
pub fn problems(
    trees: &[PathTree],
    paths: &[NamedPath],
    tables: &[NamedTable],
    media: &[MediumOfCell],
    prefixed: bool,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for path in paths {
        let Some(tree) = trees.iter().find(|tree| tree.name == path.name) else { continue };
        let prefix = if prefixed { path.name.as_str() } else { "" };
        for (hop, config) in tree.hops.iter().zip(&path.config.hops) {
            problems.extend(of_hop(hop, config, prefix, tables, media));
        }
        for (state, config) in tree.states.iter().zip(&path.config.states) {
            let hops = tree.hops_in(state, prefix, &mut Vec::new());
            let found =
                hops.iter().zip(&config.hops).flat_map(|(hop, config)| of_hop(hop, config, prefix, tables, media));
            for mut problem in found.collect::<Vec<_>>() {
                if !problems.iter().any(|known| same(known, &problem)) {
                    problem.message = format!("{} (in state `{}`)", problem.message, state.name);
                    problems.push(problem);
                }
            }
        }
    }
    let is_on = |name: &str| {
        let mut hops = paths.iter().flat_map(|path| &path.config.hops);
        hops.any(|hop| Direction::ALL.iter().any(|way| hop.link(*way).medium.name() == Some(name)))
    };
    // A path that could not be read may be on any medium.
    for table in tables.iter().filter(|table| paths.len() == trees.len() && !is_on(&table.name)) {
        let message = format!(
            "there is no hop on this medium; write medium = \"{}\" under `link`, `uplink` or `downlink` of a hop, or \
             remove the medium",
            table.name
        );
        problems.push(Diagnostic::at(&table.place, join(KEY, &table.name), message));
    }
    // Nor may names be unknown that a path has which could not be read.
    for medium in media.iter().filter(|_| paths.len() == trees.len()) {
        let Some(table) = tables.iter().find(|table| table.name == medium.name) else { continue };
        let names = medium.bearer_names(paths.iter().map(|path| (path.name.as_str(), &path.config)));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = medium.config.bearer_problems(&names).into_iter();
        let base = join(KEY, &table.name);
        problems.extend(found.map(|problem| table.finding(&problem.key, problem.message).into_diagnostic(&base)));
    }
    problems
}

/// Errors in the attachment of a hop; what concerns both directions is told once.
fn of_hop(
    hop: &HopTree,
    config: &HopConfig,
    prefix: &str,
    tables: &[NamedTable],
    media: &[MediumOfCell],
) -> Vec<Diagnostic> {
    let sides = [(Direction::Uplink, Side::Uplink, &hop.uplink), (Direction::Downlink, Side::Downlink, &hop.downlink)];
    let mut found: Vec<(Side, Diagnostic)> = Vec::new();
    for (direction, side, link) in sides {
        let Some(name) = config.link(direction).medium.name() else { continue };
        let mut all = Vec::new();
        if !tables.iter().any(|table| table.name == name) {
            all.push((MEDIUM.to_string(), unknown(name, tables)));
        } else if let Some(MediumOfCell { config: medium, .. }) = media.iter().find(|medium| medium.name == name) {
            if medium.carries(direction) {
                for (index, bearer) in config.of_bearers().iter().enumerate() {
                    for problem in medium.hop_problems(bearer, direction) {
                        let problem = config.bearer_problem(index, direction, problem);
                        if !all.iter().any(|(key, known): &(String, Diagnosis)| {
                            *key == problem.key && known.message == problem.message
                        }) {
                            all.push((problem.key, Diagnosis::of(problem.message)));
                        }
                    }
                }
            } else {
                all.push((MEDIUM.to_string(), Diagnosis::of(carries_nothing(name, direction))));
            }
        }
        for (key, Diagnosis { message, word }) in all {
            let place = place_of(hop, link, &key);
            let diagnostic = |side: Side| {
                let base = join(&join(prefix, &hop.name), side.name());
                let diagnostic = Diagnostic::at(&place, join(&base, &key), message.clone());
                match &word {
                    Some(word) => diagnostic.nearest_of(word, tables.iter().map(|table| table.name.as_str())),
                    None => diagnostic,
                }
            };
            let first = found.iter_mut().find(|(_, other)| {
                other.message == message && other.offset == diagnostic(side).offset && other.key.ends_with(&key)
            });
            match first {
                Some(first) => *first = (Side::Link, diagnostic(Side::Link)),
                None => found.push((side, diagnostic(side))),
            }
        }
    }
    found.into_iter().map(|(_, diagnostic)| diagnostic).collect()
}

/// A mistake, and the word that no medium has, if it is one.
struct Diagnosis {
    message: String,
    word: Option<String>,
}

impl Diagnosis {
    fn of(message: String) -> Diagnosis {
        Diagnosis { message, word: None }
    }
}

fn unknown(name: &str, tables: &[NamedTable]) -> Diagnosis {
    let message = if tables.is_empty() {
        format!(
            "there is no medium `{name}`; write [[{KEY}]] with name = \"{name}\", or a table for a medium of its own"
        )
    } else {
        format!("there is no medium `{name}`")
    };
    Diagnosis { message, word: (!tables.is_empty()).then(|| name.to_string()) }
}

fn carries_nothing(name: &str, direction: Direction) -> String {
    let (this, other) = match direction {
        Direction::Uplink => ("uplink", "downlink"),
        Direction::Downlink => ("downlink", "uplink"),
    };
    format!(
        "the medium `{name}` carries nothing in the {this}; write medium = \"{name}\" under `{other}` alone, or let \
         the medium carry the {this}, as with `{KEY}.{name}.{this}`"
    )
}

/// Place of `key` in a link, or of its medium, or of the hop.
fn place_of(hop: &HopTree, link: &Table, key: &str) -> Place {
    locate(link, key).or_else(|| locate(link, MEDIUM)).unwrap_or(&hop.place).clone()
}
