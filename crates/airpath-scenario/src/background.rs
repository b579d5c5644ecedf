// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background loads: from tables to what the models read, and back.

use std::sync::LazyLock;

use airpath_models::load::BackgroundConfig;
use serde_json::{Value as Schema, json};

use crate::document::Node;
use crate::named::{self, List, NamedTable};
use crate::report::Diagnostic;

/// The key of the list, and the first word of the names of parameters.
pub const KEY: &str = "background";

/// The list.
pub const LIST: List = List { key: KEY, noun: "load", full_noun: "background load", example: "rate" };

/// The schema of a load, with `$defs` at [`crate::format::RAW`].
static LOAD: LazyLock<Schema> = LazyLock::new(|| json!({ "$ref": "#/$defs/Background" }));

/// The configuration of `load` in a path of the hops called `hops`. `prefix` goes before the names of parameters in
/// messages.
///
/// # Errors
/// Everything that is wrong with it.
pub fn config(load: &NamedTable, hops: &[&str], prefix: &str) -> Result<BackgroundConfig, Vec<Diagnostic>> {
    let read = load.read(&LOAD, |config: &mut BackgroundConfig, visit| config.files(visit));
    let checked = read.and_then(|config| {
        let mut problems = config.problems(hops);
        let mut findings = Vec::with_capacity(problems.len());
        for problem in problems.drain(..) {
            let word = load.table.get(&problem.key).and_then(Node::as_text).unwrap_or_default();
            let is_hop = matches!(&*problem.key, "hop" | "until") && !hops.contains(&word);
            let mut finding = load.finding(&problem.key, problem.message);
            finding.word = is_hop.then(|| (word.to_string(), hops.iter().map(|hop| hop.to_string()).collect()));
            findings.push(finding);
        }
        if findings.is_empty() { Ok(config) } else { Err(findings) }
    });
    checked.map_err(|findings| load.diagnostics(&LIST, prefix, findings))
}

/// Prints a load as one of the list at `prefix`: what differs from the defaults.
pub fn print(out: &mut String, prefix: &str, load: &BackgroundConfig) {
    let table = toml::Table::try_from(load).unwrap_or_default();
    named::print(out, &format!("{prefix}{KEY}"), &table, &LOAD);
}
