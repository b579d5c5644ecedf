// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of a measurement, as the user reads them.

/// Reason for which nothing, or not what was requested, can be measured.
#[derive(Debug, thiserror::Error)]
pub enum TimingError {
    /// The command line means nothing.
    #[error("{0}")]
    Usage(String),
    /// The system does not allow what was requested.
    #[error("{0}")]
    Refused(String),
    /// The system failed.
    #[error("{0}")]
    System(String),
}

impl TimingError {
    /// A mistake in what was typed.
    pub(crate) fn usage(text: impl Into<String>) -> TimingError {
        TimingError::Usage(text.into())
    }

    /// Something that this system does not allow.
    pub(crate) fn refused(text: impl Into<String>) -> TimingError {
        TimingError::Refused(text.into())
    }

    /// The exit status: 2 for mistakes in what was typed, as of every command line, otherwise 1.
    pub(crate) fn status(&self) -> i32 {
        match self {
            TimingError::Usage(_) => 2,
            TimingError::Refused(_) | TimingError::System(_) => 1,
        }
    }
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, TimingError>;

/// `text` is none of `known`, called `what` in the plural.
pub(crate) fn unknown<'a>(text: &str, what: &str, known: impl Iterator<Item = &'a str> + Clone) -> TimingError {
    let near = airpath_core::nearest::nearest(text, known.clone());
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let all = known.collect::<Vec<_>>().join(", ");
    TimingError::Usage(format!("`{text}` is not one of the {what} ({all}){hint}"))
}
