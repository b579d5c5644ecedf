// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The one place where kinds of workloads become types, parsers, printers and descriptions.

use schemars::{Schema, SchemaGenerator};

/// A key of a workload, for help and schemas.
pub struct KeyDescription {
    /// Its name.
    pub name: &'static str,
    /// Meaning of the key.
    pub documentation: &'static str,
    /// True if it must be given.
    pub required: bool,
    /// Default value; none where nothing stands in for it.
    pub default: Option<String>,
    /// Makes the schema of its value.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// A kind of workload, for help and schemas.
pub struct KindDescription {
    /// Its word.
    pub name: &'static str,
    /// Description of the kind.
    pub documentation: &'static str,
    /// Its keys, without those that every workload has.
    pub keys: Vec<KeyDescription>,
}

/// The value of an optional key, or a key with a default, as it stands in its struct.
macro_rules! key_type {
    ($type:ty; required) => { $type };
    ($type:ty; optional) => { Option<$type> };
    ($type:ty; default($default:expr)) => { $type };
}

macro_rules! key_read {
    ($keys:ident, $key:ident, $type:ty; required) => {
        $keys.required::<$type>(stringify!($key))
    };
    ($keys:ident, $key:ident, $type:ty; optional) => {
        Some($keys.optional::<$type>(stringify!($key)))
    };
    ($keys:ident, $key:ident, $type:ty; default($default:expr)) => {
        Some($keys.optional::<$type>(stringify!($key)).unwrap_or($default))
    };
}

/// Output of a printer: nothing for values that a reader would assume.
macro_rules! key_write {
    ($pairs:ident, $key:ident, $value:expr; required) => {
        $pairs.push((stringify!($key), $value.write()))
    };
    ($pairs:ident, $key:ident, $value:expr; optional) => {
        $pairs.extend($value.as_ref().map(|value| (stringify!($key), value.write())))
    };
    ($pairs:ident, $key:ident, $value:expr; default($default:expr)) => {
        if *$value != $default {
            $pairs.push((stringify!($key), $value.write()))
        }
    };
}

macro_rules! key_serialize {
    ($map:ident, $key:ident, $value:expr; optional) => {
        if let Some(value) = $value {
            $map.serialize_entry(stringify!($key), value)?
        }
    };
    ($map:ident, $key:ident, $value:expr; $($rule:tt)*) => {
        $map.serialize_entry(stringify!($key), $value)?
    };
}

macro_rules! key_default {
    ($type:ty; required) => {
        (true, None)
    };
    ($type:ty; optional) => {
        (false, None)
    };
    ($type:ty; default($default:expr)) => {{
        let default: $type = $default;
        (false, Some(default.write()))
    }};
}

/// Declares kinds: a struct each, with keys that are `required`, `optional` or `default(VALUE)`, and
/// the enumeration of them all.
macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $word:literal {
            $( $(#[doc = $key_doc:literal])* $key:ident: $type:ty => $rule:ident $(($default:expr))? ),* $(,)?
        }
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $variant {
                $( $(#[doc = $key_doc])* pub $key: key_type!($type; $rule $(($default))?) ),*
            }
        )*

        /// Kind of a workload.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Kind {
            $( $(#[doc = $doc])* $variant($variant) ),*
        }

        impl Kind {
            /// The words for kinds.
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            /// Its word.
            pub fn name(&self) -> &'static str {
                match self { $(Kind::$variant(_) => $word),* }
            }

            /// The names of the keys of the kind called `kind`; none where there is no such kind.
            pub fn keys(kind: &str) -> Option<&'static [&'static str]> {
                match kind {
                    $($word => Some(&[$(stringify!($key)),*]),)*
                    _ => None,
                }
            }

            /// Reads the kind called `kind`; none where a key is wrong or missing, which `keys` tells.
            pub(crate) fn read(kind: &str, keys: &mut crate::keys::Keys<'_>) -> Option<Kind> {
                match kind {
                    $($word => {
                        $(let $key = key_read!(keys, $key, $type; $rule $(($default))?);)*
                        Some(Kind::$variant($variant { $($key: $key?),* }))
                    })*
                    _ => None,
                }
            }

            /// The keys that differ from their defaults, and their values.
            pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
                let mut pairs = Vec::new();
                match self {
                    $(Kind::$variant($variant { $($key),* }) => {
                        $(key_write!(pairs, $key, $key; $rule $(($default))?);)*
                    })*
                }
                pairs
            }

            /// All keys that have a value.
            pub(crate) fn serialize_keys<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Kind::$variant($variant { $($key),* }) => {
                        $(key_serialize!(map, $key, $key; $rule $(($default))?);)*
                    })*
                }
                Ok(())
            }

            /// All kinds with their keys, for help and schemas.
            pub fn descriptions() -> Vec<crate::macros::KindDescription> {
                vec![$(crate::macros::KindDescription {
                    name: $word,
                    documentation: concat!($($doc, "\n"),*).trim(),
                    keys: vec![$({
                        let (required, default) = key_default!($type; $rule $(($default))?);
                        crate::macros::KeyDescription {
                            name: stringify!($key),
                            documentation: concat!($($key_doc, "\n"),*).trim(),
                            required,
                            default,
                            schema: |generator| generator.subschema_for::<$type>(),
                        }
                    }),*],
                }),*]
            }
        }
    };
}

pub(crate) use {key_default, key_read, key_serialize, key_type, key_write, kinds};
