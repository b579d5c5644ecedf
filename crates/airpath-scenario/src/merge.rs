// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Merging of tables: key by key, except that a table with a `type` replaces the whole table.

use std::sync::LazyLock;

use airpath_models::LinkConfig;
use serde_json::Value as Schema;

use crate::document::{Key, Node, Place, Table, Value};
use crate::format::{LINK, RAW};
use crate::keys;

/// Merges `over` into `base`.
pub fn merge(base: &Table, over: &Table) -> Table {
    let mut merged = base.clone();
    lay_over(&mut merged, over);
    merged
}

/// Lays `over` over `base`, key by key.
pub fn lay_over(base: &mut Table, over: &Table) {
    for (key, node) in &over.0 {
        lay_key(base, key.clone(), node.clone());
    }
}

/// Lays one key over `base`.
pub fn lay_key(base: &mut Table, key: Key, node: Node) {
    if let Some((old_key, Node { value: Value::Table(old), place })) = base.get_mut(&key.name)
        && let Value::Table(new) = &node.value
        && new.get("type").is_none()
    {
        lay_over(old, new);
        *old_key = key;
        *place = node.place;
        return;
    }
    base.put(key, node);
}

/// The key of the list of bearers of a link.
const BEARERS: &str = "bearers";

static DEFAULTS: LazyLock<toml::Table> =
    LazyLock::new(|| toml::Table::try_from(LinkConfig::default()).unwrap_or_default());

/// Lays the tables of a link over the default ones where they do not name their `type`.
pub fn over_defaults(link: &Table) -> Table {
    let mut all = link.clone();
    for (key, node) in &mut all.0 {
        if let (Value::Table(table), Some(toml::Value::Table(default))) = (&mut node.value, DEFAULTS.get(&key.name))
            && table.get("type").is_none()
            && default.contains_key("type")
        {
            let place: &Place = &node.place;
            lay_over_default(table, &toml::Value::Table(default.clone()), place);
        }
    }
    bearers_over_link(&mut all);
    in_lists_over_defaults(&mut all, &LINK);
    all
}

/// Lays the tables of bearers over those of the link where they do not name their `type`.
fn bearers_over_link(link: &mut Table) {
    let of_link = |key: &str, place: &Place| match (link.get(key), DEFAULTS.get(key)) {
        (Some(node), _) => node.as_table().cloned(),
        (None, Some(default)) => Node::from_toml(default, place).as_table().cloned(),
        (None, None) => None,
    };
    let Some(Node { value: Value::Array(bearers), .. }) = link.get(BEARERS) else { return };
    let mut bearers = bearers.clone();
    for bearer in &mut bearers {
        let Value::Table(bearer) = &mut bearer.value else { continue };
        for (key, node) in &mut bearer.0 {
            if let Value::Table(own) = &mut node.value
                && own.get("type").is_none()
                && let Some(base) = of_link(&key.name, &node.place)
            {
                *own = merge(&base, own);
            }
        }
    }
    if let Some((_, Node { value: Value::Array(old), .. })) = link.get_mut(BEARERS) {
        *old = bearers;
    }
}

fn lay_over_default(table: &mut Table, default: &toml::Value, place: &Place) {
    if let Value::Table(base) = Node::from_toml(default, place).value {
        *table = merge(&base, table);
    }
}

/// The same for tables within the tables of lists.
fn in_lists_over_defaults(table: &mut Table, schema: &Schema) {
    for (key, node) in &mut table.0 {
        let Some(property) = keys::property(schema, &RAW, &key.name) else { continue };
        let property = keys::optional(property).unwrap_or(property);
        match &mut node.value {
            Value::Table(inner) => in_lists_over_defaults(inner, property),
            Value::Array(items) => {
                let Some(schema) = keys::items(property, &RAW) else { continue };
                for item in items {
                    if let Value::Table(item) = &mut item.value {
                        own_over_defaults(item, schema);
                        in_lists_over_defaults(item, schema);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Lays the tables in `item` over the defaults of their keys where they do not name their `type`.
fn own_over_defaults(item: &mut Table, schema: &Schema) {
    for (key, node) in &mut item.0 {
        let default = keys::property(schema, &RAW, &key.name).and_then(|property| property.get("default"));
        if let (Value::Table(table), Some(default)) = (&mut node.value, default)
            && table.get("type").is_none()
            && default.get("type").is_some()
            && let Ok(default) = toml::Value::try_from(default)
        {
            lay_over_default(table, &default, &node.place);
        }
    }
}
