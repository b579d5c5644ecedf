// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lines of an error trace, equal records without damage counted in one.

use std::fmt::Write;

use airpath_models::channel::trace_file::Record;

/// Records that are not written yet: the word and their number.
#[derive(Default)]
pub struct Records {
    waiting: Option<(&'static str, u64)>,
}

impl Records {
    /// Takes `count` records, and returns the lines that are whole by then.
    pub fn add(&mut self, record: Record<'_>, count: u64) -> String {
        let word = match record {
            Record::Ok => "ok",
            Record::Hit => "hit",
            Record::Lost => "lost",
            Record::Damaged { kept_bytes, flips } => {
                let mut words: Vec<String> = kept_bytes.map(|bytes| format!("truncated {bytes}")).into_iter().collect();
                if !flips.is_empty() {
                    words.push(format!("flipped {}", spans(flips.iter().map(|flip| u64::from(*flip)))));
                }
                let mut text = self.end();
                for _ in 0..count {
                    let _ = writeln!(text, "{}", words.join(" "));
                }
                return text;
            }
        };
        match &mut self.waiting {
            Some((waiting, number)) if *waiting == word => {
                *number += count;
                String::new()
            }
            _ => {
                let text = self.end();
                self.waiting = Some((word, count));
                text
            }
        }
    }

    /// The line of the records that are left.
    pub fn end(&mut self) -> String {
        self.waiting.take().map_or_else(String::new, |(word, count)| format!("{word} {count}\n"))
    }
}

/// Ascending numbers, those that follow each other as first and last.
fn spans(numbers: impl Iterator<Item = u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let words = found.iter().map(|(first, last)| span(*first, *last));
    words.collect::<Vec<_>>().join(" ")
}

/// A number, or the first and the last of a run.
pub fn span(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}
