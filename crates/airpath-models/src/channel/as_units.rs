// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! For tests of processes without chance: bits are hit as units are.

use super::ErrorProcess;

/// Fails unless a process (of which `process` makes fresh ones) hits the same of two thousand bits as
/// of as many units, however the bits are cut into transmissions of `lengths`.
pub fn assert_bits_are_as_units<P: ErrorProcess>(process: impl Fn() -> P, lengths: &[usize], what: &str) {
    const UNITS: u64 = 2_000;
    let mut units = process();
    let expected: Vec<u64> = (0..UNITS).filter(|step| units.hits(*step)).collect();
    for length in lengths {
        let (mut all, mut first) = (process(), process());
        let mut found = Vec::new();
        for from in (0..UNITS).step_by(*length) {
            let (mut a, mut f) = (Vec::new(), Vec::new());
            all.hit_bits(0, *length as u64, false, &mut a);
            first.hit_bits(0, *length as u64, true, &mut f);
            assert_eq!(a.first(), f.first(), "{what} by {length}");
            found.extend(a.into_iter().map(|position| from + u64::from(position)));
        }
        found.retain(|position| *position < UNITS);
        assert_eq!(found, expected, "{what} by {length}");
    }
}
