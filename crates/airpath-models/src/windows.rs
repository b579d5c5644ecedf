// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The windows of a path: what stops at them, and what goes on.
//!
//! Each event of a path is followed by a look at the windows, from the end of each direction to its beginning, as a
//! packet that leaves a queue may let the hop before go on, and that one the hop before it, all at the same instant.
//! Within an event a hop may know of more packets behind its window than there are, and never of fewer.

use airpath_core::{Cx, Direction, End, PortId, Time};

use crate::bearers::Bearers;
use crate::config::HopConfig;
use crate::entity::LinkEntity;
use crate::flow_control::Window;
use crate::hop::Hop;
use crate::medium::Medium;
use crate::stage::QueueLength;

/// The windows of a path.
#[derive(Debug)]
pub(crate) struct Windows {
    /// Those of the packets that enter each hop, uplink first.
    of_hops: Vec<[Option<Window>; 2]>,
    /// True where the client's port, and the server's, is paused.
    paused: [bool; 2],
}

/// Place from which packets enter a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Hop(usize),
    Port(End),
}

impl Windows {
    /// Those of a path of `hops`; none where no hop has flow control.
    pub(crate) fn new(hops: &[HopConfig]) -> Option<Box<Windows>> {
        let window = |hop: &HopConfig, direction| hop.link(direction).flow_control.window();
        let of_hops: Vec<_> = hops.iter().map(|hop| Direction::ALL.map(|direction| window(hop, direction))).collect();
        let has_any = of_hops.iter().flatten().any(Option::is_some);
        has_any.then(|| Box::new(Windows { of_hops, paused: [false; 2] }))
    }

    /// The windows of `hops` in place of these; ports that are paused stay so until the next look.
    pub(crate) fn configured(this: Option<Box<Windows>>, hops: &[HopConfig]) -> Option<Box<Windows>> {
        match (this, Windows::new(hops)) {
            (Some(this), Some(new)) => Some(Box::new(Windows { paused: this.paused, ..*new })),
            (Some(this), None) => Some(Box::new(Windows { of_hops: vec![[None; 2]; hops.len()], ..*this })),
            (None, new) => new,
        }
    }

    fn before(&self, hop: usize, direction: Direction) -> Before {
        match direction {
            Direction::Uplink if hop > 0 => Before::Hop(hop - 1),
            Direction::Downlink if hop + 1 < self.of_hops.len() => Before::Hop(hop + 1),
            _ => Before::Port(direction.sender()),
        }
    }

    /// True if packets from `end` stop at a window.
    pub(crate) fn stops(&self, end: End) -> bool {
        let first = match end {
            End::Client => self.of_hops.first(),
            End::Server => self.of_hops.last(),
        };
        first.is_some_and(|windows| windows[end.sends() as usize].is_some())
    }

    /// True if a port is paused.
    pub(crate) fn is_any_paused(&self) -> bool {
        self.paused.contains(&true)
    }

    /// Tells each hop the windows of the hops behind it, where `bearers` are those of the path.
    pub(crate) fn put_up<E: LinkEntity, M: Medium>(&self, hops: &mut [Hop<E, M>], bearers: Option<&Bearers>) {
        for direction in Direction::ALL {
            for hop in 0..self.of_hops.len() {
                if let Before::Hop(before) = self.before(hop, direction) {
                    for bearer in bearers_of(bearers, before) {
                        hops[bearer].set_window(direction, self.of_hops[hop][direction as usize]);
                    }
                }
            }
        }
    }

    /// Looks at all windows at `at`: what may go on does. `between` tells the packets that are handed to a hop just
    /// now, and `user` whose path it is.
    pub(crate) fn follow<E: LinkEntity, M: Medium>(
        &mut self,
        at: Time,
        (hops, bearers): (&mut [Hop<E, M>], Option<&Bearers>),
        between: impl Fn(usize, Direction) -> QueueLength,
        user: u16,
        cx: &mut Cx<'_>,
    ) {
        let count = self.of_hops.len();
        for direction in Direction::ALL {
            for number in 0..count {
                let hop = if direction == Direction::Uplink { count - 1 - number } else { number };
                let window = self.of_hops[hop][direction as usize];
                let before = self.before(hop, direction);
                if window.is_none() && matches!(before, Before::Hop(_)) {
                    continue;
                }
                let queued = bearers_of(bearers, hop).map(|bearer| hops[bearer].queue_length(direction));
                let queued = queued.fold(QueueLength::default(), std::ops::Add::add);
                match before {
                    Before::Hop(before) => {
                        let beyond = queued + between(hop, direction);
                        for bearer in bearers_of(bearers, before) {
                            hops[bearer].follow_window(at, direction, beyond, cx);
                        }
                    }
                    Before::Port(end) => {
                        let pauses = window.is_some_and(|window| window.is_full(queued));
                        let paused = &mut self.paused[end as usize];
                        if std::mem::replace(paused, pauses) != pauses {
                            let port = PortId::of(user, end);
                            if pauses { cx.pause(port) } else { cx.resume(port) }
                        }
                    }
                }
            }
        }
    }
}

fn bearers_of(bearers: Option<&Bearers>, hop: usize) -> std::ops::Range<usize> {
    bearers.map_or(hop..hop + 1, |bearers| bearers.of_hop(hop))
}
