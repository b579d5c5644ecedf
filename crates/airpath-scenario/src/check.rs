// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Checking a document against the JSON Schema of its type, value by value, so that each problem has
//! its own place, key and nearest valid word.

use std::fmt::Display;
use std::str::FromStr;

use airpath_core::{Bits, BufferLimit, LinkRate, Probability, QueueLimit, Rate, RateStep, Ratio, Span};
use airpath_models::channel::PositionList;
use airpath_models::fading::quantity::{Decibels, Distance, Frequency, Seconds, Speed};
use airpath_models::filter::Filter;
use airpath_models::queueing::classes::{Address, Ports, Protocol};
use airpath_models::schedule::Window;
use serde_json::Value as Schema;

use crate::document::{Node, Place, Table, Value};
use crate::keys::{self, Properties};
use crate::synonyms;

/// Something wrong within a document.
#[derive(Clone, Debug)]
pub struct Finding {
    pub place: Place,
    /// The key from where the check began, such as `errors.probability` or `hops[0].name`.
    pub key: String,
    pub message: String,
    /// The word that is wrong and those that would be right.
    pub word: Option<(String, Vec<String>)>,
    /// A hint that goes before the nearest valid word.
    pub suggestion: Option<String>,
    pub kind: Kind,
}

/// Subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unknown,
    Missing,
    Value,
}

type CheckText = fn(&str) -> Result<(), String>;

fn text_of<T: FromStr<Err: Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(|_| ()).map_err(|error| error.to_string())
}

/// The quantities that are written as text with a unit, by the names that they have in the schema.
pub const QUANTITIES: &[(&str, CheckText)] = &[
    ("Address", text_of::<Address>),
    ("Bits", text_of::<Bits>),
    ("BufferLimit", text_of::<BufferLimit>),
    ("Decibels", text_of::<Decibels>),
    ("Distance", text_of::<Distance>),
    ("Filter", text_of::<Filter>),
    ("Frequency", text_of::<Frequency>),
    ("LinkRate", text_of::<LinkRate>),
    ("Ports", text_of::<Ports>),
    ("PositionList", text_of::<PositionList>),
    ("Probability", text_of::<Probability>),
    ("Protocol", text_of::<Protocol>),
    ("QueueLimit", text_of::<QueueLimit>),
    ("Rate", text_of::<Rate>),
    ("RateStep", text_of::<RateStep>),
    ("Ratio", text_of::<Ratio>),
    ("Seconds", text_of::<Seconds>),
    ("Span", text_of::<Span>),
    ("Speed", text_of::<Speed>),
    ("Window", text_of::<Window>),
];

/// Checks documents against the schemas below one root.
pub struct Checker<'a> {
    pub root: &'a Schema,
    /// Keys (from where the check began) below which nothing is checked.
    pub skip: &'a dyn Fn(&str) -> bool,
    /// True if keys refer to tables in lists by name: `classes.voice`, not `classes[1]`.
    pub by_name: bool,
    pub findings: Vec<Finding>,
}

impl<'a> Checker<'a> {
    /// Checks `node`, which is at `key`, against `schema`.
    pub fn check(&mut self, node: &Node, schema: &'a Schema, key: &str) {
        if (self.skip)(key) {
            return self.check_is_table(node, schema, key);
        }
        // Examples stand beside the reference, too.
        let outer = schema;
        let (name, schema) = keys::resolve(schema, self.root);
        if let Some((_, check)) = QUANTITIES.iter().find(|(quantity, _)| Some(*quantity) == name) {
            return self.check_quantity(node, schema, key, *check);
        }
        if let Some(inner) = keys::optional(schema) {
            if node.as_text() != Some(crate::document::ABSENT) {
                self.check(node, inner, key);
            }
            return;
        }
        if let Some((quantity, table)) = keys::quantity_or_table(schema, self.root) {
            let schema = if node.as_table().is_some() { table } else { quantity };
            return self.check(node, schema, key);
        }
        if let Some((quantity, list)) = keys::quantity_or_list(schema) {
            let schema = if matches!(node.value, Value::Array(_)) { list } else { quantity };
            return self.check(node, schema, key);
        }
        if let Some((words, quantity)) = keys::word_or_quantity(schema, self.root) {
            return match node.as_text().filter(|text| text.starts_with(char::is_alphabetic)) {
                Some(_) => self.check_word_beside(node, &words, quantity, key),
                None => self.check(node, quantity, key),
            };
        }
        if let Some(words) = keys::enumeration(schema) {
            return self.check_word(node, &words, key);
        }
        if let Some(parts) = schema["prefixItems"].as_array() {
            return self.check_row(node, parts, key);
        }
        if let Some(items) = schema.get("items") {
            self.check_length(node, schema, key);
            return self.check_list(node, items, key);
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            return match node.as_table() {
                Some(table) => {
                    table.0.iter().for_each(|(name, node)| self.check(node, values, &join(key, &name.name)));
                }
                None => self.expected(node, "a table", outer, key),
            };
        }
        let is_table = schema.get("properties").is_some() || schema.get("oneOf").is_some();
        if is_table || schema.get("$ref").is_some() {
            return match node.as_table() {
                Some(table) => self.check_table(node, table, schema, key),
                None => self.expected(node, "a table", outer, key),
            };
        }
        self.check_plain(node, schema, key);
    }

    fn find(&mut self, kind: Kind, place: &Place, key: &str, message: String) -> &mut Finding {
        let finding =
            Finding { place: place.clone(), key: key.to_string(), message, word: None, suggestion: None, kind };
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    fn expected(&mut self, node: &Node, what: &str, schema: &Schema, key: &str) {
        let default = schema.get("default").filter(|value| !value.is_null());
        let example = default.or_else(|| schema.get("examples")?.get(0)).and_then(inline);
        let example = example.map_or_else(String::new, |example| format!(", for example {example}"));
        self.find(Kind::Value, &node.place, key, format!("expected {what}{example}, not {}", node.kind()));
    }

    fn check_is_table(&mut self, node: &Node, schema: &Schema, key: &str) {
        if node.as_table().is_none() {
            self.expected(node, "a table", schema, key);
        }
    }

    fn check_quantity(&mut self, node: &Node, schema: &Schema, key: &str, check: CheckText) {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => {
                let what = if schema["type"] == "string" { "text" } else { "a number or text" };
                return self.expected(node, what, schema, key);
            }
        };
        if let Err(message) = check(&text) {
            self.find(Kind::Value, &node.place, key, message);
        }
    }

    fn check_word(&mut self, node: &Node, words: &[&str], key: &str) {
        let Some(word) = node.as_text() else {
            let example = words.first().map_or_else(String::new, |word| format!(" such as \"{word}\""));
            self.find(Kind::Value, &node.place, key, format!("expected text{example}, not {}", node.kind()));
            return;
        };
        if !words.contains(&word) {
            let valid = words.iter().map(|word| word.to_string()).collect();
            let finding = self.find(Kind::Value, &node.place, key, format!("`{word}` is not a valid value"));
            finding.word = Some((word.to_string(), valid));
        }
    }

    /// Checks a word in place of which a `quantity` may stand.
    fn check_word_beside(&mut self, node: &Node, words: &[&str], quantity: &Schema, key: &str) {
        let before = self.findings.len();
        self.check_word(node, words, key);
        if let (Some(finding), Some(example)) = (self.findings.get_mut(before), example(quantity, self.root)) {
            finding.message += &format!(": write one of the words, or a value such as {example}");
        }
    }

    fn check_list(&mut self, node: &Node, items: &'a Schema, key: &str) {
        let Value::Array(nodes) = &node.value else {
            if self.by_name {
                return self.expected_list(node, items, key);
            }
            let message = if node.as_table().is_some() {
                "this needs double brackets, as in"
            } else {
                "this is a list of tables:"
            };
            self.find(Kind::Value, &node.place, key, format!("{message} [[{}]]", last(key)));
            return;
        };
        for (index, node) in nodes.iter().enumerate() {
            let name = if self.by_name { name_of(node) } else { None };
            self.check(node, items, &name.map_or_else(|| format!("{key}[{index}]"), |name| join(key, name)));
        }
    }

    /// Checks how many values a list has, where that is fixed.
    fn check_length(&mut self, node: &Node, schema: &Schema, key: &str) {
        let Value::Array(nodes) = &node.value else { return };
        let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
        let Some(count) = least.filter(|_| least == most) else { return };
        if nodes.len() as u64 != count {
            let values = if nodes.len() == 1 { "value" } else { "values" };
            let message = format!("has {} {values}; write {count} in brackets", nodes.len());
            self.find(Kind::Value, &node.place, key, message);
        }
    }

    /// Checks a row of values, each with a meaning of its own.
    fn check_row(&mut self, node: &Node, parts: &'a [Schema], key: &str) {
        let Value::Array(nodes) = &node.value else { return self.expected_row(node, parts, key) };
        if nodes.len() != parts.len() {
            return self.expected_row(node, parts, key);
        }
        for (index, (node, part)) in nodes.iter().zip(parts).enumerate() {
            self.check(node, part, &format!("{key}[{index}]"));
        }
    }

    fn expected_row(&mut self, node: &Node, parts: &[Schema], key: &str) {
        let examples: Option<Vec<String>> = parts.iter().map(|part| example(part, self.root)).collect();
        let examples = examples.map_or_else(String::new, |all| format!(", as in [{}]", all.join(", ")));
        let message = format!("expected {} values in brackets{examples}", parts.len());
        self.find(Kind::Value, &node.place, key, message);
    }

    fn expected_list(&mut self, node: &Node, items: &Schema, key: &str) {
        let message = match (keys::is_table(items, self.root), node.as_table()) {
            (true, Some(_)) if node.place.dotted => {
                format!("there are no {} here to change; set the whole list", last(key))
            }
            (true, _) => format!("this is a list of tables: {} = [{{ name = … }}, …]", last(key)),
            (false, _) => format!("expected a list in brackets, not {}", node.kind()),
        };
        self.find(Kind::Value, &node.place, key, message);
    }

    fn check_table(&mut self, node: &Node, table: &Table, schema: &'a Schema, key: &str) {
        let mut properties = keys::properties(schema, self.root);
        let variants = keys::variants(schema, self.root);
        let mut kind = None;
        if !variants.is_empty() {
            let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
            match table.get("type") {
                None => {
                    let message = format!("`type` is missing; it is one of {}", names.join(", "));
                    self.find(Kind::Missing, &node.place, key, message);
                    return;
                }
                Some(tag) => {
                    let Some(variant) = variants.iter().find(|variant| Some(variant.name) == tag.as_text()) else {
                        return self.check_word(tag, &names, &join(key, "type"));
                    };
                    kind = Some(variant.name);
                    let own = variant.properties();
                    properties.keys.extend(own.keys);
                    properties.required.extend(own.required);
                }
            }
        }
        for (name, value) in &table.0 {
            match properties.get(&name.name) {
                Some(_) if name.name == "type" && kind.is_some() => {}
                Some(property) => self.check(value, property, &join(key, &name.name)),
                None => {
                    let owners: Vec<&str> = variants
                        .iter()
                        .filter(|variant| variant.properties().get(&name.name).is_some())
                        .map(|variant| variant.name)
                        .collect();
                    self.unknown(&name.place, &name.name, key, kind.zip(Some(owners)), &properties);
                }
            }
        }
        for required in properties.required.iter().filter(|required| table.get(required).is_none()) {
            let of = kind.map_or_else(String::new, |kind| format!(" (type \"{kind}\" needs it)"));
            let example = properties.get(required).and_then(|schema| example(schema, self.root));
            let example = example.map_or_else(String::new, |example| format!(", for example {required} = {example}"));
            self.find(Kind::Missing, &node.place, &join(key, required), format!("this key is missing{of}{example}"));
        }
    }

    fn unknown(
        &mut self,
        place: &Place,
        name: &str,
        key: &str,
        tagged: Option<(&str, Vec<&str>)>,
        properties: &Properties<'_>,
    ) {
        let message = match tagged {
            Some((kind, owners)) if !owners.is_empty() => {
                format!(
                    "a table of type \"{kind}\" has no such key, but one of type \"{}\" has",
                    owners.join("\" or \"")
                )
            }
            Some((kind, _)) => format!("a table of type \"{kind}\" has no such key"),
            None if key.is_empty() && name == "cells" => {
                "a cell is its media and its users; write [[media]], and each user as one of [[paths]]".to_string()
            }
            None if properties.get("link").is_some()
                && self.root.pointer(&format!("/$defs/LinkConfig/properties/{name}")).is_some() =>
            {
                "a hop has no such key; it belongs in [hops.link], [hops.uplink] or [hops.downlink]".to_string()
            }
            None => "unknown key".to_string(),
        };
        let valid: Vec<String> = properties.names().map(str::to_string).collect();
        let suggestion = synonyms::of(name).filter(|ours| properties.get(ours).is_some()).map(str::to_string);
        let finding = self.find(Kind::Unknown, place, &join(key, name), message);
        finding.suggestion = suggestion;
        finding.word = Some((name.to_string(), valid));
    }

    fn check_plain(&mut self, node: &Node, schema: &Schema, key: &str) {
        let is = |kind: &str| {
            schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
        };
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => f64::NAN,
        };
        match &node.value {
            Value::Text(_) if is("string") => {}
            Value::Boolean(_) if is("boolean") => {}
            Value::Integer(_) if is("integer") || is("number") => self.check_range(node, number, schema, key),
            Value::Float(_) if is("number") => self.check_range(node, number, schema, key),
            _ if is("string") => self.expected(node, "text", schema, key),
            _ if is("boolean") => self.expected(node, "true or false", schema, key),
            _ if is("integer") => self.expected(node, "a whole number", schema, key),
            _ if is("number") => self.expected(node, "a number", schema, key),
            _ => {}
        }
    }

    fn check_range(&mut self, node: &Node, number: f64, schema: &Schema, key: &str) {
        if !number.is_finite() {
            let message = "is not a finite number".to_string();
            self.find(Kind::Value, &node.place, key, message);
            return;
        }
        let most = match schema["format"].as_str() {
            Some("uint8") => f64::from(u8::MAX),
            Some("uint16") => f64::from(u16::MAX),
            Some("uint32") => f64::from(u32::MAX),
            _ => i64::MAX as f64,
        };
        let least = schema["minimum"].as_f64();
        let most = schema["maximum"].as_f64().unwrap_or(most);
        if !(least.unwrap_or(f64::MIN)..=most).contains(&number) {
            let most = shown(most);
            let fits =
                least.map_or_else(|| format!("{most} at most"), |least| format!("from {} to {most}", shown(least)));
            let message = format!("{} is out of range; it must be {fits}", shown(number));
            self.find(Kind::Value, &node.place, key, message);
        }
    }
}

/// A number in at most a dozen characters, so that nobody has to count zeros.
fn shown(number: f64) -> String {
    if number.abs() < 1e12 { number.to_string() } else { format!("{number:.3e}").replace(".000e", "e") }
}

/// `key.name`, or the name alone at the top.
pub fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_string() } else { format!("{key}.{name}") }
}

/// The name of a table in a list.
pub fn name_of(node: &Node) -> Option<&str> {
    node.as_table()?.get("name")?.as_text().filter(|name| !name.is_empty())
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn example(schema: &Schema, root: &Schema) -> Option<String> {
    let (_, schema) = keys::resolve(schema, root);
    inline(schema.get("examples")?.get(0)?)
}

/// A JSON value as TOML on one line, the type of a table first: a schema has keys in the order of the alphabet.
fn inline(value: &Schema) -> Option<String> {
    let mut value = toml::Value::try_from(value).ok()?;
    if let toml::Value::Table(table) = &mut value {
        let (kind, others): (Vec<_>, Vec<_>) = std::mem::take(table).into_iter().partition(|(key, _)| key == "type");
        table.extend(kind.into_iter().chain(others));
    }
    Some(crate::toml_text::inline(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::RAW;

    #[test]
    fn every_quantity_of_the_schema_has_a_check() {
        let is_text = |schema: &Schema| schema["type"] == "string" && schema.get("pattern").is_some();
        let mut seen = 0;
        for (name, schema) in RAW["$defs"].as_object().unwrap() {
            let parts = schema["anyOf"].as_array();
            if is_text(schema) || parts.is_some_and(|parts| parts.iter().any(is_text)) {
                seen += 1;
                assert!(QUANTITIES.iter().any(|(quantity, _)| quantity == name), "{name} has no check");
            }
        }
        assert!(seen >= 7, "{seen}");
    }
}
