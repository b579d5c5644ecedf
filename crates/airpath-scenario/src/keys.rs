// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading a JSON Schema as what it says about keys: which there are, and of which types a table is.
//!
//! It understands what schemars makes of the configuration types: `$ref`, `properties`, `required`,
//! `allOf`, and `oneOf` with a constant `type` for each variant.

use serde_json::Value;

/// The keys of a table.
#[derive(Debug, Default)]
pub struct Properties<'a> {
    /// Names and schemas.
    pub keys: Vec<(&'a str, &'a Value)>,
    /// Keys that may not be left out.
    pub required: Vec<&'a str>,
}

impl<'a> Properties<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, schema)| *schema)
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.keys.iter().map(|(name, _)| *name)
    }

    fn collect(&mut self, schema: &'a Value, root: &'a Value) {
        if let Some(definition) = reference(schema, root) {
            self.collect(definition.1, root);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.collect(part, root);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if self.get(name).is_none() {
                self.keys.push((name, property));
            }
        }
        self.required.extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
    }
}

/// One of the types of a tagged table.
#[derive(Debug)]
pub struct Variant<'a> {
    /// The value of `type`.
    pub name: &'a str,
    schema: &'a Value,
    root: &'a Value,
}

impl<'a> Variant<'a> {
    /// The keys of the type, `type` included, without those that all types have in common. Made when asked
    /// for: of a dozen types mostly one counts, and a table of a scenario is checked many times.
    pub fn properties(&self) -> Properties<'a> {
        properties(self.schema, self.root)
    }
}

/// The name and the schema that `$ref` refers to.
pub fn reference<'a>(schema: &'a Value, root: &'a Value) -> Option<(&'a str, &'a Value)> {
    let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
    Some((name, root["$defs"].get(name)?))
}

/// Follows references to the schema that says something itself; the name is that of the last.
pub fn resolve<'a>(mut schema: &'a Value, root: &'a Value) -> (Option<&'a str>, &'a Value) {
    let mut name = None;
    while schema.get("properties").is_none()
        && let Some((referred, definition)) = reference(schema, root)
    {
        (name, schema) = (Some(referred), definition);
    }
    (name, schema)
}

/// If the schema is that of an optional value: the schema of the value.
pub fn optional(schema: &Value) -> Option<&Value> {
    let options = schema["anyOf"].as_array()?;
    options.iter().any(|option| option["type"] == "null").then_some(())?;
    options.iter().find(|option| option["type"] != "null")
}

/// If the schema is that of a value that is written as a quantity (or a word) or as a table: the
/// schemas of both.
pub fn quantity_or_table<'a>(schema: &'a Value, root: &'a Value) -> Option<(&'a Value, &'a Value)> {
    let [quantity, table] = schema["anyOf"].as_array()?.as_slice() else { return None };
    let (_, inner) = resolve(table, root);
    (inner["type"] == "object" || !variants(inner, root).is_empty()).then_some((quantity, table))
}

/// If the schema is that of a value that is written as a quantity or as a list: the schemas of both.
pub fn quantity_or_list(schema: &Value) -> Option<(&Value, &Value)> {
    let [quantity, list] = schema["anyOf"].as_array()?.as_slice() else { return None };
    (list["type"] == "array").then_some((quantity, list))
}

/// If the schema is that of a value that is written as a word or as a quantity: the words, and the schema of the
/// quantity.
pub fn word_or_quantity<'a>(schema: &'a Value, root: &'a Value) -> Option<(Vec<&'a str>, &'a Value)> {
    let [words, quantity] = schema["anyOf"].as_array()?.as_slice() else { return None };
    Some((enumeration(resolve(words, root).1)?, quantity))
}

/// If the schema is that of a list: the schema of what is in it.
pub fn items<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    resolve(schema, root).1.get("items")
}

/// True if the schema describes a table, not a plain value.
pub fn is_table(schema: &Value, root: &Value) -> bool {
    let (_, schema) = resolve(schema, root);
    schema.get("properties").is_some() || !variants(schema, root).is_empty()
}

/// The schema of key `name` of a table, whatever its type.
pub fn property<'a>(schema: &'a Value, root: &'a Value, name: &str) -> Option<&'a Value> {
    let (_, schema) = resolve(schema, root);
    let of_variants =
        || variants(schema, root).into_iter().find_map(|variant| own_property(variant.schema, root, name));
    own_property(schema, root, name).or_else(of_variants)
}

/// The property of this name among [`properties`], which are not collected for it: scenarios ask for many keys of large
/// tables.
fn own_property<'a>(schema: &'a Value, root: &'a Value, name: &str) -> Option<&'a Value> {
    let referred = reference(schema, root).and_then(|(_, definition)| own_property(definition, root, name));
    let of_parts = || schema["allOf"].as_array().into_iter().flatten().find_map(|part| own_property(part, root, name));
    referred.or_else(of_parts).or_else(|| schema["properties"].get(name))
}

/// The keys of a table, without those of its variants.
pub fn properties<'a>(schema: &'a Value, root: &'a Value) -> Properties<'a> {
    let mut properties = Properties::default();
    properties.collect(schema, root);
    properties
}

/// The types of a tagged table; empty for others.
pub fn variants<'a>(schema: &'a Value, root: &'a Value) -> Vec<Variant<'a>> {
    let of = |variant: &'a Value| {
        // Not by `pointer`, which makes texts of its own of each part.
        let name = variant["properties"]["type"]["const"].as_str()?;
        Some(Variant { name, schema: variant, root })
    };
    schema["oneOf"].as_array().into_iter().flatten().filter_map(of).collect()
}

/// The keys that a table at `chain` below `schema` has when its type is `kind` (empty for a table
/// without types); none if the chain leads to no table of that type. In a chain, the key of a list is
/// followed by the name of a table in it.
fn properties_of_type<'a>(schema: &'a Value, root: &'a Value, chain: &[&str], kind: &str) -> Option<Properties<'a>> {
    let (_, schema) = resolve(schema, root);
    if let Some(inner) = optional(schema).or_else(|| quantity_or_table(schema, root).map(|(_, table)| table)) {
        return properties_of_type(inner, root, chain, kind);
    }
    if let Some(items) = items(schema, root) {
        return properties_of_type(items, root, chain.get(1..)?, kind);
    }
    let mut common = properties(schema, root);
    match chain {
        [] if kind.is_empty() => Some(common),
        [] => {
            let variant = variants(schema, root).into_iter().find(|variant| variant.name == kind)?;
            common.keys.extend(variant.properties().keys);
            Some(common)
        }
        [first, rest @ ..] => properties_of_type(property(schema, root, first)?, root, rest, kind),
    }
}

/// The names of the keys that a table at `chain` has when its type is `kind`; none if the chain leads
/// to no table of that type.
pub fn keys_of_type<'a>(schema: &'a Value, root: &'a Value, chain: &[&str], kind: &str) -> Option<Vec<&'a str>> {
    Some(properties_of_type(schema, root, chain, kind)?.names().collect())
}

/// The schema of key `name` of such a table.
pub fn property_of_type<'a>(
    schema: &'a Value,
    root: &'a Value,
    chain: &[&str],
    kind: &str,
    name: &str,
) -> Option<&'a Value> {
    properties_of_type(schema, root, chain, kind)?.get(name)
}

/// The texts of an enumeration; none if the schema is not one.
pub fn enumeration(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::as_str).collect();
    }
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    schema["oneOf"].as_array()?.iter().map(|option| option["const"].as_str()).collect()
}
