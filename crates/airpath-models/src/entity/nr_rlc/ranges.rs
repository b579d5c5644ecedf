// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sets of octets of one packet, as ranges.

/// A set of octets: ranges from a first octet to the one behind the last, in order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// True if there is no octet in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first range.
    pub fn first(&self) -> Option<(u32, u32)> {
        self.0.first().copied()
    }

    /// True if all octets from `from` to `to` are in it.
    pub fn covers(&self, from: u32, to: u32) -> bool {
        from >= to || self.0.iter().any(|(first, behind)| *first <= from && to <= *behind)
    }

    /// Adds the octets from `from` to `to`.
    pub fn insert(&mut self, mut from: u32, mut to: u32) {
        if from >= to {
            return;
        }
        self.0.retain(|(first, behind)| {
            let touches = *first <= to && from <= *behind;
            if touches {
                (from, to) = (from.min(*first), to.max(*behind));
            }
            !touches
        });
        let place = self.0.partition_point(|(first, _)| *first < from);
        self.0.insert(place, (from, to));
    }

    /// Removes the octets from `from` to `to`.
    pub fn remove(&mut self, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let mut left = Vec::with_capacity(self.0.len() + 1);
        for (first, behind) in self.0.drain(..) {
            left.extend([(first, behind.min(from)), (first.max(to), behind)].into_iter().filter(|(a, b)| a < b));
        }
        self.0 = left;
    }

    /// The ranges that are missing before the last octet in it, and what is missing behind that up to `total`, or to
    /// [`u32::MAX`] where the end is not known.
    pub fn missing(&self, total: Option<u32>) -> Vec<(u32, u32)> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (first, behind) in &self.0 {
            if next < *first {
                missing.push((next, *first));
            }
            next = *behind;
        }
        if total.is_none_or(|total| next < total) {
            missing.push((next, total.unwrap_or(u32::MAX)));
        }
        missing
    }

    /// True if an octet is missing before the last one in it.
    pub fn has_gap(&self) -> bool {
        self.0.len() > 1 || self.0.first().is_some_and(|(first, _)| *first > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Against sets of single octets.
    #[test]
    fn ranges_are_sets_of_octets() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % bound) as u32
        };
        for _ in 0..300 {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for _ in 0..below(12) {
                let from = below(30);
                let to = from + below(8);
                if below(3) > 0 {
                    ranges.insert(from, to);
                    set.extend(from..to);
                } else {
                    ranges.remove(from, to);
                    set.retain(|octet| !(from..to).contains(octet));
                }
            }
            let flat: BTreeSet<u32> = ranges.0.iter().flat_map(|(from, to)| *from..*to).collect();
            assert_eq!(flat, set);
            assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
            let missing: BTreeSet<u32> = ranges.missing(Some(40)).into_iter().flat_map(|(a, b)| a..b).collect();
            assert_eq!(missing, (0..40).filter(|octet| !set.contains(octet)).collect());
            let last = set.last().map_or(0, |last| *last);
            assert_eq!(ranges.has_gap(), (0..last).any(|octet| !set.contains(&octet)));
            assert_eq!(ranges.covers(3, 9), (3..9).all(|octet| set.contains(&octet)));
        }
    }
}
