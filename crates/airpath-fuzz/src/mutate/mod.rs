// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Inputs that are nearly right: seeds of the corpus with a few changes.

mod bytes;
mod text;

use crate::corpus::Corpus;
use crate::kind::Kind;
use crate::random::Random;

/// No input is longer than this: what a reader does with more, it does with this much.
const LONGEST_BYTES: usize = 256 << 10;

/// Input `number` of `seed`, and the name of the seed that it came from: first every seed as it is, then
/// changed ones.
pub fn input(corpus: &Corpus, seed: u64, number: u64) -> (Vec<u8>, &str) {
    if let Some(index) = usize::try_from(number).ok().filter(|index| *index < corpus.len()) {
        return (corpus.seed(index).to_vec(), corpus.name(index));
    }
    let mut random = Random::new(seed, number);
    let index = random.below(corpus.len());
    let mut input = corpus.seed(index).to_vec();
    mutate(&mut input, corpus, &mut random);
    (input, corpus.name(index))
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
