// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The earliest of many deadlines: one for each of a fixed number of owners.
//!
//! A tournament: every inner node of a binary tree holds the earlier of its two children, the left one
//! at equal times. The winner is read at once, a change costs one comparison for each level, nothing
//! is allocated, and the order is total: (time, owner).

use airpath_core::Time;

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// Number of owners for which the tree has leaves: a power of two, or zero.
    leaves: usize,
    /// The inner nodes from 1 on, the root first, and then the leaves.
    tree: Vec<(Time, u32)>,
}

impl Deadlines {
    /// `owners` owners without deadlines.
    pub(super) fn new(owners: usize) -> Deadlines {
        let leaves = owners.next_power_of_two();
        let mut tree = vec![(Time::NEVER, 0); 2 * leaves];
        for (owner, leaf) in tree[leaves..].iter_mut().enumerate() {
            leaf.1 = owner as u32;
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node];
        }
        Deadlines { leaves, tree }
    }

    /// The earliest deadline and its owner, the lowest at equal times; `Time::NEVER` if there is none.
    #[inline]
    pub(super) fn first(&self) -> (Time, usize) {
        self.tree.get(1).map_or((Time::NEVER, 0), |(at, owner)| (*at, *owner as usize))
    }

    /// Gives `owner` the deadline `at`, `Time::NEVER` for none.
    #[inline]
    pub(super) fn set(&mut self, owner: usize, at: Time) {
        let mut node = self.leaves + owner;
        if self.tree[node].0 == at {
            return;
        }
        self.tree[node].0 = at;
        while node > 1 {
            node /= 2;
            let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
            self.tree[node] = if right.0 < left.0 { right } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wins_and_the_lowest_among_equals() {
        let mut deadlines = Deadlines::new(5);
        assert_eq!(deadlines.first().0, Time::NEVER);
        for (owner, at) in [(4, 7), (2, 7), (3, 9), (0, 8)] {
            deadlines.set(owner, Time::from_nanos(at));
        }
        assert_eq!(deadlines.first(), (Time::from_nanos(7), 2));
        deadlines.set(2, Time::NEVER);
        assert_eq!(deadlines.first(), (Time::from_nanos(7), 4));
        assert_eq!(Deadlines::default().first().0, Time::NEVER);
    }

    /// Against a linear search, over numbers of owners around powers of two.
    #[test]
    fn as_a_search_of_all_would_find_it() {
        let mut state = 1u64;
        let mut dice = move |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for owners in [1, 2, 3, 7, 8, 9, 64, 65] {
            let mut deadlines = Deadlines::new(owners);
            let mut all = vec![Time::NEVER; owners];
            for _ in 0..2_000 {
                let owner = dice(owners as u64) as usize;
                let at = if dice(5) == 0 { Time::NEVER } else { Time::from_nanos(dice(20)) };
                deadlines.set(owner, at);
                all[owner] = at;
                let expected = all.iter().enumerate().map(|(owner, at)| (*at, owner)).min().unwrap();
                assert_eq!(deadlines.first(), expected);
            }
        }
    }
}
