// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A wireless LAN: stations and an access point that contend for one channel by the distributed coordination function.
//!
//! Source: IEEE 802.11-2016, clause 10.3 (DCF: carrier sense, interframe spaces, slotted backoff, acknowledgement, RTS
//! and CTS) and 10.13 (A-MPDU with block acknowledgement); times on the air are those of `phy.rs`. Each user is a
//! station, which sends its uplink; the access point is one contender, which sends the downlink of all. A contender
//! with several bearers serves them one at a time.
//!
//! An exchange is a frame, or an aggregate of frames, and its answer. Who begins in the same slot collides, and all
//! their frames are lost. Slots are counted from the end of an interframe space, and are as exact as the clock: there
//! is no draw but that of the backoff. The errors of a frame that does not collide are those of the user's own link.
//!
//! Idealised: all stations hear each other, at once; answers are never lost, and come at a mandatory rate; a contender
//! that hears a transmission fail waits for EIFS like all others; there are no beacons.

mod config;
mod contention;
mod phy;
mod service;

use airpath_core::{Bits, Direction, DrawKey, DrawScope, Seed, Span, Time};
use smallvec::SmallVec;

use super::{Request, SharedBeginning, SharedMedium};
use crate::air::{Air, Frame, Grant};
use crate::quality::{ErrorUnit, Quality};

pub use config::{Aggregation, Wait, WifiConfig};
use contention::{Backoff, Contender};
use phy::{ACK_BYTES, BLOCK_ACK_BYTES, CTS_BYTES, Mode, Phy, RTS_BYTES};
pub use phy::{Standard, Width};
use service::Service;
pub use service::ServiceOrder;

/// A wireless LAN.
#[derive(Clone, Debug)]
pub struct Wifi {
    phy: Phy,
    /// Mode of each bearer.
    modes: Vec<Mode>,
    /// Station of each bearer, and its place among those of the station.
    stations: Vec<(u16, u16)>,
    config: Box<WifiConfig>,
    backoff: Backoff,
    /// The stations, and the access point behind them.
    contenders: Vec<Contender>,
    /// Bearers of each contender.
    services: Vec<Service>,
    /// Beginning of slot 0 of the idle period.
    begin: Time,
    /// The exchange that is under way.
    exchange: Option<Box<Exchange>>,
    /// Draws of frames that collide: each is lost whatever is drawn.
    collision: Box<Quality>,
    due: Time,
}

/// Transmissions that began in one slot, and the answer.
#[derive(Clone, Debug)]
struct Exchange {
    begin: Time,
    transmissions: SmallVec<[Transmission; 1]>,
    /// Time at which the medium is idle again, as far as it is known.
    end: Time,
    is_acknowledged: bool,
}

/// Frames of one contender.
#[derive(Clone, Debug)]
struct Transmission {
    contender: usize,
    /// Number of the bearer, and its place among those of the contender.
    bearer: u16,
    place: usize,
    frames: SmallVec<[(Grant, Frame); 1]>,
    /// End of the last frame; of RTS where that is not answered.
    end: Time,
    /// Time from the end of the last frame to that of the answer.
    answer: Span,
    has_ended: bool,
}

impl Wifi {
    fn new(config: &WifiConfig, beginning: &SharedBeginning<'_>) -> Wifi {
        let names: Vec<&str> = beginning.bearers.iter().map(|bearer| bearer.name.as_str()).collect();
        let keys = beginning.stations.iter().map(|station| station.key.child("backoff", 0));
        let keys = keys.chain([beginning.key.child("access point", 0)]);
        let mut own = vec![Vec::new(); beginning.stations.len()];
        let mut stations = Vec::with_capacity(names.len());
        for (number, bearer) in beginning.bearers.iter().enumerate() {
            let bearers = &mut own[usize::from(bearer.station)];
            stations.push((bearer.station, bearers.len() as u16));
            bearers.push(number as u16);
        }
        let of_stations = own.into_iter().map(|own| Service::new(ServiceOrder::FirstCome, Direction::Uplink, own));
        let all = (0..names.len() as u16).collect();
        let access_point = Service::new(config.order, Direction::Downlink, all);
        Wifi {
            phy: config.phy(),
            modes: config.modes(&names),
            stations,
            backoff: config.backoff(),
            contenders: keys.map(Contender::new).collect(),
            services: of_stations.chain([access_point]).collect(),
            config: Box::new(config.clone()),
            begin: Time::ZERO,
            exchange: None,
            collision: Box::new(certain_loss()),
            due: Time::NEVER,
        }
    }

    fn slot(&self) -> Span {
        self.phy.standard.slot()
    }

    fn difs(&self) -> Span {
        let slot = self.slot();
        self.phy.standard.sifs() + slot + slot
    }

    fn note_due(&mut self) {
        if let Some(exchange) = &self.exchange {
            let running = exchange.transmissions.iter().filter(|transmission| !transmission.has_ended);
            self.due = running.map(|transmission| transmission.end).fold(exchange.end, Time::min);
            return;
        }
        let slot = self.slot();
        let first = self.contenders.iter().filter_map(|contender| contender.access(self.begin, slot)).min();
        self.due = first.map_or(Time::NEVER, |number| slot_start(self.begin, slot, number));
    }

    /// Lets those begin whose slot begins at `at`.
    fn begin_exchange<A: Air>(&mut self, at: Time, air: &mut A) {
        let slot = self.slot();
        let number = at.since(self.begin).nanos() / slot.nanos();
        let mut transmissions: SmallVec<[Transmission; 1]> = SmallVec::new();
        for contender in 0..self.contenders.len() {
            if self.contenders[contender].access(self.begin, slot) != Some(number) {
                continue;
            }
            match self.transmission(at, contender, air) {
                Some(transmission) => transmissions.push(transmission),
                None => self.contenders[contender].ready = self.services[contender].ready(),
            }
        }
        if transmissions.is_empty() {
            return;
        }
        self.contenders.iter_mut().for_each(|contender| contender.count(number));
        if transmissions.len() > 1 {
            // Nobody answers an announcement that collides, so that nothing but it is sent.
            for transmission in &mut transmissions {
                if self.is_announced(&transmission.frames) {
                    transmission.end =
                        at + self.phy.control_time(self.modes[usize::from(transmission.bearer)], RTS_BYTES);
                }
            }
        }
        let end = transmissions.iter().map(|transmission: &Transmission| transmission.end).fold(at, Time::max);
        self.exchange = Some(Box::new(Exchange { begin: at, transmissions, end, is_acknowledged: false }));
    }

    /// The transmission of a contender that begins at `at`; none if it has nothing to send.
    fn transmission<A: Air>(&mut self, at: Time, contender: usize, air: &mut A) -> Option<Transmission> {
        for number in 0..self.services[contender].put_in_order(at, air) {
            let service = &self.services[contender];
            let place = service.asked(number);
            let (bearer, direction) = (service.bearer(place), service.direction());
            let frames = self.frames(at, bearer, direction, air);
            let service = &mut self.services[contender];
            let Some(frames) = frames else {
                service.has_nothing(place);
                continue;
            };
            service.serves(place);
            let (mode, sifs) = (self.modes[usize::from(bearer)], self.phy.standard.sifs());
            let control = |bytes| self.phy.control_time(mode, bytes);
            let answer = sifs + control(if frames.len() > 1 { BLOCK_ACK_BYTES } else { ACK_BYTES });
            let is_announced = self.is_announced(&frames);
            let before = if is_announced { control(RTS_BYTES) + sifs + control(CTS_BYTES) + sifs } else { Span::ZERO };
            let end = at + before + self.air_time(mode, &frames);
            return Some(Transmission { contender, bearer, place, frames, end, answer, has_ended: false });
        }
        None
    }

    fn is_announced(&self, frames: &[(Grant, Frame)]) -> bool {
        let bytes: u64 = frames.iter().map(|(_, frame)| self.bytes(frame)).sum();
        self.config.rts_threshold.is_some_and(|threshold| bytes * 8 >= threshold.get())
    }

    /// Octets of a frame with what the MAC adds.
    fn bytes(&self, frame: &Frame) -> u64 {
        frame.bits.get().div_ceil(8) + self.config.overhead_bytes()
    }

    fn air_time(&self, mode: Mode, frames: &[(Grant, Frame)]) -> Span {
        match frames {
            [(_, frame)] => self.phy.air_time(mode, self.bytes(frame)),
            // Each in an aggregate has a delimiter of 4 octets, and ends on a whole number of 4 octets.
            _ => self.phy.air_time(mode, frames.iter().map(|(_, frame)| aggregated(self.bytes(frame))).sum()),
        }
    }

    /// The frames that `bearer` sends in `direction` from `at` on; none if there are none.
    fn frames<A: Air>(
        &self,
        at: Time,
        bearer: u16,
        direction: Direction,
        air: &mut A,
    ) -> Option<SmallVec<[(Grant, Frame); 1]>> {
        let grant = Grant { resource: 0, bearer, direction, bits: None, start: at };
        let mut frames = SmallVec::new();
        frames.push((grant, air.next_frame(&grant)?));
        let Some(Aggregation { packets, duration }) = self.config.aggregation else { return Some(frames) };
        let mut sum = aggregated(self.bytes(&frames[0].1));
        let mut longest = sum;
        while frames.len() < usize::from(packets)
            && self.phy.air_time(self.modes[usize::from(bearer)], sum + longest) <= duration
            && let Some(frame) = air.next_frame(&grant)
        {
            let bytes = aggregated(self.bytes(&frame));
            sum += bytes;
            longest = longest.max(bytes);
            frames.push((grant, frame));
        }
        Some(frames)
    }

    /// Ends the transmissions whose last frame ends at `at`.
    fn end_frames<A: Air>(&mut self, at: Time, air: &mut A) {
        let Wifi { exchange: Some(exchange), collision, services, contenders, .. } = self else { return };
        let collides = exchange.transmissions.len() > 1;
        for transmission in &mut exchange.transmissions {
            if transmission.has_ended || transmission.end > at {
                continue;
            }
            transmission.has_ended = true;
            for (grant, frame) in transmission.frames.drain(..) {
                let is_ok = air.sent_acknowledged(at, &grant, frame, collides.then_some(&**collision));
                exchange.is_acknowledged |= is_ok;
            }
            if exchange.is_acknowledged {
                exchange.end = exchange.end.max(at + transmission.answer);
            }
            // Its send buffer may have room for more now.
            let time = transmission.end.since(exchange.begin) + transmission.answer;
            let service = &mut services[transmission.contender];
            service.served(transmission.place, time, (at, false));
            contenders[transmission.contender].ready = service.ready();
        }
    }

    /// Begins the idle period behind an exchange that ends at `at`.
    fn end_exchange(&mut self, at: Time) {
        let Some(exchange) = self.exchange.take() else { return };
        for (number, contender) in self.contenders.iter_mut().enumerate() {
            match exchange.transmissions.iter().any(|transmission| transmission.contender == number) {
                true => contender.ended(exchange.is_acknowledged, &self.backoff),
                false => contender.found_busy(exchange.begin, at, &self.backoff),
            }
        }
        let difs = self.difs();
        self.begin = match exchange.is_acknowledged || self.config.after_failure == Wait::Difs {
            true => at + difs,
            false => at + self.phy.standard.sifs() + self.phy.slowest_ack() + difs,
        };
    }
}

/// Beginning of slot `number`; `Time::NEVER` beyond the end of time.
fn slot_start(begin: Time, slot: Span, number: u64) -> Time {
    let nanos = slot.nanos().checked_mul(number).and_then(|waited| waited.checked_add(begin.nanos()));
    nanos.map_or(Time::NEVER, Time::from_nanos)
}

/// Octets of a frame within an aggregate.
fn aggregated(bytes: u64) -> u64 {
    4 + bytes.next_multiple_of(4)
}

/// Quality of frames that are lost for certain.
fn certain_loss() -> Quality {
    let scope = DrawScope { hop: "", direction: Direction::Uplink, role: "collision", instance: 0 };
    let key = DrawKey::new(Seed(0), &scope);
    Quality { unit: ErrorUnit::Frame, probability: 1.0, key, step: 0, reception: None }
}

impl SharedMedium for Wifi {
    fn request(&mut self, request: Request, bearer: u16, direction: Direction) {
        let ready = (request.at, !request.is_early);
        let (station, place) = self.stations[usize::from(bearer)];
        let (contender, place) = match direction {
            Direction::Uplink => (usize::from(station), usize::from(place)),
            Direction::Downlink => (self.contenders.len() - 1, usize::from(bearer)),
        };
        self.services[contender].request(place, ready);
        let known = &mut self.contenders[contender].ready;
        *known = (*known).min(ready);
        if self.exchange.is_none() {
            self.note_due();
        }
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        if self.exchange.is_none() {
            self.begin_exchange(at, air);
        } else {
            self.end_frames(at, air);
            if self.exchange.as_ref().is_some_and(|exchange| exchange.end <= at) {
                self.end_exchange(at);
            }
        }
        self.note_due();
    }

    fn never_idle(&self) -> bool {
        // Frames may be sent again for ever.
        true
    }

    fn least_time(&self, _at: Time, _direction: Direction, bits: Bits) -> Span {
        let bytes = bits.get().div_ceil(8) + self.config.overhead_bytes();
        let times = self.modes.iter().map(|mode| self.phy.air_time(*mode, bytes));
        times.min().unwrap_or(Span::ZERO)
    }
}
