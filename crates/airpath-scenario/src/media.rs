// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media that users share: from tables to what the models read, and back.

use std::sync::LazyLock;

use airpath_models::cell::MediumOfCell;
use serde_json::{Value as Schema, json};

use crate::named::{self, List, NamedTable};
use crate::report::Diagnostic;

/// The key of the list, and the first word of the names of parameters.
pub const KEY: &str = "media";

/// The list.
pub const LIST: List = List { key: KEY, noun: "medium", full_noun: "shared medium", example: "downlink" };

/// The schema of a medium, with `$defs` at [`crate::format::RAW`].
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| json!({ "$ref": "#/$defs/Medium" }));

/// The configuration of `medium`.
///
/// # Errors
/// Everything that is wrong with it.
pub fn config(medium: &NamedTable) -> Result<MediumOfCell, Vec<Diagnostic>> {
    let read = medium.read(&SCHEMA, |config: &mut MediumOfCell, visit| config.config.files(visit));
    let checked = read.and_then(|config| {
        let problems = config.config.problems().into_iter();
        let findings: Vec<_> = problems.map(|problem| medium.finding(&problem.key, problem.message)).collect();
        if findings.is_empty() { Ok(config) } else { Err(findings) }
    });
    checked.map_err(|findings| medium.diagnostics(&LIST, "", findings))
}

/// Prints a medium as one of the list: what differs from the defaults.
pub fn print(out: &mut String, medium: &MediumOfCell) {
    let table = toml::Table::try_from(medium).unwrap_or_default();
    named::print(out, KEY, &table, &SCHEMA);
}
