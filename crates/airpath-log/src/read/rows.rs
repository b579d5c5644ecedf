// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A table of a run, batch by batch, for those who take one row at a time.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use super::arrow::ArrowLog;
use crate::error::LogError;

/// Batch of a table of a run.
pub trait Batch: Sized {
    /// The columns of `batch`, which came from the file at `path`.
    ///
    /// # Errors
    /// When they are not those of the table.
    fn read(batch: &RecordBatch, path: &Path) -> Result<Self, LogError>;

    /// Number of rows.
    fn rows(&self) -> usize;
}

/// Rows of a table, in order.
pub struct Rows<B> {
    path: PathBuf,
    log: ArrowLog,
    batch: Option<B>,
    row: usize,
}

impl<B: Batch> Rows<B> {
    /// The rows of `log`, which is the file at `path`.
    pub fn new(path: PathBuf, log: ArrowLog) -> Rows<B> {
        Rows { path, log, batch: None, row: 0 }
    }

    /// The batch of the next row, and the row's number in it; `None` after the last.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn advance(&mut self) -> Result<Option<(&B, usize)>, LogError> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.rows()) {
            let Some(batch) = self.log.next() else { return Ok(None) };
            self.batch = Some(B::read(&batch?, &self.path)?);
            self.row = 0;
        }
        self.row += 1;
        Ok(self.batch.as_ref().map(|batch| (batch, self.row - 1)))
    }
}
