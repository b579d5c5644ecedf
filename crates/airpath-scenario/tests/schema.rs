// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The committed JSON Schema.

use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/scenario.schema.json");

/// `UPDATE_SCHEMA=1 cargo test -p airpath-scenario --test tests schema` writes it anew.
#[test]
fn the_committed_schema_is_fresh() {
    let schema = airpath_scenario::schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(FILE, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap();
    assert!(committed == schema, "schema/scenario.schema.json is stale; run this test with UPDATE_SCHEMA=1");
}

#[test]
fn every_key_is_described_and_every_reference_leads_somewhere() {
    let schema: Value = serde_json::from_str(&airpath_scenario::schema()).unwrap();
    for key in ["$schema", "title", "description", "examples"] {
        assert!(schema.get(key).is_some(), "{key}");
    }
    fn walk(value: &Value, root: &Value, place: &str, keys: &mut usize) {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(root.pointer(pointer).is_some(), "{place}: {reference}");
        }
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                *keys += 1;
                let is_plain = property.get("const").is_some() || property == &serde_json::json!({});
                assert!(is_plain || property.get("description").is_some(), "{place}.{name} is not described");
            }
        }
        match value {
            Value::Object(object) => {
                for (name, inner) in object.iter().filter(|(name, _)| *name != "examples" && *name != "default") {
                    walk(inner, root, &format!("{place}/{name}"), keys);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, root, place, keys)),
            _ => {}
        }
    }
    let mut keys = 0;
    walk(&schema, &schema, "", &mut keys);
    assert!(keys > 30, "{keys}");
}
