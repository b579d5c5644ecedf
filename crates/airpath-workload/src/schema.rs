// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The JSON Schema of workloads.

use std::borrow::Cow;

use airpath_core::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::Workload;
use crate::kinds::Kind;
use crate::macros::KindDescription;
use crate::parse::COMMON_KEYS;

impl JsonSchema for Workload {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = json!({"type": "string", "examples": ["tcp bytes=102400 from=server cc=cubic"]});
        let tables = Kind::descriptions().into_iter().map(|kind| table(&kind, generator));
        let forms: Vec<Value> = std::iter::once(text).chain(tables).collect();
        json_schema!({
            "description": "A workload between the two ends of a link: text, or a table of the same keys.",
            "anyOf": forms,
        })
    }
}

fn table(kind: &KindDescription, generator: &mut SchemaGenerator) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".into(), json!({"const": kind.name}));
    for (key, documentation) in COMMON_KEYS {
        let mut schema = match key {
            "start" => generator.subschema_for::<Span>(),
            _ => generator.subschema_for::<String>(),
        };
        schema.insert("description".into(), documentation.into());
        properties.insert(key.into(), schema.into());
    }
    for key in &kind.keys {
        let mut schema = (key.schema)(generator);
        schema.insert("description".into(), key.documentation.into());
        if let Some(default) = &key.default {
            schema.insert("default".into(), default.as_str().into());
        }
        properties.insert(key.name.into(), schema.into());
    }
    let required = kind.keys.iter().filter(|key| key.required).map(|key| key.name);
    json!({
        "type": "object",
        "description": kind.documentation,
        "properties": properties,
        "required": std::iter::once("kind").chain(required).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}
