// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Typed access to the columns of a batch.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, ArrowPrimitiveType, UInt8Type, UInt16Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, ListArray, PrimitiveArray, RecordBatch, StringArray};

use crate::error::LogError;

/// A batch and the file it came from, for messages.
pub(crate) struct Columns<'a> {
    pub batch: &'a RecordBatch,
    pub path: &'a Path,
}

/// A column of words.
pub(crate) struct WordColumn {
    keys: Keys,
    words: StringArray,
}

enum Keys {
    Narrow(PrimitiveArray<UInt8Type>),
    Wide(PrimitiveArray<UInt16Type>),
}

/// A column of lists of numbers.
pub(crate) struct ListColumn<T: ArrowPrimitiveType> {
    lists: ListArray,
    numbers: PrimitiveArray<T>,
}

impl<T: ArrowPrimitiveType> ListColumn<T> {
    /// The list in `row`; `None` for none.
    pub fn get(&self, row: usize) -> Option<&[T::Native]> {
        let offsets = self.lists.value_offsets();
        let range = usize::try_from(offsets[row]).ok()?..usize::try_from(offsets[row + 1]).ok()?;
        self.lists.is_valid(row).then(|| &self.numbers.values()[range])
    }
}

impl WordColumn {
    /// The word in `row`; `None` for none.
    pub fn get(&self, row: usize) -> Option<&str> {
        let key = match &self.keys {
            Keys::Narrow(keys) => keys.is_valid(row).then(|| usize::from(keys.value(row))),
            Keys::Wide(keys) => keys.is_valid(row).then(|| usize::from(keys.value(row))),
        }?;
        (key < self.words.len()).then(|| self.words.value(key))
    }

    /// Every word that a row may have.
    pub fn words(&self) -> Vec<&str> {
        self.words.iter().flatten().collect()
    }

    /// The length of the longest word.
    pub fn width(&self) -> usize {
        self.words.iter().flatten().map(|word| word.chars().count()).max().unwrap_or(0)
    }
}

impl Columns<'_> {
    fn column(&self, name: &str) -> Result<&ArrayRef, LogError> {
        self.batch.column_by_name(name).ok_or_else(|| self.wrong(format!("it has no column `{name}`")))
    }

    /// True if there is such a column: older logs lack some.
    pub fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    fn wrong(&self, what: String) -> LogError {
        LogError::content(self.path, what, "use the version of Airpath that recorded it")
    }

    pub fn numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<PrimitiveArray<T>, LogError> {
        let column = self.column(name)?.as_primitive_opt::<T>();
        column.cloned().ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }

    pub fn flags(&self, name: &str) -> Result<BooleanArray, LogError> {
        let column = self.column(name)?.as_boolean_opt();
        column.cloned().ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }

    pub fn binary(&self, name: &str) -> Result<BinaryArray, LogError> {
        let column = self.column(name)?.as_binary_opt::<i32>();
        column.cloned().ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }

    pub fn text(&self, name: &str) -> Result<StringArray, LogError> {
        let column = self.column(name)?.as_string_opt::<i32>();
        column.cloned().ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }

    /// Lists of numbers; `None` where the file has no such column.
    pub fn lists<T: ArrowPrimitiveType>(&self, name: &str) -> Result<Option<ListColumn<T>>, LogError> {
        let Some(column) = self.batch.column_by_name(name) else { return Ok(None) };
        let lists = column.as_list_opt::<i32>().cloned();
        let numbers = lists.as_ref().and_then(|lists| lists.values().as_primitive_opt::<T>().cloned());
        let column = lists.zip(numbers).map(|(lists, numbers)| ListColumn { lists, numbers });
        column.map(Some).ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }

    pub fn words(&self, name: &str) -> Result<WordColumn, LogError> {
        let column = self.column(name)?;
        fn parts<K: ArrowDictionaryKeyType>(column: &ArrayRef) -> Option<(PrimitiveArray<K>, StringArray)> {
            let dictionary = column.as_dictionary_opt::<K>()?;
            Some((dictionary.keys().clone(), dictionary.values().as_string_opt::<i32>()?.clone()))
        }
        let narrow = parts::<UInt8Type>(column).map(|(keys, words)| WordColumn { keys: Keys::Narrow(keys), words });
        let wide = || parts::<UInt16Type>(column).map(|(keys, words)| WordColumn { keys: Keys::Wide(keys), words });
        narrow.or_else(wide).ok_or_else(|| self.wrong(format!("its column `{name}` has another type")))
    }
}

/// The number in `row`; `None` for none.
pub(crate) fn number<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}
