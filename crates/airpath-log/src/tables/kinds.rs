// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The kinds of columns.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, ListBuilder, NullBufferBuilder, PrimitiveBuilder, StringBuilder, UInt8Builder, UInt32Builder,
};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, DictionaryArray, PrimitiveArray, StringArray, UInt8Array,
    UInt16Array,
};
use arrow_schema::{DataType, Field};
use serde::Serialize;

use super::{Column, Names};
use crate::error::LogError;
use crate::read::columns::{Columns, ListColumn, WordColumn, number};
use crate::show::count;
use crate::tables::words::words_type;

const NOTHING: &str = "none";

/// A whole number that every row has.
pub(crate) struct Number<T: ArrowPrimitiveType>(Vec<T::Native>);

/// A whole number that a row may lack.
pub(crate) struct Maybe<T: ArrowPrimitiveType>(PrimitiveBuilder<T>);

/// A whole number that a row may lack, and that logs of earlier versions did not have.
pub(crate) struct Later<T: ArrowPrimitiveType>(Maybe<T>);

impl<T> Column for Number<T>
where
    T: ArrowPrimitiveType<Native: Serialize + Into<u64>>,
{
    type Cell<'a> = T::Native;
    type Shown<'a> = T::Native;
    type Read = PrimitiveArray<T>;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        T::DATA_TYPE
    }

    fn new(_: &Names<'_>) -> Number<T> {
        Number(Vec::new())
    }

    #[inline]
    fn push(&mut self, cell: T::Native) {
        self.0.push(cell);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(std::mem::take(&mut self.0).into(), None))
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<PrimitiveArray<T>, LogError> {
        columns.numbers::<T>(name)
    }

    fn get(read: &PrimitiveArray<T>, row: usize) -> T::Native {
        read.value(row)
    }

    fn preview(&self, cell: T::Native) -> T::Native {
        cell
    }

    fn tell(shown: T::Native) -> String {
        count(shown.into())
    }
}

impl<T> Column for Maybe<T>
where
    T: ArrowPrimitiveType<Native: Serialize + Into<u64>>,
{
    type Cell<'a> = Option<T::Native>;
    type Shown<'a> = Option<T::Native>;
    type Read = PrimitiveArray<T>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::DATA_TYPE
    }

    fn new(_: &Names<'_>) -> Maybe<T> {
        Maybe(PrimitiveBuilder::new())
    }

    #[inline]
    fn push(&mut self, cell: Option<T::Native>) {
        self.0.append_option(cell);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<PrimitiveArray<T>, LogError> {
        columns.numbers::<T>(name)
    }

    fn get(read: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
        number(read, row)
    }

    fn preview(&self, cell: Option<T::Native>) -> Option<T::Native> {
        cell
    }

    fn tell(shown: Option<T::Native>) -> String {
        shown.map_or_else(|| NOTHING.into(), |number| count(number.into()))
    }
}

impl<T> Column for Later<T>
where
    T: ArrowPrimitiveType<Native: Serialize + Into<u64>>,
{
    type Cell<'a> = Option<T::Native>;
    type Shown<'a> = Option<T::Native>;
    type Read = Option<PrimitiveArray<T>>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::DATA_TYPE
    }

    fn new(names: &Names<'_>) -> Later<T> {
        Later(Maybe::new(names))
    }

    #[inline]
    fn push(&mut self, cell: Option<T::Native>) {
        self.0.push(cell);
    }

    fn take(&mut self) -> ArrayRef {
        self.0.take()
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<Option<PrimitiveArray<T>>, LogError> {
        columns.has(name).then(|| columns.numbers::<T>(name)).transpose()
    }

    fn get(read: &Option<PrimitiveArray<T>>, row: usize) -> Option<T::Native> {
        number(read.as_ref()?, row)
    }

    fn preview(&self, cell: Option<T::Native>) -> Option<T::Native> {
        cell
    }

    fn tell(shown: Option<T::Native>) -> String {
        Maybe::<T>::tell(shown)
    }

    fn is_left_out(shown: Option<T::Native>) -> bool {
        shown.is_none()
    }
}

/// A list of numbers; an empty one is none. Logs of earlier versions did not have it.
pub(crate) struct Numbers(ListBuilder<UInt32Builder>);

impl Numbers {
    fn item() -> Field {
        Field::new("item", DataType::UInt32, false)
    }
}

impl Column for Numbers {
    type Cell<'a> = &'a [u32];
    type Shown<'a> = Option<&'a [u32]>;
    type Read = Option<ListColumn<UInt32Type>>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::List(Arc::new(Numbers::item()))
    }

    fn new(_: &Names<'_>) -> Numbers {
        Numbers(ListBuilder::default().with_field(Numbers::item()))
    }

    #[inline]
    fn push(&mut self, cell: &[u32]) {
        self.0.values().append_slice(cell);
        self.0.append(!cell.is_empty());
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<Option<ListColumn<UInt32Type>>, LogError> {
        columns.lists::<UInt32Type>(name)
    }

    fn get(read: &Option<ListColumn<UInt32Type>>, row: usize) -> Option<&[u32]> {
        read.as_ref()?.get(row)
    }

    fn preview<'a>(&'a self, cell: &'a [u32]) -> Option<&'a [u32]> {
        (!cell.is_empty()).then_some(cell)
    }

    fn tell(shown: Option<&[u32]>) -> String {
        shown.map_or_else(|| NOTHING.into(), |numbers| format!("{numbers:?}"))
    }

    fn is_left_out(shown: Option<&[u32]>) -> bool {
        shown.is_none()
    }
}

/// Some bytes.
#[derive(Default)]
pub(crate) struct Bytes(BinaryBuilder);

impl Column for Bytes {
    type Cell<'a> = Option<&'a [u8]>;
    type Shown<'a> = Option<&'a [u8]>;
    type Read = BinaryArray;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Binary
    }

    fn new(_: &Names<'_>) -> Bytes {
        Bytes::default()
    }

    fn push(&mut self, cell: Option<&[u8]>) {
        self.0.append_option(cell);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<BinaryArray, LogError> {
        columns.binary(name)
    }

    fn get(read: &BinaryArray, row: usize) -> Option<&[u8]> {
        read.is_valid(row).then(|| read.value(row))
    }

    fn preview<'a>(&'a self, cell: Option<&'a [u8]>) -> Option<&'a [u8]> {
        cell
    }

    fn tell(shown: Option<&[u8]>) -> String {
        shown.map_or_else(|| NOTHING.into(), |bytes| format!("{bytes:02x?}"))
    }
}

/// A text of its own in each row.
#[derive(Default)]
pub(crate) struct Text(StringBuilder);

impl Column for Text {
    type Cell<'a> = Option<&'a str>;
    type Shown<'a> = Option<&'a str>;
    type Read = StringArray;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn new(_: &Names<'_>) -> Text {
        Text::default()
    }

    fn push(&mut self, cell: Option<&str>) {
        self.0.append_option(cell);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<StringArray, LogError> {
        columns.text(name)
    }

    fn get(read: &StringArray, row: usize) -> Option<&str> {
        read.is_valid(row).then(|| read.value(row))
    }

    fn preview<'a>(&'a self, cell: Option<&'a str>) -> Option<&'a str> {
        cell
    }

    fn tell(shown: Option<&str>) -> String {
        shown.map_or_else(|| NOTHING.into(), tell_word)
    }
}

/// The words that a column of words may hold, and what stands for them where they lack.
pub(crate) trait Dictionary {
    /// Stands for a number that means nothing.
    const UNKNOWN: &'static str = "?";
    /// Stands in every row of a log of an earlier version, which did not have the column.
    const BEFORE: Option<&'static str> = None;

    /// The words, by their number.
    fn words(names: &Names<'_>) -> StringArray;
}

fn tell_word(word: &str) -> String {
    format!("`{word}`")
}

fn read_words<D: Dictionary>(columns: &Columns<'_>, name: &str) -> Result<Option<WordColumn>, LogError> {
    let may_lack = D::BEFORE.is_some();
    (!may_lack || columns.has(name)).then(|| columns.words(name)).transpose()
}

fn word<D: Dictionary>(read: &Option<WordColumn>, row: usize) -> &str {
    match read {
        Some(words) => words.get(row).unwrap_or(D::UNKNOWN),
        None => D::BEFORE.unwrap_or(D::UNKNOWN),
    }
}

/// The users of the run; logs of earlier versions knew one only.
pub(crate) struct Users;

impl Dictionary for Users {
    const UNKNOWN: &'static str = "";
    const BEFORE: Option<&'static str> = Some("");

    fn words(names: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(names.users)
    }
}

/// The bearers of the run; logs of earlier versions knew none.
pub(crate) struct Bearers;

impl Dictionary for Bearers {
    const UNKNOWN: &'static str = "";
    const BEFORE: Option<&'static str> = Some("");

    fn words(names: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(names.bearers)
    }
}

/// One of a few words.
pub(crate) struct Word<D> {
    words: Arc<StringArray>,
    keys: Vec<u8>,
    dictionary: PhantomData<D>,
}

impl<D: Dictionary> Column for Word<D> {
    type Cell<'a> = u8;
    type Shown<'a> = &'a str;
    type Read = Option<WordColumn>;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        words_type::<UInt8Type>()
    }

    fn new(names: &Names<'_>) -> Word<D> {
        Word { words: Arc::new(D::words(names)), keys: Vec::new(), dictionary: PhantomData }
    }

    #[inline]
    fn push(&mut self, cell: u8) {
        self.keys.push(cell);
    }

    fn take(&mut self) -> ArrayRef {
        let keys = UInt8Array::from(std::mem::take(&mut self.keys));
        Arc::new(DictionaryArray::<UInt8Type>::new(keys, self.words.clone()))
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<Option<WordColumn>, LogError> {
        read_words::<D>(columns, name)
    }

    fn get(read: &Option<WordColumn>, row: usize) -> &str {
        word::<D>(read, row)
    }

    fn preview(&self, cell: u8) -> &str {
        named::<D>(&self.words, usize::from(cell))
    }

    fn tell(shown: &str) -> String {
        tell_word(shown)
    }
}

/// One of the names of a run, of which there may be many; none where a number has no name.
pub(crate) struct RunName<D> {
    words: Arc<StringArray>,
    keys: Vec<u16>,
    /// Rows without a name, which are rare.
    nameless: Vec<usize>,
    dictionary: PhantomData<D>,
}

impl<D: Dictionary> Column for RunName<D> {
    type Cell<'a> = u16;
    type Shown<'a> = &'a str;
    type Read = Option<WordColumn>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        words_type::<UInt16Type>()
    }

    fn new(names: &Names<'_>) -> RunName<D> {
        let words = Arc::new(D::words(names));
        RunName { words, keys: Vec::new(), nameless: Vec::new(), dictionary: PhantomData }
    }

    #[inline]
    fn push(&mut self, cell: u16) {
        if usize::from(cell) < self.words.len() {
            self.keys.push(cell);
        } else {
            self.nameless.push(self.keys.len());
            self.keys.push(0);
        }
    }

    fn take(&mut self) -> ArrayRef {
        let (keys, nameless) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.nameless));
        let mut named = NullBufferBuilder::new(keys.len());
        let mut next = 0;
        for row in nameless {
            named.append_n_non_nulls(row - next);
            named.append_null();
            next = row + 1;
        }
        named.append_n_non_nulls(keys.len() - next);
        let keys = UInt16Array::new(keys.into(), named.finish());
        Arc::new(DictionaryArray::<UInt16Type>::new(keys, self.words.clone()))
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<Option<WordColumn>, LogError> {
        read_words::<D>(columns, name)
    }

    fn get(read: &Option<WordColumn>, row: usize) -> &str {
        word::<D>(read, row)
    }

    fn preview(&self, cell: u16) -> &str {
        named::<D>(&self.words, usize::from(cell))
    }

    fn tell(shown: &str) -> String {
        tell_word(shown)
    }

    fn is_left_out(shown: &str) -> bool {
        D::BEFORE == Some(shown)
    }
}

/// One of a few words, or none.
pub(crate) struct MaybeWord<D> {
    words: Arc<StringArray>,
    keys: UInt8Builder,
    dictionary: PhantomData<D>,
}

impl<D: Dictionary> Column for MaybeWord<D> {
    type Cell<'a> = Option<u8>;
    type Shown<'a> = Option<&'a str>;
    type Read = WordColumn;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        words_type::<UInt8Type>()
    }

    fn new(names: &Names<'_>) -> MaybeWord<D> {
        MaybeWord { words: Arc::new(D::words(names)), keys: UInt8Builder::new(), dictionary: PhantomData }
    }

    #[inline]
    fn push(&mut self, cell: Option<u8>) {
        self.keys.append_option(cell);
    }

    fn take(&mut self) -> ArrayRef {
        let keys = self.keys.finish();
        Arc::new(DictionaryArray::<UInt8Type>::new(keys, self.words.clone()))
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<WordColumn, LogError> {
        columns.words(name)
    }

    fn get(read: &WordColumn, row: usize) -> Option<&str> {
        read.get(row)
    }

    fn preview(&self, cell: Option<u8>) -> Option<&str> {
        cell.map(|key| named::<D>(&self.words, usize::from(key)))
    }

    fn tell(shown: Option<&str>) -> String {
        shown.map_or_else(|| NOTHING.into(), tell_word)
    }
}

fn named<D: Dictionary>(words: &StringArray, key: usize) -> &str {
    if key < words.len() { words.value(key) } else { D::UNKNOWN }
}
