// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tables of a list that have names: background loads and media.

use airpath_models::file::VisitFile;
use serde::de::DeserializeOwned;
use serde_json::Value as Schema;

use crate::check::{Checker, Finding, Kind, join};
use crate::document::{Key, Node, Place, Table, Value};
use crate::files::Beside;
use crate::format::RAW;
use crate::locate::{locate, present};
use crate::merge::lay_key;
use crate::report::{Diagnostic, Report};

/// A list of named tables.
pub struct List {
    /// The key of the list, and the first word of the names of parameters.
    pub key: &'static str,
    /// Word for one table.
    pub noun: &'static str,
    /// The same where nothing around it tells of which kind it is.
    pub full_noun: &'static str,
    /// A key that every table may have, for advice.
    pub example: &'static str,
}

/// A named table as it was written.
#[derive(Clone, Debug)]
pub struct NamedTable {
    /// Empty if it has none.
    pub name: String,
    pub place: Place,
    pub table: Table,
}

impl NamedTable {
    /// Something wrong at `key`.
    pub fn finding(&self, key: &str, message: String) -> Finding {
        let place = locate(&self.table, key).unwrap_or(&self.place).clone();
        Finding { place, key: key.to_string(), message, word: None, suggestion: None, kind: Kind::Value }
    }

    /// The table as what `schema` describes, with its files loaded, which `files` visits.
    ///
    /// # Errors
    /// Everything that is wrong with its form, and files that cannot be loaded.
    pub fn read<T: DeserializeOwned>(
        &self,
        schema: &'static Schema,
        files: impl FnOnce(&mut T, &mut VisitFile<'_>),
    ) -> Result<T, Vec<Finding>> {
        let node = Node { place: self.place.clone(), value: Value::Table(self.table.clone()) };
        let mut checker = Checker { root: &RAW, skip: &|_| false, by_name: true, findings: Vec::new() };
        checker.check(&node, schema, "");
        let mut findings = checker.findings;
        if !findings.is_empty() {
            return Err(findings);
        }
        // The schema said that it was right, so the message has to do without an exact place.
        let read = T::deserialize(present(&self.table, schema));
        let mut config = read.map_err(|error| vec![self.finding("", error.message().to_string())])?;
        files(&mut config, &mut |key, file| {
            let place = locate(&self.table, key).unwrap_or(&self.place);
            if let Err(message) = file.load(&mut Beside(&place.source)) {
                findings.push(self.finding(key, message));
            }
        });
        if findings.is_empty() { Ok(config) } else { Err(findings) }
    }

    /// The findings as told to the user; `prefix` goes before the name of the list.
    pub fn diagnostics(&self, list: &List, prefix: &str, findings: Vec<Finding>) -> Vec<Diagnostic> {
        let key = list.key.to_string();
        let base = join(prefix, &if self.name.is_empty() { key } else { join(&key, &self.name) });
        findings.into_iter().map(|finding| finding.into_diagnostic(&base)).collect()
    }
}

/// Sets the parameter `path`, which begins with the name of one of `tables`: `NAME.KEY…`.
///
/// # Errors
/// When it names no table, or no parameter.
pub fn set<'a>(
    list: &List,
    tables: impl Iterator<Item = &'a mut NamedTable>,
    path: &str,
    place: &Place,
    node: &Node,
    prefix: &str,
) -> Result<(), Report> {
    let List { key, noun, full_noun, example } = list;
    let parts: Vec<&str> = path.split('.').map(str::trim).collect();
    let (mut names, mut found) = (Vec::new(), false);
    for one in tables {
        if one.name == parts[0] {
            found = true;
            let is_whole = parts.len() < 2 && node.as_table().is_none();
            if is_whole {
                let message =
                    format!("this names a {noun}, not a parameter; write for example `{key}.{path}.{example}`");
                return Err(Diagnostic::at(place, join(prefix, &join(key, path)), message).into());
            }
            if parts[1..] == ["name"] {
                let message = format!("a {noun} keeps its name; change it in the scenario itself");
                return Err(Diagnostic::at(place, join(prefix, &join(key, path)), message).into());
            }
            lay_path(&mut one.table, &parts[1..], place, node);
        }
        names.push(one.name.clone());
    }
    if found {
        return Ok(());
    }
    let message =
        if names.is_empty() { format!("the scenario has no {full_noun}") } else { format!("there is no such {noun}") };
    let problem = Diagnostic::at(place, join(prefix, &join(key, path)), message);
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

/// Prints `table` as one of the list at `heading`: what differs from the defaults of `schema`.
pub fn print(out: &mut String, heading: &str, table: &toml::Table, schema: &Schema) {
    let kind = table.get("type").and_then(toml::Value::as_str).unwrap_or_default();
    let default = |name: &str| {
        let schema = crate::keys::property_of_type(schema, &RAW, &[], kind, name)?;
        toml::Value::try_from(schema.get("default").filter(|value| !value.is_null())?).ok()
    };
    *out += &format!("\n[[{heading}]]\n");
    for (key, value) in table {
        if default(key).as_ref() != Some(value) {
            *out += &format!("{key} = {}\n", crate::toml_text::inline(value));
        }
    }
}
