// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Answers of packet filters, for a machine that chooses packets by their bytes.
//!
//! A machine has no contents of packets, because a replay has none. Its driver asks the machine's filters where a packet
//! comes in, and the answers are a part of the PDU and of the input log.

/// Answers of up to [`Matches::LIMIT`] filters about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Matches(u64);

impl Matches {
    /// No filter matches.
    pub const NONE: Matches = Matches(0);

    /// Maximum number of filters.
    pub const LIMIT: usize = 64;

    /// Answers from their bits, that of filter 0 the lowest.
    pub const fn from_bits(bits: u64) -> Matches {
        Matches(bits)
    }

    /// The answers as bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The same with a match of filter `number`, which is below [`Matches::LIMIT`].
    #[must_use]
    pub const fn with(self, number: u8) -> Matches {
        Matches(self.0 | 1 << (number & 63))
    }

    /// True if filter `number` matches.
    #[inline]
    pub const fn has(self, number: u8) -> bool {
        self.0 >> (number & 63) & 1 == 1
    }
}

/// The filters of a machine's port.
pub trait PacketFilters: Send + Sync {
    /// Answers about the packet of `length` bytes that begins with `packet`, its checksums finished.
    fn matches(&self, packet: &[u8], length: u32) -> Matches;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filter_has_an_answer_of_its_own() {
        let some = Matches::NONE.with(0).with(63);
        assert_eq!((some.has(0), some.has(1), some.has(62), some.has(63)), (true, false, false, true));
        assert_eq!(Matches::from_bits(some.bits()), some);
        assert_eq!(Matches::default(), Matches::NONE);
    }
}
