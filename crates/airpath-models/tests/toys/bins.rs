// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A toy medium of two bins side by side in each direction, each with slots of a length and a number
//! of bits of its own. Slots begin at multiples of their length; a frame takes its whole slot; a slot
//! whose bits do not suffice, or for which there is nothing, passes unused.

use airpath_core::{Bits, Direction, Span, Time};
use airpath_models::air::{Air, Frame, Grant};
use airpath_models::medium::{Medium, MediumParameters};

#[derive(Clone, Copy)]
pub struct Bin {
    pub slot: Span,
    pub bits: Bits,
}

struct Place {
    bin: Bin,
    on_air: Option<(Grant, Frame)>,
    due: Time,
}

pub struct TwoBins {
    directions: [[Place; 2]; 2],
}

impl TwoBins {
    pub fn new(bins: [Bin; 2]) -> TwoBins {
        let directions = [(); 2].map(|()| bins.map(|bin| Place { bin, on_air: None, due: Time::NEVER }));
        TwoBins { directions }
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
                if let Some((grant, frame)) = place.on_air.take() {
                    air.sent(at, &grant, frame);
                }
                let grant =
                    Grant { resource: resource as u16, user: 0, direction, bits: Some(place.bin.bits), start: at };
                if let Some(frame) = air.next_frame(&grant) {
                    assert!(frame.bits <= place.bin.bits);
                    place.on_air = Some((grant, frame));
                    place.due = at + place.bin.slot;
                }
            }
            // While one bin is busy the other looks again at every slot; then both sleep.
            let busy = bins.iter().any(|place| place.on_air.is_some());
            for place in bins.iter_mut().filter(|place| busy && place.due == Time::NEVER) {
                let slot = place.bin.slot.nanos();
                place.due = Time::from_nanos((at.nanos() / slot + 1) * slot);
            }
        }
    }

    fn configure(&mut self, _: airpath_core::Time, _: [MediumParameters<'_>; 2]) {}
}
