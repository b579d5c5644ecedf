// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors in a workload, in the style of a compiler.

use std::fmt;
use std::ops::Range;

use airpath_core::nearest::nearest;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProblem {
    /// The number of the word concerned, from 1.
    pub word: usize,
    /// Position in the text, in bytes.
    pub place: Range<usize>,
    /// Message: the error and its fix.
    pub message: String,
    /// Suggested word.
    pub suggestion: Option<String>,
    /// Valid words; empty where there is no list of them.
    pub valid: Vec<String>,
}

impl WorkloadProblem {
    pub(crate) fn new(word: usize, place: Range<usize>, message: impl Into<String>) -> WorkloadProblem {
        WorkloadProblem { word, place, message: message.into(), suggestion: None, valid: Vec::new() }
    }

    /// Adds the nearest of `valid` to `word`, and the list itself.
    pub(crate) fn nearest_of<'a>(mut self, word: &str, valid: impl IntoIterator<Item = &'a str>) -> WorkloadProblem {
        self.valid = valid.into_iter().map(str::to_string).collect();
        self.suggestion = nearest(word, self.valid.iter().map(String::as_str)).map(str::to_string);
        self
    }
}

/// All that is wrong with a workload; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// The workload as it was written.
    pub text: String,
    /// Everything that is wrong, in the order of the text.
    pub problems: Vec<WorkloadProblem>,
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "workload, word {}: {}", problem.word, problem.message)?;
            if let Some(suggestion) = &problem.suggestion {
                write!(f, "; did you mean `{suggestion}`?")?;
            }
            // A line break would tear the excerpt from its mark.
            let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let before = self.text.get(..problem.place.start).unwrap_or_default().chars().count();
            let width = self.text.get(problem.place.clone()).unwrap_or_default().chars().count().max(1);
            // Not by a width of the format, which has 16 bits: a word may be longer.
            write!(f, "\n     | {line}\n     | {}{}", " ".repeat(before), "^".repeat(width))?;
            if !problem.valid.is_empty() {
                write!(f, "\n     valid: {}", problem.valid.join(", "))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for WorkloadError {}
