// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A link that is driven in small steps, and held to the laws: 1 (time is monotone), 2 (nothing is due
//! at the time advanced to) and 5 (packets are conserved).

use airpath_core::{
    Command, CommandError, Counters, Direction, EventKind, FiveTuple, Item, LogLevel, Origin, Pdu, PortId, Seed, Span,
    Time,
};
use airpath_models::{Path, PathConfig};
use airpath_virtual::{DriveError, Input, VirtualDriver};

/// A link may be right and yet ask for more steps than anybody waits for: so many are enough.
const STEPS: usize = 3_000;
/// The same of events: a burst is one step.
const EVENTS: usize = 1_000_000;

/// The link.
pub struct Drive {
    driver: VirtualDriver<Path>,
    steps: usize,
    /// The events that are left.
    events: usize,
    /// The latest time seen.
    last: Time,
    packets: u64,
}

impl Drive {
    pub fn new(config: &PathConfig, seed: u64) -> Drive {
        let driver = VirtualDriver::new(Path::new(config, Seed(seed)), LogLevel::Events);
        Drive { driver, steps: STEPS, events: EVENTS, last: Time::ZERO, packets: 0 }
    }

    pub fn now(&self) -> Time {
        self.driver.now()
    }

    pub fn counters(&self) -> &Counters {
        self.driver.counters()
    }

    pub fn machine(&self) -> &Path {
        self.driver.machine()
    }

    /// Runs what is due until `to`; whether the steps sufficed.
    pub fn advance(&mut self, to: Time) -> bool {
        while let Some(due) = self.driver.next_deadline().filter(|due| *due <= to) {
            if self.steps == 0 || self.events == 0 {
                return false;
            }
            self.steps -= 1;
            // The driver asserts law 2.
            self.driver.advance(due);
            self.look(due);
        }
        if self.steps > 0 && self.events > 0 {
            self.driver.advance(to);
            self.look(to);
        }
        self.steps > 0 && self.events > 0
    }

    /// Offers a packet of `len` bytes at the time reached.
    pub fn offer(&mut self, port: PortId, len: u32) {
        let at = self.now();
        let pdu = Pdu {
            id: self.packets,
            len,
            header_len: 40.min(len) as u16,
            class: (self.packets % 256) as u8,
            flow: self.packets as u32 % 3,
            tuple: FiveTuple { source_port: self.packets as u16 % 3, protocol: 17, ..FiveTuple::default() },
            arrived: at,
            ..Pdu::default()
        };
        self.packets += 1;
        self.driver.input(at, Input::Offer(port, Item::Pdu(pdu))).expect("an offer in order of time");
        self.look(at);
    }

    /// Gives a command at the time reached.
    pub fn command(&mut self, command: Command) -> Result<(), CommandError> {
        let at = self.now();
        let outcome = self.driver.input(at, Input::Command(command));
        self.look(at);
        match outcome {
            Ok(()) => Ok(()),
            Err(DriveError::Command { error, .. }) => Err(error),
            Err(error @ DriveError::Backwards { .. }) => panic!("{error}"),
        }
    }

    /// Law 1, over what the last call left behind.
    fn look(&mut self, reached: Time) {
        let outputs = self.driver.outputs_mut();
        let mut last = self.last;
        for event in &outputs.events {
            assert!(event.at >= last, "time runs backwards from {last:?} to {event:?}");
            assert!(event.at <= reached, "at {reached:?} there is already {event:?}");
            last = event.at;
        }
        for emission in &outputs.emissions {
            assert!(emission.at >= self.last && emission.at <= reached, "emitted out of time: {emission:?}");
        }
        self.events = self.events.saturating_sub(outputs.events.len());
        outputs.events.clear();
        outputs.emissions.clear();
        outputs.flow_control.clear();
        self.last = reached;
    }

    /// Law 5, over the whole path.
    pub fn check_conservation(&self) {
        for origin in [Origin::User, Origin::Background] {
            let total = |kind| -> u64 {
                Direction::ALL
                    .into_iter()
                    .map(|direction| self.counters().total_of(direction, origin, kind).count)
                    .sum()
            };
            let entered = total(EventKind::Offered) + total(EventKind::Generated) + total(EventKind::Duplicated);
            let left = total(EventKind::Delivered) + total(EventKind::Dropped) + total(EventKind::Consumed);
            let held: u64 = self.machine().hops().iter().map(|hop| hop.held_of(origin)).sum();
            assert_eq!(entered, left + held, "{origin:?} packets at {:?}: {held} inside", self.now());
        }
    }

    /// Offers packets for a while, in a way that depends on `seed`.
    pub fn exercise(&mut self, mut seed: u64, offers: usize) {
        const PAUSES: [Span; 8] = [
            Span::ZERO,
            Span::ZERO,
            Span::from_nanos(1),
            Span::from_micros(100),
            Span::from_millis(1),
            Span::from_millis(7),
            Span::from_millis(250),
            Span::from_secs(3_600),
        ];
        const LENGTHS: [u32; 8] = [1500, 40, 1500, 0, 1, 576, 9_000, 65_535];
        for _ in 0..offers {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let choose = |shift: u32, of: usize| (seed >> shift) as usize % of;
            if !self.advance(self.now() + PAUSES[choose(40, PAUSES.len())]) {
                break;
            }
            let port = if choose(50, 3) == 0 { PortId::SERVER } else { PortId::CLIENT };
            self.offer(port, LENGTHS[choose(56, LENGTHS.len())]);
        }
        self.check_conservation();
    }
}
