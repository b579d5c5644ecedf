// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tallies of packets that travel as datagrams, which go over the reliable connection beside them: how many were sent,
//! and how many of these are lost. With the second the sending host completes the credits of the hop behind the border.

use airpath_core::{Credit, Direction};

use super::receipts::Sum;

/// The first byte of a tally of packets that were sent.
pub(super) const SENT: u8 = 4;
/// The first byte of a tally of packets that are lost.
pub(super) const LOST: u8 = 5;
const UPLINK: u8 = 4;
/// Length of a tally.
pub(super) const TALLY_BYTES: usize = 18;

/// A tally, since the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    /// Packets sent; it travels with them.
    Sent(Counts),
    /// Packets lost; it travels against them.
    Lost(Counts),
}

/// Contents of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The direction in which the tally travels.
    pub direction: Direction,
    /// Number of packets.
    pub packets: u64,
    /// Their total length.
    pub bytes: u64,
}

impl Counts {
    /// `sum`, told in `direction`.
    pub(super) fn of(direction: Direction, sum: Sum) -> Counts {
        Counts { direction, packets: sum.packets, bytes: sum.bytes }
    }

    pub(super) fn sum(self) -> Sum {
        Sum { packets: self.packets, bytes: self.bytes }
    }
}

impl Tally {
    /// Reads a frame; none where it is no tally.
    pub fn read(frame: &[u8]) -> Option<Tally> {
        let (&[kind, direction], sums) = frame.split_first_chunk::<2>()?;
        let (packets, bytes) = sums.split_first_chunk::<8>()?;
        let direction = match direction {
            UPLINK => Direction::Uplink,
            0 => Direction::Downlink,
            _ => return None,
        };
        let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
        let counts = Counts { direction, packets: u64::from_le_bytes(*packets), bytes };
        match kind {
            SENT => Some(Tally::Sent(counts)),
            LOST => Some(Tally::Lost(counts)),
            _ => None,
        }
    }

    /// The direction in which it travels.
    pub fn direction(self) -> Direction {
        let (Tally::Sent(counts) | Tally::Lost(counts)) = self;
        counts.direction
    }

    /// The frame.
    pub fn to_bytes(self) -> [u8; TALLY_BYTES] {
        let (kind, counts) = match self {
            Tally::Sent(counts) => (SENT, counts),
            Tally::Lost(counts) => (LOST, counts),
        };
        let mut bytes = [0; TALLY_BYTES];
        bytes[..2].copy_from_slice(&[kind, if counts.direction == Direction::Uplink { UPLINK } else { 0 }]);
        bytes[2..10].copy_from_slice(&counts.packets.to_le_bytes());
        bytes[10..].copy_from_slice(&counts.bytes.to_le_bytes());
        bytes
    }
}

/// The credits of a hop behind a border, completed by what is lost before it: a packet that is lost leaves the window
/// as one that has left the queue does.
#[derive(Debug)]
pub(super) struct CreditAccount {
    /// The last word of the hop's machine.
    credit: Credit,
    lost: Sum,
}

impl CreditAccount {
    /// The account of a hop with this credit at t = 0.
    pub(super) fn new(first: Credit) -> CreditAccount {
        CreditAccount { credit: first, lost: Sum::default() }
    }

    fn complete(&self) -> Credit {
        let taken = Sum { packets: self.credit.taken_packets, bytes: self.credit.taken_bytes }.plus(self.lost);
        Credit { taken_packets: taken.packets, taken_bytes: taken.bytes, ..self.credit }
    }

    /// The machine there gives `credit`; returns that for the machine here.
    pub(super) fn heard(&mut self, credit: Credit) -> Credit {
        self.credit = credit;
        self.complete()
    }

    /// Packets are lost, `lost` in all; returns the credit for the machine here, where there is a window.
    pub(super) fn lost(&mut self, lost: Sum) -> Option<Credit> {
        self.lost = lost;
        let Credit { window_packets, window_bytes, .. } = Credit::UNLIMITED;
        let is_unlimited = (self.credit.window_packets, self.credit.window_bytes) == (window_packets, window_bytes);
        (!is_unlimited).then(|| self.complete())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_come_as_they_were_sent() {
        for direction in Direction::ALL {
            let counts = Counts { direction, packets: 7, bytes: 1 << 40 };
            for tally in [Tally::Sent(counts), Tally::Lost(counts)] {
                let bytes = tally.to_bytes();
                assert_eq!(Tally::read(&bytes), Some(tally));
                assert_eq!(tally.direction(), direction);
                assert_eq!(Tally::read(&bytes[1..]), None);
                assert_eq!(Tally::read(&[&bytes[..], &[0]].concat()), None);
            }
        }
        assert_eq!(Tally::read(&[SENT; TALLY_BYTES]).map(|tally| tally.direction()), Some(Direction::Uplink));
        assert_eq!(Tally::read(&[LOST; TALLY_BYTES]), None);
    }

    #[test]
    fn losses_complete_the_credits_of_a_window() {
        let window = Credit { window_packets: 4, ..Credit::UNLIMITED };
        let mut account = CreditAccount::new(window);
        let taken = |taken_packets, taken_bytes| Credit { taken_packets, taken_bytes, ..window };
        assert_eq!(account.lost(Sum { packets: 1, bytes: 100 }), Some(taken(1, 100)));
        assert_eq!(account.heard(taken(2, 300)), taken(3, 400));
        assert_eq!(account.lost(Sum { packets: 2, bytes: 150 }), Some(taken(4, 450)));
        // A state takes the window away: the sums go on, and nobody needs to be told of losses.
        let open = Credit { window_packets: u32::MAX, ..taken(5, 500) };
        assert_eq!(account.heard(open), Credit { taken_packets: 7, taken_bytes: 650, ..open });
        assert_eq!(account.lost(Sum { packets: 3, bytes: 200 }), None);
    }
}
