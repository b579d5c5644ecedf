// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of bytes, whatever they mean.

use super::{position, range};
use crate::corpus::Corpus;
use crate::random::Random;

/// Numbers at which lengths, offsets and counts go wrong.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Changes `input` in one place.
pub fn change(input: &mut Vec<u8>, corpus: &Corpus, random: &mut Random) {
    let length = input.len();
    if length == 0 {
        input.extend((0..1 + random.below(40)).map(|_| random.bits() as u8));
        return;
    }
    match random.below(12) {
        0 | 1 => input[position(length, random)] ^= 1 << random.below(8),
        2 => input[position(length, random)] = random.bits() as u8,
        3 | 4 => number(input, *random.of(&NUMBERS), random),
        5 => {
            let number_near =
                u64::from(input[position(length, random)]).wrapping_add(random.bits() % 9).wrapping_sub(4);
            number(input, number_near, random);
        }
        6 => drop(input.drain(range(length, random))),
        7 => {
            let copied = input[range(length, random)].to_vec();
            let at = position(length, random);
            input.splice(at..at, copied);
        }
        8 => {
            let copied = input[range(length, random)].to_vec();
            let at = position(length, random);
            let end = (at + copied.len()).min(length);
            input[at..end].copy_from_slice(&copied[..end - at]);
        }
        9 => input.truncate(position(length, random)),
        10 => {
            let value = *random.of(&[0, 0xff]);
            let range = range(length, random);
            input[range].fill(value);
        }
        _ => splice(input, corpus, random),
    }
}

/// Writes `number` in one, two, four or eight bytes, of either order.
fn number(input: &mut [u8], number: u64, random: &mut Random) {
    let width = 1 << random.below(4);
    // Fields mostly lie at multiples of their size.
    let at = position(input.len(), random) & !(if random.once_in(3) { 0 } else { width - 1 });
    let mut bytes = number.to_le_bytes()[..width].to_vec();
    if random.once_in(2) {
        bytes.reverse();
    }
    let end = (at + width).min(input.len());
    input[at..end].copy_from_slice(&bytes[..end - at]);
}

/// Goes on as another seed does.
fn splice(input: &mut Vec<u8>, corpus: &Corpus, random: &mut Random) {
    let other = corpus.seed(random.below(corpus.len()));
    input.truncate(position(input.len(), random));
    let from = if random.once_in(2) { input.len().min(other.len()) } else { random.below(other.len()) };
    input.extend_from_slice(&other[from..]);
}
