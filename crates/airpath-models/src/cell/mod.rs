// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A cell: the paths of several users, with media that they share.
//!
//! Each user has a path with queues, link entities, channels, states and background loads of its own. A hop is on a
//! medium of its own, or on one that the cell has by name. Such a medium asks its users for frames, as a hop's own
//! medium asks the only one.
//!
//! The order at one instant is that of a path, over all users: all service first (hops by their place in their
//! paths; within a place users in order, then the media, then what leaves the hops), then changes of state,
//! transfers and background loads, each in the order of the users. A cell with one user therefore leaves the trace of
//! that user's path.

mod config;
pub mod medium;

use airpath_core::{
    Command, CommandError, Cx, Direction, Framing, Item, Machine, Origin, Pdu, PortId, Seed, Span, StateInForce, Time,
};

use crate::agenda::{Agenda, CATCH_UP, KEEP_UP, Next};
use crate::air::{Air, Backlog, Frame, Grant};
use crate::entity::EntityModel;
use crate::hop::Hop;
use crate::link::OnAir;
use crate::medium::UserMedium;
use crate::path::{Path, PathPlace};
use crate::quality::Quality;

pub use config::{CellConfig, CellSetting, MediumOfCell, UserConfig};
use medium::Request;
pub use medium::{
    SharedBeginning, SharedMedium, SharedMediumConfig, SharedMediumModel, StationBeginning, continuous, ofdm, wifi,
};

/// The shared medium of each direction of a hop, if it is on one: its number, and the number of the hop among its
/// stations.
type Attachment = [Option<(u16, u16)>; 2];

type UserPath = Path<EntityModel, UserMedium>;

/// A cell at work.
pub struct Cell {
    users: Vec<UserPath>,
    /// Next thing that each user has to do, and when.
    due: Vec<(Time, Next)>,
    media: Vec<Shared>,
    /// Greatest number of hops of a user.
    hops: usize,
    /// Shared media of each hop, by user and hop.
    on: Vec<Vec<Attachment>>,
    /// Names of the users.
    names: Vec<String>,
    /// Users of which a hop at the present place has been served.
    touched: Vec<bool>,
    /// Stations that a medium has asked for frames in its step.
    asked: Vec<u16>,
    /// Number of packets of endpoints inside, as of the last call; kept only beside background loads.
    users_inside: u64,
}

/// A shared medium, and who is on it.
struct Shared {
    model: SharedMediumModel,
    /// User and hop of each station.
    stations: Vec<(u16, u16)>,
    /// Least place of a station's hop in its path.
    place: usize,
}

/// Kind of what is due next in a cell, and the user whom it concerns; service concerns all.
#[derive(Clone, Copy)]
pub(crate) struct CellDue {
    next: Next,
    user: usize,
}

impl Cell {
    /// The cell that `config` describes, at the beginning of a run with `seed`.
    ///
    /// # Panics
    /// Without any user, or where a hop names a medium that the cell does not have.
    pub fn new(config: &CellConfig, seed: Seed) -> Cell {
        assert!(!config.users.is_empty(), "a cell has at least one user");
        let hops = config.users.iter().map(|user| user.path.hops.len()).max().unwrap_or(0);
        let seeds: Vec<Seed> = config.users.iter().map(|user| user.seed(seed)).collect();
        let mut first_load = 0;
        let mut users = Vec::with_capacity(config.users.len());
        for (number, (user, seed)) in config.users.iter().zip(&seeds).enumerate() {
            let place = PathPlace { user: number as u16, stride: hops as u16 + 1, first_load };
            first_load += user.path.background.len() as u16;
            users.push(UserPath::of_user(&user.path, place, *seed));
        }
        let mut on: Vec<Vec<Attachment>> =
            config.users.iter().map(|user| vec![[None; 2]; user.path.hops.len()]).collect();
        let mut media = Vec::new();
        for (number, medium) in config.media.iter().enumerate() {
            let (stations, beginnings) = medium.stations(&config.users, &seeds);
            for (station, (user, hop)) in stations.iter().enumerate() {
                for direction in Direction::ALL {
                    if medium.carries(config.users[usize::from(*user)].hop(*hop), direction) {
                        on[usize::from(*user)][usize::from(*hop)][direction as usize] =
                            Some((number as u16, station as u16));
                    }
                }
            }
            let beginning = SharedBeginning { stations: &beginnings, key: medium.key(seed) };
            let place = stations.iter().map(|(_, hop)| usize::from(*hop)).min().unwrap_or(0);
            media.push(Shared { model: SharedMediumModel::new(&medium.config, beginning), stations, place });
        }
        let named = config.users.iter().zip(&on).all(|(user, on)| {
            let named = |hop, direction| user.hop(hop as u16).link(direction).medium.name().is_some();
            (0..on.len())
                .all(|hop| Direction::ALL.iter().all(|way| named(hop, *way) == on[hop][*way as usize].is_some()))
        });
        assert!(named, "a hop names media of its cell");
        let mut cell = Cell {
            due: vec![(Time::NEVER, Next::Service); users.len()],
            touched: vec![false; users.len()],
            asked: Vec::new(),
            names: config.users.iter().map(|user| user.name.clone()).collect(),
            users,
            media,
            hops,
            on,
            users_inside: 0,
        };
        // Entities that have something to say before the first packet have asked for the medium.
        for user in 0..cell.users.len() {
            cell.settle(Time::ZERO, user);
        }
        cell
    }

    /// Number of users.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Place of events of the first hop of a user. Those of the whole path have the place before it.
    pub fn place(&self, user: usize) -> u16 {
        user as u16 * (self.hops as u16 + 1)
    }

    /// Number of packets of `origin` in each hop of a user.
    pub fn held_of(&self, user: usize, origin: Origin) -> Vec<u64> {
        self.users[user].hops().iter().map(|hop| hop.held_of(origin)).collect()
    }

    /// Hands the requests of a user's hop to its shared media at `now`; `is_early` as in [`Request`].
    #[inline]
    fn flush(&mut self, user: usize, hop: usize, now: Time, is_early: bool) {
        for direction in Direction::ALL {
            if let Some((medium, station)) = self.on[user][hop][direction as usize]
                && let Some(at) = self.users[user].hop_mut(hop).medium_mut().take_request(direction)
            {
                let request = Request { at, is_early: is_early || at > now };
                self.media[usize::from(medium)].model.request(request, station, direction);
            }
        }
    }

    /// Tells the media of parameters of a user that have changed at `at`.
    #[cold]
    fn tell_changes(&mut self, at: Time, user: usize) {
        for hop in 0..self.on[user].len() {
            let Some(changed) = self.users[user].hop_mut(hop).medium_mut().take_changed() else { continue };
            for (medium, station) in self.on[user][hop].into_iter().flatten() {
                self.media[usize::from(medium)].model.configure(at, station, &changed);
            }
        }
    }

    /// Hands all requests of a user to the media, and notes what the user has to do next.
    fn settle(&mut self, now: Time, user: usize) {
        for hop in 0..self.on[user].len() {
            self.flush(user, hop, now, false);
        }
        self.due[user] = self.users[user].due();
    }

    /// Runs one round of service that is due at `at`.
    fn serve(&mut self, at: Time, cx: &mut Cx<'_>) {
        for place in 0..self.hops {
            self.touched.fill(false);
            for user in 0..self.users.len() {
                let is_due = self.due[user].0 <= at && self.on[user].len() > place;
                if !is_due || self.users[user].hop_mut(place).next_deadline() > at {
                    continue;
                }
                let hop = self.users[user].hop_mut(place);
                hop.receive(at, cx);
                hop.step_own_medium(at, cx);
                self.touched[user] = true;
                self.flush(user, place, at, true);
            }
            self.step_media(place, at, cx);
            for user in 0..self.users.len() {
                if self.touched[user] {
                    self.users[user].send(place, at, cx);
                    self.flush(user, place, at, true);
                }
            }
        }
        for user in 0..self.users.len() {
            self.due[user] = self.users[user].due();
        }
    }

    /// Runs the shared media at `place` that are due at `at`.
    fn step_media(&mut self, place: usize, at: Time, cx: &mut Cx<'_>) {
        for number in 0..self.media.len() {
            let Cell { media, users, asked, .. } = self;
            let medium = &mut media[number];
            if medium.place != place || medium.model.next_deadline() > at {
                continue;
            }
            asked.clear();
            medium.model.step(at, &mut CellAir { users, stations: &medium.stations, asked, cx });
            asked.sort_unstable();
            asked.dedup();
            for index in 0..self.asked.len() {
                let station = self.asked[index];
                let (user, hop) = self.media[number].stations[usize::from(station)];
                let (user, hop) = (usize::from(user), usize::from(hop));
                self.users[user].hop_mut(hop).follow_medium(at, cx);
                self.flush(user, hop, at, true);
                if hop == place {
                    self.touched[user] = true;
                } else {
                    self.users[user].send(hop, at, cx);
                    self.flush(user, hop, at, true);
                }
            }
        }
    }

    /// Counts what is inside: while nothing of endpoints is, nothing is emitted.
    fn count_users(&mut self, cx: &Cx<'_>) {
        if self.has_loads() {
            self.users_inside = cx.users_inside();
        }
    }

    fn has_loads(&self) -> bool {
        self.users.iter().any(UserPath::has_loads)
    }

    fn next_load(&self) -> Time {
        self.users.iter().map(UserPath::next_load).min().unwrap_or(Time::NEVER)
    }

    /// An instant before which nothing leaves the cell, background loads aside.
    fn next_departure(&self) -> Time {
        let own = self.users.iter().map(UserPath::next_departure).min().unwrap_or(Time::NEVER);
        let shared = self.media.iter().map(|medium| {
            let hops =
                || medium.stations.iter().map(|(user, hop)| &self.users[usize::from(*user)].hops()[usize::from(*hop)]);
            let propagation = hops().map(Hop::least_transit).min().unwrap_or(Span::ZERO);
            let idle = if hops().all(Hop::is_empty) { CATCH_UP } else { Span::ZERO };
            medium.model.next_deadline() + propagation + idle
        });
        shared.fold(own, Time::min)
    }

    /// Users that a command concerns: `alice.fade` is the state `fade` of `alice`, `fade` that of all who have it.
    fn users_with_state<'a>(&self, name: &'a str) -> Result<(Vec<usize>, &'a str), CommandError> {
        if let Some((user, state)) = name.split_once('.')
            && let Some(number) = self.names.iter().position(|known| known == user)
        {
            return Ok((vec![number], state));
        }
        let all = (0..self.users.len()).filter(|user| self.users[*user].state_number(name).is_some());
        let all: Vec<usize> = all.collect();
        if all.is_empty() {
            let names = self.names.iter().zip(&self.users);
            let known: Vec<String> =
                names.flat_map(|(user, path)| path.state_names().map(move |state| format!("{user}.{state}"))).collect();
            return Err(CommandError::UnknownState { name: name.into(), known: known.join(", ") });
        }
        Ok((all, name))
    }

    fn carry_out(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        match command {
            Command::EnterState(name) => {
                let (users, state) = self.users_with_state(name)?;
                let command = Command::EnterState(state.into());
                for user in users {
                    self.users[user].carry_out(at, &command, cx)?;
                    self.tell_changes(at, user);
                    self.settle(at, user);
                }
            }
            Command::Configure(value) => {
                let Some(setting) = value.downcast_ref::<CellSetting>() else {
                    return Err(CommandError::Mismatch("a cell takes settings of its users".into()));
                };
                let user = usize::from(setting.user);
                let Some(path) = self.users.get_mut(user) else {
                    return Err(CommandError::Mismatch(format!("the cell has no user number {user}")));
                };
                path.carry_out(at, &Command::Configure(setting.setting.clone()), cx)?;
                self.tell_changes(at, user);
                self.settle(at, user);
            }
        }
        Ok(())
    }
}

impl Agenda for Cell {
    type Due = CellDue;

    fn due(&self) -> (Time, CellDue) {
        let service = self.media.iter().map(|medium| medium.model.next_deadline()).min().unwrap_or(Time::NEVER);
        let mut first = (service, CellDue { next: Next::Service, user: 0 });
        for (user, (at, next)) in self.due.iter().enumerate() {
            if (*at, *next) < (first.0, first.1.next) {
                first = (*at, CellDue { next: *next, user });
            }
        }
        first
    }

    fn run(&mut self, at: Time, due: CellDue, cx: &mut Cx<'_>) {
        if due.next == Next::Service {
            return self.serve(at, cx);
        }
        self.users[due.user].run(at, due.next, cx);
        if due.next == Next::State {
            self.tell_changes(at, due.user);
        }
        self.settle(at, due.user);
    }
}

impl Machine for Cell {
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>) {
        let Item::Pdu(pdu) = item else { return self.advance(at, cx) };
        self.run_until(at, cx);
        self.take(at, port, pdu, cx);
        self.count_users(cx);
    }

    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        self.run_until(at, cx);
        let outcome = self.carry_out(at, command, cx);
        self.count_users(cx);
        outcome
    }

    fn advance(&mut self, to: Time, cx: &mut Cx<'_>) {
        self.run_until(to, cx);
        self.count_users(cx);
    }

    fn advance_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        let reached = self.run_some(to, events, cx);
        self.count_users(cx);
        reached
    }

    fn next_deadline(&self) -> Option<Time> {
        self.due().0.finite()
    }

    fn next_emission(&self) -> Option<Time> {
        if !self.has_loads() {
            return self.next_departure().finite();
        }
        if self.users_inside == 0 {
            return (self.next_load() + KEEP_UP).finite();
        }
        // As in a path: a virtual packet can only let something go at the end of its hop.
        let least = self.users.iter().flat_map(UserPath::hops).map(Hop::least_transit).min();
        let load = self.next_load() + least.unwrap_or(Span::ZERO).min(KEEP_UP);
        self.next_departure().min(load).finite()
    }

    fn least_transit(&self) -> Span {
        self.users.iter().map(Machine::least_transit).min().unwrap_or(Span::ZERO)
    }

    fn least_transit_of(&self, at: Time, port: PortId, bytes: u32) -> Span {
        let Some(path) = self.users.get(usize::from(port.user())) else { return Span::ZERO };
        let on = &self.on[usize::from(port.user())];
        path.least_transit_beside(at, port.end(), bytes, |hop, at, direction, bits| {
            on[hop][direction as usize]
                .map_or(Span::ZERO, |(medium, _)| self.media[usize::from(medium)].model.least_time(at, direction, bits))
        })
    }

    fn state_in_force(&self) -> StateInForce {
        // Each user has states of its own; the first user's stands for them where there is only one.
        self.users[0].state_in_force()
    }

    fn held(&self) -> u64 {
        if self.has_loads() { self.users_inside } else { self.users.iter().map(UserPath::held_of_all).sum() }
    }

    fn wants_escapes(&self, port: PortId) -> Option<Framing> {
        self.users.get(usize::from(port.user()))?.wants_escapes(PortId::of(0, port.end()))
    }

    fn never_idle(&self) -> bool {
        self.users.iter().any(Machine::never_idle) || self.media.iter().any(|medium| medium.model.never_idle())
    }
}

impl Cell {
    fn take(&mut self, at: Time, port: PortId, pdu: Pdu, cx: &mut Cx<'_>) {
        let user = usize::from(port.user());
        let Some(path) = self.users.get_mut(user) else {
            debug_assert!(false, "port {} is no user's", port.0);
            return;
        };
        path.take(at, port.end(), pdu, cx);
        let hop = path.first_hop(port.end());
        self.flush(user, hop, at, false);
        self.due[user] = self.users[user].due();
    }
}

/// The users of a medium during its step.
struct CellAir<'a, 'b, 'c> {
    users: &'a mut [UserPath],
    stations: &'a [(u16, u16)],
    /// Stations that were asked for their backlog or a frame, or whose frame was sent.
    asked: &'a mut Vec<u16>,
    cx: &'b mut Cx<'c>,
}

impl<'c> CellAir<'_, '_, 'c> {
    fn on_air(&mut self, user: u16) -> OnAir<'_, '_, 'c, EntityModel> {
        self.asked.push(user);
        let (user, hop) = self.stations[usize::from(user)];
        OnAir { link: self.users[usize::from(user)].hop_mut(usize::from(hop)).link_mut(), cx: self.cx }
    }
}

impl Air for CellAir<'_, '_, '_> {
    fn backlog(&mut self, at: Time, user: u16, direction: Direction) -> Backlog {
        self.on_air(user).backlog(at, user, direction)
    }

    fn next_frame(&mut self, grant: &Grant) -> Option<Frame> {
        self.on_air(grant.user).next_frame(grant)
    }

    fn sent_at(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.on_air(grant.user).sent_at(at, grant, frame, quality)
    }

    fn sent_acknowledged(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.on_air(grant.user).sent_acknowledged(at, grant, frame, quality)
    }
}
