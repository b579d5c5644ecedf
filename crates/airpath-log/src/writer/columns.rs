//! Columns of words from a dictionary that is known from the start.

use std::sync::Arc;

use airpath_core::Cause;
use arrow_array::types::{UInt8Type, UInt16Type};
use arrow_array::{ArrayRef, DictionaryArray, StringArray, UInt8Array, UInt16Array};
use arrow_schema::{DataType, Field};

/// The words of a dictionary.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(words))
}

/// The words of all causes.
pub(crate) fn cause_words() -> ArrayRef {
    words(Cause::ALL.iter().map(|cause| cause.name()))
}

pub(crate) fn by_u8(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)), nullable)
}

pub(crate) fn by_u16(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)), nullable)
}

pub(crate) fn dictionary_u8(keys: UInt8Array, words: &ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<UInt8Type>::new(keys, words.clone()))
}

pub(crate) fn dictionary_u16(keys: UInt16Array, words: &ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<UInt16Type>::new(keys, words.clone()))
}
