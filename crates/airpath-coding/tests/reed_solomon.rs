// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reed-Solomon codes against published blocks, and against a decoder of its own that solves linear equations.

use airpath_coding::{BLOCK_BYTES, ReedSolomon, Uncorrectable};

type Block = [u8; BLOCK_BYTES];

/// Product in the field, bit by bit.
fn times(a: u8, b: u8) -> u8 {
    let (mut a, mut sum) = (u16::from(a), 0);
    for bit in 0..8 {
        sum ^= if b >> bit & 1 == 1 { a } else { 0 };
        a = if a & 0x80 != 0 { a << 1 ^ 0x11d } else { a << 1 };
    }
    sum as u8
}

fn to_power(a: u8, power: usize) -> u8 {
    (0..power % 255).fold(1, |product, _| times(product, a))
}

fn inverse(a: u8) -> u8 {
    to_power(a, 254)
}

/// Value of the block at 2^root, by Horner.
fn value(block: &Block, root: usize) -> u8 {
    let point = to_power(2, root);
    block.iter().fold(0, |sum, byte| times(sum, point) ^ byte)
}

/// One solution of linear equations, the last column being the right side; none if there is none, or many.
fn solve(mut rows: Vec<Vec<u8>>, unknowns: usize) -> Option<Vec<u8>> {
    for column in 0..unknowns {
        let pivot = (column..rows.len()).find(|row| rows[*row][column] != 0)?;
        rows.swap(column, pivot);
        let factor = inverse(rows[column][column]);
        rows[column].iter_mut().for_each(|entry| *entry = times(*entry, factor));
        let own = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, row)| *index != column && row[column] != 0) {
            let factor = row[column];
            row.iter_mut().zip(&own).for_each(|(entry, other)| *entry ^= times(*other, factor));
        }
    }
    let fits = rows[unknowns..].iter().all(|row| row[unknowns] == 0);
    fits.then(|| rows[..unknowns].iter().map(|row| row[unknowns]).collect())
}

/// Peterson, Gorenstein and Zierler with erasures: the errors of the most numerous kind first, linear equations for the
/// polynomial of their places and for their values, and all syndromes at the end.
fn plain_decode(block: &mut Block, parity: usize, missing: &[u8]) -> Result<(), Uncorrectable> {
    let syndromes: Vec<u8> = (0..parity).map(|root| value(block, root)).collect();
    if missing.len() > parity {
        return Err(Uncorrectable);
    }
    // Syndromes without what is missing: of each known place a factor is taken out.
    let mut left = syndromes.clone();
    for place in missing {
        let root = to_power(2, 254 - usize::from(*place));
        left = left.windows(2).map(|pair| pair[1] ^ times(pair[0], root)).collect();
    }
    for errors in (0..=left.len() / 2).rev() {
        let rows = (0..left.len() - errors).map(|row| left[row..=row + errors].to_vec());
        let Some(polynomial) = solve(rows.collect(), errors) else { continue };
        // left[n + errors] = sum of polynomial[k] left[n + k]: the roots of x^errors - sum polynomial[k] x^k.
        let is_root = |place: &u8| {
            let x = to_power(2, 254 - usize::from(*place));
            let low = polynomial.iter().rev().fold(0, |sum, coefficient| times(sum, x) ^ coefficient);
            low == to_power_exact(x, errors)
        };
        let mut places: Vec<u8> = (0..255).filter(is_root).filter(|place| !missing.contains(place)).collect();
        if places.len() != errors {
            return Err(Uncorrectable);
        }
        places.extend(missing);
        let rows = (0..parity).map(|root| {
            let entries = places.iter().map(|place| to_power(2, (254 - usize::from(*place)) * root));
            entries.chain([syndromes[root]]).collect()
        });
        let values = solve(rows.collect(), places.len()).ok_or(Uncorrectable)?;
        places.iter().zip(values).for_each(|(place, value)| block[usize::from(*place)] ^= value);
        return if (0..parity).all(|root| value(block, root) == 0) { Ok(()) } else { Err(Uncorrectable) };
    }
    Err(Uncorrectable)
}

fn to_power_exact(x: u8, power: usize) -> u8 {
    (0..power).fold(1, |product, _| times(product, x))
}

/// xorshift64*.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn places(&mut self, count: usize) -> Vec<u8> {
        let mut all: Vec<u8> = (0..255).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }

    fn code_word(&mut self, code: &ReedSolomon) -> Block {
        let mut block = [0; BLOCK_BYTES];
        block.iter_mut().for_each(|byte| *byte = self.below(256) as u8);
        code.encode(&mut block);
        block
    }
}

/// Wrong bytes at the first `errors` of `places`, anything at the rest of them.
fn damage(block: &mut Block, places: &[u8], errors: usize, dice: &mut Dice) {
    for (number, place) in places.iter().enumerate() {
        let least = usize::from(number < errors);
        block[usize::from(*place)] ^= (least + dice.below(256 - least)) as u8;
    }
}

/// The first symbol of ISO/IEC 18004, annex I ("01234567"), and "HELLO WORLD" in a symbol 1-M: 10 parity bytes behind
/// 16 data bytes.
#[test]
fn parity_is_that_of_qr_codes() {
    let published: [([u8; 16], [u8; 10]); 2] = [
        (
            [0x10, 0x20, 0x0c, 0x56, 0x61, 0x80, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11],
            [0xa5, 0x24, 0xd4, 0xc1, 0xed, 0x36, 0xc7, 0x87, 0x2c, 0x55],
        ),
        (
            [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17],
            [196, 35, 39, 119, 235, 215, 231, 226, 93, 23],
        ),
    ];
    let code = ReedSolomon::new(10);
    for (data, parity) in published {
        let mut block = [0; BLOCK_BYTES];
        block[229..245].copy_from_slice(&data);
        code.encode(&mut block);
        assert_eq!(block[245..], parity);
    }
}

/// Every code: its words have the roots, and no others.
#[test]
fn code_words_are_what_the_roots_divide() {
    let mut dice = Dice(3);
    for parity in 0..=254 {
        let code = ReedSolomon::new(parity);
        let mut block = dice.code_word(&code);
        assert!(code.is_code_word(&block));
        assert!((0..usize::from(parity)).all(|root| value(&block, root) == 0), "{parity}");
        damage(&mut block, &dice.places(1), 1, &mut dice);
        assert_eq!(code.is_code_word(&block), parity == 0);
    }
}

/// Every single error, every pair of errors with one value each, and every pair of erasures, in the smallest codes.
#[test]
fn every_small_pattern_is_corrected() {
    let (two, four) = (ReedSolomon::new(2), ReedSolomon::new(4));
    let mut dice = Dice(7);
    let word = [dice.code_word(&two), dice.code_word(&four)];
    for first in 0..255u8 {
        for value in 1..=255 {
            let mut block = word[0];
            block[usize::from(first)] ^= value;
            assert_eq!(two.decode(&mut block, &[]), Ok(1));
            assert_eq!(block, word[0]);
        }
        for second in 0..first {
            let values = [1 + dice.below(255) as u8, 1 + dice.below(255) as u8];
            let hit = |mut block: Block| {
                block[usize::from(first)] ^= values[0];
                block[usize::from(second)] ^= values[1];
                block
            };
            let mut block = hit(word[1]);
            assert_eq!(four.decode(&mut block, &[]), Ok(2));
            assert_eq!(block, word[1]);
            let mut block = hit(word[0]);
            assert_eq!(two.decode(&mut block, &[first, second]), Ok(2));
            assert_eq!(block, word[0]);
        }
    }
}

/// Two errors are one too many for two parity bytes: the result is a code word within one byte if there is one, which a
/// search through all of them says, and an error otherwise.
#[test]
fn beyond_its_capacity_the_nearest_code_word_counts() {
    let code = ReedSolomon::new(2);
    let mut dice = Dice(11);
    let (mut found, mut refused) = (0, 0);
    for _ in 0..400 {
        let mut block = dice.code_word(&code);
        damage(&mut block, &dice.places(2), 2, &mut dice);
        let [s0, s1] = [0, 1].map(|root| value(&block, root));
        // A single error v at x^d has the syndromes v and v 2^d.
        let near: Vec<(usize, u8)> = (0..255)
            .map(|place| (place, s0))
            .filter(|(place, v)| *v != 0 && times(*v, to_power(2, 254 - place)) == s1)
            .collect();
        let before = block;
        match (code.decode(&mut block, &[]), near.as_slice()) {
            (Ok(1), [(place, v)]) => {
                assert_eq!(block[*place], before[*place] ^ v);
                assert!(code.is_code_word(&block));
                found += 1;
            }
            (Err(Uncorrectable), []) => {
                assert_eq!(block, before);
                refused += 1;
            }
            (result, near) => panic!("{result:?}, {near:?}"),
        }
    }
    assert!(found > 50 && refused > 0, "{found} {refused}");
}

/// All numbers of parity bytes: as many errors and erasures as the code corrects, and one more.
#[test]
fn capacity_is_reached_and_not_exceeded() {
    let mut dice = Dice(13);
    let mut refused = 0;
    for parity in 0..=254usize {
        let code = ReedSolomon::new(parity as u8);
        for share in 0..5 {
            let erasures = parity * share / 4;
            let errors = (parity - erasures) / 2;
            let word = dice.code_word(&code);
            let places = dice.places(errors + erasures);
            let mut block = word;
            damage(&mut block, &places, errors, &mut dice);
            let wrong = block.iter().zip(&word).filter(|(a, b)| a != b).count();
            assert_eq!(code.decode(&mut block, &places[errors..]), Ok(wrong), "{parity}, {errors}, {erasures}");
            assert_eq!(block, word);
            if errors + erasures < 255 {
                let places = dice.places(errors + 1 + erasures);
                let mut block = word;
                damage(&mut block, &places, errors + 1, &mut dice);
                match code.decode(&mut block, &places[errors + 1..]) {
                    Err(Uncorrectable) => refused += 1,
                    Ok(_) => assert!(code.is_code_word(&block) && block != word || parity == 0),
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// Any errors and erasures, within and beyond the capacity: the same result as that of linear equations.
#[test]
fn results_are_those_of_linear_equations() {
    let mut dice = Dice(17);
    let (mut corrected, mut other, mut refused) = (0, 0, 0);
    for round in 0..1500 {
        let parity = if round % 3 == 0 { dice.below(5) } else { dice.below(24) };
        let code = ReedSolomon::new(parity as u8);
        let word = dice.code_word(&code);
        let (errors, erasures) = (dice.below(parity / 2 + 3), dice.below(parity + 1) / (1 + round % 4));
        let places = dice.places(errors + erasures);
        let mut block = word;
        damage(&mut block, &places, errors, &mut dice);
        let (mut plain, before) = (block, block);
        let expected = plain_decode(&mut plain, parity, &places[errors..]);
        let result = code.decode(&mut block, &places[errors..]);
        assert_eq!(result.is_ok(), expected.is_ok(), "{parity}, {errors}, {erasures}");
        match expected {
            Ok(()) => assert_eq!(block, plain),
            Err(_) => assert_eq!(block, before),
        }
        if 2 * errors + erasures <= parity {
            assert_eq!(block, word);
            corrected += 1;
        } else {
            *if expected.is_ok() { &mut other } else { &mut refused } += 1;
        }
    }
    assert!(corrected > 400 && other > 20 && refused > 100, "{corrected} {other} {refused}");
}

/// Places that are told twice count once; more than the code corrects are refused, whatever the block.
#[test]
fn missing_places_are_a_set() {
    let code = ReedSolomon::new(2);
    let mut block = [0; BLOCK_BYTES];
    block[7] = 9;
    assert_eq!(code.decode(&mut block, &[7, 3, 7, 3, 3]), Ok(1));
    assert_eq!(block, [0; BLOCK_BYTES]);
    assert_eq!(code.decode(&mut block, &[1, 2]), Ok(0));
    assert_eq!(code.decode(&mut block, &[1, 2, 3]), Err(Uncorrectable));
}
