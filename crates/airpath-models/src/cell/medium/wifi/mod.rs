// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A wireless LAN: stations and an access point that contend for one channel by the distributed coordination function,
//! or by access categories (EDCA).
//!
//! Source: IEEE 802.11-2016, clause 10.3 (DCF: carrier sense, interframe spaces, slotted backoff, acknowledgement, RTS
//! and CTS), 10.13 (A-MPDU with block acknowledgement) and 10.22.2 (EDCA, transmission opportunities); times on the air
//! are those of `phy.rs`. Each user is a station, which sends its uplink; the access point sends the downlink of all.
//! Either is one contender, or with access categories one for each category that its bearers have. A contender with
//! several bearers serves them one at a time.
//!
//! An exchange is a frame, or an aggregate of frames, and its answer. Who begins in the same slot collides, and all
//! their frames are lost; of the categories of one station the one with the highest priority sends, and the others
//! wait as after a collision. With a transmission opportunity exchanges follow each other SIFS apart while they fit
//! and are acknowledged. Slots are counted from the end of an interframe space, and are as exact as the clock: there
//! is no draw but that of the backoff. The errors of a frame that does not collide are those of the user's own link, and
//! with `fading` those of the station's radio channel (`errors.rs`).
//!
//! Idealised: all stations hear each other, at once, but for those that are said to be hidden (`hidden.rs`); answers are never lost, and come at a mandatory rate; a contender
//! that hears a transmission fail waits for EIFS like all others; there are no beacons.

mod channel;
mod config;
mod contention;
mod edca;
mod errors;
mod hidden;
mod phy;
mod rate_control;
mod service;
mod transmission;

use airpath_core::{Bits, Direction, DrawKey, DrawScope, Seed, Span, Time};
use smallvec::SmallVec;

use super::{Request, SharedBeginning, SharedMedium, StationBeginning};
use crate::air::Air;
use crate::fading::FadingConfig;
use crate::quality::{ErrorUnit, Quality};

use channel::Channel;
pub use config::{Aggregation, Wait, WifiConfig};
use contention::Contender;
pub use edca::{AccessCategory, Categories, CategoryConfig, Edca};
use hidden::Views;
pub use phy::{Standard, Width};
pub use rate_control::RateControlConfig;
pub use rate_control::{Fixed, FixedConfig, MinstrelHt, MinstrelHtConfig, ModeTimes, RateBeginning, RateControl};
use service::Service;
pub use service::ServiceOrder;
use transmission::{Controls, Opportunity, Transmission, Transmitter};

/// A wireless LAN.
#[derive(Clone, Debug)]
pub struct Wifi {
    transmitter: Box<Transmitter>,
    /// Contender of each bearer in each direction, and its place among those of the contender.
    places: Vec<[(u16, u16); 2]>,
    /// The contenders: those of the stations, and behind them those of the access point; of each the one with the
    /// highest priority first.
    contenders: Vec<Contender>,
    /// Station of each contender; the access point has the number behind the last one.
    owners: Vec<u16>,
    /// Keys of the draws that concern the stations.
    station_keys: Vec<DrawKey>,
    /// Time from the end of an exchange to the beginning of slot 0, if it was acknowledged.
    space: Span,
    /// Beginning of slot 0 of the idle period.
    begin: Time,
    /// The exchange that is under way.
    exchange: Option<Box<Exchange>>,
    /// Views of the medium where not all hear each other; `begin` and `exchange` mean nothing then.
    views: Option<Box<Views>>,
    /// Draws of frames that collide: each is lost whatever is drawn.
    collision: Box<Quality>,
    due: Time,
}

/// Transmissions that began in one slot, and the answer; with a transmission opportunity one exchange after the other.
#[derive(Clone, Debug)]
struct Exchange {
    /// Beginning of the first exchange.
    begin: Time,
    transmissions: SmallVec<[Transmission; 1]>,
    /// Time at which the medium is idle again, as far as it is known.
    end: Time,
    is_acknowledged: bool,
    /// Beginning of another exchange of the same contender, where there may be one.
    next: Option<Time>,
}

impl Wifi {
    fn new(config: &WifiConfig, beginning: &SharedBeginning<'_>) -> Wifi {
        let names: Vec<&str> = beginning.bearers.iter().map(|bearer| bearer.name.as_str()).collect();
        let categories = config.categories(&names);
        let mut wifi = Wifi {
            transmitter: Box::new(Transmitter {
                phy: config.phy(),
                modes: config.modes(&names),
                controls: controls(config, beginning).map(Box::new),
                stations: beginning.bearers.iter().map(|bearer| bearer.station).collect(),
                channels: beginning.stations.iter().map(channels).collect(),
                services: Vec::new(),
                config: Box::new(config.clone()),
            }),
            places: vec![[(0, 0); 2]; names.len()],
            contenders: Vec::new(),
            owners: Vec::new(),
            space: config.phy().standard.sifs() + spaces(config.phy().standard.slot(), config.least_space()),
            station_keys: beginning.stations.iter().map(|station| station.key).collect(),
            begin: Time::ZERO,
            exchange: None,
            views: views(config, beginning).map(Box::new),
            collision: Box::new(certain_loss()),
            due: Time::NEVER,
        };
        for (number, station) in beginning.stations.iter().enumerate() {
            let own = beginning.bearers.iter().enumerate().filter(|(_, bearer)| usize::from(bearer.station) == number);
            let own: Vec<u16> = own.map(|(bearer, _)| bearer as u16).collect();
            let key = |stream| station.key.child("backoff", stream);
            wifi.add_contenders(number as u16, (Direction::Uplink, &own), &categories, key);
        }
        let all: Vec<u16> = (0..names.len() as u16).collect();
        let access_point = beginning.stations.len() as u16;
        let key = |stream| beginning.key.child("access point", stream);
        wifi.add_contenders(access_point, (Direction::Downlink, &all), &categories, key);
        wifi
    }

    /// Adds the contenders of a station, or of the access point, that has these bearers: one for each of their
    /// categories, or one for all.
    fn add_contenders(
        &mut self,
        owner: u16,
        (direction, bearers): (Direction, &[u16]),
        categories: &[Option<AccessCategory>],
        key: impl Fn(u64) -> DrawKey,
    ) {
        let mut own: Vec<Option<AccessCategory>> =
            bearers.iter().map(|bearer| categories[usize::from(*bearer)]).collect();
        own.sort_unstable();
        own.dedup();
        for category in own {
            let of_category = bearers.iter().copied().filter(|bearer| categories[usize::from(*bearer)] == category);
            let of_category: Vec<u16> = of_category.collect();
            let contender = self.contenders.len() as u16;
            for (place, bearer) in of_category.iter().enumerate() {
                self.places[usize::from(*bearer)][direction as usize] = (contender, place as u16);
            }
            let config = &self.transmitter.config;
            let access = config.access(category, direction);
            let key = key(category.map_or(0, AccessCategory::stream));
            let order = if direction == Direction::Uplink { ServiceOrder::FirstCome } else { config.order };
            self.contenders.push(Contender::new(key, access, config.least_space()));
            self.transmitter.services.push(Service::new(order, direction, of_category));
            self.owners.push(owner);
        }
    }

    fn slot(&self) -> Span {
        self.transmitter.phy.standard.slot()
    }

    fn sifs(&self) -> Span {
        self.transmitter.phy.standard.sifs()
    }

    fn note_due(&mut self) {
        if let Some(views) = &self.views {
            self.due = views.due(self);
            return;
        }
        if let Some(exchange) = &self.exchange {
            let running = exchange.transmissions.iter().filter(|transmission| !transmission.has_ended);
            let end = exchange.next.unwrap_or(exchange.end);
            self.due = running.map(|transmission| transmission.end).fold(end, Time::min);
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
        let mut outdone: SmallVec<[usize; 4]> = SmallVec::new();
        let mut sender = None;
        for contender in 0..self.contenders.len() {
            if self.contenders[contender].access(self.begin, slot) != Some(number) {
                continue;
            }
            if sender == Some(self.owners[contender]) {
                // Another category of the same station sends.
                if self.transmitter.has_backlog(at, contender, air) {
                    outdone.push(contender);
                } else {
                    self.contenders[contender].ready = self.transmitter.services[contender].ready();
                }
                continue;
            }
            let opportunity = Opportunity::first(self.contenders[contender].txop_limit());
            match self.transmitter.transmission(at, contender, opportunity, air) {
                Some(transmission) => {
                    transmissions.push(transmission);
                    sender = Some(self.owners[contender]);
                }
                None => self.contenders[contender].ready = self.transmitter.services[contender].ready(),
            }
        }
        if transmissions.is_empty() {
            return;
        }
        self.contenders.iter_mut().for_each(|contender| contender.count(number));
        outdone.into_iter().for_each(|contender| self.contenders[contender].ended(false));
        if transmissions.len() > 1 {
            // Nobody answers an announcement that collides, so that nothing but it is sent.
            for transmission in transmissions.iter_mut().filter(|transmission| transmission.is_announced) {
                transmission.end = self.transmitter.end_of_announcement(transmission);
            }
        }
        let end = transmissions.iter().map(|transmission: &Transmission| transmission.end).fold(at, Time::max);
        let exchange = Exchange { begin: at, transmissions, end, is_acknowledged: false, next: None };
        self.exchange = Some(Box::new(exchange));
    }

    /// Ends the transmissions whose last frame ends at `at`.
    fn end_frames<A: Air>(&mut self, at: Time, air: &mut A) {
        let Wifi { exchange: Some(exchange), collision, transmitter, contenders, .. } = self else { return };
        let collides = exchange.transmissions.len() > 1;
        for transmission in &mut exchange.transmissions {
            if transmission.has_ended || transmission.end > at {
                continue;
            }
            transmission.has_ended = true;
            let lost = collides.then_some(&**collision);
            exchange.is_acknowledged |= transmitter.end_frames(at, transmission, lost, air);
            if exchange.is_acknowledged {
                exchange.end = exchange.end.max(at + transmission.answer);
            }
            contenders[transmission.contender].ready = transmitter.served(at, transmission);
        }
    }

    /// The exchange's answer, or the last of its frames, ends at `at`: another exchange of the same opportunity may
    /// follow, or the idle period begins.
    fn end_exchange(&mut self, at: Time) {
        let sifs = self.sifs();
        let Some(exchange) = &mut self.exchange else { return };
        if exchange.is_acknowledged {
            // Whoever is acknowledged is alone.
            let contender = &mut self.contenders[exchange.transmissions[0].contender];
            let next = at + sifs;
            if next < exchange.begin + contender.txop_limit() && contender.ready.0 <= next {
                contender.keeps();
                exchange.next = Some(next);
                return;
            }
        }
        self.give_away();
    }

    /// Begins another exchange of the same opportunity, or gives the medium away.
    fn continue_exchange<A: Air>(&mut self, at: Time, air: &mut A) {
        let Wifi { exchange: Some(exchange), transmitter, contenders, .. } = self else { return };
        let contender = exchange.transmissions[0].contender;
        let left = contenders[contender].txop_limit() - at.since(exchange.begin);
        let opportunity = Opportunity { left: Some(left), is_first: false };
        let Some(transmission) = transmitter.transmission(at, contender, opportunity, air) else {
            contenders[contender].ready = transmitter.services[contender].ready();
            return self.give_away();
        };
        exchange.next = None;
        exchange.end = transmission.end;
        exchange.is_acknowledged = false;
        exchange.transmissions[0] = transmission;
    }

    /// Begins the idle period behind an exchange.
    fn give_away(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        let at = exchange.end;
        for (number, contender) in self.contenders.iter_mut().enumerate() {
            match exchange.transmissions.iter().any(|transmission| transmission.contender == number) {
                true => contender.ended(exchange.is_acknowledged),
                false => contender.found_busy(exchange.begin, at),
            }
        }
        let Transmitter { phy, config, .. } = &*self.transmitter;
        self.begin = match exchange.is_acknowledged || config.after_failure == Wait::Difs {
            true => at + self.space,
            false => at + phy.standard.sifs() + phy.slowest_ack() + self.space,
        };
    }
}

/// Rate controls of the stations; none where rates are given.
fn controls(config: &WifiConfig, beginning: &SharedBeginning<'_>) -> Option<Controls> {
    if !config.rate_control.adapts() {
        return None;
    }
    let phy = config.phy();
    let modes = phy.modes();
    let times: Vec<ModeTimes> = modes.iter().map(|mode| phy.times(*mode)).collect();
    let control = |key| RateBeginning { modes: &times, usual: modes.len() - 1, key };
    let of = |station: &StationBeginning<'_>| {
        let key = |direction| station.key.child("rate control", direction as u64);
        Direction::ALL.map(|direction| RateControl::new(&config.rate_control, control(key(direction))))
    };
    Some(Controls { of_stations: beginning.stations.iter().map(of).collect(), modes })
}

/// Views of the medium; none where all stations hear each other.
fn views(config: &WifiConfig, beginning: &SharedBeginning<'_>) -> Option<Views> {
    let bearers: Vec<(&str, u16)> =
        beginning.bearers.iter().map(|bearer| (bearer.name.as_str(), bearer.station)).collect();
    let pairs = config.hidden_stations(&bearers);
    (!pairs.is_empty()).then(|| Views::new(beginning.stations.len(), &pairs))
}

/// Key of the draws of a station's channel, which is the same in both directions.
fn fading_key(station: DrawKey) -> DrawKey {
    station.child("fading", 0)
}

/// Key of the draws of errors in a direction.
fn errors_key(station: DrawKey, direction: Direction) -> DrawKey {
    station.child("frames", direction as u64)
}

/// Radio channels of a station, by direction.
fn channels(station: &StationBeginning<'_>) -> [Option<Box<Channel>>; 2] {
    Direction::ALL.map(|direction| {
        let fading = station.hop.link(direction).fading.as_deref()?;
        let errors = errors_key(station.key, direction);
        Some(Box::new(Channel::new(fading, fading_key(station.key), errors)))
    })
}

/// Length of so many slots.
fn spaces(slot: Span, number: u8) -> Span {
    Span::from_nanos(slot.nanos() * u64::from(number))
}

/// Beginning of slot `number`; `Time::NEVER` beyond the end of time.
fn slot_start(begin: Time, slot: Span, number: u64) -> Time {
    let nanos = slot.nanos().checked_mul(number).and_then(|waited| waited.checked_add(begin.nanos()));
    nanos.map_or(Time::NEVER, Time::from_nanos)
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
        let (contender, place) = self.places[usize::from(bearer)][direction as usize];
        self.transmitter.services[usize::from(contender)].request(usize::from(place), ready);
        let known = &mut self.contenders[usize::from(contender)].ready;
        *known = (*known).min(ready);
        if self.exchange.is_none() {
            self.note_due();
        }
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        if let Some(mut views) = self.views.take() {
            views.step(at, self, air);
            self.views = Some(views);
            return self.note_due();
        }
        match &self.exchange {
            None => self.begin_exchange(at, air),
            Some(exchange) if exchange.next.is_some() => self.continue_exchange(at, air),
            Some(_) => {
                self.end_frames(at, air);
                if self.exchange.as_ref().is_some_and(|exchange| exchange.end <= at) {
                    self.end_exchange(at);
                }
            }
        }
        self.note_due();
    }

    fn never_idle(&self) -> bool {
        // Frames may be sent again for ever.
        true
    }

    fn least_time(&self, _at: Time, _direction: Direction, bits: Bits) -> Span {
        let Transmitter { phy, config, .. } = &*self.transmitter;
        let bytes = bits.get().div_ceil(8) + config.overhead_bytes();
        let times = self.transmitter.all_modes().iter().map(|mode| phy.air_time(*mode, bytes));
        times.min().unwrap_or(Span::ZERO)
    }

    fn configure(&mut self, _at: Time, station: u16, fading: &[Option<FadingConfig>; 2]) {
        let key = self.station_keys[usize::from(station)];
        for direction in Direction::ALL {
            let channel = &mut self.transmitter.channels[usize::from(station)][direction as usize];
            match (&fading[direction as usize], channel.as_mut()) {
                (Some(config), Some(channel)) => channel.configure(config, fading_key(key)),
                (Some(config), None) => {
                    *channel = Some(Box::new(Channel::new(config, fading_key(key), errors_key(key, direction))));
                }
                (None, _) => *channel = None,
            }
        }
    }
}
