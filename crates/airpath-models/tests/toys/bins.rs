// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A toy medium of two bins side by side in each direction, each with slots of a length and a number
//! of bits of its own. Slots begin at multiples of their length; a frame takes its whole slot; a slot
//! whose bits do not suffice, or for which there is nothing, passes unused. With radio conditions the bits of a slot
//! and the errors of its frame are those of its number, and a frame may be longer than its grant.

use std::sync::Arc;

use airpath_core::{Bits, Direction, Span, Time};
use airpath_models::air::{Air, Frame, Grant};
use airpath_models::medium::{Medium, MediumParameters};
use airpath_models::quality::Quality;

#[derive(Clone, Copy)]
pub struct Bin {
    pub slot: Span,
    pub bits: Bits,
}

/// Radio conditions of one bin in one slot.
#[derive(Clone)]
pub struct Conditions {
    pub bits: u64,
    pub quality: Option<Quality>,
}

/// Radio conditions by direction, bin and number of the slot.
pub type Radio = Arc<dyn Fn(Direction, u16, u64) -> Conditions + Send + Sync>;

struct Place {
    bin: Bin,
    on_air: Option<(Grant, Frame, Option<Quality>)>,
    due: Time,
}

pub struct TwoBins {
    directions: [[Place; 2]; 2],
    radio: Option<Radio>,
}

impl TwoBins {
    pub fn new(bins: [Bin; 2]) -> TwoBins {
        let directions = [(); 2].map(|()| bins.map(|bin| Place { bin, on_air: None, due: Time::NEVER }));
        TwoBins { directions, radio: None }
    }

    /// Two bins with slots of `slot`, under the conditions of `radio`.
    pub fn over(slot: Span, radio: Radio) -> TwoBins {
        TwoBins { radio: Some(radio), ..TwoBins::new([Bin { slot, bits: Bits::ZERO }; 2]) }
    }
}

impl Medium for TwoBins {
    fn request(&mut self, at: Time, _: u16, direction: Direction) {
        for place in &mut self.directions[direction as usize] {
            if place.on_air.is_none() {
                let slot = place.bin.slot.nanos();
                place.due = place.due.min(Time::from_nanos(at.nanos().div_ceil(slot) * slot));
            }
        }
    }

    fn next_deadline(&self) -> Time {
        self.directions.iter().flatten().map(|place| place.due).min().unwrap_or(Time::NEVER)
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        for direction in Direction::ALL {
            let bins = &mut self.directions[direction as usize];
            for (resource, place) in bins.iter_mut().enumerate() {
                if place.due > at {
                    continue;
                }
                place.due = Time::NEVER;
                if let Some((grant, frame, quality)) = place.on_air.take() {
                    air.sent_at(at, &grant, frame, quality.as_ref());
                }
                let slot = at.nanos() / place.bin.slot.nanos();
                let conditions = match &self.radio {
                    Some(radio) => radio(direction, resource as u16, slot),
                    None => Conditions { bits: place.bin.bits.get(), quality: None },
                };
                let bits = Bits::new(conditions.bits);
                let grant = Grant { resource: resource as u16, bearer: 0, direction, bits: Some(bits), start: at };
                if let Some(frame) = air.next_frame(&grant) {
                    assert!(frame.bits <= bits || self.radio.is_some());
                    place.on_air = Some((grant, frame, conditions.quality));
                    place.due = at + place.bin.slot;
                }
            }
            // While one bin is busy the other looks again at every slot; then both sleep. Where conditions change,
            // they look again while there is anything to send.
            let waits = self.radio.is_some() && air.backlog(at, 0, direction).bits > 0;
            let busy = waits || bins.iter().any(|place| place.on_air.is_some());
            for place in bins.iter_mut().filter(|place| busy && place.due == Time::NEVER) {
                let slot = place.bin.slot.nanos();
                place.due = Time::from_nanos((at.nanos() / slot + 1) * slot);
            }
        }
    }

    fn configure(&mut self, _: airpath_core::Time, _: [MediumParameters<'_>; 2]) {}
}
