// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Credits of the machine at another host, as datagrams beside its packets.

use airpath_core::{Credit, Direction};

/// The first byte of a datagram that is a credit.
pub const CREDIT: u8 = 3;
/// Length of a credit.
pub const CREDIT_BYTES: usize = 38;
const UPLINK: u8 = 4;

/// A datagram that is a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedCredit {
    /// The direction in which it travels, which is not that of the packets that it is for.
    pub direction: Direction,
    /// Time of receipt, by CLOCK_REALTIME of this host in ns; 0 on its way.
    pub received_realtime_ns: u64,
    /// The credit.
    pub credit: Credit,
}

impl JoinedCredit {
    /// Reads a datagram; none where it is no credit.
    pub fn read(datagram: &[u8]) -> Option<JoinedCredit> {
        let direction = direction_of_credit(datagram)?;
        let word = |at: usize| u64::from_le_bytes(datagram[at..at + 8].try_into().unwrap_or_default());
        let credit = Credit {
            taken_packets: word(10),
            taken_bytes: word(18),
            window_bytes: word(26),
            window_packets: u32::from_le_bytes(datagram[34..38].try_into().ok()?),
        };
        Some(JoinedCredit { direction, received_realtime_ns: word(2), credit })
    }

    /// The datagram.
    pub fn to_bytes(&self) -> [u8; CREDIT_BYTES] {
        let mut bytes = [0; CREDIT_BYTES];
        bytes[..2].copy_from_slice(&[CREDIT, if self.direction == Direction::Uplink { UPLINK } else { 0 }]);
        let Credit { taken_packets, taken_bytes, window_packets, window_bytes } = self.credit;
        let words = [self.received_realtime_ns, taken_packets, taken_bytes, window_bytes];
        for (place, word) in bytes[2..34].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[34..].copy_from_slice(&window_packets.to_le_bytes());
        bytes
    }
}

/// The direction of a datagram that is a credit.
pub(super) fn direction_of_credit(datagram: &[u8]) -> Option<Direction> {
    match datagram {
        [CREDIT, UPLINK, rest @ ..] if rest.len() == CREDIT_BYTES - 2 => Some(Direction::Uplink),
        [CREDIT, 0, rest @ ..] if rest.len() == CREDIT_BYTES - 2 => Some(Direction::Downlink),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_come_as_they_were_sent() {
        let credit = Credit { taken_packets: 1, taken_bytes: 2, window_packets: 3, window_bytes: 4 };
        for direction in Direction::ALL {
            let sent = JoinedCredit { direction, received_realtime_ns: 7, credit };
            let mut bytes = sent.to_bytes();
            assert_eq!(JoinedCredit::read(&bytes), Some(sent));
            assert_eq!(JoinedCredit::read(&bytes[..CREDIT_BYTES - 1]), None);
            bytes[1] = 1;
            assert_eq!(JoinedCredit::read(&bytes), None);
        }
    }
}
