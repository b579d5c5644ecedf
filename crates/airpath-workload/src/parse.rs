//! Reads a workload from text, collecting everything that is wrong with it.

use std::str::FromStr;

use airpath_core::Span;

use crate::error::{Problem, WorkloadError};
use crate::kinds::Kind;
use crate::value::Value;
use crate::words::{self, Word};
use crate::{Workload, check};

/// The keys that every workload has, and what they mean.
pub(crate) const COMMON_KEYS: [(&str, &str); 2] = [
    ("name", "Name in reports; without it, its kind and number."),
    ("start", "Start time, after the beginning of the run."),
];

/// A key with its value, and where both stand.
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
    word: &'a Word,
    used: bool,
}

/// The keys of a workload while it is read.
pub(crate) struct Keys<'a> {
    kind: &'a Word,
    pairs: Vec<Pair<'a>>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Keys<'a> {
    fn new(kind: &'a Word, words: &'a [Word]) -> Keys<'a> {
        let mut keys = Keys { kind, pairs: Vec::new(), problems: Vec::new() };
        for word in words {
            match word.text.split_once('=') {
                Some((key, value)) => keys.add(Pair { key, value, word, used: false }),
                None => {
                    let is_key = valid_keys(&kind.text).any(|key| key == word.text);
                    let message = match is_key {
                        true => format!("`{0}` has no value; write `{0}=…`", word.text),
                        false => format!("`{}` is not of the form key=value", word.text),
                    };
                    let mut problem = Problem::new(word.number, word.place.clone(), message);
                    if !is_key {
                        problem = problem.nearest_of(&word.text, valid_keys(&kind.text));
                        problem.suggestion = problem.suggestion.map(|key| format!("{key}=…"));
                    }
                    keys.problems.push(problem);
                }
            }
        }
        keys
    }

    fn add(&mut self, pair: Pair<'a>) {
        if let Some(first) = self.pairs.iter().find(|other| other.key == pair.key) {
            let message = format!("`{}` is given twice: first in word {}", pair.key, first.word.number);
            self.problems.push(Problem::new(pair.word.number, pair.word.place.clone(), message));
        } else {
            self.pairs.push(pair);
        }
    }

    /// The value of `key`, if it is given and right.
    pub(crate) fn optional<T: Value>(&mut self, key: &str) -> Option<T> {
        let pair = self.pairs.iter_mut().find(|pair| pair.key == key)?;
        pair.used = true;
        let (value, word) = (pair.value, pair.word);
        T::read(value)
            .map_err(|error| {
                let message = format!("{key}: {}", error.message);
                let problem = Problem::new(word.number, word.place.clone(), message);
                self.problems.push(problem.nearest_of(value, error.valid));
            })
            .ok()
    }

    /// The value of `key`, which must be given.
    pub(crate) fn required<T: Value>(&mut self, key: &str) -> Option<T> {
        if !self.has(key) {
            self.problem(key, format!("`{}` needs `{key}=…`", self.kind.text));
        }
        self.optional(key)
    }

    /// True if `key` is given, right or wrong.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|pair| pair.key == key)
    }

    /// Something is wrong with the value of `key`, or with its absence.
    pub(crate) fn problem(&mut self, key: &str, message: String) {
        let word = self.pairs.iter().find(|pair| pair.key == key).map_or(self.kind, |pair| pair.word);
        self.problems.push(Problem::new(word.number, word.place.clone(), message));
    }

    fn refuse_unused(&mut self) {
        for pair in self.pairs.iter().filter(|pair| !pair.used) {
            let message = format!("`{}` has no key `{}`", self.kind.text, pair.key);
            let problem = Problem::new(pair.word.number, pair.word.place.clone(), message);
            self.problems.push(problem.nearest_of(pair.key, valid_keys(&self.kind.text)));
        }
    }
}

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
            let problem = Problem::new(1, 0..text.len(), "the workload is empty; it begins with its kind");
            return Err(failure(vec![problem.nearest_of("", Kind::NAMES.iter().copied())]));
        };
        if Kind::keys(&kind.text).is_none() {
            let message = format!("`{}` is not a kind of workload", kind.text);
            let problem = Problem::new(kind.number, kind.place.clone(), message);
            return Err(failure(vec![problem.nearest_of(&kind.text, Kind::NAMES.iter().copied())]));
        }
        let mut keys = Keys::new(kind, rest);
        let name = keys.optional("name");
        let start = keys.optional("start").unwrap_or(Span::ZERO);
        let read = Kind::read(&kind.text, &mut keys);
        keys.refuse_unused();
        if let Some(read) = &read {
            check::consistency(read, &mut keys);
        }
        let mut problems = keys.problems;
        problems.sort_by_key(|problem| problem.word);
        match read {
            Some(kind) if problems.is_empty() => Ok(Workload { name, start, kind }),
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
