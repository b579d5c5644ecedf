// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Positions in the stream of one direction, and their sequence numbers.
//!
//! A position counts from the SYN, which is at 0, so that the first byte of data is at 1. It has 64 bits and never
//! wraps; a sequence number is its lower 32 bits after the initial sequence number (RFC 9293, section 3.4).

/// Position in the stream of a direction.
pub(crate) type Position = u64;

/// The sequence number of `position`.
pub(crate) fn number(initial: u32, position: Position) -> u32 {
    initial.wrapping_add(position as u32)
}

/// The position of `number` that is nearest to `near`; 0 for what lies before the stream.
pub(crate) fn position(initial: u32, number: u32, near: Position) -> Position {
    let distance = number.wrapping_sub(initial).wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_the_wrap_of_its_number() {
        let initial = u32::MAX - 10;
        for near in [0, 5, 20, (1_u64 << 32) - 3, (5_u64 << 32) + 7] {
            for offset in [0, 1, 1_000, 1 << 30] {
                let there = near + offset;
                assert_eq!(position(initial, number(initial, there), near), there);
                assert_eq!(position(initial, number(initial, near), there), near);
            }
        }
        assert_eq!(position(7, 3, 0), 0);
    }
}
