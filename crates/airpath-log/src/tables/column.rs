// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The contract of a kind of column: rows wait in it, and come back out of a file through it.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use serde::Serialize;

use super::Names;
use crate::error::LogError;
use crate::read::columns::Columns;

/// A column whose rows wait to be written. Adding a row allocates nothing but room for more rows.
pub(crate) trait Column {
    /// Value of a row that is written.
    type Cell<'a>: Copy;
    /// Value of a row that is read.
    type Shown<'a>: Copy + PartialEq + Serialize;
    /// The column of a batch that was read.
    type Read;
    /// True if a row may leave it empty.
    const NULLABLE: bool;

    /// Its type in the file.
    fn data_type() -> DataType;

    /// No rows yet.
    fn new(names: &Names<'_>) -> Self;

    /// Adds a row.
    fn push(&mut self, cell: Self::Cell<'_>);

    /// The rows so far; none are left.
    fn take(&mut self) -> ArrayRef;

    /// The column called `name`.
    fn read(columns: &Columns<'_>, name: &str) -> Result<Self::Read, LogError>;

    /// A row of it.
    fn get(read: &Self::Read, row: usize) -> Self::Shown<'_>;

    /// Returns the value that a reader would get of a row written with `cell`.
    fn preview<'a>(&'a self, cell: Self::Cell<'a>) -> Self::Shown<'a>;

    /// The value in a message.
    fn tell(shown: Self::Shown<'_>) -> String;

    /// True if JSON leaves the value out.
    fn is_left_out(_shown: Self::Shown<'_>) -> bool {
        false
    }

    /// The column called `name`, as a file declares it.
    fn field(name: &str) -> Field {
        Field::new(name, Self::data_type(), Self::NULLABLE)
    }
}
