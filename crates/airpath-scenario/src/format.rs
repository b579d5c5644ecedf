// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The format of a scenario file as types, and the JSON Schema made of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};
use airpath_core::{Probability, Span};
use airpath_models::LinkConfig;
use airpath_models::cell::MediumOfCell;
use airpath_models::load::BackgroundConfig;
use airpath_models::random::Random;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::hosts::HostConfig;

/// A scenario: one path of hops between the client (the mobile end) and the server (the fixed end),
/// or several paths. Quantities are text with their units: "9600 bit/s", "200 ms", "7 packets".
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents are read node by node, with their places, against the schema of this type")]
#[schemars(title = "Airpath scenario", rename = "Scenario")]
pub struct ScenarioFile {
    /// A short name, used in reports.
    pub name: Option<String>,
    /// Description of the scenario.
    pub description: Option<String>,
    /// Source of the numbers: the paper, the standard's clause, the tool; which are measured and which assumed.
    pub source: Option<String>,
    /// The IP MTU of both endpoints in bytes. Below 1280 there is no IPv6.
    #[schemars(range(min = LEAST_MTU_BYTES, max = LONGEST_PACKET_BYTES))]
    pub mtu: Option<u32>,
    /// Other hosts, on which hops are placed, by name.
    #[schemars(default)]
    pub hosts: BTreeMap<String, HostConfig>,
    /// The hops of the only path, the client's end first.
    #[schemars(default)]
    pub hops: Vec<HopFile>,
    /// The states of the only path.
    #[schemars(default)]
    pub states: Vec<StateFile>,
    /// Background loads of the only path.
    #[schemars(default)]
    pub background: Vec<BackgroundConfig>,
    /// Media that hops share: a link names one as its `medium`. The paths are users of a cell then.
    #[schemars(default)]
    pub media: Vec<MediumOfCell>,
    /// Several paths, each with its own hops, states and background loads; then there are none beside
    /// them.
    #[schemars(default)]
    pub paths: Vec<PathFile>,
}

/// One of several paths.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents are read node by node, with their places, against the schema of this type")]
#[schemars(rename = "Path")]
pub struct PathFile {
    /// Its name: a letter, then letters, digits, `_` or `-`.
    pub name: String,
    /// The hops, the client's end first.
    #[schemars(default)]
    pub hops: Vec<HopFile>,
    /// States that change parameters of the hops.
    #[schemars(default)]
    pub states: Vec<StateFile>,
    /// Background loads of its hops.
    #[schemars(default)]
    pub background: Vec<BackgroundConfig>,
}

/// One hop. Parameters of `link` hold in both directions; those of `uplink` and `downlink` override
/// them key by key. A table that names its `type` replaces the overridden one as a whole.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents are read node by node, with their places, against the schema of this type")]
#[schemars(rename = "Hop")]
pub struct HopFile {
    /// Its name, the first part of its parameters' names: a letter, then letters, digits, `_` or `-`.
    /// Without one a single hop is called `radio`, others `hop1`, `hop2` and so on by their place.
    pub name: Option<String>,
    /// Its host: a name under `hosts`. Without it, the host on which the command runs.
    pub host: Option<String>,
    /// Both directions.
    pub link: Option<LinkConfig>,
    /// From the client to the server.
    pub uplink: Option<LinkConfig>,
    /// From the server to the client.
    pub downlink: Option<LinkConfig>,
}

/// A state: the parameters of the beginning with some of them changed, whatever state came before.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents are read node by node, with their places, against the schema of this type")]
#[schemars(rename = "State")]
pub struct StateFile {
    /// Its name: a letter, then letters, digits, `_` or `-`.
    pub name: String,
    /// Start time of the state, from the start of the client's command; without it only a command or another
    /// state starts it.
    pub at: Option<Span>,
    /// Duration of the state once it is entered; then the state in `next` follows, or else the initial
    /// parameters. A state called `initial` says how long the beginning lasts.
    pub duration: Option<Random<Span>>,
    /// Successor after the duration: the name of a state, or a table of names with probabilities whose sum is
    /// 1.
    pub next: Option<NextFile>,
    /// The parameters that differ from the beginning, by name: `"radio.link.errors.probability" = 0.10`.
    /// `link` means both directions.
    #[schemars(default, extend("examples" = [{"radio.link.errors.probability": 0.10}]))]
    pub set: BTreeMap<String, Value>,
}

/// The state that follows another: one for certain, or several with their probabilities.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents are read node by node, with their places, against the schema of this type")]
#[schemars(untagged, rename = "Next")]
pub enum NextFile {
    /// The name of the state.
    Name(String),
    /// Names and probabilities: `{ open = 0.7, tunnel = 0.3 }`.
    Drawn(BTreeMap<String, Probability>),
}

/// The schema as schemars makes it of the types: what documents are checked against.
pub static RAW: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(ScenarioFile).to_value());

/// The schema of one direction of a hop, with `$defs` at [`RAW`].
pub static LINK: LazyLock<Value> = LazyLock::new(|| json!({ "$ref": "#/$defs/LinkConfig" }));

/// The JSON Schema of a scenario file, for editors and other programs.
///
/// Beyond the types' own it knows that TOML writes the absence of an optional value as "none", that
/// a table without `type` changes keys of the one it overrides, and that unknown keys are errors.
pub fn schema() -> String {
    let mut schema = RAW.clone();
    polish(&mut schema);
    let parts = parts(&RAW);
    if let Some(defs) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        for (name, definition) in defs.iter_mut().filter(|(name, _)| !parts.contains(name)) {
            // There is no other load or medium that one could override.
            close(definition, &RAW, !["Background", "Medium"].contains(&name.as_str()));
        }
    }
    close(&mut schema, &RAW, false);
    schema["examples"] = json!([{
        "name": "gsm",
        "hops": [{"name": "radio", "link": {
            "rate": "9600 bit/s", "propagation": "200 ms",
            "queue": {"type": "tail_drop", "limit": "7 packets"},
            "errors": {"type": "bernoulli", "per": "packet", "probability": 0.01, "effect": "drop"}
        }}],
        "states": [{"name": "poor", "at": "40 s", "set": {"radio.link.errors.probability": 0.10}}]
    }]);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Replaces JSON's null by TOML's "none", everywhere, and drops defaults of null.
fn polish(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(kinds) = object.get_mut("type").and_then(Value::as_array_mut) {
                kinds.retain(|kind| kind != "null");
                if let [kind] = kinds.as_slice() {
                    object["type"] = kind.clone();
                }
            }
            if let Some(Value::Array(options)) = object.get_mut("anyOf") {
                for option in options.iter_mut().filter(|option| **option == json!({"type": "null"})) {
                    *option = json!({"const": "none", "description": "Takes the overridden value away."});
                }
            }
            object.values_mut().for_each(polish);
        }
        Value::Array(items) => items.iter_mut().for_each(polish),
        _ => {}
    }
}

/// Makes unknown keys of a table errors, and lets a table of several types leave its type out where it
/// `overrides` another.
fn close(schema: &mut Value, raw: &Value, overrides: bool) {
    let variants = crate::keys::variants(schema, raw);
    let common = crate::keys::properties(schema, raw);
    let names = |keys: &crate::keys::Properties<'_>| keys.keys.iter().map(|(name, _)| name.to_string()).collect();
    let mut keys: Vec<String> = variants.iter().flat_map(|variant| names(&variant.properties())).collect();
    keys.extend::<Vec<String>>(names(&common));
    let tagged = !variants.is_empty();
    let Some(object) = schema.as_object_mut() else { return };
    if tagged && overrides {
        let any: serde_json::Map<String, Value> =
            keys.into_iter().filter(|key| key != "type").map(|key| (key, json!({}))).collect();
        if let Some(Value::Array(variants)) = object.get_mut("oneOf") {
            variants.push(json!({
                "description": "Changes keys of the table that it overrides.",
                "type": "object",
                "not": {"required": ["type"]},
                "properties": any,
            }));
        }
    }
    if tagged || object.contains_key("properties") {
        object.insert("unevaluatedProperties".into(), Value::Bool(false));
    }
}

/// The definitions that are only a part of a table: the keys of one of its types.
fn parts(raw: &Value) -> Vec<String> {
    let definitions = raw["$defs"].as_object().into_iter().flat_map(|defs| defs.values());
    definitions
        .flat_map(|definition| definition["oneOf"].as_array().into_iter().flatten())
        .filter_map(|variant| variant["$ref"].as_str()?.rsplit('/').next().map(str::to_string))
        .collect()
}
