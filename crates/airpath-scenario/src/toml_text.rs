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
            let entries: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
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
