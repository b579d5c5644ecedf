// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reads a workload from text, collecting everything that is wrong with it.

use std::str::FromStr;

use airpath_core::Span;

use crate::error::{WorkloadError, WorkloadProblem};
use crate::keys::Keys;
use crate::kinds::Kind;
use crate::words;
use crate::{Workload, check};

/// The keys that every workload has, and what they mean.
pub(crate) const COMMON_KEYS: [(&str, &str); 3] = [
    ("name", "Name in reports; without it, its kind and number."),
    ("user", "User of a cell between whose ends it runs; without it, each user has such a workload."),
    ("start", "Start time, after the beginning of the run."),
];

fn valid_keys(kind: &str) -> impl Iterator<Item = &'static str> {
    let own = Kind::keys(kind).unwrap_or_default();
    own.iter().copied().chain(COMMON_KEYS.map(|(key, _)| key))
}

impl Workload {
    /// Reads `KIND key=value …`.
    ///
    /// # Errors
    /// Everything that is wrong: unknown kinds and keys with the nearest that there is, values with
    /// what would be right, keys that are missing, given twice, or at odds with each other.
    pub fn parse(text: &str) -> Result<Workload, WorkloadError> {
        let failure = |problems| WorkloadError { text: text.to_string(), problems };
        let words = words::split(text).map_err(|problem| failure(vec![problem]))?;
        let Some((kind, rest)) = words.split_first() else {
            let problem = WorkloadProblem::new(1, 0..text.len(), "the workload is empty; it begins with its kind");
            return Err(failure(vec![problem.nearest_of("", Kind::NAMES.iter().copied())]));
        };
        if Kind::keys(&kind.text).is_none() {
            let message = format!("`{}` is not a kind of workload", kind.text);
            let problem = WorkloadProblem::new(kind.number, kind.place.clone(), message);
            return Err(failure(vec![problem.nearest_of(&kind.text, Kind::NAMES.iter().copied())]));
        }
        let mut keys = Keys::new(kind, rest, valid_keys(&kind.text).collect());
        let name = keys.optional("name");
        let user = keys.optional("user");
        let start = keys.optional("start").unwrap_or(Span::ZERO);
        let read = Kind::read(&kind.text, &mut keys);
        keys.refuse_unused();
        if let Some(read) = &read {
            check::consistency(read, &mut keys);
        }
        let mut problems = keys.problems;
        problems.sort_by_key(|problem| problem.word);
        match read {
            Some(kind) if problems.is_empty() => Ok(Workload { name, user, start, kind }),
            _ => Err(failure(problems)),
        }
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Workload, WorkloadError> {
        Workload::parse(text)
    }
}
