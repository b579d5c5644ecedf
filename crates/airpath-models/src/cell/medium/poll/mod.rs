// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Poll and response: an access point that asks one station after the other, on a half-duplex medium.
//!
//! Source: Eckhardt and Steenkiste 2002, section 1.3: a MAC similar to the point coordination function of IEEE
//! 802.11-1997 (clause 9.3: Data + CF-Poll, answered by Data + CF-Ack), with an immediate acknowledgement of each frame.
//!
//! An exchange is of one bearer. The access point sends a frame of its downlink, if it has one, and the station answers
//! with a frame of its uplink, if it has one; then follows the fixed cost, which stands for the access to the medium,
//! headers, acknowledgements and the work of both ends. Nothing else is on the air. The exchange is charged to the
//! bearer, with all of that. The scheduler (`serve/`) chooses the bearer of the next one.
//!
//! Bearers with something to send in either direction may be chosen. One that comes while the medium is idle is chosen
//! from one nanosecond later on, so that all packets of an instant are equal; the exchange counts from the packet's
//! arrival.
//!
//! Idealised: the access point knows which stations have something to send, so that none is polled in vain; polls and
//! acknowledgements are never lost, so that a station answers also where the frame to it was.

mod config;

use airpath_core::{Bits, Direction, Span, Time};

use super::{Request, SharedBeginning, SharedMedium};
use crate::air::{Air, Frame, Grant};
use crate::serve::{Beginning, Outcome, PacketScheduler, PacketSchedulerModel, Waiting};

pub use config::PollConfig;

/// Least time of an exchange.
const INSTANT: Span = Span::from_nanos(1);

/// Time from which something may be sent; true if it came after all service of that instant.
type Ready = (Time, bool);

const NOT_READY: Ready = (Time::NEVER, true);

/// A medium with poll and response.
#[derive(Clone, Debug)]
pub struct Poll {
    config: Box<PollConfig>,
    scheduler: Box<PacketSchedulerModel>,
    /// By bearer and direction.
    ready: Vec<[Ready; 2]>,
    exchange: Option<Box<Exchange>>,
    /// End of the last exchange.
    free: Time,
    /// Scratch of `begin`.
    waiting: Vec<Waiting>,
    due: Time,
}

/// The exchange that is under way.
#[derive(Clone, Debug)]
struct Exchange {
    bearer: u16,
    begin: Time,
    /// The frame on the air; none while the fixed cost lasts.
    on_air: Option<(Grant, Frame)>,
    /// End of the frame, or of the fixed cost.
    end: Time,
    outcome: Outcome,
}

/// The first instant at which it can be sent.
fn instant((from, is_late): Ready) -> Time {
    if is_late { from + INSTANT } else { from }
}

impl Poll {
    fn new(config: &PollConfig, beginning: &SharedBeginning<'_>) -> Poll {
        let names: Vec<&str> = beginning.bearers.iter().map(|bearer| bearer.name.as_str()).collect();
        let of_scheduler = Beginning { bearers: &names, nominal: config.nominal() };
        Poll {
            scheduler: Box::new(PacketSchedulerModel::new(&config.scheduler, of_scheduler)),
            config: Box::new(config.clone()),
            ready: vec![[NOT_READY; 2]; names.len()],
            exchange: None,
            free: Time::ZERO,
            waiting: Vec::with_capacity(names.len()),
            due: Time::NEVER,
        }
    }

    fn note_due(&mut self) {
        self.due = match &self.exchange {
            Some(exchange) => exchange.end,
            None => {
                let first = self.ready.iter().flatten().copied().min().map_or(Time::NEVER, instant);
                first.max(self.free)
            }
        };
    }

    /// The frame of `bearer` in `direction` that begins at `at`, if it has one.
    fn frame<A: Air>(&mut self, at: Time, bearer: u16, direction: Direction, air: &mut A) -> Option<(Grant, Frame)> {
        let ready = &mut self.ready[usize::from(bearer)][direction as usize];
        // What comes from now on asks again.
        if instant(*ready) > at || *ready == NOT_READY {
            return None;
        }
        let grant = Grant { resource: 0, bearer, direction, bits: None, start: at };
        let frame = air.next_frame(&grant);
        if frame.is_none() {
            *ready = NOT_READY;
        }
        frame.map(|frame| (grant, frame))
    }

    /// Bearers that may have something to send at `at`.
    fn note_waiting<A: Air>(&mut self, at: Time, air: &mut A) {
        self.waiting.clear();
        let needs_ages = self.scheduler.needs_ages();
        for (bearer, ready) in self.ready.iter().enumerate() {
            let bearer = bearer as u16;
            let waits = |direction: &Direction| instant(ready[*direction as usize]) <= at;
            let mut directions = Direction::ALL.into_iter().filter(waits).peekable();
            if directions.peek().is_none() {
                continue;
            }
            let since = match needs_ages {
                true => directions.map(|direction| air.backlog(at, bearer, direction).since).min(),
                false => None,
            };
            self.waiting.push(Waiting { bearer, since: since.unwrap_or(Time::ZERO) });
        }
    }

    /// Begins the next exchange, if there is one.
    fn begin<A: Air>(&mut self, at: Time, air: &mut A) {
        self.note_waiting(at, air);
        while !self.waiting.is_empty() {
            let place = self.scheduler.pick(at, &self.waiting);
            let bearer = self.waiting[place].bearer;
            let first = self.ready[usize::from(bearer)].iter().map(|(from, _)| *from).min().unwrap_or(at);
            let downlink = self.frame(at, bearer, Direction::Downlink, air);
            let sent = downlink.or_else(|| self.frame(at, bearer, Direction::Uplink, air));
            if let Some((grant, frame)) = sent {
                // A packet that met an idle medium waited for the other packets of its instant.
                let is_fresh = first.max(self.free) + INSTANT == at;
                let begin = if is_fresh { first.max(self.free) } else { at };
                let outcome = Outcome { frames: 1, ..Outcome::default() };
                let end = begin + self.config.air_time(frame.bits).max(INSTANT);
                self.exchange = Some(Box::new(Exchange { bearer, begin, on_air: Some((grant, frame)), end, outcome }));
                return;
            }
            self.waiting.remove(place);
        }
    }

    /// Goes on with the exchange: the frame, or the fixed cost, has ended at `at`.
    fn go_on<A: Air>(&mut self, at: Time, mut exchange: Box<Exchange>, air: &mut A) {
        let Some((grant, frame)) = exchange.on_air.take() else {
            exchange.outcome.air = at.since(exchange.begin);
            self.scheduler.outcome(at, exchange.bearer, &exchange.outcome);
            self.free = at;
            return self.begin(at, air);
        };
        let Grant { bearer, direction, .. } = grant;
        let bits = frame.bits;
        if air.sent_acknowledged(at, &grant, frame, None) {
            exchange.outcome.arrived += 1;
            exchange.outcome.arrived_bits = Bits::new(exchange.outcome.arrived_bits.get() + bits.get());
        }
        // Its send buffer may have room for more now.
        let ready = &mut self.ready[usize::from(bearer)][direction as usize];
        *ready = (*ready).min((at, false));
        let answer = match direction {
            Direction::Downlink => self.frame(at, bearer, Direction::Uplink, air),
            Direction::Uplink => None,
        };
        match answer {
            Some((grant, frame)) => {
                exchange.end = at + self.config.air_time(frame.bits);
                exchange.outcome.frames += 1;
                exchange.on_air = Some((grant, frame));
            }
            None => exchange.end = at + self.config.overhead,
        }
        self.exchange = Some(exchange);
    }
}

impl SharedMedium for Poll {
    fn request(&mut self, request: Request, bearer: u16, direction: Direction) {
        let ready = &mut self.ready[usize::from(bearer)][direction as usize];
        *ready = (*ready).min((request.at, !request.is_early));
        if self.exchange.is_none() {
            self.note_due();
        }
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        match self.exchange.take() {
            Some(exchange) => self.go_on(at, exchange, air),
            None => self.begin(at, air),
        }
        self.note_due();
    }

    fn never_idle(&self) -> bool {
        // Frames may be sent again for ever.
        true
    }

    fn least_time(&self, _at: Time, _direction: Direction, bits: Bits) -> Span {
        self.config.air_time(bits)
    }
}
