// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A cell: the paths of several users, with media that they share.
//!
//! Each user has a path with queues, link entities, channels, states and background loads of its own. A hop is on a
//! medium of its own, or on one that the cell has by name. Such a medium asks its stations for frames, as a hop's own
//! medium asks the only one. A station is the hop of a user, and may have several bearers: each has a queue, link
//! entities and an error process of its own, is asked and scheduled by itself, and is a hop of its own in the path
//! (`bearers.rs`). They share the radio channel, which the medium has, and the parameters of propagation and blackouts.
//!
//! The order at one instant is that of a path, over all users: all service first (hops by their place in their
//! paths; within a place users in order, and of each the bearers; then the media, then what leaves the hops), then
//! changes of state, transfers and background loads, each in the order of the users. A cell with one user therefore
//! leaves the trace of that user's path.

mod common_queues;
mod config;
pub mod medium;

use std::ops::Range;
use std::sync::Arc;

use airpath_core::{
    Command, CommandError, Cx, Direction, Framing, Item, Machine, Origin, PacketFilters, Pdu, PortId, Seed, Span,
    StateInForce, Time,
};

use crate::agenda::{Agenda, CATCH_UP, KEEP_UP, Next};
use crate::air::{Air, Backlog, Frame, Grant};
use crate::config::HopConfig;
use crate::entity::EntityModel;
use crate::hop::Hop;
use crate::link::OnAir;
use crate::medium::UserMedium;
use crate::path::{Path, PathPlace};
use crate::quality::Quality;

pub use config::{CellConfig, CellSettings, MediumOfCell, UserConfig};
use medium::Request;
pub use medium::{
    BearerBeginning, SharedBeginning, SharedMedium, SharedMediumConfig, SharedMediumModel, StationBeginning,
    continuous, ofdm, poll, wifi,
};

/// The shared medium of each direction of a bearer, if it is on one: its number, and the number of the bearer among
/// those on it.
type Attachment = [Option<(u16, u16)>; 2];

/// Place of a user of which no hop has been served in a round, and of one of which another has than those in turn.
const UNTOUCHED: usize = usize::MAX;
const NOT_HERE: usize = usize::MAX - 1;

type UserPath = Path<EntityModel, UserMedium>;

/// A cell at work.
pub struct Cell {
    users: Vec<UserPath>,
    /// Next thing that each user has to do, and when.
    due: Vec<(Time, Next)>,
    media: Vec<Shared>,
    /// Greatest number of hops of a user.
    hops: usize,
    /// Number of places of events of each user.
    places: u16,
    /// Shared media of each bearer, by user and bearer.
    on: Vec<Vec<Attachment>>,
    /// Names of the users.
    names: Vec<String>,
    /// Users with something due in the present round of service.
    active: Vec<usize>,
    /// Place at which a hop of each user has been served last in this round, or one of the two below.
    served: Vec<usize>,
    /// Users of which a hop has been served in this round.
    touched: Vec<usize>,
    /// Of those, the users whose hop at the present place has been.
    here: Vec<usize>,
    /// True if users of a medium have a limit in common.
    has_common_queues: bool,
    /// Number of packets of endpoints inside, as of the last call; kept only beside background loads.
    users_inside: u64,
}

/// A shared medium, and who is on it.
struct Shared {
    model: SharedMediumModel,
    /// User, and number among the user's bearers, of each bearer.
    bearers: Vec<(u16, u16)>,
    /// Number of the station of each bearer.
    stations: Vec<u16>,
    /// Bearers that it has asked for frames in its step.
    asked: Asked,
    /// Least place of a station's hop in its path.
    place: usize,
}

/// Bearers that a medium has asked for their backlog or a frame, or whose frame was sent, each once.
#[derive(Default)]
struct Asked {
    list: Vec<u16>,
    is_in: Vec<bool>,
}

impl Asked {
    #[inline]
    fn note(&mut self, bearer: u16) {
        if !self.is_in[usize::from(bearer)] {
            self.is_in[usize::from(bearer)] = true;
            self.list.push(bearer);
        }
    }
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
        let bearers = |user: &UserConfig| user.path.hops.iter().map(HopConfig::bearer_count).sum::<usize>();
        let places = config.users.iter().map(bearers).max().unwrap_or(0) as u16 + 1;
        let seeds: Vec<Seed> = config.users.iter().map(|user| user.seed(seed)).collect();
        let mut first_load = 0;
        let mut users = Vec::with_capacity(config.users.len());
        for (number, (user, seed)) in config.users.iter().zip(&seeds).enumerate() {
            let place = PathPlace { user: number as u16, stride: places, first_load };
            first_load += user.path.background.len() as u16;
            users.push(UserPath::of_user(&user.path, place, *seed));
        }
        let mut on: Vec<Vec<Attachment>> = config.users.iter().map(|user| vec![[None; 2]; bearers(user)]).collect();
        let mut media = Vec::new();
        for (number, medium) in config.media.iter().enumerate() {
            let members = medium.members(&config.users, &seeds);
            for (place, (user, bearer)) in members.places.iter().enumerate() {
                let station = &members.stations[usize::from(members.bearers[place].station)];
                for direction in Direction::ALL {
                    if medium.carries(station.hop, direction) {
                        on[usize::from(*user)][usize::from(*bearer)][direction as usize] =
                            Some((number as u16, place as u16));
                    }
                }
            }
            let beginning =
                SharedBeginning { stations: &members.stations, bearers: &members.bearers, key: medium.key(seed) };
            media.push(Shared {
                model: SharedMediumModel::new(&medium.config, beginning),
                place: members.hops.iter().copied().min().unwrap_or(0),
                stations: members.bearers.iter().map(|bearer| bearer.station).collect(),
                asked: Asked { list: Vec::new(), is_in: vec![false; members.bearers.len()] },
                bearers: members.places,
            });
        }
        let named = config.users.iter().zip(&on).all(|(user, on)| {
            let bearers = user.path.hops.iter().flat_map(|hop| std::iter::repeat_n(hop, hop.bearer_count()));
            let named = |hop: &HopConfig, way: Direction| hop.link(way).medium.name().is_some();
            bearers
                .zip(on)
                .all(|(hop, on)| Direction::ALL.iter().all(|way| named(hop, *way) == on[*way as usize].is_some()))
        });
        assert!(named, "a hop names media of its cell");
        let mut cell = Cell {
            due: vec![(Time::NEVER, Next::Service); users.len()],
            active: Vec::new(),
            served: vec![UNTOUCHED; users.len()],
            touched: Vec::new(),
            here: Vec::new(),
            names: config.users.iter().map(|user| user.name.clone()).collect(),
            users,
            media,
            has_common_queues: config.media.iter().any(|medium| medium.config.has_common_queue()),
            hops,
            places,
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
        user as u16 * self.places
    }

    /// Number of bearers of each hop of a user.
    pub fn bearers_of(&self, user: usize) -> Vec<usize> {
        let path = &self.users[user];
        (0..path.hop_count()).map(|hop| path.bearers_of(hop).len()).collect()
    }

    /// Number of packets of `origin` in each bearer of a user.
    pub fn held_of(&self, user: usize, origin: Origin) -> Vec<u64> {
        self.users[user].hops().iter().map(|hop| hop.held_of(origin)).collect()
    }

    /// Hands the requests of a user's bearer to its shared media at `now`; `is_early` as in [`Request`].
    #[inline]
    fn flush(&mut self, user: usize, bearer: usize, now: Time, is_early: bool) {
        for direction in Direction::ALL {
            if let Some((medium, number)) = self.on[user][bearer][direction as usize]
                && let Some(at) = self.users[user].hop_mut(bearer).medium_mut().take_request(direction)
            {
                let request = Request { at, is_early: is_early || at > now };
                self.media[usize::from(medium)].model.request(request, number, direction);
            }
        }
    }

    /// Tells the media of parameters of a user that have changed at `at`.
    #[cold]
    fn tell_changes(&mut self, at: Time, user: usize) {
        for bearer in 0..self.on[user].len() {
            let Some(changed) = self.users[user].hop_mut(bearer).medium_mut().take_changed() else { continue };
            for (medium, number) in self.on[user][bearer].into_iter().flatten() {
                let Shared { model, stations, .. } = &mut self.media[usize::from(medium)];
                let station = stations[usize::from(number)];
                // All bearers of a station have its channel: the first one tells of it.
                if number == 0 || stations[usize::from(number) - 1] != station {
                    model.configure(at, station, &changed);
                }
            }
        }
    }

    /// Hands all requests of a user to the media, and notes what the user has to do next.
    fn settle(&mut self, now: Time, user: usize) {
        for bearer in 0..self.on[user].len() {
            self.flush(user, bearer, now, false);
        }
        self.due[user] = self.users[user].due();
    }

    /// Runs one round of service that is due at `at`.
    fn serve(&mut self, at: Time, cx: &mut Cx<'_>) {
        self.active.clear();
        self.active.extend((0..self.users.len()).filter(|user| self.due[*user].0 <= at));
        for place in 0..self.hops {
            self.here.clear();
            for index in 0..self.active.len() {
                let user = self.active[index];
                if self.users[user].hop_count() <= place {
                    continue;
                }
                for bearer in self.users[user].bearers_of(place) {
                    let hop = self.users[user].hop_mut(bearer);
                    if hop.next_deadline() > at {
                        continue;
                    }
                    hop.receive(at, cx);
                    hop.step_own_medium(at, cx);
                    self.touch(user, place);
                    self.flush(user, bearer, at, true);
                }
            }
            self.step_media(place, at, cx);
            self.here.sort_unstable();
            for index in 0..self.here.len() {
                let user = self.here[index];
                for bearer in self.users[user].bearers_of(place) {
                    self.users[user].send(bearer, at, cx);
                    self.flush(user, bearer, at, true);
                }
            }
        }
        while let Some(user) = self.touched.pop() {
            self.served[user] = UNTOUCHED;
            if self.users[user].has_windows() {
                self.users[user].follow_windows(at, cx);
                // What a window lets go on comes behind the turn of the media, as what is handed over does.
                self.settle(at, user);
            }
            self.due[user] = self.users[user].due();
        }
    }

    /// Notes that the hop of a user at the present place has been served.
    fn touch(&mut self, user: usize, place: usize) {
        self.mark(user);
        if self.served[user] != place {
            self.served[user] = place;
            self.here.push(user);
        }
    }

    /// Notes that a hop of a user has been served in this round.
    fn mark(&mut self, user: usize) {
        if self.served[user] == UNTOUCHED {
            self.served[user] = NOT_HERE;
            self.touched.push(user);
        }
    }

    /// Runs the shared media at `place` that are due at `at`.
    fn step_media(&mut self, place: usize, at: Time, cx: &mut Cx<'_>) {
        for number in 0..self.media.len() {
            let Cell { media, users, .. } = self;
            let Shared { model, bearers, asked, place: own, .. } = &mut media[number];
            if *own != place || model.next_deadline() > at {
                continue;
            }
            model.step(at, &mut CellAir { users, bearers, asked, cx });
            asked.list.sort_unstable();
            for index in 0..self.media[number].asked.list.len() {
                let asked = &mut self.media[number].asked;
                let bearer = asked.list[index];
                asked.is_in[usize::from(bearer)] = false;
                let (user, bearer) = self.media[number].bearers[usize::from(bearer)];
                let (user, bearer) = (usize::from(user), usize::from(bearer));
                self.users[user].hop_mut(bearer).follow_medium(at, cx);
                self.flush(user, bearer, at, true);
                if self.users[user].bearers_of(place).contains(&bearer) {
                    self.touch(user, place);
                } else {
                    self.mark(user);
                    self.users[user].send(bearer, at, cx);
                    self.flush(user, bearer, at, true);
                }
            }
            self.media[number].asked.list.clear();
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
            let hop = |(user, bearer): &(u16, u16)| &self.users[usize::from(*user)].hops()[usize::from(*bearer)];
            let hops = || medium.bearers.iter().map(hop);
            let propagation = hops().map(Hop::least_transit).min().unwrap_or(Span::ZERO);
            let users = medium.bearers.iter().map(|(user, _)| &self.users[usize::from(*user)]);
            let propagation = users.filter_map(UserPath::least_behind_windows).fold(propagation, Span::min);
            let idle = if hops().all(Hop::is_empty) { CATCH_UP } else { Span::ZERO };
            medium.model.next_deadline() + propagation + idle
        });
        shared.fold(own, Time::min)
    }

    /// Users that a command concerns: `alice.fade` is the state `fade` of `alice`, `fade` that of all who have it.
    fn users_with_state<'a>(&self, name: &'a str) -> Result<(Vec<usize>, &'a str), CommandError> {
        let (users, state) = match name.split_once('.') {
            Some((user, state)) => {
                let Some(number) = self.names.iter().position(|known| known == user) else {
                    return Err(CommandError::UnknownUser { name: user.into(), known: self.names.join(", ") });
                };
                (number..number + 1, state)
            }
            None => (0..self.users.len(), name),
        };
        let having: Vec<usize> = users.clone().filter(|user| self.users[*user].state_number(state).is_some()).collect();
        if having.is_empty() {
            return Err(CommandError::UnknownState { name: name.into(), known: self.known_states(users) });
        }
        Ok((having, state))
    }

    /// Names of the states of `users`, each once; with those of its users where some do not have it.
    fn known_states(&self, users: Range<usize>) -> String {
        let mut states: Vec<(&str, Vec<&str>)> = Vec::new();
        for user in users.clone() {
            for state in self.users[user].state_names() {
                match states.iter_mut().find(|(known, _)| *known == state) {
                    Some((_, of)) => of.push(&self.names[user]),
                    None => states.push((state, vec![&self.names[user]])),
                }
            }
        }
        let shown = |(state, of): (&str, Vec<&str>)| {
            if of.len() == users.len() { state.to_string() } else { format!("{state} (of {})", of.join(", ")) }
        };
        states.into_iter().map(shown).collect::<Vec<_>>().join(", ")
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
                let Some(CellSettings { of_users }) = value.downcast_ref() else {
                    return Err(CommandError::Mismatch("a cell takes settings of its users".into()));
                };
                // All of them, or none.
                for (user, setting) in of_users {
                    let Some(path) = self.users.get(usize::from(*user)) else {
                        return Err(CommandError::Mismatch(format!("the cell has no user number {user}")));
                    };
                    path.fits(setting)?;
                }
                for (user, setting) in of_users {
                    let user = usize::from(*user);
                    self.users[user].set(at, setting, cx)?;
                    self.tell_changes(at, user);
                    self.settle(at, user);
                }
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
        self.tell_common_queues(due.user);
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
        if self.users.iter().any(UserPath::is_paused) {
            return self.due().0.finite();
        }
        if !self.has_loads() {
            return self.next_departure().finite();
        }
        if self.users_inside == 0 {
            // As in a path: until a state changes, packets pass as fast as the cell says now.
            let state = self.users.iter().map(UserPath::next_state).min().unwrap_or(Time::NEVER);
            return (self.next_load() + KEEP_UP).min(state).finite();
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
        path.least_transit_beside(at, port.end(), bytes, |bearer, at, direction, bits| {
            on[bearer][direction as usize]
                .map_or(Span::ZERO, |(medium, _)| self.media[usize::from(medium)].model.least_time(at, direction, bits))
        })
    }

    fn state_in_force(&self, user: u16) -> StateInForce {
        self.users.get(usize::from(user)).map_or_else(StateInForce::default, |path| path.state_in_force(0))
    }

    fn held(&self) -> u64 {
        if self.has_loads() { self.users_inside } else { self.users.iter().map(UserPath::held_of_all).sum() }
    }

    fn wants_escapes(&self, port: PortId) -> Option<Framing> {
        self.users.get(usize::from(port.user()))?.wants_escapes(PortId::of(0, port.end()))
    }

    fn wants_headers(&self, port: PortId) -> bool {
        self.users.get(usize::from(port.user())).is_some_and(|user| user.wants_headers(PortId::of(0, port.end())))
    }

    fn wants_filters(&self, port: PortId) -> Option<Arc<dyn PacketFilters>> {
        self.users.get(usize::from(port.user()))?.wants_filters(PortId::of(0, port.end()))
    }

    fn controls_flow(&self, port: PortId) -> bool {
        self.users.get(usize::from(port.user())).is_some_and(|user| user.controls_flow(PortId::of(0, port.end())))
    }

    fn never_idle(&self) -> bool {
        self.users.iter().any(Machine::never_idle) || self.media.iter().any(|medium| medium.model.never_idle())
    }
}

impl Cell {
    fn take(&mut self, at: Time, port: PortId, pdu: Pdu, cx: &mut Cx<'_>) {
        let user = usize::from(port.user());
        if user < self.users.len() {
            self.tell_common_queues(user);
        }
        let Some(path) = self.users.get_mut(user) else {
            debug_assert!(false, "port {} is no user's", port.0);
            return;
        };
        let bearer = path.take(at, port.end(), pdu, cx);
        if path.has_windows() {
            return self.settle(at, user);
        }
        self.flush(user, bearer, at, false);
        self.due[user] = self.users[user].due();
    }
}

/// The bearers on a medium during its step.
struct CellAir<'a, 'b, 'c> {
    users: &'a mut [UserPath],
    bearers: &'a [(u16, u16)],
    asked: &'a mut Asked,
    cx: &'b mut Cx<'c>,
}

impl<'c> CellAir<'_, '_, 'c> {
    fn on_air(&mut self, bearer: u16) -> OnAir<'_, '_, 'c, EntityModel> {
        self.asked.note(bearer);
        let (user, index) = self.bearers[usize::from(bearer)];
        OnAir { link: self.users[usize::from(user)].hop_mut(usize::from(index)).link_mut(), cx: self.cx }
    }
}

impl Air for CellAir<'_, '_, '_> {
    fn backlog(&mut self, at: Time, bearer: u16, direction: Direction) -> Backlog {
        self.on_air(bearer).backlog(at, bearer, direction)
    }

    fn next_frame(&mut self, grant: &Grant) -> Option<Frame> {
        self.on_air(grant.bearer).next_frame(grant)
    }

    fn sent_at(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.on_air(grant.bearer).sent_at(at, grant, frame, quality)
    }

    fn sent_acknowledged(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.on_air(grant.bearer).sent_acknowledged(at, grant, frame, quality)
    }
}
