// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Quantities that can be drawn.

use airpath_core::{Bits, Span};

/// A quantity in whole base units.
pub trait Quantity: Copy + Default + PartialEq + std::fmt::Debug + std::fmt::Display + Send + Sync + 'static {
    /// Its number of base units.
    fn base(self) -> u64;

    /// Value of `base` base units.
    fn from_base(base: u64) -> Self;
}

impl Quantity for Span {
    fn base(self) -> u64 {
        self.nanos()
    }
    fn from_base(nanoseconds: u64) -> Span {
        Span::from_nanos(nanoseconds)
    }
}

impl Quantity for Bits {
    fn base(self) -> u64 {
        self.get()
    }
    fn from_base(bits: u64) -> Bits {
        Bits::new(bits)
    }
}
