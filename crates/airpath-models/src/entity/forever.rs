// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A time, or `"never"`, in parameters.

use airpath_core::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NEVER: &str = "never";

pub(crate) fn serialize<S: Serializer>(wait: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    match wait {
        Some(wait) => wait.serialize(serializer),
        None => serializer.serialize_str(NEVER),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == NEVER {
        return Ok(None);
    }
    text.parse().map(Some).map_err(serde::de::Error::custom)
}
