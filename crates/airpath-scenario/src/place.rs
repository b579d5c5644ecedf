// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Places in texts that parameters were read from.

use std::ops::Range;
use std::sync::Arc;

/// A text that parameters were read from.
#[derive(Debug)]
pub struct Source {
    /// The file's name, or the option as typed.
    pub name: String,
    /// The text that spans refer to.
    pub text: String,
    /// True if lines and columns mean something to the reader.
    pub is_file: bool,
}

impl Source {
    /// A text of nothing, for what was written nowhere.
    pub fn nothing() -> Source {
        Source { name: "scenario".into(), text: String::new(), is_file: false }
    }
}

/// Source position of a value.
#[derive(Clone, Debug)]
pub struct Place {
    pub source: Arc<Source>,
    pub span: Range<usize>,
    /// Written as a parameter path (`radio.link.rate`), not within nested tables.
    pub dotted: bool,
}

impl Place {
    pub fn whole(source: &Arc<Source>) -> Place {
        Place { source: source.clone(), span: 0..source.text.len(), dotted: !source.is_file }
    }

    pub fn is(&self, other: &Place) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && self.span == other.span
    }
}
