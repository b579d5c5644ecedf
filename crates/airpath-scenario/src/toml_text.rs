//! Values as text in TOML.

use std::fmt::Write;

use toml::Value;

/// The keys of tables within a link in the order in which people say them; others follow by name.
const WITHIN: &[&str] = &[
    "type",
    "name",
    "match",
    "quantum",
    "order",
    "file",
    "light",
    "heavy",
    "steps",
    "interpolation",
    "slot",
    "bits",
    "period",
    "offset",
    "repeat",
    "accounting",
    "timer",
    "per",
    "positions",
    "probability",
    "unit",
    "shape",
    "scale",
    "from",
    "to",
    "mean",
    "median",
    "deviation",
    "sigma",
    "first",
    "second",
    "first_to_second",
    "second_to_first",
    "of",
    "weight",
    "value",
    "least",
    "most",
    "good_to_bad",
    "bad_to_good",
    "error_in_good",
    "error_in_bad",
    "effect",
    "kept",
    "delay",
    "distance",
    "gap",
    "copies",
    "at_end",
    "correlation",
    "keep_order",
    "flips",
    "headers",
    "limit",
    "frame_payload",
    "frame_header",
    "last_frame",
    "queue",
];

/// A value on one line.
pub fn inline(value: &Value) -> String {
    match value {
        Value::String(string) => basic(string),
        Value::Float(number) => format!("{number:?}"),
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let mut keys: Vec<&String> = table.keys().collect();
            keys.sort_by_key(|key| WITHIN.iter().position(|known| known == key).unwrap_or(WITHIN.len()));
            let entries: Vec<String> = keys.into_iter().map(|key| format!("{key} = {}", inline(&table[key]))).collect();
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
