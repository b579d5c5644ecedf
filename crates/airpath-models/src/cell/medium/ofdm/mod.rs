// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Adaptive OFDM: slots of time and resources of frequency, which a scheduler shares among stations, each with a mode of
//! transmission that fits the quality that the station has predicted.
//!
//! Source: Alfredsson et al. 2006, section II-B. A slot has 25 resources (bins) of 200 kHz and lasts 1/1500 s; one
//! resource in one slot is one frame of 108 payload symbols, all in one mode.
//!
//! Slot n begins ⌊n·10⁹/`slots_per_second`⌋ ns after the beginning, and the frames in it end where the next one
//! begins. What a station has before a slot begins is served in it, and so is an answer that is heard at that very
//! instant; packets that are offered at it come later, as the order of an instant says. The scheduler and the choice of the mode see the predicted
//! quality; errors follow from the true one, which is handed over with the frame at its end. Their draws are those of
//! resource and slot: what others send changes nothing.

mod config;
mod grid;
mod rates;
mod station;
mod uplink;

use std::collections::VecDeque;

use airpath_core::{Bits, Direction, Span, Time};
use smallvec::SmallVec;

use super::{Request, SharedBeginning, SharedMedium};
use crate::air::{Air, Backlog, Frame, Grant};
use crate::fading::FadingConfig;
use crate::quality::Quality;
use crate::schedule::{Contender, NOBODY, Scheduler, SchedulerModel, Slot};

pub use config::{Directions, LevelsFor, OfdmConfig};
use grid::Grid;
use rates::Rates;
use station::Station;
use uplink::Grants;
pub use uplink::UplinkGrantsConfig;

/// The first slot of a bearer without a request.
const NO_SLOT: u64 = u64::MAX;

/// A medium of adaptive OFDM.
#[derive(Clone, Debug)]
pub struct Ofdm {
    grid: Grid,
    config: Box<OfdmConfig>,
    rates: Box<Rates>,
    /// Maximum number of bits of one station in one slot.
    most_bits: u64,
    /// The uplink and the downlink, where they are on the medium.
    lanes: Box<[Option<Lane>; 2]>,
    /// Number of the next slot; the slots before it have been shared out.
    next_slot: u64,
    due: Time,
}

/// One direction.
#[derive(Clone, Debug)]
struct Lane {
    scheduler: SchedulerModel,
    stations: Vec<Option<Station>>,
    /// Number of the station of each bearer.
    station_of: Vec<u16>,
    /// First slot in which each bearer may have something to send; [`NO_SLOT`] without a request.
    ready: Vec<u64>,
    on_air: Vec<OnAir>,
    /// Outcomes that senders have not learnt yet.
    outcomes: VecDeque<Outcome>,
    /// Requests and grants, where the scheduler does not know at once what waits.
    grants: Option<Grants>,
    /// Scratch: number of frames of each station in the slot that ends.
    frames: Vec<u16>,
    /// Scratch of a slot.
    contenders: Vec<Contender>,
    bits: Vec<u32>,
    assigned: Vec<u16>,
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Time at which the sender learns of it.
    known: Time,
    bearer: u16,
    bits: u32,
    is_ok: bool,
    /// Share of the frame in those of its station in the slot.
    weight: f64,
}

/// A frame on the air.
#[derive(Clone, Debug)]
struct OnAir {
    grant: Grant,
    frame: Frame,
    quality: Quality,
}

impl Ofdm {
    pub(super) fn new(config: &OfdmConfig, beginning: SharedBeginning<'_>) -> Ofdm {
        let grid = Grid::new(config);
        let mut rates = Rates::new(config);
        let lanes = Direction::ALL.map(|direction| {
            let carries = config.direction.includes(direction);
            carries.then(|| Lane::new(config, &beginning, direction, &mut rates))
        });
        Ofdm {
            grid,
            most_bits: config.most_bits_of_slot(),
            config: Box::new(config.clone()),
            rates: Box::new(rates),
            lanes: Box::new(lanes),
            next_slot: 0,
            due: Time::NEVER,
        }
    }

    fn note_due(&mut self) {
        let mut due = Time::NEVER;
        for lane in self.lanes.iter().flatten() {
            if !lane.on_air.is_empty() {
                due = self.grid.start(self.next_slot);
                break;
            }
            if let Some(grants) = &lane.grants {
                let next = grants.next_slot(self.grid, self.next_slot);
                due = due.min(self.grid.start(next));
                continue;
            }
            let ready = lane.ready.iter().copied().min().unwrap_or(NO_SLOT);
            if ready != NO_SLOT {
                due = due.min(self.grid.start(self.next_slot.max(ready)));
            }
        }
        self.due = due;
    }
}

impl Lane {
    fn new(config: &OfdmConfig, beginning: &SharedBeginning<'_>, direction: Direction, rates: &mut Rates) -> Lane {
        let number = direction as u64;
        let stations: Vec<Option<Station>> = beginning
            .stations
            .iter()
            .map(|station| {
                let fading = station.hop.link(direction).fading.as_deref()?;
                let is_granted = config.uplink_grants.is_some() && direction == Direction::Uplink;
                Some(Station::new(config, fading, station.key.child("radio", number), is_granted, rates))
            })
            .collect();
        let names: Vec<&str> = beginning.bearers.iter().map(|bearer| bearer.name.as_str()).collect();
        let scheduler = crate::schedule::Beginning {
            bearers: &names,
            resources: usize::from(config.resources),
            slots_per_second: config.slots_per_second,
            key: beginning.key.child("scheduler", number),
        };
        Lane {
            scheduler: SchedulerModel::new(&config.scheduler, scheduler),
            ready: vec![NO_SLOT; names.len()],
            station_of: beginning.bearers.iter().map(|bearer| bearer.station).collect(),
            grants: Grants::new(config, direction, names.len()),
            stations,
            on_air: Vec::new(),
            outcomes: VecDeque::new(),
            frames: Vec::new(),
            contenders: Vec::new(),
            bits: Vec::new(),
            assigned: Vec::new(),
        }
    }

    /// Ends the frames of the slot before, at `at`.
    fn end_frames<A: Air>(&mut self, at: Time, feedback: Span, air: &mut A) {
        self.frames.clear();
        self.frames.resize(self.stations.len(), 0);
        for OnAir { grant, .. } in &self.on_air {
            self.frames[usize::from(self.station_of[usize::from(grant.bearer)])] += 1;
        }
        let mut ended: SmallVec<[(u16, u32, bool); 8]> = SmallVec::new();
        for OnAir { grant, frame, quality } in self.on_air.drain(..) {
            let bits = frame.bits.get() as u32;
            let is_ok = air.sent_at(at, &grant, frame, Some(&quality));
            if self.grants.is_some() {
                ended.push((grant.bearer, bits, is_ok));
            }
            let station = self.station_of[usize::from(grant.bearer)];
            let weight = 1.0 / f64::from(self.frames[usize::from(station)]);
            self.outcomes.push_back(Outcome { known: at + feedback, bearer: grant.bearer, bits, is_ok, weight });
            // Its send buffer may have room for more now.
            self.ready[usize::from(grant.bearer)] = 0;
        }
        if let Some(grants) = &mut self.grants {
            grants.ended(at, &ended);
        }
    }

    /// Tells the scheduler and the stations of outcomes that are known at `at`.
    fn learn(&mut self, at: Time) {
        while let Some(outcome) = self.outcomes.pop_front_if(|outcome| outcome.known <= at) {
            self.scheduler.outcome(outcome.bearer, outcome.bits, outcome.is_ok);
            let station = self.station_of[usize::from(outcome.bearer)];
            if let Some(station) = &mut self.stations[usize::from(station)] {
                station.heard(outcome.is_ok, outcome.weight);
            }
        }
    }

    /// Shares slot `number`, which begins at `at`.
    fn share<A: Air>(&mut self, at: Time, number: u64, direction: Direction, config: &OfdmConfig, air: &mut A) {
        self.learn(at);
        let resources = usize::from(config.resources);
        self.contenders.clear();
        self.bits.clear();
        for bearer in 0..self.ready.len() {
            if self.ready[bearer] > number {
                continue;
            }
            let backlog = air.backlog(at, bearer as u16, direction);
            if backlog.bits == 0 || !self.contend(number, bearer as u16, backlog) {
                self.ready[bearer] = NO_SLOT;
            }
        }
        self.assign(number, at, resources);
        for resource in 0..resources {
            let place = usize::from(self.assigned[resource]);
            let Some(contender) = self.contenders.get(place) else { continue };
            let (bearer, bits) = (contender.bearer, self.bits[place * resources + resource]);
            if bits > 0 {
                self.transmit(at, number, direction, (resource as u16, bearer, bits), air);
            }
        }
    }

    /// Adds a bearer with something to send to the contenders for slot `number`; false if its station has no radio
    /// channel. Bearers of one station see one prediction.
    fn contend(&mut self, number: u64, bearer: u16, backlog: Backlog) -> bool {
        let station = self.station_of[usize::from(bearer)];
        let Some(radio) = self.stations[usize::from(station)].as_mut() else { return false };
        match self.contenders.last() {
            Some(last) if self.station_of[usize::from(last.bearer)] == station => {
                self.bits.extend_from_within(self.bits.len() - self.bits.len() / self.contenders.len()..);
            }
            _ => radio.offer(number, &mut self.bits),
        }
        self.contenders.push(Contender { bearer, backlog_bits: backlog.bits, since: backlog.since });
        true
    }

    /// Lets the scheduler give the resources of slot `number`, which begins at `start`, to the contenders.
    fn assign(&mut self, number: u64, start: Time, resources: usize) {
        self.assigned.clear();
        self.assigned.resize(resources, NOBODY);
        if !self.contenders.is_empty() {
            let slot = Slot { number, start, resources, contenders: &self.contenders, bits: &self.bits };
            self.scheduler.assign(&slot, &mut self.assigned);
        }
    }

    /// Lets a bearer send in a resource of slot `number` that carries so many bits; false if it has nothing to send.
    fn transmit<A: Air>(
        &mut self,
        at: Time,
        number: u64,
        direction: Direction,
        (resource, bearer, bits): (u16, u16, u32),
        air: &mut A,
    ) -> bool {
        let station = self.station_of[usize::from(bearer)];
        let Some(radio) = self.stations[usize::from(station)].as_mut() else { return false };
        let grant = Grant { resource, bearer, direction, bits: Some(Bits::new(bits.into())), start: at };
        let Some(frame) = air.next_frame(&grant) else { return false };
        let quality = radio.quality(number, usize::from(resource), frame.bits.get());
        self.on_air.push(OnAir { grant, frame, quality });
        true
    }
}

impl SharedMedium for Ofdm {
    fn request(&mut self, request: Request, bearer: u16, direction: Direction) {
        let Some(lane) = &mut self.lanes[direction as usize] else { return };
        let ready = &mut lane.ready[usize::from(bearer)];
        let last = self.grid.number(request.at);
        let in_last = request.is_early && self.grid.start(last) == request.at;
        let first = if in_last { last } else { last + 1 };
        if first < *ready {
            *ready = first;
        }
        let first = match &mut lane.grants {
            None => first,
            Some(grants) => {
                grants.request(request.at, request.is_early, bearer);
                grants.next_slot(self.grid, self.next_slot)
            }
        };
        self.due = self.due.min(self.grid.start(self.next_slot.max(first)));
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        let number = self.grid.number(at);
        self.next_slot = number + 1;
        for direction in Direction::ALL {
            if let Some(lane) = &mut self.lanes[direction as usize] {
                lane.end_frames(at, self.config.feedback_delay, air);
            }
        }
        for direction in Direction::ALL {
            if let Some(lane) = &mut self.lanes[direction as usize] {
                match lane.grants {
                    None => lane.share(at, number, direction, &self.config, air),
                    Some(_) => lane.share_granted(at, number, self.grid, &self.config, air),
                }
            }
        }
        self.note_due();
    }

    fn never_idle(&self) -> bool {
        // What no mode carries, or no resource belongs to, would be asked for in each slot for ever.
        true
    }

    fn least_time(&self, _at: Time, _direction: Direction, bits: Bits) -> Span {
        let slots = bits.get().div_ceil(self.most_bits.max(1));
        Span::from_nanos(self.grid.least_slot().nanos().saturating_mul(slots))
    }

    fn configure(&mut self, _at: Time, station: u16, fading: &[Option<FadingConfig>; 2]) {
        for (lane, fading) in self.lanes.iter_mut().zip(fading) {
            let Some(lane) = lane else { continue };
            if let (Some(station), Some(fading)) = (&mut lane.stations[usize::from(station)], fading) {
                station.configure(&self.config, fading, &mut self.rates);
            }
        }
    }
}
