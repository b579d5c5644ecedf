// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Values as text in TOML.

use std::fmt::Write;

use toml::Value;

/// A value on one line.
pub fn inline(value: &Value) -> String {
    match value {
        Value::String(string) => basic(string),
        Value::Float(number) => format!("{number:?}"),
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let entry = |(name, value): (&String, &Value)| format!("{} = {}", key(name), inline(value));
            let entries: Vec<String> = table.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// A key, in quotes where it needs them: names of bearers have dots.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare { name.to_string() } else { basic(name) }
}

/// Text, over several lines where it has several.
pub fn text(string: &str) -> String {
    if !string.contains('\n') {
        return basic(string);
    }
    let body = escape(string).replace("\\n", "\n");
    format!("\"\"\"\n{body}\"\"\"")
}

fn basic(string: &str) -> String {
    format!("\"{}\"", escape(string))
}

fn escape(string: &str) -> String {
    let mut out = String::new();
    for c in string.chars() {
        match c {
            '\\' => out += "\\\\",
            '"' => out += "\\\"",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
