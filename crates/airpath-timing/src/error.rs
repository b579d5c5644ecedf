//! What goes wrong, as the user reads it.

/// Why nothing, or not what was asked for, can be measured.
#[derive(Debug, thiserror::Error)]
pub enum TimingError {
    /// What was typed means nothing.
    #[error("{0}")]
    Usage(String),
    /// The system does not allow what was asked for.
    #[error("{0}")]
    Refused(String),
    /// The system failed.
    #[error("{0}")]
    System(String),
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, TimingError>;

/// `text` is none of `known`, called `what` in the plural.
pub(crate) fn unknown<'a>(text: &str, what: &str, known: impl Iterator<Item = &'a str> + Clone) -> TimingError {
    let near = airpath_core::nearest::nearest(text, known.clone());
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let all = known.collect::<Vec<_>>().join(", ");
    TimingError::Usage(format!("`{text}` is none of the {what} ({all}){hint}"))
}
