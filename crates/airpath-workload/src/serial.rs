// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Workloads in files: a table with `kind` and the keys, or the text itself.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Workload;
use crate::words::quoted;

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.name())?;
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        if let Some(user) = &self.user {
            map.serialize_entry("user", user)?;
        }
        map.serialize_entry("start", &self.start)?;
        self.kind.serialize_keys(&mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
        deserializer.deserialize_any(TextOrTable)
    }
}

struct TextOrTable;

impl<'de> Visitor<'de> for TextOrTable {
    type Value = Workload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a workload: text such as \"tcp bytes=102400\", or a table with its kind and keys")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Workload, E> {
        Workload::parse(text).map_err(E::custom)
    }

    /// A table is written out as text first, so that there is one parser and one set of messages.
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Workload, M::Error> {
        let mut kind = None;
        let mut words = String::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            let value = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                other => return Err(Error::custom(format!("`{key}` must be text or a number, and is {other}"))),
            };
            if key == "kind" {
                kind = Some(quoted(&value));
            } else {
                words += &format!(" {}={}", quoted(&key), quoted(&value));
            }
        }
        let kind = kind.ok_or_else(|| Error::missing_field("kind"))?;
        self.visit_str(&(kind + &words))
    }
}
