// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The windows of a path: what stops at them, and what goes on.
//!
//! Each event of a path is followed by a look at the windows, from the end of each direction to its beginning, as a
//! packet that leaves a queue may let the hop before go on, and that one the hop before it, all at the same instant.
//! Within an event a hop may know of more packets behind its window than there are, and never of fewer.
//!
//! Where the path goes on at another machine, the two tell each other by credits what has left the first queue of each.
//! A hop counts what it has sent there and not been told of, so that packets and credits on their way count too: the
//! queue of the other machine never holds more than its window.

use airpath_core::{Credit, Cx, Direction, End, Item, PortId, Signal, Time};

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
    /// The machines behind the client's port, and the server's, where the path goes on there.
    joined: [Option<Joined>; 2],
}

/// State of the border to another machine.
#[derive(Debug)]
struct Joined {
    /// Credit of the machine there, as of its last word.
    credit: Credit,
    /// Packets sent there, and their total length.
    sent: [u64; 2],
    /// Packets that came from there, and their total length.
    came: [u64; 2],
    /// Credit that was given last.
    given: Credit,
}

impl Joined {
    /// Packets that count in the window of the machine there.
    fn beyond(&self) -> QueueLength {
        let [packets, bytes] = self.sent;
        QueueLength {
            packets: packets.saturating_sub(self.credit.taken_packets).try_into().unwrap_or(u32::MAX),
            bytes: bytes.saturating_sub(self.credit.taken_bytes),
        }
    }

    /// The credit to be given, where `queued` is in the queue behind `window`; none if nothing is new.
    fn owed(&mut self, window: Option<Window>, queued: QueueLength) -> Option<Credit> {
        let [packets, bytes] = self.came;
        let taken = (packets.saturating_sub(queued.packets.into()), bytes.saturating_sub(queued.bytes));
        let credit = Window::credit(window, taken.0, taken.1);
        let has_window = window.is_some() || Window::of_credit(&self.given).is_some();
        if !has_window || credit == self.given {
            return None;
        }
        self.given = credit;
        Some(credit)
    }
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
        has_any.then(|| Box::new(Windows { of_hops, paused: [false; 2], joined: [None, None] }))
    }

    /// Those of a path of `hops` hops without flow control.
    pub(crate) fn none(hops: usize) -> Box<Windows> {
        Box::new(Windows { of_hops: vec![[None; 2]; hops], paused: [false; 2], joined: [None, None] })
    }

    /// The windows of `hops` in place of these; ports that are paused stay so until the next look.
    pub(crate) fn configured(this: Option<Box<Windows>>, hops: &[HopConfig]) -> Option<Box<Windows>> {
        match (this, Windows::new(hops)) {
            (Some(this), Some(new)) => Some(Box::new(Windows { of_hops: new.of_hops, ..*this })),
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

    /// The window of the first hop of what comes from `end`.
    fn first(&self, end: End) -> Option<Window> {
        let first = match end {
            End::Client => self.of_hops.first(),
            End::Server => self.of_hops.last(),
        };
        first.and_then(|windows| windows[end.sends() as usize])
    }

    /// True if packets from `end` stop at a window.
    pub(crate) fn stops(&self, end: End) -> bool {
        self.joined[end as usize].is_none() && self.first(end).is_some()
    }

    /// The machine behind the port at `end` gives `credit`; the first one says that there is such a machine.
    pub(crate) fn take_credit(&mut self, end: End, credit: Credit) {
        let window = self.first(end);
        match &mut self.joined[end as usize] {
            Some(joined) => joined.credit = credit,
            joined => {
                let given = Window::credit(window, 0, 0);
                *joined = Some(Joined { credit, sent: [0; 2], came: [0; 2], given });
            }
        }
    }

    /// A packet of `bytes` came from the port at `end`.
    pub(crate) fn came(&mut self, end: End, bytes: u32) {
        if let Some(joined) = &mut self.joined[end as usize] {
            joined.came = [joined.came[0] + 1, joined.came[1] + u64::from(bytes)];
        }
    }

    /// A packet of `bytes` leaves through the port at `end`.
    pub(crate) fn left(&mut self, end: End, bytes: u32) {
        if let Some(joined) = &mut self.joined[end as usize] {
            joined.sent = [joined.sent[0] + 1, joined.sent[1] + u64::from(bytes)];
        }
    }

    /// True if packets may wait for credits of another machine.
    pub(crate) fn heeds_credits(&self) -> bool {
        self.joined.iter().flatten().any(|joined| Window::of_credit(&joined.credit).is_some())
    }

    /// Ends behind which another machine waits for credits of a window.
    pub(crate) fn gives_credit(&self) -> impl Iterator<Item = End> + '_ {
        End::ALL.into_iter().filter(|end| self.joined[*end as usize].is_some() && self.first(*end).is_some())
    }

    /// Number of the last hop in `direction`.
    pub(crate) fn last_hop(&self, direction: Direction) -> usize {
        match direction {
            Direction::Uplink => self.of_hops.len() - 1,
            Direction::Downlink => 0,
        }
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
            if let Some(joined) = &self.joined[direction.receiver() as usize] {
                for bearer in bearers_of(bearers, self.last_hop(direction)) {
                    hops[bearer].set_window(direction, Window::of_credit(&joined.credit));
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
            if let Some(joined) = &self.joined[direction.receiver() as usize] {
                for bearer in bearers_of(bearers, self.last_hop(direction)) {
                    hops[bearer].follow_window(at, direction, joined.beyond(), cx);
                }
            }
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
                        let port = PortId::of(user, end);
                        if let Some(joined) = &mut self.joined[end as usize] {
                            if let Some(credit) = joined.owed(window, queued) {
                                cx.emit(at, port, Item::Signal(Signal::Credit(credit)));
                            }
                            continue;
                        }
                        let pauses = window.is_some_and(|window| window.is_full(queued));
                        let paused = &mut self.paused[end as usize];
                        if std::mem::replace(paused, pauses) != pauses {
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
