// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Checked tables as plain TOML, and the places of keys in them.

use serde_json::Value as Schema;

use crate::check::name_of;
use crate::document::{ABSENT, Node, Place, Table, Value};
use crate::format::RAW;
use crate::keys;

/// The table as plain TOML, without optional values that are taken away.
pub fn present(table: &Table, schema: &Schema) -> toml::Table {
    let (_, schema) = keys::resolve(schema, &RAW);
    if let Some((_, schema)) = keys::quantity_or_table(schema, &RAW) {
        return present(table, schema);
    }
    let common = keys::properties(schema, &RAW);
    let kind = table.get("type").and_then(Node::as_text);
    let variant = keys::variants(schema, &RAW).into_iter().find(|variant| Some(variant.name) == kind);
    let own = variant.map(|variant| variant.properties()).unwrap_or_default();
    let property = |name: &str| common.get(name).or_else(|| own.get(name));
    let mut all = toml::Table::new();
    for (key, node) in &table.0 {
        let schema = property(&key.name);
        let inner = schema.and_then(keys::optional);
        if inner.is_some() && node.as_text() == Some(ABSENT) {
            continue;
        }
        let value = inner.or(schema).map_or_else(|| node.to_toml(), |schema| present_value(node, schema));
        all.insert(key.name.clone(), value);
    }
    all
}

fn present_value(node: &Node, schema: &Schema) -> toml::Value {
    match (&node.value, keys::items(schema, &RAW)) {
        (Value::Table(table), _) => toml::Value::Table(present(table, schema)),
        (Value::Array(nodes), Some(items)) => {
            toml::Value::Array(nodes.iter().map(|node| present_value(node, items)).collect())
        }
        _ => node.to_toml(),
    }
}

/// The place of `key` within `table`, or of the nearest table around it. In a list the key goes on with
/// a name (`classes.voice.weight`) or names a place (`of[1].value`).
pub fn locate<'a>(table: &'a Table, key: &str) -> Option<&'a Place> {
    // Names of bearers, by which schedulers know them, have dots.
    if let Some((found, _)) = table.entry(key) {
        return Some(&found.place);
    }
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let (name, index) = first.strip_suffix(']').and_then(|listed| listed.split_once('[')).unwrap_or((first, ""));
    let (found, node) = table.entry(name)?;
    let inner = match &node.value {
        Value::Table(inner) if !rest.is_empty() => locate(inner, rest),
        Value::Array(nodes) if !index.is_empty() => locate_in_place(nodes, index, rest),
        Value::Array(nodes) => locate_in_list(nodes, rest),
        _ => None,
    };
    Some(inner.unwrap_or(&found.place))
}

/// The same within what is at place `index` of a list.
fn locate_in_place<'a>(nodes: &'a [Node], index: &str, key: &str) -> Option<&'a Place> {
    let node = nodes.get(index.parse::<usize>().ok()?)?;
    let inner = node.as_table().filter(|_| !key.is_empty()).and_then(|inner| locate(inner, key));
    Some(inner.unwrap_or(&node.place))
}

/// The same within a list of tables, of which the first word of `key` names one.
fn locate_in_list<'a>(nodes: &'a [Node], key: &str) -> Option<&'a Place> {
    let (name, rest) = key.split_once('.').unwrap_or((key, ""));
    // Of several with one name the last is the one too many.
    let node = nodes.iter().rev().find(|node| name_of(node) == Some(name))?;
    let inner = node.as_table().filter(|_| !rest.is_empty()).and_then(|inner| locate(inner, rest));
    Some(inner.unwrap_or(&node.place))
}
