// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of text: words, numbers, lines, brackets.

use std::ops::Range;

use super::position;
use crate::corpus::Corpus;
use crate::random::Random;

/// Numbers at which readers go wrong.
const NUMBERS: [&str; 30] = [
    "0",
    "-0",
    "-1",
    "1",
    "0.0",
    "0.5",
    "1.0000000001",
    "-0.1",
    "1e-320",
    "1e9",
    "1e18",
    "1e19",
    "1e308",
    "1e309",
    "1e400",
    "-1e308",
    "255",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "0.0000000000000000000000001",
    "nan",
    "inf",
];

/// Words that mean something in most formats.
const WORDS: [&str; 26] = [
    "\"\"", "''", "[]", "{}", "true", "false", "null", "none", "%", "100%", "101%", "ns", "us", "ms", "s", "min", "h",
    "bit/s", "Gbit/s", "Tbit/s", "bytes", "packets", "²", "é", "\\u0000", "\u{202e}",
];

/// Changes the text `input` in one place.
pub fn change(input: &mut Vec<u8>, corpus: &Corpus, random: &mut Random) {
    match random.below(12) {
        0..=2 => replace(input, digits, |random| random.of(&NUMBERS).as_bytes().to_vec(), random),
        3 => {
            let number = (random.bits() >> random.below(64)).to_string();
            replace(input, digits, |_| number.clone().into(), random);
        }
        4 | 5 => replace(input, word, |random| corpus.word(random).to_vec(), random),
        6 => replace(input, word, |random| random.of(&WORDS).as_bytes().to_vec(), random),
        7 => replace(input, line, |_| Vec::new(), random),
        8 => {
            let copied = chosen(input, line, random).map(|range| input[range].to_vec()).unwrap_or_default();
            let at = chosen(input, line, random).map_or(0, |range| range.start);
            input.splice(at..at, copied);
        }
        9 => {
            // A line of another seed.
            let other = corpus.seed(random.below(corpus.len())).to_vec();
            let copied = chosen(&other, line, random).map(|range| other[range].to_vec()).unwrap_or_default();
            let at = chosen(input, line, random).map_or(0, |range| range.start);
            input.splice(at..at, copied);
        }
        10 => {
            let at = position(input.len(), random);
            let [open, close] = *random.of(&[*b"[]", *b"{}", *b"()", *b"\"\"", *b"''"]);
            let depth = [1, 2, 10, 200, 5_000, 50_000][random.below(6)];
            let close = if random.once_in(2) { close } else { open };
            let nested = std::iter::repeat_n(open, depth).chain(std::iter::repeat_n(close, depth));
            input.splice(at..at, nested);
        }
        _ => {
            let at = position(input.len(), random);
            let words: &[&str] = if random.once_in(2) { &WORDS } else { &NUMBERS };
            let text = random.of(words).as_bytes().to_vec();
            input.splice(at..at, text);
        }
    }
}

/// The part of a text around a place that belongs together.
type Part = fn(&[u8], usize) -> Range<usize>;

fn chosen(input: &[u8], part: Part, random: &mut Random) -> Option<Range<usize>> {
    // Most places are no number; a few tries find one.
    (0..8).map(|_| part(input, position(input.len(), random))).find(|range| !range.is_empty())
}

fn replace(input: &mut Vec<u8>, part: Part, with: impl FnOnce(&mut Random) -> Vec<u8>, random: &mut Random) {
    if let Some(range) = chosen(input, part, random) {
        let with = with(random);
        input.splice(range, with);
    }
}

fn around(input: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> Range<usize> {
    if !input.get(at).is_some_and(|byte| belongs(*byte)) {
        return at..at;
    }
    let start = input[..at].iter().rposition(|byte| !belongs(*byte)).map_or(0, |before| before + 1);
    let end = input[at..].iter().position(|byte| !belongs(*byte)).map_or(input.len(), |length| at + length);
    start..end
}

fn digits(input: &[u8], at: usize) -> Range<usize> {
    around(input, at, |byte| byte.is_ascii_digit() || byte == b'.')
}

fn word(input: &[u8], at: usize) -> Range<usize> {
    around(input, at, |byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A line with its end.
fn line(input: &[u8], at: usize) -> Range<usize> {
    let line = around(input, at, |byte| byte != b'\n');
    line.start..(line.end + 1).min(input.len())
}
