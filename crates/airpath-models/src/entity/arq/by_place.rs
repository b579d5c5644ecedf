// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames by their places.

use std::collections::VecDeque;

/// Frames by their places, which say their order. Most come at the end and go from the beginning, so that a list in
/// order is quicker than a tree.
#[derive(Clone, Debug)]
pub struct ByPlace<F>(VecDeque<(u64, F)>);

impl<F> ByPlace<F> {
    /// No frames.
    pub fn new() -> ByPlace<F> {
        ByPlace(VecDeque::new())
    }

    fn find(&self, place: u64) -> Result<usize, usize> {
        match (self.0.front(), self.0.back()) {
            (Some((first, _)), _) if *first == place => Ok(0),
            (_, Some((last, _))) if *last < place => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&place, |(place, _)| *place),
        }
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The frame at `place`, if there is one.
    pub fn get(&self, place: u64) -> Option<&F> {
        self.find(place).ok().map(|index| &self.0[index].1)
    }

    /// Puts a frame where there is none.
    pub fn insert(&mut self, place: u64, frame: F) {
        match self.find(place) {
            Ok(index) => self.0[index].1 = frame,
            Err(index) => self.0.insert(index, (place, frame)),
        }
    }

    /// Takes the frame at `place` out, if there is one.
    pub fn remove(&mut self, place: u64) -> Option<F> {
        let index = self.find(place).ok()?;
        self.0.remove(index).map(|(_, frame)| frame)
    }
}
