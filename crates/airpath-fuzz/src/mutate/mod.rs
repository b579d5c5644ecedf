//! Inputs that are nearly right: seeds of the corpus with a few changes.

mod bytes;
mod text;

use crate::corpus::Corpus;
use crate::random::Random;

/// No input is longer than this: what a reader does with more, it does with this much.
const LONGEST_BYTES: usize = 256 << 10;

/// Syntax of inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In bytes: packets, Arrow, captures.
    Bytes,
    /// As text: TOML, JSON, lines of words.
    Text,
}

impl Kind {
    /// The kind that `input` looks like.
    pub fn of(input: &[u8]) -> Kind {
        let head = &input[..input.len().min(512)];
        // A text that is cut inside of a character is one nevertheless.
        let valid = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to() + 3 >= head.len(), |_| true);
        if valid && !head.contains(&0) { Kind::Text } else { Kind::Bytes }
    }
}

/// Changes `input` a few times; mostly one to four times.
pub fn mutate(input: &mut Vec<u8>, corpus: &Corpus, random: &mut Random) {
    let mut changes = 1;
    while changes < 32 && random.once_in(2) {
        changes += 1;
    }
    for _ in 0..changes {
        match Kind::of(input) {
            Kind::Text if !random.once_in(6) => text::change(input, corpus, random),
            _ => bytes::change(input, corpus, random),
        }
        input.truncate(LONGEST_BYTES);
    }
}

/// A range within `length`, mostly short, and mostly near the beginning or the end, where headers are.
fn range(length: usize, random: &mut Random) -> std::ops::Range<usize> {
    let at = position(length, random);
    let most = [4, 16, 64, 1024, length][random.below(5)].max(1);
    let end = (at + 1 + random.below(most)).min(length);
    at.min(end)..end
}

/// A place within `length`; half of all places are near the beginning or the end.
fn position(length: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(length.min(1024)),
        1 => length.saturating_sub(1 + random.below(length.min(2048))),
        _ => random.below(length),
    }
}
