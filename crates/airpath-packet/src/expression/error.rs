// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of filter expressions, with their place.

/// An error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    pub(super) text: String,
    pub(super) at: usize,
    pub(super) problem: String,
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Line ends would part the caret from what it points to.
        let line = self.text.replace(|c: char| c.is_control(), " ");
        let before = self.text.get(..self.at).unwrap_or(&self.text).chars().count();
        write!(f, "the filter is wrong at character {}: {}\n  {line}\n  {:before$}^", before + 1, self.problem, "")
    }
}

impl std::error::Error for ExpressionError {}
