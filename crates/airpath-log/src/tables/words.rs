// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Columns of words from a dictionary that is known from the start.

use std::sync::Arc;

use arrow_array::types::{ArrowDictionaryKeyType, UInt8Type};
use arrow_array::{ArrayRef, DictionaryArray, StringArray, UInt8Array};
use arrow_schema::DataType;

/// The words of a dictionary.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(words))
}

/// The type of a column of words that are numbered by `K`.
pub(crate) fn words_type<K: ArrowDictionaryKeyType>() -> DataType {
    DataType::Dictionary(Box::new(K::DATA_TYPE), Box::new(DataType::Utf8))
}

pub(crate) fn dictionary_u8(keys: UInt8Array, words: &ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<UInt8Type>::new(keys, words.clone()))
}
