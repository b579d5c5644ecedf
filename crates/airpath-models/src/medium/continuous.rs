//! A medium that is always there: each direction transmits one frame after the other at a rate.
//!
//! Source: Kojo et al. 2001, section 4.3 (transmission delay): a frame of b bits takes b / rate.
//! The fraction of a nanosecond left over by one frame is carried into the next one if that follows
//! without a gap, so that the rate is exact over any busy period. A frame under transmission keeps
//! the rate at which it began.

use airpath_core::{Carry, Direction, LinkRate, Span, Time};

use super::{Air, Grant, Medium};
use crate::config::LinkConfig;
use crate::entity::Frame;

/// Both directions of a continuous medium with a single user.
#[derive(Debug)]
pub struct Continuous {
    directions: [Transmitter; 2],
}

#[derive(Debug)]
struct Transmitter {
    rate: LinkRate,
    on_air: Option<(Grant, Frame)>,
    /// When the frame on the air ends, or from when an idle transmitter has something to ask for.
    due: Time,
    /// When the last frame ended, and what it left of a nanosecond.
    ended: Time,
    carry: Carry,
}

impl Continuous {
    /// An idle medium.
    pub fn new(links: [&LinkConfig; 2]) -> Continuous {
        let idle = |link: &LinkConfig| Transmitter {
            rate: link.rate,
            on_air: None,
            due: Time::NEVER,
            ended: Time::ZERO,
            carry: Carry::NONE,
        };
        Continuous { directions: links.map(idle) }
    }
}

impl Transmitter {
    fn duration(&mut self, start: Time, frame: &Frame) -> Span {
        // A gap ends a busy period, and what it left of a nanosecond.
        if start != self.ended {
            self.carry = Carry::NONE;
        }
        match self.rate {
            LinkRate::Unlimited => Span::ZERO,
            LinkRate::Fixed(rate) => rate.tx(frame.bits, &mut self.carry),
        }
    }

    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        if let Some((grant, frame)) = self.on_air.take() {
            self.ended = at;
            air.sent(at, &grant, frame);
        }
        let grant = Grant { resource: 0, user: 0, direction, bits: None, start: at };
        match air.next_frame(&grant) {
            Some(frame) => {
                self.due = at + self.duration(at, &frame);
                self.on_air = Some((grant, frame));
            }
            None => self.due = Time::NEVER,
        }
    }
}

impl Medium for Continuous {
    fn request(&mut self, at: Time, _user: u16, direction: Direction) {
        let transmitter = &mut self.directions[direction as usize];
        if transmitter.on_air.is_none() {
            transmitter.due = transmitter.due.min(at);
        }
    }

    fn next_deadline(&self) -> Time {
        self.directions[0].due.min(self.directions[1].due)
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        for direction in Direction::ALL {
            let transmitter = &mut self.directions[direction as usize];
            if transmitter.due <= at {
                transmitter.step(at, direction, air);
            }
        }
    }

    fn configure(&mut self, links: [&LinkConfig; 2]) {
        for (transmitter, link) in self.directions.iter_mut().zip(links) {
            transmitter.rate = link.rate;
        }
    }
}
