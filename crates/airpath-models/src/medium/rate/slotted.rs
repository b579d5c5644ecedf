// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A slotted medium, as in time division multiple access: fixed slots that carry fixed numbers of bits.
//!
//! What is there when a slot begins goes into it, as far as its bits reach, and arrives when the slot
//! ends. Frames may share a slot, and a frame may span several; what a slot has left is lost. As
//! packets stay in the send buffer until they have been sent, those share a slot that it holds
//! together. What arrives at the very instant at which a slot begins waits for the next one. A slot
//! (netem's `slot` releases what waits when a slot begins: each packet is one slot later here.) A slot
//! that has begun when the rate changes has carried nothing: what was in it is sent at the new rate.

use std::collections::VecDeque;

use airpath_core::{Bits, Direction, DrawKey, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InFlight, Transmit, next_frame};
use crate::medium::Air;
use crate::problem::Problem;
use crate::registry::Configured;

/// Slots: `{ type = "slotted", slot = "577 us", period = "4615 us", bits = "114 bit" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlottedConfig {
    /// Duration of a slot.
    pub slot: Span,
    /// Number of bits in a slot.
    pub bits: Bits,
    /// Period from the beginning of one slot to the next; without it slots follow without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// Start of the first slot.
    #[serde(default)]
    pub offset: Span,
}

impl SlottedConfig {
    fn period_ns(&self) -> u64 {
        self.period.unwrap_or(self.slot).nanos()
    }
}

impl Configured for SlottedConfig {
    type Model = Slots;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.slot == Span::ZERO {
            problems.push(Problem::new("slot", "is 0 s; a slot lasts for some time, such as \"577 us\""));
        }
        if self.bits == Bits::ZERO {
            problems.push(Problem::new("bits", "is 0 bit, so that nothing would ever arrive"));
        }
        if let Some(period) = self.period.filter(|period| *period < self.slot) {
            problems.push(Problem::new("period", format!("is {period}, which is less than a slot, {}", self.slot)));
        }
        problems
    }

    fn build(&self, _key: DrawKey) -> Slots {
        Slots::new(self)
    }

    fn examples() -> Vec<SlottedConfig> {
        let slots = |slot: u64, bits, period: Option<u64>, offset| SlottedConfig {
            slot: Span::from_micros(slot),
            bits: Bits::new(bits),
            period: period.map(Span::from_micros),
            offset: Span::from_micros(offset),
        };
        vec![
            slots(5_000, 5_000, None, 0),
            slots(577, 114, Some(4_615), 1_154),
            slots(1_000, 100_000, Some(20_000), 5_000),
        ]
    }
}

impl std::fmt::Display for SlottedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("in slots")
    }
}

/// A transmitter that sends in slots.
#[derive(Clone, Debug)]
pub struct Slots {
    config: SlottedConfig,
    /// Frames in the slot that has begun, each with its need before.
    carried: VecDeque<InFlight>,
    /// Number of bits of the last of those that will be left when the slot ends.
    left: u64,
    /// End of that slot; `Time::NEVER` if none has begun.
    ends: Time,
    /// Frames that have begun and are in no slot.
    begun: VecDeque<InFlight>,
    /// The next slot for which there may be something; `Time::NEVER` if there is nothing.
    begins: Time,
}

impl Slots {
    /// An idle transmitter.
    pub fn new(config: &SlottedConfig) -> Slots {
        Slots {
            config: *config,
            carried: VecDeque::new(),
            left: 0,
            ends: Time::NEVER,
            begun: VecDeque::new(),
            begins: Time::NEVER,
        }
    }

    /// The beginning of the first slot that begins later than `at`.
    fn next_after(&self, at: Time) -> Time {
        let offset = self.config.offset.nanos();
        let Some(since) = at.nanos().checked_sub(offset) else { return Time::from_nanos(offset) };
        let period = self.config.period_ns();
        let next = (since / period).checked_add(1).and_then(|count| count.checked_mul(period));
        next.and_then(|next| next.checked_add(offset)).map_or(Time::NEVER, Time::from_nanos)
    }
}

impl Transmit for Slots {
    fn request(&mut self, at: Time) {
        if at < self.begins {
            self.begins = self.begins.min(self.next_after(at));
        }
    }

    fn next_deadline(&self) -> Time {
        self.ends.min(self.begins)
    }

    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        if self.ends <= at {
            self.ends = Time::NEVER;
            if self.left > 0
                && let Some(mut last) = self.carried.pop_back()
            {
                last.bits_left = self.left;
                self.left = 0;
                self.begun.push_front(last);
            }
            for InFlight { grant, frame, .. } in self.carried.drain(..) {
                air.sent(at, &grant, frame);
            }
            // What the send buffer now has room for may go into a slot that begins at this instant.
            self.begins = self.begins.min(self.next_after(Time::from_nanos(at.nanos() - 1)));
        }
        if self.begins > at {
            return;
        }
        let mut room = self.config.bits.get();
        self.begins = self.next_after(at);
        while room > 0 {
            let Some(next) = next_frame(&mut self.begun, at, direction, air) else {
                self.begins = Time::NEVER;
                break;
            };
            let taken = next.bits_left.min(room);
            room -= taken;
            self.left = next.bits_left - taken;
            self.carried.push_back(next);
            self.ends = at + self.config.slot;
        }
    }

    fn least_time(&self, at: Time, bits: Bits) -> Span {
        // The first slot from its beginning, and as many behind it as the bits need at least.
        let more = bits.get().div_ceil(self.config.bits.get()).saturating_sub(1);
        let periods = Span::from_nanos(more.saturating_mul(self.config.period_ns()));
        (self.next_after(at) + periods + self.config.slot).since(at)
    }

    fn hand_over(&mut self, _at: Time) -> VecDeque<InFlight> {
        (self.left, self.ends, self.begins) = (0, Time::NEVER, Time::NEVER);
        let mut frames = std::mem::take(&mut self.carried);
        frames.append(&mut self.begun);
        frames
    }

    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>) {
        if !frames.is_empty() {
            self.begins = self.next_after(at);
        }
        self.begun = frames;
    }
}
