// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The keys of a workload while its kind reads them.

use crate::error::WorkloadProblem;
use crate::value::Value;
use crate::words::Word;

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
    /// The keys that the kind has.
    valid: Vec<&'static str>,
    pairs: Vec<Pair<'a>>,
    pub(crate) problems: Vec<WorkloadProblem>,
}

impl<'a> Keys<'a> {
    /// The keys in `words`, which follow the word `kind`; `valid` are the keys that the kind has.
    pub(crate) fn new(kind: &'a Word, words: &'a [Word], valid: Vec<&'static str>) -> Keys<'a> {
        let mut keys = Keys { kind, valid, pairs: Vec::new(), problems: Vec::new() };
        for word in words {
            match word.text.split_once('=') {
                Some((key, value)) => keys.add(Pair { key, value, word, used: false }),
                None => {
                    let is_key = keys.valid.contains(&word.text.as_str());
                    let message = match is_key {
                        true => format!("`{0}` has no value; write `{0}=…`", word.text),
                        false => format!("`{}` is not of the form key=value", word.text),
                    };
                    let mut problem = WorkloadProblem::new(word.number, word.place.clone(), message);
                    if !is_key {
                        problem = problem.nearest_of(&word.text, keys.valid.iter().copied());
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
            self.problems.push(WorkloadProblem::new(pair.word.number, pair.word.place.clone(), message));
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
                let problem = WorkloadProblem::new(word.number, word.place.clone(), message);
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
        self.problems.push(WorkloadProblem::new(word.number, word.place.clone(), message));
    }

    /// Tells of keys that nothing has read.
    pub(crate) fn refuse_unused(&mut self) {
        for pair in self.pairs.iter().filter(|pair| !pair.used) {
            let message = format!("`{}` has no key `{}`", self.kind.text, pair.key);
            let problem = WorkloadProblem::new(pair.word.number, pair.word.place.clone(), message);
            self.problems.push(problem.nearest_of(pair.key, self.valid.iter().copied()));
        }
    }
}
