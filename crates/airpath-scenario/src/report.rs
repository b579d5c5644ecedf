// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Report of errors in a scenario, in the style of a compiler.

use std::fmt;

use airpath_core::nearest::nearest;
use serde::Serialize;

use crate::place::Place;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The file's name, or the option as typed.
    pub origin: String,
    /// The line, from 1; none for options.
    pub line: Option<usize>,
    /// The column in characters, from 1; none for options.
    pub column: Option<usize>,
    /// The parameter concerned, such as `radio.link.errors.probability`; may be empty.
    pub key: String,
    /// Message: the error and its fix.
    pub message: String,
    /// Suggested word.
    pub suggestion: Option<String>,
    /// Valid words.
    pub valid: Vec<String>,
    #[serde(skip)]
    excerpt: Option<Excerpt>,
    /// Order within a report.
    #[serde(skip)]
    pub(crate) offset: usize,
}

/// The line concerned, or the part of a long one around the place, and the part to underline.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    line: String,
    skip: usize,
    width: usize,
}

/// Most characters of a line that are shown, and how many of these stand before the place in a longer one. A line may
/// have as many mistakes as characters.
const EXCERPT: usize = 200;
const BEFORE: usize = 60;

impl Excerpt {
    /// The part of `line` around the `width` characters behind the first `skip`; none of a blank line.
    fn of(line: &str, skip: usize, width: usize) -> Option<Excerpt> {
        if line.trim().is_empty() {
            return None;
        }
        if line.len() <= EXCERPT {
            return Some(Excerpt { line: line.to_string(), skip, width });
        }
        let first = skip.saturating_sub(BEFORE);
        let mut left = line.chars().skip(first);
        let shown: String = left.by_ref().take(EXCERPT).collect();
        let [before, behind] = [first > 0, left.next().is_some()].map(|is_cut| if is_cut { "…" } else { "" });
        let skip = skip - first;
        let width = width.min(EXCERPT - skip);
        Some(Excerpt { line: format!("{before}{shown}{behind}"), skip: skip + before.chars().count(), width })
    }
}

impl Diagnostic {
    /// `message` about the parameter `key` at `place`.
    pub(crate) fn at(place: &Place, key: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        let mut diagnostic = Diagnostic {
            origin: place.source.name.clone(),
            line: None,
            column: None,
            key: key.into(),
            message: message.into(),
            suggestion: None,
            valid: Vec::new(),
            excerpt: None,
            offset: place.span.start,
        };
        if place.source.is_file {
            let text = &place.source.text;
            let mut start = place.span.start.min(text.len());
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            let line_start = text[..start].rfind('\n').map_or(0, |index| index + 1);
            let line = text[line_start..].lines().next().unwrap_or("");
            let skip = text[line_start..start].chars().count();
            diagnostic.line = Some(text[..start].matches('\n').count() + 1);
            diagnostic.column = Some(skip + 1);
            let end = place.span.end.clamp(start, text.len());
            let width = text.get(start..end).unwrap_or("").lines().next().unwrap_or("").chars().count().max(1);
            diagnostic.excerpt = Excerpt::of(line, skip, width);
        }
        diagnostic
    }

    /// A problem that concerns no text, such as an unknown profile.
    pub(crate) fn of_option(origin: &str, key: &str, message: impl Into<String>) -> Diagnostic {
        let source = crate::place::Source { name: origin.into(), text: String::new(), is_file: false };
        Diagnostic::at(&Place::whole(&std::sync::Arc::new(source)), key, message)
    }

    /// Adds the nearest of `valid` to `word`, and the list itself.
    pub(crate) fn nearest_of<'a>(mut self, word: &str, valid: impl IntoIterator<Item = &'a str>) -> Diagnostic {
        self.valid = valid.into_iter().map(str::to_string).collect();
        self.suggestion = nearest(word, self.valid.iter().map(String::as_str)).map(str::to_string);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.origin)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}:")?;
        }
        if !self.key.is_empty() {
            write!(f, " {}:", self.key)?;
        }
        write!(f, " {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        if let (Some(excerpt), Some(line)) = (&self.excerpt, self.line) {
            let gutter = line.to_string().len().max(4);
            // Tabs keep their width under the line above.
            let indent: String =
                excerpt.line.chars().take(excerpt.skip).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n{line:>gutter$} | {}", excerpt.line)?;
            write!(f, "\n{:>gutter$} | {indent}{}", "", "^".repeat(excerpt.width))?;
        }
        if !self.valid.is_empty() {
            write!(f, "\n     valid: {}", self.valid.join(", "))?;
        }
        Ok(())
    }
}

/// All that is wrong with a scenario; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    problems: Vec<Diagnostic>,
}

/// More than this many problems are only counted.
const SHOWN: usize = 20;

impl Report {
    pub(crate) fn new(problems: Vec<Diagnostic>) -> Report {
        Report { problems }
    }

    /// Everything that is wrong, in the order of the text.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }
}

impl From<Diagnostic> for Report {
    fn from(problem: Diagnostic) -> Report {
        Report { problems: vec![problem] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(SHOWN).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Report {}
