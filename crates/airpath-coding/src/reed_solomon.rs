// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reed-Solomon codes of 255 bytes with any number of parity bytes, and a decoder for errors and erasures.
//!
//! Source: Reed and Solomon 1960; Blahut 1983, chapters 7 and 9 (Berlekamp-Massey with erasures, Forney's algorithm). A
//! block is a polynomial whose first byte has the highest degree; the data bytes come first. The field is that of
//! x^8 + x^4 + x^3 + x^2 + 1 (0x11d), and the roots of the generator are 2^0, 2^1, … (first root 0), as in DVB
//! (EN 300 421) and in QR codes (ISO/IEC 18004). Other conventions, such as that of CCSDS, make other parity bytes that
//! correct as much.
//!
//! With p parity bytes, e wrong bytes and f bytes missing at known places are corrected if 2 e + f is p at most. Beyond
//! that, the decoder finds another code word within that distance, or says that there is none.
//!
//! Remainders take eight bytes a step, by tables of the multiples of the generator; only a remainder that is not 0 is
//! decoded. Syndromes, the search for roots and the values for Forney's algorithm are sums of rows (`powers.rs`).

use std::fmt;

use crate::field::{exp, log, power, product, quotient};
use crate::powers::{AddTo, POINTS, Values, rows};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 255;

/// Bytes that one step of the remainder takes.
const STEP: usize = 8;

/// A code.
#[derive(Clone, Debug)]
pub struct ReedSolomon {
    parity: usize,
    /// Words of a remainder: its bytes, the highest degree first, filled up at the end.
    words: usize,
    /// Remainders of each byte value at each of the eight places of a step, in words.
    table: Box<[u64]>,
}

/// A block with more errors than its code corrects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncorrectable;

impl fmt::Display for Uncorrectable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the block has more errors than its code corrects")
    }
}

impl std::error::Error for Uncorrectable {}

/// Calls a function of as many words as remainders of the code have.
macro_rules! with_words {
    ($self:ident.$function:ident($($argument:expr),*)) => {
        match $self.words {
            1 => $self.$function::<1>($($argument),*),
            2 => $self.$function::<2>($($argument),*),
            3 => $self.$function::<3>($($argument),*),
            4 => $self.$function::<4>($($argument),*),
            6 => $self.$function::<6>($($argument),*),
            8 => $self.$function::<8>($($argument),*),
            10 => $self.$function::<10>($($argument),*),
            14 => $self.$function::<14>($($argument),*),
            19 => $self.$function::<19>($($argument),*),
            25 => $self.$function::<25>($($argument),*),
            _ => $self.$function::<32>($($argument),*),
        }
    };
}

/// The numbers of words in [`with_words!`].
const WORDS: [usize; 11] = [1, 2, 3, 4, 6, 8, 10, 14, 19, 25, 32];

impl ReedSolomon {
    /// The code with `parity` bytes of parity.
    ///
    /// # Panics
    /// If `parity` is 255, which would leave no data.
    pub fn new(parity: u8) -> ReedSolomon {
        assert!(parity < 255, "a block has a data byte at least");
        let parity = usize::from(parity);
        let least = parity.div_ceil(8);
        let words = WORDS.into_iter().find(|words| *words >= least).unwrap_or(32);
        let generator = generator(parity);
        let mut table = vec![0u64; STEP * 256 * words];
        // The remainder of x^parity is the generator without its highest coefficient.
        let mut remainder = generator[1..].to_vec();
        for place in (0..STEP).rev() {
            for byte in 0..256usize {
                let row = &mut table[(place * 256 + byte) * words..][..words];
                for (degree, coefficient) in remainder.iter().enumerate() {
                    let value = product(byte as u8, *coefficient);
                    row[degree / 8] |= u64::from(value) << (56 - degree % 8 * 8);
                }
            }
            remainder = times_x(&remainder, &generator);
        }
        ReedSolomon { parity, words, table: table.into() }
    }

    /// Number of parity bytes of a block.
    pub fn parity(&self) -> usize {
        self.parity
    }

    /// Number of data bytes of a block.
    pub fn data(&self) -> usize {
        BLOCK_BYTES - self.parity
    }

    /// Writes the parity bytes of `block` behind its data bytes.
    pub fn encode(&self, block: &mut [u8; BLOCK_BYTES]) {
        block[self.data()..].fill(0);
        if let Some(remainder) = self.remainder(block) {
            block[self.data()..].copy_from_slice(&remainder[..self.parity]);
        }
    }

    /// True if `block` is a code word: no error is seen.
    pub fn is_code_word(&self, block: &[u8; BLOCK_BYTES]) -> bool {
        with_words!(self.is_divisible(block))
    }

    /// Corrects `block`, whose bytes at the places `missing` may be anything; the number of bytes that were wrong, of
    /// those at known places too. A block that cannot be corrected stays as it is.
    ///
    /// # Errors
    /// If there are more errors than the code corrects, unless another code word is within its reach.
    ///
    /// # Panics
    /// If a place is not in the block.
    pub fn decode(&self, block: &mut [u8; BLOCK_BYTES], missing: &[u8]) -> Result<usize, Uncorrectable> {
        let remainder = self.remainder(block);
        let (locator, erasures) = self.erasures(missing)?;
        let Some(remainder) = remainder else { return Ok(0) };
        let syndromes = self.syndromes(&remainder);
        let (locator, degree) = self.locator(&syndromes, locator, erasures)?;
        correct(block, &syndromes, &locator, degree)
    }

    /// Polynomial of the places `missing`, each once, and its degree.
    fn erasures(&self, missing: &[u8]) -> Result<([u8; POINTS], usize), Uncorrectable> {
        let mut is_missing = [false; BLOCK_BYTES];
        let (mut locator, mut degree) = ([0; POINTS], 0);
        locator[0] = 1;
        for place in missing.iter().map(|place| usize::from(*place)) {
            assert!(place < BLOCK_BYTES, "place {place} is not in a block");
            if std::mem::replace(&mut is_missing[place], true) {
                continue;
            }
            degree += 1;
            if degree > self.parity {
                return Err(Uncorrectable);
            }
            let root = power(BLOCK_BYTES - 1 - place);
            for index in (1..=degree).rev() {
                locator[index] ^= product(locator[index - 1], root);
            }
        }
        Ok((locator, degree))
    }

    /// Remainder of the data bytes times x^parity, and of the parity bytes; none if it is 0, as that of a code word is.
    /// The highest degree comes first.
    fn remainder(&self, block: &[u8; BLOCK_BYTES]) -> Option<[u8; 256]> {
        with_words!(self.remainder_bytes(block))
    }

    fn remainder_bytes<const WORDS: usize>(&self, block: &[u8; BLOCK_BYTES]) -> Option<[u8; 256]> {
        let words = self.remainder_words::<WORDS>(block);
        if words == [0; WORDS] {
            return None;
        }
        let mut bytes = [0; 256];
        for (eight, word) in bytes.chunks_exact_mut(8).zip(words) {
            eight.copy_from_slice(&word.to_be_bytes());
        }
        Some(bytes)
    }

    fn is_divisible<const WORDS: usize>(&self, block: &[u8; BLOCK_BYTES]) -> bool {
        self.remainder_words::<WORDS>(block).iter().all(|word| *word == 0)
    }

    #[inline]
    fn remainder_words<const WORDS: usize>(&self, block: &[u8; BLOCK_BYTES]) -> [u64; WORDS] {
        let (data, parity) = block.split_at(self.data());
        let (rows, _) = self.table.as_chunks::<WORDS>();
        let (places, _) = rows.as_chunks::<256>();
        let Some(places) = places.first_chunk::<STEP>() else { return [0; WORDS] };
        let mut state = [0u64; WORDS];
        let mut step = |eight: [u8; STEP]| {
            let front = state[0] ^ u64::from_be_bytes(eight);
            let mut next = [0u64; WORDS];
            next[..WORDS - 1].copy_from_slice(&state[1..]);
            let bytes = front.to_be_bytes();
            let [a, b, c, d, e, f, g, h]: [&[u64; WORDS]; STEP] =
                std::array::from_fn(|place| &places[place][usize::from(bytes[place])]);
            // As a tree: the next step waits for the sum.
            for (word, next) in next.iter_mut().enumerate() {
                let sum = (a[word] ^ b[word]) ^ (c[word] ^ d[word]);
                *next ^= sum ^ ((e[word] ^ f[word]) ^ (g[word] ^ h[word]));
            }
            state = next;
        };
        // Zeros in front change nothing.
        let (first, rest) = data.split_at(data.len() % STEP);
        if !first.is_empty() {
            let mut eight = [0; STEP];
            eight[STEP - first.len()..].copy_from_slice(first);
            step(eight);
        }
        rest.as_chunks::<STEP>().0.iter().for_each(|eight| step(*eight));
        for (word, bytes) in state.iter_mut().zip(parity.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word ^= u64::from_be_bytes(eight);
        }
        state
    }

    /// Values of a block at the roots of the generator, from its remainder.
    fn syndromes(&self, remainder: &[u8; 256]) -> Values {
        let mut syndromes = [0; POINTS];
        let points = self.parity.next_multiple_of(32).min(POINTS);
        for (coefficient, row) in remainder[..self.parity].iter().rev().zip(rows()) {
            row.add_to(&mut syndromes, *coefficient, points);
        }
        syndromes
    }

    /// Polynomial of the places of all errors, by Berlekamp and Massey, from that of `erasures` known places; its
    /// degree.
    fn locator(
        &self,
        syndromes: &Values,
        of_erasures: [u8; POINTS],
        erasures: usize,
    ) -> Result<([u8; POINTS], usize), Uncorrectable> {
        let mut logs = [0u16; POINTS];
        for (log_of, syndrome) in logs.iter_mut().zip(&syndromes[..self.parity]) {
            *log_of = log(*syndrome);
        }
        let (mut locator, mut degree) = (of_erasures, erasures);
        // The polynomial before the degree last changed, to be moved up by `shift` and divided by `last`.
        let (mut before, mut before_degree, mut shift, mut last) = (of_erasures, erasures, 1, 1u8);
        for step in erasures..self.parity {
            let places = degree.min(step) + 1;
            let backwards = logs[step + 1 - places..=step].iter().rev();
            let discrepancy = locator[..places]
                .iter()
                .zip(backwards)
                .fold(0, |sum, (coefficient, syndrome)| sum ^ exp(log(*coefficient) + syndrome));
            if discrepancy == 0 {
                shift += 1;
                continue;
            }
            let factor = log(quotient(discrepancy, last));
            let grows = 2 * degree <= step + erasures;
            let kept = grows.then_some(locator);
            if before_degree + shift >= POINTS {
                return Err(Uncorrectable);
            }
            for (coefficient, other) in locator[shift..].iter_mut().zip(&before[..=before_degree]) {
                *coefficient ^= exp(factor + log(*other));
            }
            match kept {
                Some(kept) => {
                    (before, before_degree, shift, last) = (kept, degree, 1, discrepancy);
                    degree = step + 1 + erasures - degree;
                }
                None => shift += 1,
            }
        }
        if 2 * degree > self.parity + erasures || locator[degree] == 0 {
            return Err(Uncorrectable);
        }
        Ok((locator, degree))
    }
}

/// Corrects the errors of `block` at the places whose polynomial is `locator`; the number of bytes that were wrong.
fn correct(
    block: &mut [u8; BLOCK_BYTES],
    syndromes: &Values,
    locator: &[u8; POINTS],
    degree: usize,
) -> Result<usize, Uncorrectable> {
    // Values of the even and of the odd terms: equal at a root, where the odd ones are the derivative times the point.
    let (mut even, mut odd, mut evaluator) = ([0; POINTS], [0; POINTS], [0; POINTS]);
    for (index, (coefficient, row)) in locator[..=degree].iter().zip(rows()).enumerate() {
        row.add_to(if index % 2 == 0 { &mut even } else { &mut odd }, *coefficient, POINTS);
    }
    let mut roots = [0u8; POINTS];
    if roots_of(&even, &odd, &mut roots) != degree {
        return Err(Uncorrectable);
    }
    for (index, row) in rows().iter().enumerate().take(degree) {
        let terms = locator[..=index].iter().zip(syndromes[..=index].iter().rev());
        let coefficient = terms.fold(0, |sum, (a, b)| sum ^ product(*a, *b));
        row.add_to(&mut evaluator, coefficient, POINTS);
    }
    let mut wrong = 0;
    for point in roots[..degree].iter().map(|point| usize::from(*point)) {
        // Point 2^n is the inverse of place 2^-n, the power of x whose coefficient is wrong.
        let place = BLOCK_BYTES - 1 - (BLOCK_BYTES - point) % BLOCK_BYTES;
        let error = quotient(evaluator[point], odd[point]);
        block[place] ^= error;
        wrong += usize::from(error != 0);
    }
    Ok(wrong)
}

/// Writes the points at which both values are equal to `roots`; their number.
fn roots_of(even: &Values, odd: &Values, roots: &mut [u8; POINTS]) -> usize {
    let mut count = 0;
    for (number, (a, b)) in even.as_chunks::<8>().0.iter().zip(odd.as_chunks::<8>().0).enumerate() {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        // Most eights have no byte that is 0, which this tells at once.
        if difference.wrapping_sub(0x0101_0101_0101_0101) & !difference & 0x8080_8080_8080_8080 == 0 {
            continue;
        }
        for point in (number * 8..number * 8 + 8).filter(|point| *point < BLOCK_BYTES && even[*point] == odd[*point]) {
            roots[count] = point as u8;
            count += 1;
        }
    }
    count
}

/// The generator with the roots 2^0 to 2^(parity - 1), the highest coefficient, 1, first.
fn generator(parity: usize) -> Vec<u8> {
    let mut generator = vec![1];
    for root in (0..parity).map(power) {
        generator.push(0);
        for index in (1..generator.len()).rev() {
            generator[index] ^= product(generator[index - 1], root);
        }
    }
    generator
}

/// `remainder` times x, modulo the generator.
fn times_x(remainder: &[u8], generator: &[u8]) -> Vec<u8> {
    let Some(first) = remainder.first() else { return Vec::new() };
    let moved = remainder[1..].iter().copied().chain([0]);
    moved.zip(&generator[1..]).map(|(byte, coefficient)| byte ^ product(*first, *coefficient)).collect()
}
