// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A TOML document as a tree in which every key and value knows where it was written.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::report::{Diagnostic, Report};

pub use crate::place::{Place, Source};

/// Value that removes an optional value: TOML has no null.
pub const ABSENT: &str = "none";

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub place: Place,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A key with its place.
#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    pub place: Place,
}

/// Keys and values in the order of the document's keys.
#[derive(Clone, Debug, Default)]
pub struct Table(pub Vec<(Key, Node)>);

impl Table {
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    pub fn entry(&self, name: &str) -> Option<&(Key, Node)> {
        self.0.iter().find(|(key, _)| key.name == name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut (Key, Node)> {
        self.0.iter_mut().find(|(key, _)| key.name == name)
    }

    /// Puts `node` under `key`, in the place of what was there.
    pub fn put(&mut self, key: Key, node: Node) {
        match self.get_mut(&key.name) {
            Some(entry) => *entry = (key, node),
            None => self.0.push((key, node)),
        }
    }

    /// The table as plain TOML.
    pub fn to_toml(&self) -> toml::Table {
        self.0.iter().map(|(key, node)| (key.name.clone(), node.to_toml())).collect()
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Float(_) => "a bare number",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The node as plain TOML.
    pub fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) | Value::Datetime(text) => toml::Value::String(text.clone()),
            Value::Integer(number) => {
                i64::try_from(*number).map_or(toml::Value::Float(*number as f64), toml::Value::Integer)
            }
            Value::Float(number) => toml::Value::Float(*number),
            Value::Boolean(flag) => toml::Value::Boolean(*flag),
            Value::Array(nodes) => toml::Value::Array(nodes.iter().map(Node::to_toml).collect()),
            Value::Table(table) => toml::Value::Table(table.to_toml()),
        }
    }

    /// A node made of plain TOML, all of it at `place`.
    pub fn from_toml(value: &toml::Value, place: &Place) -> Node {
        let value = match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Integer(number) => Value::Integer(i128::from(*number)),
            toml::Value::Float(number) => Value::Float(*number),
            toml::Value::Boolean(flag) => Value::Boolean(*flag),
            toml::Value::Datetime(date) => Value::Datetime(date.to_string()),
            toml::Value::Array(values) => {
                Value::Array(values.iter().map(|value| Node::from_toml(value, place)).collect())
            }
            toml::Value::Table(table) => Value::Table(Table(
                table
                    .iter()
                    .map(|(name, value)| {
                        (Key { name: name.clone(), place: place.clone() }, Node::from_toml(value, place))
                    })
                    .collect(),
            )),
        };
        Node { value, place: place.clone() }
    }
}

/// Most syntax errors that are told. Each takes a look at the whole text, and may be one of as many as that has
/// characters.
const MOST_SYNTAX_ERRORS: usize = 1_000;

/// Reads a whole document.
///
/// # Errors
/// The syntax errors that can be told apart.
pub fn parse_document(source: &Arc<Source>) -> Result<Node, Report> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if errors.is_empty() {
        let place = Place { source: source.clone(), span: 0..0, dotted: false };
        return Ok(Node { value: Value::Table(convert_table(table.get_ref(), source, false)), place });
    }
    let mut problems: Vec<Diagnostic> =
        errors.iter().take(MOST_SYNTAX_ERRORS).map(|error| syntax(error, source)).collect();
    problems.sort_by_key(|problem| problem.offset);
    Err(Report::new(problems))
}

/// Reads a single value such as the right-hand side of `--set`, which begins at byte `from` of the
/// source.
///
/// # Errors
/// The syntax error.
pub fn parse_value(source: &Arc<Source>, from: usize) -> Result<Node, Report> {
    let value = DeValue::parse(&source.text[from..])
        .map_err(|error| Report::new(vec![Diagnostic::at(&Place::whole(source), "", error.message())]))?;
    let mut node = convert(&value, source, true);
    relocate(&mut node, &Place::whole(source));
    Ok(node)
}

/// Options are short: all that they hold is at one place.
fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::Array(nodes) => nodes.iter_mut().for_each(|node| relocate(node, place)),
        Value::Table(table) => {
            for (key, node) in &mut table.0 {
                key.place = place.clone();
                relocate(node, place);
            }
        }
        _ => {}
    }
}

fn syntax(error: &toml::de::Error, source: &Arc<Source>) -> Diagnostic {
    let span = error.span().unwrap_or(0..0);
    let place = Place { source: source.clone(), span, dotted: false };
    Diagnostic::at(&place, "", format!("this is not valid TOML: {}", error.message().replace('\n', "; ")))
}

fn convert_table(table: &DeTable<'_>, source: &Arc<Source>, dotted: bool) -> Table {
    let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let place = Place { source: source.clone(), span: key.span(), dotted };
        (Key { name: key.get_ref().to_string(), place }, convert(value, source, dotted))
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(key, _)| key.place.span.start);
    Table(entries)
}

fn convert(spanned: &Spanned<DeValue<'_>>, source: &Arc<Source>, dotted: bool) -> Node {
    let place = Place { source: source.clone(), span: spanned.span(), dotted };
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).map_or(Value::Float(f64::INFINITY), Value::Integer)
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(date) => Value::Datetime(date.to_string()),
        DeValue::Array(values) => Value::Array(values.iter().map(|value| convert(value, source, dotted)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(table, source, dotted)),
    };
    Node { value, place }
}
