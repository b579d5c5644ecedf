// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Types of columns, and their conversion to Arrow and back.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use airpath_core::End;
use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;

use super::words::{CongestionState, SocketState, Source, Word};
use crate::error::LogError;
use crate::read::columns::{Columns, number};
use crate::tables::words::{dictionary_u8, words, words_type};

/// The longest name of a congestion control, with its end (`TCP_CA_NAME_MAX`).
const NAME_BYTES: usize = 16;

/// A short name, such as that of a congestion control.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    bytes: [u8; NAME_BYTES],
}

impl Name {
    /// `text`, cut off after 16 bytes, up to its first zero.
    pub fn new(text: &str) -> Name {
        let mut bytes = [0; NAME_BYTES];
        let length = text.bytes().take_while(|byte| *byte != 0).take(NAME_BYTES).count();
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Name { bytes }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A value of a column.
pub(crate) trait Cell: Copy {
    /// True if values may be absent.
    const NULLABLE: bool;
    fn data_type() -> DataType;
    fn array(values: Vec<Self>) -> ArrayRef;
    fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<Self>, LogError>;
}

macro_rules! numbers {
    ($($type:ty: $array:ty, $arrow:ty, $data_type:expr;)+) => {$(
        impl Cell for $type {
            const NULLABLE: bool = false;
            fn data_type() -> DataType {
                $data_type
            }
            fn array(values: Vec<$type>) -> ArrayRef {
                Arc::new(<$array>::from(values))
            }
            fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<$type>, LogError> {
                Ok(columns.numbers::<$arrow>(name)?.values().to_vec())
            }
        }

        impl Cell for Option<$type> {
            const NULLABLE: bool = true;
            fn data_type() -> DataType {
                $data_type
            }
            fn array(values: Vec<Option<$type>>) -> ArrayRef {
                Arc::new(<$array>::from(values))
            }
            fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<Option<$type>>, LogError> {
                if !columns.has(name) {
                    return Ok(vec![None; columns.batch.num_rows()]);
                }
                let values = columns.numbers::<$arrow>(name)?;
                Ok((0..columns.batch.num_rows()).map(|row| number(&values, row)).collect())
            }
        }
    )+};
}

numbers! {
    u16: UInt16Array, UInt16Type, DataType::UInt16;
    u32: UInt32Array, UInt32Type, DataType::UInt32;
    u64: UInt64Array, UInt64Type, DataType::UInt64;
    f64: Float64Array, Float64Type, DataType::Float64;
}

impl Cell for Option<bool> {
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn array(values: Vec<Option<bool>>) -> ArrayRef {
        Arc::new(BooleanArray::from(values))
    }
    fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<Option<bool>>, LogError> {
        if !columns.has(name) {
            return Ok(vec![None; columns.batch.num_rows()]);
        }
        let values = columns.flags(name)?;
        Ok((0..columns.batch.num_rows()).map(|row| values.is_valid(row).then(|| values.value(row))).collect())
    }
}

macro_rules! texts {
    ($($type:ty, $nullable:literal, $write:expr, $read:expr;)+) => {$(
        impl Cell for $type {
            const NULLABLE: bool = $nullable;
            fn data_type() -> DataType {
                DataType::Utf8
            }
            fn array(values: Vec<$type>) -> ArrayRef {
                Arc::new(values.into_iter().map($write).collect::<StringArray>())
            }
            fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<$type>, LogError> {
                if $nullable && !columns.has(name) {
                    return (0..columns.batch.num_rows()).map(|_| $read(None, columns.path)).collect();
                }
                let values = columns.text(name)?;
                values.iter().map(|text| $read(text, columns.path)).collect()
            }
        }
    )+};
}

texts! {
    IpAddr, false, |address| Some(address.to_string()), read_address;
    Option<Name>, true, |name| name.map(|name| name.as_str().to_owned()), read_name;
}

fn read_address(text: Option<&str>, path: &Path) -> Result<IpAddr, LogError> {
    let text = text.unwrap_or_default();
    IpAddr::from_str(text).map_err(|_| LogError::content(path, format!("`{text}` is not an address"), MEND))
}

fn read_name(text: Option<&str>, _: &Path) -> Result<Option<Name>, LogError> {
    Ok(text.map(Name::new))
}

const MEND: &str = "use the version of Airpath that recorded it";

macro_rules! dictionaries {
    ($($type:ty),+) => {$(
        impl Cell for $type {
            const NULLABLE: bool = false;
            fn data_type() -> DataType {
                words_type::<UInt8Type>()
            }
            fn array(values: Vec<$type>) -> ArrayRef {
                word_array(values.into_iter().map(Some))
            }
            fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<$type>, LogError> {
                let what = || format!("its column `{name}` has a missing value");
                let missing = || LogError::content(columns.path, what(), MEND);
                read_words(columns, name)?.into_iter().map(|word| word.ok_or_else(missing)).collect()
            }
        }

        impl Cell for Option<$type> {
            const NULLABLE: bool = true;
            fn data_type() -> DataType {
                words_type::<UInt8Type>()
            }
            fn array(values: Vec<Option<$type>>) -> ArrayRef {
                word_array(values)
            }
            fn column(columns: &Columns<'_>, name: &str) -> Result<Vec<Option<$type>>, LogError> {
                if !columns.has(name) {
                    return Ok(vec![None; columns.batch.num_rows()]);
                }
                read_words(columns, name)
            }
        }
    )+};
}

dictionaries!(Source, SocketState, CongestionState, End);

fn word_array<W: Word + PartialEq>(values: impl IntoIterator<Item = Option<W>>) -> ArrayRef {
    let key = |word: W| W::ALL.iter().position(|other| *other == word).map(|index| index as u8);
    let keys: UInt8Array = values.into_iter().map(|word| word.and_then(key)).collect();
    dictionary_u8(keys, &words(W::ALL.iter().map(|word| word.name())))
}

fn read_words<W: Word>(columns: &Columns<'_>, name: &str) -> Result<Vec<Option<W>>, LogError> {
    let column = columns.words(name)?;
    let read = |row| -> Result<Option<W>, LogError> {
        let Some(text) = column.get(row) else { return Ok(None) };
        let known = W::ALL.iter().copied().find(|word| word.name() == text);
        known.map(Some).ok_or_else(|| {
            LogError::content(columns.path, format!("its column `{name}` has the unknown word `{text}`"), MEND)
        })
    };
    (0..columns.batch.num_rows()).map(read).collect()
}
