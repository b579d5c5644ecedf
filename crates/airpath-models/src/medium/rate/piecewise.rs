// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Transmission at a rate that follows a curve.
//!
//! A frame ends when the integral of the rate since its beginning has reached its bits; at a rate of
//! zero it waits. What follows without a gap is counted from the beginning of the busy period, so that
//! the sum of all frames is rounded down once.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{Bits, Direction, Span, Time};

use super::curve::{Curve, WORK_PER_BIT, Work};
use super::{InFlight, Transmit, next_frame};
use crate::medium::Air;

/// A transmitter whose rate follows a curve.
#[derive(Clone, Debug)]
pub struct Piecewise {
    curve: Arc<Curve>,
    repeat: bool,
    on_air: Option<InFlight>,
    begun: VecDeque<InFlight>,
    due: Time,
    /// End of the last frame, and the work done by then since the run began; that includes the rest of a
    /// nanosecond that it left.
    ended: Time,
    done: Work,
    hint: usize,
}

impl Piecewise {
    /// An idle transmitter. `repeat` says whether the curve begins anew after its period.
    pub fn new(curve: Arc<Curve>, repeat: bool) -> Piecewise {
        Piecewise {
            curve,
            repeat,
            on_air: None,
            begun: VecDeque::new(),
            due: Time::NEVER,
            ended: Time::NEVER,
            done: 0,
            hint: 0,
        }
    }
}

impl Transmit for Piecewise {
    fn request(&mut self, at: Time) {
        if self.on_air.is_none() {
            self.due = self.due.min(at);
        }
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        if let Some(InFlight { grant, frame, .. }) = self.on_air.take() {
            self.ended = at;
            air.sent(at, &grant, frame);
        }
        self.on_air = next_frame(&mut self.begun, at, direction, air);
        let Some(next) = &self.on_air else {
            self.due = Time::NEVER;
            return;
        };
        if self.ended != at {
            self.done = self.curve.done(at, self.repeat, &mut self.hint);
        }
        self.done += Work::from(next.bits_left) * WORK_PER_BIT;
        // A frame of no bits in an outage would otherwise end where the outage began.
        self.due = self.curve.when(self.done, self.repeat, &mut self.hint).max(at);
    }

    fn least_time(&self, at: Time, bits: Bits) -> Span {
        let mut hint = self.hint;
        let work = self.curve.done(at, self.repeat, &mut hint) + Work::from(bits.get()) * WORK_PER_BIT;
        self.curve.when(work, self.repeat, &mut hint).since(at)
    }

    fn hand_over(&mut self, at: Time) -> VecDeque<InFlight> {
        if let Some(mut frame) = self.on_air.take() {
            let left = self.done.saturating_sub(self.curve.done(at, self.repeat, &mut self.hint));
            frame.bits_left = u64::try_from(left.div_ceil(WORK_PER_BIT)).unwrap_or(u64::MAX).min(frame.bits_left);
            self.begun.push_front(frame);
        }
        self.due = Time::NEVER;
        std::mem::take(&mut self.begun)
    }

    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>) {
        self.due = if frames.is_empty() { self.due } else { at };
        self.begun = frames;
    }
}
