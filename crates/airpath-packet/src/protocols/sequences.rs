// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sequence numbers of TCP connections, counted from their first segments as tcpdump does.

use std::collections::HashMap;
use std::net::IpAddr;

type End = (u16, IpAddr);

/// Tunnels within tunnels that are described at most.
const MOST_TUNNELS: u8 = 8;

/// First numbers of each connection that was met.
#[derive(Debug, Default)]
pub struct Sequences {
    firsts: HashMap<(End, End), First>,
    /// Number of tunnels around what is described now.
    tunnels: u8,
}

#[derive(Debug, Clone, Copy, Default)]
struct First {
    sequence: u32,
    acknowledgement: u32,
}

/// Numbers of a segment to show.
pub(super) struct Shown {
    pub sequence: u32,
    pub acknowledgement: u32,
    /// First number of the connection in the other direction, by which blocks of SACK are shown.
    pub other_way: u32,
}

impl Sequences {
    /// The text of `describe` for what is in a tunnel; an ellipsis where tunnels are too many for the stack.
    pub(super) fn in_tunnel(&mut self, describe: impl FnOnce(&mut Self) -> String) -> String {
        if self.tunnels == MOST_TUNNELS {
            return "…".into();
        }
        self.tunnels += 1;
        let text = describe(self);
        self.tunnels -= 1;
        text
    }

    /// The numbers to show for a segment with an acknowledgement, from `source` to `destination`. The first one of a
    /// connection, and any that `begins` one, is shown with its real numbers.
    pub(super) fn show(
        &mut self,
        [source, destination]: [End; 2],
        begins: bool,
        sequence: u32,
        acknowledgement: u32,
    ) -> Shown {
        let is_reversed = source > destination;
        let key = if is_reversed { (destination, source) } else { (source, destination) };
        if let Some(first) = self.firsts.get(&key).filter(|_| !begins) {
            let (own, other) = if is_reversed {
                (first.acknowledgement, first.sequence)
            } else {
                (first.sequence, first.acknowledgement)
            };
            return Shown {
                sequence: sequence.wrapping_sub(own),
                acknowledgement: acknowledgement.wrapping_sub(other),
                other_way: other,
            };
        }
        let before = acknowledgement.wrapping_sub(1);
        let first = if is_reversed {
            First { sequence: before, acknowledgement: sequence }
        } else {
            First { sequence, acknowledgement: before }
        };
        self.firsts.insert(key, first);
        Shown { sequence, acknowledgement, other_way: before }
    }
}
