// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Something wrong with a parameter, with its key.

/// Something wrong with a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key within the table, such as `errors.delay`.
    pub key: String,
    /// Message: the error and its fix.
    pub message: String,
}

impl Problem {
    /// A problem at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into() }
    }

    /// The same problem seen from the table above.
    pub fn under(self, table: &str) -> Problem {
        let key = if self.key.is_empty() { table.to_string() } else { format!("{table}.{}", self.key) };
        Problem { key, ..self }
    }
}
