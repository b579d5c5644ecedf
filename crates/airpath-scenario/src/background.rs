// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background loads: from tables to what the models read, and back.

use std::fmt::Write;
use std::sync::LazyLock;

use airpath_models::load::BackgroundConfig;
use serde::Deserialize;
use serde_json::{Value as Schema, json};
use toml::Value as Toml;

use crate::check::{Checker, Finding, Kind, join};
use crate::document::{Key, Node, Place, Table, Value};
use crate::files::Beside;
use crate::format::RAW;
use crate::keys;
use crate::locate::{locate, present};
use crate::merge::lay_key;
use crate::report::{Diagnostic, Report};
use crate::toml_text::inline;

/// The key of the list, and the first word of the names of parameters.
pub const KEY: &str = "background";

/// The schema of a load, with `$defs` at [`RAW`].
static LOAD: LazyLock<Schema> = LazyLock::new(|| json!({ "$ref": "#/$defs/Background" }));

/// A background load as it was written.
#[derive(Clone, Debug)]
pub struct BackgroundTree {
    /// Empty if it has none.
    pub name: String,
    pub place: Place,
    pub table: Table,
}

impl BackgroundTree {
    /// The load's configuration in a path of the hops called `hops`. `prefix` goes before the names of
    /// parameters in messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn config(&self, hops: &[&str], prefix: &str) -> Result<BackgroundConfig, Vec<Diagnostic>> {
        let node = Node { place: self.place.clone(), value: Value::Table(self.table.clone()) };
        let mut checker = Checker { root: &RAW, skip: &|_| false, by_name: true, findings: Vec::new() };
        checker.check(&node, &LOAD, "");
        let mut findings = checker.findings;
        let finding = |key: &str, message: String| {
            let place = locate(&self.table, key).unwrap_or(&self.place).clone();
            Finding { place, key: key.to_string(), message, word: None, suggestion: None, kind: Kind::Value }
        };
        let mut config = None;
        if findings.is_empty() {
            match BackgroundConfig::deserialize(present(&self.table, &LOAD)) {
                Ok(mut load) => {
                    load.files(&mut |key, file| {
                        let place = locate(&self.table, key).unwrap_or(&self.place);
                        if let Err(message) = file.load(&mut Beside(&place.source)) {
                            findings.push(finding(key, message));
                        }
                    });
                    let problems = load.problems(hops).into_iter();
                    findings.extend(problems.map(|problem| finding(&problem.key, problem.message)));
                    for problem in findings.iter_mut().filter(|problem| matches!(&*problem.key, "hop" | "until")) {
                        let word = self.table.get(&problem.key).and_then(Node::as_text).unwrap_or_default();
                        let known: Vec<String> = hops.iter().map(|hop| hop.to_string()).collect();
                        problem.word = (!hops.contains(&word)).then(|| (word.to_string(), known));
                    }
                    config = Some(load);
                }
                // The schema said that it was right, so the message has to do without an exact place.
                Err(error) => findings.push(finding("", error.message().to_string())),
            }
        }
        let base = join(prefix, &if self.name.is_empty() { KEY.to_string() } else { join(KEY, &self.name) });
        match config {
            Some(config) if findings.is_empty() => Ok(config),
            _ => Err(findings.into_iter().map(|finding| finding.into_diagnostic(&base)).collect()),
        }
    }
}

/// Sets the parameter `path`, which begins with the name of one of `loads`: `NAME.KEY…`.
///
/// # Errors
/// When it names no load, or no parameter.
pub fn set<'a>(
    loads: impl Iterator<Item = &'a mut BackgroundTree>,
    path: &str,
    place: &Place,
    node: &Node,
    prefix: &str,
) -> Result<(), Report> {
    let parts: Vec<&str> = path.split('.').map(str::trim).collect();
    let (mut names, mut found) = (Vec::new(), false);
    for load in loads {
        if load.name == parts[0] {
            found = true;
            let is_whole = parts.len() < 2 && node.as_table().is_none();
            if is_whole {
                let message = format!("this names a load, not a parameter; write for example `{KEY}.{path}.rate`");
                return Err(Diagnostic::at(place, join(prefix, &join(KEY, path)), message).into());
            }
            lay_path(&mut load.table, &parts[1..], place, node);
        }
        names.push(load.name.clone());
    }
    if found {
        return Ok(());
    }
    let message = if names.is_empty() { "the scenario has no background load" } else { "there is no such load" };
    let problem = Diagnostic::at(place, join(prefix, &join(KEY, path)), message);
    Err(problem.nearest_of(parts[0], names.iter().map(String::as_str)).into())
}

/// Lays `node` over `table` at `parts`, or over the whole of it.
fn lay_path(table: &mut Table, parts: &[&str], place: &Place, node: &Node) {
    let key = |name: &str| Key { name: name.to_string(), place: place.clone() };
    match (parts, &node.value) {
        ([], Value::Table(inner)) => inner.0.iter().for_each(|(key, node)| lay_key(table, key.clone(), node.clone())),
        ([], _) => {}
        ([name], _) => lay_key(table, key(name), node.clone()),
        ([name, rest @ ..], _) => {
            let mut inner = Table::default();
            lay_path(&mut inner, rest, place, node);
            lay_key(table, key(name), Node { value: Value::Table(inner), place: place.clone() });
        }
    }
}

/// Prints a load as one of the list at `prefix`: what differs from the defaults.
pub fn print(out: &mut String, prefix: &str, load: &BackgroundConfig) {
    let table = toml::Table::try_from(load).unwrap_or_default();
    let kind = table.get("type").and_then(Toml::as_str).unwrap_or_default();
    let default = |name: &str| {
        let schema = keys::property_of_type(&LOAD, &RAW, &[], kind, name)?;
        Toml::try_from(schema.get("default").filter(|value| !value.is_null())?).ok()
    };
    let _ = writeln!(out, "\n[[{prefix}{KEY}]]");
    for (key, value) in &table {
        if default(key).as_ref() != Some(value) {
            let _ = writeln!(out, "{key} = {}", inline(value));
        }
    }
}
