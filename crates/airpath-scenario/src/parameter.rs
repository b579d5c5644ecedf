// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters by name: `HOP.link|uplink|downlink.KEY…`, the same in `set` of a state, on the command
//! line and in error messages.

use airpath_core::nearest::nearest;

use crate::check::{join, name_of};
use crate::document::{Key, Node, Place, Table, Value};
use crate::format::{LINK, RAW};
use crate::keys;
use crate::merge::{lay_key, lay_over};
use crate::report::{Diagnostic, Report};
use crate::synonyms;
use crate::tree::HopTree;

/// Directions that a parameter concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Link,
    Uplink,
    Downlink,
}

impl Side {
    pub const ALL: [Side; 3] = [Side::Link, Side::Uplink, Side::Downlink];

    pub const fn name(self) -> &'static str {
        match self {
            Side::Link => "link",
            Side::Uplink => "uplink",
            Side::Downlink => "downlink",
        }
    }

    pub fn of(name: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.name() == name)
    }
}

impl HopTree {
    /// The tables that parameters of `side` are written to.
    fn tables(&mut self, side: Side) -> Vec<&mut Table> {
        match side {
            Side::Link => vec![&mut self.link, &mut self.uplink, &mut self.downlink],
            Side::Uplink => vec![&mut self.uplink],
            Side::Downlink => vec![&mut self.downlink],
        }
    }
}

/// Sets the parameter `path` (written at `place`) of one of `hops`. A table as value at `HOP` or
/// `HOP.link` stands for the parameters in it. Whether the key exists and the value fits is found
/// when the hop is turned into its configuration.
///
/// # Errors
/// When the path names no hop or no direction of one.
pub fn apply(hops: &mut [HopTree], path: &str, place: &Place, node: &Node, prefix: &str) -> Result<(), Report> {
    let parts: Vec<&str> = path.split('.').map(str::trim).collect();
    let error = |message: String| Err(Report::from(Diagnostic::at(place, join(prefix, path), message)));
    if let (true, Value::Table(table)) = (parts.len() < 3, &node.value) {
        for (key, node) in in_order(table) {
            apply(hops, &join(path, &key.name), &key.place, node, prefix)?;
        }
        return Ok(());
    }
    let names: Vec<String> = hops.iter().map(|hop| hop.name.clone()).collect();
    let Some(hop) = hops.iter_mut().find(|hop| hop.name == parts[0]) else {
        return Err(unknown_hop(path, place, names.iter().map(String::as_str), prefix).into());
    };
    let example = format!("{}.link.rate", hop.name);
    let Some(side) = parts.get(1) else {
        return error(format!("this names a hop, not a parameter; write for example `{example}`"));
    };
    let Some(side) = Side::of(side) else {
        let message = "after the hop comes `link` (both directions), `uplink` or `downlink`";
        let mut problem = Diagnostic::at(place, join(prefix, path), message)
            .nearest_of(side, Side::ALL.iter().map(|side| side.name()));
        problem.suggestion = meant(&parts[1..]).map(|meant| join(&join(prefix, &hop.name), &meant));
        return Err(problem.into());
    };
    let chain = &parts[2..];
    if chain.is_empty() {
        return error(format!("this names a direction, not a parameter; write for example `{example}`"));
    }
    if chain.iter().any(|key| key.is_empty()) {
        return error("a part of the name is empty".to_string());
    }
    for (index, table) in hop.tables(side).into_iter().enumerate() {
        // What was written for both directions need not hold what each of them has.
        let is_shared = side == Side::Link && index == 0;
        if let Err(unknown) = set_in(table, chain, place, node)
            && !is_shared
        {
            return Err(unknown_item(&unknown, path, place, prefix).into());
        }
        if let ([parents @ .., "type"], Some(kind)) = (chain, node.as_text()) {
            prune(table, parents, kind);
        }
    }
    Ok(())
}

/// A name that no table of a list has.
struct UnknownItem {
    /// The key of the list.
    list: String,
    /// The name asked for, and those that there are.
    name: String,
    names: Vec<String>,
    /// Part of the parameter after the name.
    rest: Vec<String>,
}

fn unknown_item(unknown: &UnknownItem, path: &str, place: &Place, prefix: &str) -> Diagnostic {
    let UnknownItem { list, name, names, rest } = unknown;
    let message = format!("there is no `{name}` among the {list}");
    let mut problem =
        Diagnostic::at(place, join(prefix, path), message).nearest_of(name, names.iter().map(String::as_str));
    let rest: String = rest.iter().map(|part| format!(".{part}")).collect();
    let before = path.strip_suffix(&format!("{name}{rest}")).unwrap_or(path);
    problem.suggestion = problem.suggestion.map(|name| join(prefix, &format!("{before}{name}{rest}")));
    problem
}

fn link_schema() -> &'static serde_json::Value {
    keys::resolve(&LINK, &RAW).1
}

/// A direction and a key that links have, in place of `parts`, a parameter's name behind its hop in which something is
/// wrong; none where nothing is near.
fn meant(parts: &[&str]) -> Option<String> {
    let keys = keys::properties(link_schema(), &RAW);
    let is_key = |word: &&str| keys.get(word).is_some();
    // The key of that name, here or in other emulators.
    let known = |word| keys.names().find(|key| *key == word).or_else(|| synonyms::of(word).filter(is_key));
    let (first, rest) = parts.split_first()?;
    let near_side = nearest(first, Side::ALL.iter().map(|side| side.name())).filter(|_| !rest.is_empty());
    let (side, words) = match parts.iter().rposition(|part| Side::of(part).is_some()) {
        // Whatever is before the direction is too much.
        Some(at) => (parts[at], &parts[at + 1..]),
        // Somebody who wrote `radio.rate` means both directions.
        None if known(first).is_some() => ("link", parts),
        None => match (near_side, rest) {
            (Some(side), rest) => (side, rest),
            (None, []) => ("link", parts),
            (None, rest) => ("link", rest),
        },
    };
    let (key, rest) = words.split_first()?;
    let key = known(key).or_else(|| nearest(key, keys.names()))?;
    Some([&[side, key], rest].concat().join("."))
}

/// The error for a path whose first part is no hop.
pub fn unknown_hop<'a>(path: &str, place: &Place, hops: impl IntoIterator<Item = &'a str>, prefix: &str) -> Diagnostic {
    let parts: Vec<&str> = path.split('.').map(str::trim).collect();
    let (first, rest) = (parts[0], &parts[1..]);
    let hops: Vec<&str> = hops.into_iter().collect();
    let message = format!("there is no hop `{first}`; a parameter is named HOP.link.KEY");
    let mut problem = Diagnostic::at(place, join(prefix, path), message);
    problem.valid = hops.iter().map(|hop| format!("{}.…", join(prefix, hop))).collect();
    let only = hops.first().filter(|_| hops.len() == 1).copied();
    let hop = nearest(first, hops.iter().copied());
    let is_key = || keys::properties(link_schema(), &RAW).get(first).is_some();
    let (hop, behind) = if Side::of(first).is_some() || is_key() { (only, parts.as_slice()) } else { (hop, rest) };
    problem.suggestion = match behind {
        // The value may be a table.
        [] => hop.map(str::to_string),
        behind => hop.and_then(|hop| Some(join(hop, &meant(behind)?))),
    };
    problem.suggestion = problem.suggestion.map(|suggestion| join(prefix, &suggestion));
    problem
}

/// The keys of a `set` in the order in which they take effect: what concerns both directions comes
/// before what concerns one, whole tables before keys in them.
pub fn in_order(table: &Table) -> Vec<&(Key, Node)> {
    let is_one = |name: &str| name.split('.').any(|part| part == "uplink" || part == "downlink");
    let mut entries: Vec<_> = table.0.iter().collect();
    entries.sort_by_key(|(key, _)| (is_one(&key.name), key.name.clone()));
    entries
}

fn set_in(table: &mut Table, chain: &[&str], place: &Place, node: &Node) -> Result<(), UnknownItem> {
    let Some((first, rest)) = chain.split_first() else { return Ok(()) };
    let key = Key { name: first.to_string(), place: place.clone() };
    if rest.is_empty() {
        lay_key(table, key, node.clone());
        return Ok(());
    }
    match table.get_mut(first) {
        Some((_, Node { value: Value::Table(inner), .. })) => return set_in(inner, rest, place, node),
        Some((_, Node { value: Value::Array(items), .. })) => return set_in_item(items, first, rest, place, node),
        _ => {}
    }
    let mut inner = Table::default();
    set_in(&mut inner, rest, place, node)?;
    table.put(key, Node { value: Value::Table(inner), place: place.clone() });
    Ok(())
}

/// Sets something in the table of a list that the first word of `chain` names.
fn set_in_item(items: &mut [Node], list: &str, chain: &[&str], place: &Place, node: &Node) -> Result<(), UnknownItem> {
    let (name, rest) = (chain[0], &chain[1..]);
    if let Some(item) = items.iter_mut().find(|item| name_of(item) == Some(name))
        && let Value::Table(table) = &mut item.value
    {
        return match &node.value {
            _ if !rest.is_empty() => set_in(table, rest, place, node),
            Value::Table(new) => {
                lay_over(table, new);
                Ok(())
            }
            // Whoever checks the parameters says that this is no table.
            _ => {
                *item = node.clone();
                Ok(())
            }
        };
    }
    Err(UnknownItem {
        list: list.to_string(),
        name: name.to_string(),
        names: items.iter().filter_map(name_of).map(str::to_string).collect(),
        rest: rest.iter().map(|part| part.to_string()).collect(),
    })
}

/// Takes away the keys that the table at `chain` does not have when its type is `kind`.
fn prune(table: &mut Table, chain: &[&str], kind: &str) {
    let Some(keys) = keys::keys_of_type(&LINK, &RAW, chain, kind) else { return };
    let mut inner = table;
    let mut parts = chain.iter();
    while let Some(part) = parts.next() {
        inner = match inner.get_mut(part) {
            Some((_, Node { value: Value::Table(next), .. })) => next,
            Some((_, Node { value: Value::Array(items), .. })) => {
                let Some(name) = parts.next() else { return };
                let named = items.iter_mut().find(|item| name_of(item) == Some(name));
                let Some(Node { value: Value::Table(next), .. }) = named else { return };
                next
            }
            _ => return,
        }
    }
    inner.0.retain(|(key, _)| keys.contains(&key.name.as_str()));
}
