// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The damage that an error does to bytes.
//!
//! Source: Singh 2000, section 5.1: the 28 data bytes of a corrupted block, or 20 % of its bytes at random. A damaged
//! byte becomes one of the 255 others, each as likely. The draws depend on seed, number of the block and place in the
//! block alone, so that runs with other protocols see the same damage.

use airpath_core::DrawKey;
use airpath_models::channel::trace_file::Record;

/// The bytes of a corrupted block that are damaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// All.
    All,
    /// This share, rounded to whole bytes, at least one, at different places at random.
    Share(f64),
}

impl std::str::FromStr for Within {
    type Err = String;
    fn from_str(text: &str) -> Result<Within, String> {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
        match share {
            _ if text == "all" => Ok(Within::All),
            Some(share) => Ok(Within::Share(share)),
            None => Err(format!("`{text}` is neither `all` nor a share of a block's bytes, above 0 and up to 1: 0.2")),
        }
    }
}

impl std::fmt::Display for Within {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Within::All => f.write_str("all"),
            Within::Share(share) => share.fmt(f),
        }
    }
}

/// A damaged byte of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedByte {
    /// Its number in the packet.
    pub position: usize,
    /// Bits that change; at least one.
    pub mask: u8,
}

/// Damage of blocks and bytes.
#[derive(Debug)]
pub struct Damager {
    /// Damaged bytes of a block; none is all.
    count: Option<usize>,
    mask_key: DrawKey,
    place_key: DrawKey,
    places: Vec<bool>,
}

impl Damager {
    /// Damage `within` blocks of `block_data_bytes`, drawn with `key`.
    pub fn new(within: Within, block_data_bytes: u32, key: DrawKey) -> Damager {
        let bytes = block_data_bytes as usize;
        let count = match within {
            Within::All => None,
            Within::Share(share) => Some(((share * bytes as f64).round() as usize).clamp(1, bytes)),
        };
        Damager { count, mask_key: key.child("mask", 0), place_key: key.child("place", 0), places: vec![false; bytes] }
    }

    /// Appends what `record` does to the block with this number, whose first byte is byte `start` of a packet of
    /// `packet_bytes`. The block may be longer than the rest of the packet.
    pub fn block(
        &mut self,
        number: u64,
        record: Record<'_>,
        start: usize,
        packet_bytes: usize,
        damaged: &mut Vec<DamagedByte>,
    ) {
        let bytes = self.places.len().min(packet_bytes - start);
        let replace = |place: usize| damaged.push(byte(self.mask_key, number, place, start + place));
        match (record, self.count) {
            (Record::Ok, _) => {}
            (Record::Hit, Some(count)) => {
                choose(self.place_key, number, count, &mut self.places);
                (0..bytes).filter(|place| self.places[*place]).for_each(replace);
            }
            (Record::Hit | Record::Lost, _) => (0..bytes).for_each(replace),
            (Record::Damaged { kept_bytes, flips }, _) => {
                let kept = kept_bytes.map_or(bytes, |kept| bytes.min(kept as usize));
                for flip in flips {
                    let (place, mask) = (*flip as usize / 8, 0x80 >> (flip % 8));
                    match damaged.last_mut() {
                        Some(last) if last.position == start + place => last.mask |= mask,
                        _ if place < kept => damaged.push(DamagedByte { position: start + place, mask }),
                        _ => break,
                    }
                }
                (kept..bytes).for_each(|place| damaged.push(byte(self.mask_key, number, place, start + place)));
            }
        }
    }

    /// Appends the damage of the byte with this number among all, byte `position` of a packet.
    pub fn byte(&self, number: u64, position: usize, damaged: &mut Vec<DamagedByte>) {
        damaged.push(byte(self.mask_key, number, 0, position));
    }
}

fn byte(key: DrawKey, number: u64, place: usize, position: usize) -> DamagedByte {
    DamagedByte { position, mask: 1 + key.below(number, place as u64, 255) as u8 }
}

/// Marks `count` different places at random (Floyd's algorithm; Bentley 1987).
fn choose(key: DrawKey, number: u64, count: usize, places: &mut [bool]) {
    places.fill(false);
    for last in places.len() - count..places.len() {
        let place = key.below(number, last as u64, last as u64 + 1) as usize;
        let place = if places[place] { last } else { place };
        places[place] = true;
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawScope, Seed};

    use super::*;

    fn damager(within: Within) -> Damager {
        let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "damage", instance: 0 };
        Damager::new(within, 28, DrawKey::new(Seed(3), &scope))
    }

    fn positions(damager: &mut Damager, number: u64, record: Record<'_>, start: usize, packet: usize) -> Vec<usize> {
        let mut damaged = Vec::new();
        damager.block(number, record, start, packet, &mut damaged);
        assert!(damaged.iter().all(|byte| byte.mask != 0));
        damaged.iter().map(|byte| byte.position).collect()
    }

    #[test]
    fn all_bytes_of_the_block_that_are_the_packets() {
        let mut damager = damager(Within::All);
        assert_eq!(positions(&mut damager, 5, Record::Hit, 28, 542), (28..56).collect::<Vec<_>>());
        assert_eq!(positions(&mut damager, 5, Record::Lost, 532, 542), (532..542).collect::<Vec<_>>());
        assert_eq!(positions(&mut damager, 5, Record::Ok, 28, 542), [0; 0]);
    }

    #[test]
    fn a_share_of_a_block_is_at_different_places_each_as_likely() {
        let mut damager = damager(Within::Share(0.2));
        let mut hits = [0u32; 28];
        for number in 0..10_000 {
            let found = positions(&mut damager, number, Record::Hit, 0, 28);
            // 20 % of 28 are 5.6; strictly ascending, so each place once.
            assert_eq!(found.len(), 6);
            assert!(found.is_sorted_by(|one, other| one < other));
            found.iter().for_each(|place| hits[*place] += 1);
        }
        // Binomial of 10,000 draws of 6/28: mean 2143, deviation 41; five of them.
        assert!(hits.iter().all(|count| count.abs_diff(2_143) < 205), "{hits:?}");
        // The share of a block that is filled in part may miss the packet.
        assert!((0..100).any(|number| positions(&mut damager, number, Record::Hit, 28, 29).is_empty()));
    }

    #[test]
    fn records_of_flips_and_cuts_say_which_bytes() {
        let mut damager = damager(Within::Share(0.2));
        let record = Record::Damaged { kept_bytes: None, flips: &[0, 7, 8, 223, 224] };
        let mut damaged = Vec::new();
        damager.block(1, record, 56, 200, &mut damaged);
        let expected = [(56, 0b1000_0001), (57, 0b1000_0000), (83, 1)];
        assert_eq!(damaged, expected.map(|(position, mask)| DamagedByte { position, mask }));
        let record = Record::Damaged { kept_bytes: Some(25), flips: &[8, 220] };
        assert_eq!(positions(&mut damager, 1, record, 0, 200), [1, 25, 26, 27]);
        let record = Record::Damaged { kept_bytes: Some(28), flips: &[] };
        assert_eq!(positions(&mut damager, 1, record, 0, 200), [0; 0]);
    }

    #[test]
    fn damage_makes_each_other_byte_as_likely() {
        let damager = damager(Within::All);
        let mut counts = [0f64; 256];
        let mut damaged = Vec::new();
        (0..255_000).for_each(|number| damager.byte(number, 0, &mut damaged));
        damaged.iter().for_each(|byte| counts[usize::from(byte.mask)] += 1.0);
        assert_eq!(counts[0], 0.0);
        // Chi-square with 254 degrees of freedom: mean 254, deviation 22.5; five of them.
        let chi: f64 = counts[1..].iter().map(|count| (count - 1_000.0).powi(2) / 1_000.0).sum();
        assert!(chi < 367.0, "{chi}");
    }

    #[test]
    fn shares_are_read() {
        assert_eq!("all".parse(), Ok(Within::All));
        assert_eq!("0.2".parse(), Ok(Within::Share(0.2)));
        for text in ["0", "1.1", "-1", "some", "NaN", ""] {
            assert!(text.parse::<Within>().unwrap_err().contains("neither `all` nor a share"), "{text}");
        }
    }
}
