// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP sequence numbers counted from the first one seen, as people read them.

use std::collections::HashMap;

/// The ends of a connection in one direction: addresses with ports.
pub(super) type Ends = (Vec<u8>, u16, Vec<u8>, u16);

/// The first sequence number seen in each direction of each connection.
#[derive(Debug, Default)]
pub struct Sequences(HashMap<Ends, u32>);

/// Sequence and acknowledgement numbers to be shown.
pub(super) struct Shown {
    pub sequence: u32,
    pub acknowledgement: u32,
}

impl Sequences {
    /// The numbers to show for a segment between `ends`. The first segment of a direction is shown
    /// with its real number, and any SYN with both.
    pub(super) fn show(&mut self, ends: &Ends, syn: bool, sequence: u32, acknowledgement: u32) -> Shown {
        let reverse = (ends.2.clone(), ends.3, ends.0.clone(), ends.1);
        let acknowledgement = match self.0.get(&reverse) {
            Some(first) if !syn => acknowledgement.wrapping_sub(*first),
            _ => acknowledgement,
        };
        let sequence = match self.0.get(ends) {
            Some(first) if !syn => sequence.wrapping_sub(*first),
            _ => {
                self.0.insert(ends.clone(), sequence);
                sequence
            }
        };
        Shown { sequence, acknowledgement }
    }
}
