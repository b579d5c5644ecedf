// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The tables of a run, each declared once: the columns that the writer fills, what a reader gets of a
//! row, what a replay compares, and what the facts say of the columns.

mod column;
pub mod events;
pub mod inputs;
mod kinds;
pub mod links;
pub(crate) mod words;

use arrow_schema::DataType;
use serde::Serialize;

use crate::places::Places;

pub(crate) use column::Column;

/// The names of a run that its tables use as words.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    /// The hops, by the number of their word.
    pub hops: &'a [String],
    /// The states, likewise.
    pub states: &'a [String],
    /// The users, likewise.
    pub users: &'a [String],
    /// The bearers, likewise.
    pub bearers: &'a [String],
}

impl<'a> Names<'a> {
    /// The names of a run with these places.
    pub fn of(places: &'a Places) -> Names<'a> {
        Names { hops: places.hops(), states: places.states(), users: places.names(), bearers: places.bearers() }
    }
}

/// A column of a table, for those who read the table with other tools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ColumnAbout {
    /// Its name.
    pub name: &'static str,
    /// Its type in a word: `uint64`, `word` (a dictionary of text), `list of uint32` and the like.
    #[serde(rename = "type")]
    pub type_name: String,
    /// True if a row may leave it empty.
    pub nullable: bool,
    /// Its meaning, in a sentence.
    pub meaning: String,
}

impl ColumnAbout {
    /// The column called `name`, whose documentation has these `lines`.
    pub(crate) fn new(name: &'static str, data_type: &DataType, nullable: bool, lines: &[&str]) -> ColumnAbout {
        let meaning = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        ColumnAbout { name, type_name: type_name(data_type), nullable, meaning }
    }
}

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(..) => "word".into(),
        DataType::Utf8 => "text".into(),
        DataType::Binary => "bytes".into(),
        DataType::List(item) => format!("list of {}", type_name(item.data_type())),
        other => other.to_string().to_lowercase(),
    }
}

/// Declares a table: the waiting columns, what a row brings to them, a row as it is read, and a batch of
/// such rows.
macro_rules! table {
    (
        $(#[$about:meta])+
        $columns:ident of $cells:ident, read as $row:ident of $batch:ident {
            $($(#[doc = $doc:literal])+ $name:ident: $column:ty => $shown:ty,)+
        }
    ) => {
        $(#[$about])+
        pub struct $columns {
            schema: ::arrow_schema::SchemaRef,
            rows: usize,
            $($name: $column,)+
        }

        /// Values of a row that is written, one for each column.
        pub struct $cells<'a> {
            $($name: <$column as $crate::tables::Column>::Cell<'a>,)+
        }

        impl $columns {
            /// No rows yet.
            fn empty(names: &$crate::tables::Names<'_>) -> $columns {
                let schema = ::arrow_schema::Schema::new(vec![
                    $(<$column as $crate::tables::Column>::field(stringify!($name)),)+
                ]);
                $columns {
                    schema: ::std::sync::Arc::new(schema),
                    rows: 0,
                    $($name: <$column as $crate::tables::Column>::new(names),)+
                }
            }

            /// The columns, for those who read the table with other tools.
            pub fn about() -> Vec<$crate::tables::ColumnAbout> {
                vec![$({
                    let field = <$column as $crate::tables::Column>::field(stringify!($name));
                    let lines = [$($doc),+];
                    $crate::tables::ColumnAbout::new(stringify!($name), field.data_type(), field.is_nullable(), &lines)
                },)+]
            }

            pub(crate) fn schema(&self) -> &::arrow_schema::SchemaRef {
                &self.schema
            }

            pub(crate) fn len(&self) -> usize {
                self.rows
            }

            #[inline]
            fn append(&mut self, cells: $cells<'_>) {
                use $crate::tables::Column;
                self.rows += 1;
                $(self.$name.push(cells.$name);)+
            }

            /// Returns the row that a reader would get after `cells` are written.
            pub fn preview<'a>(&'a self, cells: $cells<'a>) -> $row<'a> {
                use $crate::tables::Column;
                $row { $($name: self.$name.preview(cells.$name),)+ }
            }

            /// The rows so far; none are left.
            pub(crate) fn take(&mut self) -> ::arrow_array::RecordBatch {
                use $crate::tables::Column;
                self.rows = 0;
                let columns = vec![$(self.$name.take(),)+];
                ::arrow_array::RecordBatch::try_new(self.schema.clone(), columns)
                    .expect("the columns are those of the schema")
            }
        }

        #[doc = concat!("A row of [`", stringify!($columns), "`].")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $row<'a> {
            $($(#[doc = $doc])+ pub $name: $shown,)+
        }

        impl $row<'_> {
            /// The first column, other than `aside`, in which the rows differ, with what either says.
            pub fn difference(&self, other: &$row<'_>, aside: &[&str]) -> Option<(&'static str, [String; 2])> {
                $(if self.$name != other.$name && !aside.contains(&stringify!($name)) {
                    let tell = <$column as $crate::tables::Column>::tell;
                    return Some((stringify!($name), [tell(self.$name), tell(other.$name)]));
                })+
                None
            }
        }

        impl ::serde::Serialize for $row<'_> {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(if !<$column as $crate::tables::Column>::is_left_out(self.$name) {
                    map.serialize_entry(stringify!($name), &self.$name)?;
                })+
                map.end()
            }
        }

        #[doc = concat!("A batch of [`", stringify!($row), "`].")]
        pub struct $batch {
            rows: usize,
            $($name: <$column as $crate::tables::Column>::Read,)+
        }

        impl $batch {
            /// The columns of `batch`, which came from the file at `path`.
            ///
            /// # Errors
            /// When they are not those of this table.
            pub fn new(
                batch: &::arrow_array::RecordBatch,
                path: &::std::path::Path,
            ) -> Result<$batch, $crate::error::LogError> {
                let columns = $crate::read::columns::Columns { batch, path };
                Ok($batch {
                    rows: batch.num_rows(),
                    $($name: <$column as $crate::tables::Column>::read(&columns, stringify!($name))?,)+
                })
            }

            /// The rows in order.
            pub fn rows(&self) -> impl Iterator<Item = $row<'_>> {
                (0..self.rows).filter_map(|row| self.row(row))
            }

            /// The row with this number; `None` beyond the last.
            pub fn row(&self, row: usize) -> Option<$row<'_>> {
                (row < self.rows).then(|| $row {
                    $($name: <$column as $crate::tables::Column>::get(&self.$name, row),)+
                })
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                self.rows
            }

            /// True if there are no rows.
            pub fn is_empty(&self) -> bool {
                self.rows == 0
            }
        }

        impl $crate::read::rows::Batch for $batch {
            fn read(
                batch: &::arrow_array::RecordBatch,
                path: &::std::path::Path,
            ) -> Result<$batch, $crate::error::LogError> {
                $batch::new(batch, path)
            }

            fn rows(&self) -> usize {
                self.rows
            }
        }
    };
}
pub(crate) use table;
