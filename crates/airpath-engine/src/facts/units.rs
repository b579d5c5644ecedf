// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The units that quantities are written in.

use airpath_core::length::{BITS_UNITS, SHARE_UNITS};
use airpath_core::quantity::Unit;
use airpath_core::rate::RATE_UNITS;
use airpath_core::time::SPAN_UNITS;
use serde::Serialize;

/// The units of each quantity.
#[derive(Serialize)]
pub struct Units {
    time: Quantity,
    length: Quantity,
    rate: Quantity,
    share: Quantity,
}

/// A quantity.
#[derive(Serialize)]
struct Quantity {
    /// Unit in which factors count.
    base: &'static str,
    units: Vec<UnitFacts>,
}

/// A unit.
#[derive(Serialize)]
struct UnitFacts {
    /// Spellings, the usual one first.
    names: &'static [&'static str],
    /// Number of base units in one of it.
    factor: u64,
}

/// All of them.
pub fn units() -> Units {
    let quantity = |base, units: &[Unit]| Quantity {
        base,
        units: units.iter().map(|unit| UnitFacts { names: unit.names, factor: unit.factor }).collect(),
    };
    Units {
        time: quantity("ns", SPAN_UNITS),
        length: quantity("bit", BITS_UNITS),
        rate: quantity("bit/s", RATE_UNITS),
        share: quantity("1e-12", SHARE_UNITS),
    }
}
