// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A path: one or more hops in a row, and states that switch the parameters of all of them at one
//! instant. Which state comes when is decided in [`crate::states`].
//!
//! Source: Kojo et al. 2001, sections 4.2 (pipelining) and 5.1 (state changes).
//!
//! At one instant all service of all hops comes first (hops in order, the client's end first), then
//! state changes, then the arrival of packets that one hop hands to the next, one after the other,
//! each followed by what it causes; then, likewise, the packets of background loads in the order in which
//! these are written; arrivals at the ports come last of all.

mod changes;
mod departures;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use airpath_core::{
    Cause, Command, CommandError, Credit, Cx, Direction, End, Event, EventKind, Framing, Item, Machine, Origin,
    PacketFilters, Pdu, PortId, Seed, Signal, Span, StateInForce, Time,
};

use crate::agenda::{Agenda, KEEP_UP, Next};
use crate::bearers::Bearers;
use crate::config::{HopConfig, PathConfig};
use crate::entity::{EntityModel, LinkEntity};
use crate::filter_list::FilterList;
use crate::flow_control::{Window, length_of};
use crate::hop::Hop;
use crate::load::Loads;
use crate::medium::{Medium, MediumModel, UserMedium};
use crate::states::Schedule;
use crate::windows::Windows;

/// A path of hops with any link entities and media; the defaults are those that a scenario builds.
pub struct Path<E: LinkEntity = EntityModel, M: Medium = MediumModel> {
    /// The hops; one with several bearers is several, side by side.
    hops: Vec<Hop<E, M>>,
    /// The bearers, where a hop has several.
    bearers: Option<Box<Bearers>>,
    /// Components of a change: the names of the states and the parameters of their hops, by number.
    states: Vec<(String, Vec<HopConfig>)>,
    schedule: Schedule,
    /// Packets on the boundary between two hops: when, into which hop, in which direction.
    transfers: VecDeque<(Time, usize, Direction, Pdu)>,
    loads: Loads,
    /// The windows, where hops have flow control.
    windows: Option<Box<Windows>>,
    /// The framing for which escapes are to be counted, uplink first. No state changes it.
    framings: [Option<Framing>; 2],
    /// True if lengths depend on headers, uplink first. No state changes it.
    reads_headers: [bool; 2],
    /// The filters of all states and of what was set since, if there are some.
    filters: Option<Arc<FilterList>>,
    /// Number of packets of endpoints inside, as of the last call; kept only beside background loads.
    users_inside: u64,
    place: PathPlace,
}

/// Place of a path among those of its machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathPlace {
    /// Number of the user whose path it is.
    pub(crate) user: u16,
    /// Places of events of each user: one for the whole path, and one for each bearer of each hop.
    pub(crate) stride: u16,
    /// Number of the path's first background load among those of the machine.
    pub(crate) first_load: u16,
}

impl PathPlace {
    /// That of the only path of a machine.
    pub(crate) const ONLY: PathPlace = PathPlace { user: 0, stride: 0, first_load: 0 };

    /// Place of events of the path's bearer `index`.
    pub(crate) fn hop(self, index: usize) -> u16 {
        self.user * self.stride + index as u16
    }

    /// Place of events of the whole path: the one before its first hop.
    pub(crate) fn whole(self) -> u16 {
        self.hop(0).wrapping_sub(1)
    }
}

/// Way of packets that leave a hop.
struct WayOut<'a> {
    transfers: &'a mut VecDeque<(Time, usize, Direction, Pdu)>,
    loads: &'a Loads,
    bearers: Option<&'a Bearers>,
    windows: Option<&'a mut Windows>,
    hops: usize,
    place: PathPlace,
    state: u16,
}

impl WayOut<'_> {
    /// A packet leaves bearer `bearer`: for the next hop, or for the end of the path.
    fn take(&mut self, at: Time, bearer: usize, direction: Direction, pdu: Pdu, cx: &mut Cx<'_>) {
        let index = self.bearers.map_or(bearer, |bearers| bearers.hop(bearer));
        let of_hop = |kind, pdu: &Pdu| Event {
            hop: self.place.hop(bearer),
            ..Event::of_path(at, direction, kind, Cause::None, pdu, self.state)
        };
        if pdu.origin == Origin::Background && self.loads.ends_at(pdu.id, index) {
            return cx.record(of_hop(EventKind::Consumed, &pdu));
        }
        let next = match direction {
            Direction::Uplink if index + 1 < self.hops => index + 1,
            Direction::Downlink if index > 0 => index - 1,
            _ => {
                let event = Event::of_path(at, direction, EventKind::Delivered, Cause::None, &pdu, self.state);
                cx.record(Event { hop: self.place.whole(), ..event });
                if let Some(windows) = &mut self.windows {
                    windows.left(direction.receiver(), pdu.len);
                }
                return cx.emit(at, PortId::of(self.place.user, direction.receiver()), Item::Pdu(pdu));
            }
        };
        cx.record(of_hop(EventKind::Passed, &pdu));
        self.transfers.push_back((at, next, direction, pdu));
    }
}

impl Path {
    /// The path that `config` describes, at the beginning of a run with `seed`.
    pub fn new(config: &PathConfig, seed: Seed) -> Path {
        let (config, filters) = FilterList::of(config);
        let hops = config.hops.iter().enumerate().map(|(index, hop)| Hop::new(index as u16, hop, seed)).collect();
        Path::at_place(hops, &config, filters, PathPlace::ONLY, seed)
    }

    /// The same path with all hops on the general way: it does the same with more work, which is what tests compare.
    pub fn on_general_way(config: &PathConfig, seed: Seed) -> Path {
        let mut path = Path::new(config, seed);
        path.hops.iter_mut().for_each(Hop::take_general_way);
        path
    }
}

impl Path<EntityModel, UserMedium> {
    /// The path of a user of a cell, which is at `place` among the others.
    pub(crate) fn of_user(config: &PathConfig, place: PathPlace, seed: Seed) -> Path<EntityModel, UserMedium> {
        let (config, filters) = FilterList::of(config);
        let bearers = config.hops.iter().flat_map(|hop| hop.of_bearers().into_iter().map(move |one| (&hop.name, one)));
        let bearers = bearers.enumerate();
        let hops = bearers.map(|(index, (station, hop))| Hop::of_user(place.hop(index), &hop, station, seed)).collect();
        Path::at_place(hops, &config, filters, place, seed)
    }
}

impl<E: LinkEntity, M: Medium> Path<E, M> {
    /// A path of ready hops, with the states of `config`.
    ///
    /// # Panics
    /// Without any hop, or when a state does not describe all of them.
    pub fn with_hops(hops: Vec<Hop<E, M>>, config: &PathConfig, seed: Seed) -> Path<E, M> {
        let (config, filters) = FilterList::of(config);
        Path::at_place(hops, &config, filters, PathPlace::ONLY, seed)
    }

    fn at_place(
        hops: Vec<Hop<E, M>>,
        config: &PathConfig,
        filters: FilterList,
        place: PathPlace,
        seed: Seed,
    ) -> Path<E, M> {
        assert!(!hops.is_empty(), "a path has at least one hop");
        let beginning = (Event::INITIAL_STATE.to_string(), config.hops.clone());
        let others = config.states.iter().map(|state| (state.name.clone(), state.hops.clone()));
        let states: Vec<_> = std::iter::once(beginning).chain(others).collect();
        let bearers: Vec<usize> = config.hops.iter().map(HopConfig::bearer_count).collect();
        assert_eq!(bearers.iter().sum::<usize>(), hops.len(), "bearers are for users of a cell");
        let fits = |all: &[HopConfig]| all.iter().map(HopConfig::bearer_count).eq(bearers.iter().copied());
        assert!(states.iter().all(|(_, all)| fits(all)), "a state describes all hops and their bearers");
        let further = config.states.iter().map(|state| (state.name.as_str(), state.at, &state.stay));
        let schedule = Schedule::new(&config.initial, further, seed);
        let names: Vec<&str> = config.hops.iter().map(|hop| hop.name.as_str()).collect();
        let mut path = Path {
            hops,
            bearers: Bearers::new(&config.hops),
            windows: None,
            states,
            schedule,
            transfers: VecDeque::new(),
            loads: Loads::new(&config.background, place.first_load, &names, seed),
            framings: Direction::ALL.map(|direction| config.framing(direction)),
            reads_headers: Direction::ALL.map(|direction| config.reads_headers(direction)),
            filters: filters.shared(),
            users_inside: 0,
            place,
        };
        path.set_windows(&config.hops);
        path
    }

    /// Puts the windows of `configs` in force.
    fn set_windows(&mut self, configs: &[HopConfig]) {
        self.windows = Windows::configured(self.windows.take(), configs);
        if let Some(windows) = &self.windows {
            windows.put_up(&mut self.hops, self.bearers.as_deref());
        }
    }

    /// Lets go on what a window stopped and does so no more.
    #[inline(always)]
    pub(crate) fn follow_windows(&mut self, at: Time, cx: &mut Cx<'_>) {
        if self.windows.is_some() {
            self.look_at_windows(at, cx);
        }
    }

    #[cold]
    fn look_at_windows(&mut self, at: Time, cx: &mut Cx<'_>) {
        let Path { hops, bearers, transfers, windows, place, .. } = self;
        let Some(windows) = windows else { return };
        let between = |hop: usize, direction: Direction| {
            let here = transfers.iter().filter(|(_, to, way, _)| (*to, *way) == (hop, direction));
            length_of(here.map(|(.., pdu)| pdu))
        };
        windows.follow(at, (hops, bearers.as_deref()), between, place.user, cx);
    }

    /// The machine behind the port at `end`, where the path goes on, gives `credit` at `at`.
    fn take_credit(&mut self, at: Time, end: End, credit: Credit, cx: &mut Cx<'_>) {
        let hops = self.hop_count();
        let windows = self.windows.get_or_insert_with(|| Windows::none(hops));
        windows.take_credit(end, credit);
        let direction = end.other().sends();
        let last = windows.last_hop(direction);
        if Window::of_credit(&credit).is_none() {
            // Nobody looks at a window that is gone.
            for bearer in self.bearers_of(last) {
                self.hops[bearer].drop_window(at, direction, cx);
            }
        }
        if let Some(windows) = &self.windows {
            windows.put_up(&mut self.hops, self.bearers.as_deref());
        }
        self.follow_windows(at, cx);
    }

    /// True if packets wait in a queue whose window another machine heeds: it is told when one leaves.
    fn owes_credit(&self) -> bool {
        self.windows.as_ref().is_some_and(|windows| {
            let waits = |end: End| {
                self.bearers_of(self.first_hop(end))
                    .any(|bearer| self.hops[bearer].queue_length(end.sends()).packets > 0)
            };
            windows.gives_credit().any(waits)
        })
    }

    /// True if hops have flow control, or had it in a state before.
    pub(crate) fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// True if a port is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.is_any_paused())
    }

    /// The least time in which a packet passes any of the hops, if packets wait before a window: when any event lets
    /// them go on, what they cause leaves their hop no sooner than that after it.
    pub(crate) fn least_behind_windows(&self) -> Option<Span> {
        let waits = self.windows.is_some() && self.hops.iter().any(Hop::waits_before_window);
        waits.then(|| self.hops.iter().map(Hop::least_transit).min().unwrap_or(Span::ZERO))
    }

    /// The hops, the client's end first; one with several bearers is several.
    pub fn hops(&self) -> &[Hop<E, M>] {
        &self.hops
    }

    /// Number of hops, whatever bearers they have.
    pub(crate) fn hop_count(&self) -> usize {
        self.bearers.as_ref().map_or(self.hops.len(), |bearers| bearers.hops())
    }

    /// Numbers of the bearers of hop `hop`, among those of the path.
    #[inline]
    pub(crate) fn bearers_of(&self, hop: usize) -> Range<usize> {
        self.bearers.as_ref().map_or(hop..hop + 1, |bearers| bearers.of_hop(hop))
    }

    /// Number of the bearer of hop `hop` that takes `pdu`.
    #[inline]
    fn bearer_taking(&self, hop: usize, direction: Direction, pdu: &Pdu) -> usize {
        self.bearers.as_ref().map_or(hop, |bearers| bearers.taking(hop, direction, pdu))
    }

    fn serve(&mut self, at: Time, cx: &mut Cx<'_>) {
        for index in 0..self.hops.len() {
            let hop = &mut self.hops[index];
            if hop.next_deadline() <= at {
                hop.step(at, cx);
                self.let_out(index, at, cx);
            }
        }
    }

    /// The last stages of a step of bearer `index` at `at`, whose first ones have been run.
    pub(crate) fn send(&mut self, index: usize, at: Time, cx: &mut Cx<'_>) {
        self.hops[index].age(at, cx);
        self.let_out(index, at, cx);
    }

    /// Lets out what leaves bearer `index` in a step at `at`.
    #[inline]
    fn let_out(&mut self, index: usize, at: Time, cx: &mut Cx<'_>) {
        if !self.hops[index].lets_out() {
            return;
        }
        let (place, hops, state) = (self.place, self.hop_count(), self.schedule.state());
        let bearers = self.bearers.as_deref();
        let windows = self.windows.as_deref_mut();
        let mut way_out =
            WayOut { transfers: &mut self.transfers, loads: &self.loads, bearers, windows, hops, place, state };
        self.hops[index].let_out(|direction, pdu| way_out.take(at, index, direction, pdu, cx));
    }

    /// The bearer of this number.
    pub(crate) fn hop_mut(&mut self, index: usize) -> &mut Hop<E, M> {
        &mut self.hops[index]
    }

    /// An event of the whole path about `pdu`.
    fn of_path(&self, at: Time, direction: Direction, kind: EventKind, pdu: &Pdu) -> Event {
        let event = Event::of_path(at, direction, kind, Cause::None, pdu, self.schedule.state());
        Event { hop: self.place.whole(), ..event }
    }

    /// The next packet of a background load enters its hop.
    fn generate(&mut self, at: Time, cx: &mut Cx<'_>) {
        let Some((hop, direction, pdu)) = self.loads.take() else { return };
        let event = self.of_path(at, direction, EventKind::Generated, &pdu);
        let bearer = self.bearer_taking(hop, direction, &pdu);
        cx.record(Event { hop: self.place.hop(bearer), ..event });
        self.hops[bearer].offer(at, direction, pdu, cx);
    }

    /// Counts what is inside: while nothing of endpoints is, nothing is emitted.
    fn count_users(&mut self, cx: &Cx<'_>) {
        if !self.loads.is_empty() {
            self.users_inside = cx.users_inside();
        }
    }

    /// Takes a packet at `end` at `at`, up to which everything has been run; the number of the bearer that has it now.
    #[inline]
    pub(crate) fn take(&mut self, at: Time, end: End, mut pdu: Pdu, cx: &mut Cx<'_>) -> usize {
        let (direction, hop) = (end.sends(), self.first_hop(end));
        pdu.arrived = at;
        cx.record(self.of_path(at, direction, EventKind::Offered, &pdu));
        if let Some(windows) = &mut self.windows {
            windows.came(end, pdu.len);
        }
        let bearer = self.bearer_taking(hop, direction, &pdu);
        self.hops[bearer].offer(at, direction, pdu, cx);
        self.follow_windows(at, cx);
        bearer
    }

    /// Place of the first hop for what comes from `end`.
    fn first_hop(&self, end: End) -> usize {
        match end {
            End::Client => 0,
            End::Server => self.hop_count() - 1,
        }
    }

    /// Time of the next packet of a background load; `Time::NEVER` if there is none.
    pub(crate) fn next_load(&self) -> Time {
        self.loads.next()
    }

    /// Time of the next state by itself; `Time::NEVER` if there is none.
    pub(crate) fn next_state(&self) -> Time {
        self.schedule.due()
    }

    /// True if there are background loads.
    pub(crate) fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Number of packets of any origin inside.
    pub(crate) fn held_of_all(&self) -> u64 {
        self.hops.iter().map(Hop::held).sum::<u64>() + self.transfers.len() as u64
    }
}

impl<E: LinkEntity, M: Medium> Agenda for Path<E, M> {
    type Due = Next;

    #[inline]
    fn due(&self) -> (Time, Next) {
        let service = match self.hops.as_slice() {
            // No loop where there is nothing to compare.
            [only] => only.next_deadline(),
            hops => hops.iter().map(Hop::next_deadline).fold(Time::NEVER, Time::min),
        };
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        // At equal times the earlier line wins.
        let mut next = (service, Next::Service);
        if self.schedule.due() < next.0 {
            next = (self.schedule.due(), Next::State);
        }
        if transfer < next.0 {
            next = (transfer, Next::Transfer);
        }
        if self.loads.next() < next.0 {
            next = (self.loads.next(), Next::Load);
        }
        next
    }

    #[inline(always)]
    fn run(&mut self, at: Time, due: Next, cx: &mut Cx<'_>) {
        match due {
            Next::Service => self.serve(at, cx),
            Next::State => {
                let state = self.schedule.take();
                self.enter(at, state, cx);
            }
            Next::Transfer => {
                if let Some((at, hop, direction, pdu)) = self.transfers.pop_front() {
                    let bearer = self.bearer_taking(hop, direction, &pdu);
                    self.hops[bearer].offer(at, direction, pdu, cx);
                }
            }
            Next::Load => self.generate(at, cx),
        }
        self.follow_windows(at, cx);
    }
}

impl<E: LinkEntity, M: Medium> Machine for Path<E, M> {
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>) {
        self.run_until(at, cx);
        match item {
            Item::Pdu(pdu) => {
                self.take(at, port.end(), pdu, cx);
            }
            Item::Signal(Signal::Credit(credit)) => self.take_credit(at, port.end(), credit, cx),
        }
        self.count_users(cx);
    }

    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        self.advance(at, cx);
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
        // Whoever waits for the port is told when it may go on, at that instant.
        if self.is_paused() || self.owes_credit() {
            return self.due().0.finite();
        }
        if self.loads.is_empty() {
            return self.next_departure().finite();
        }
        if self.users_inside == 0 {
            // What is offered until a state changes passes as fast as it says now.
            return (self.loads.next() + KEEP_UP).min(self.next_state()).finite();
        }
        // A virtual packet is emitted nowhere. All that it can do is to let something go that waits for
        // others, at the end of its hop and so after the propagation delay.
        let least = self.hops.iter().map(Hop::least_transit).min().unwrap_or(Span::ZERO);
        let load = self.loads.next() + least.min(KEEP_UP);
        self.next_departure().min(load).finite()
    }

    fn foresee(&self, until: Time, foretell: &mut dyn FnMut(Time, PortId, &Pdu)) -> Time {
        if self.windows.is_some() || self.bearers.is_some() {
            return self.next_emission().unwrap_or(Time::NEVER);
        }
        let (certain, nothing_else_before) = self.certain_departures(until);
        for (at, direction, pdu) in certain.into_iter().take_while(|(at, ..)| *at < nothing_else_before) {
            foretell(at, PortId::of(self.place.user, direction.receiver()), pdu);
        }
        nothing_else_before
    }

    fn least_transit(&self) -> Span {
        // Bearers of a hop have its propagation.
        let first = |hop| self.bearers_of(hop).start;
        if self.windows.as_ref().is_some_and(|windows| windows.heeds_credits()) {
            // A credit lets a packet go that has passed the hops before.
            let last = [0, self.hop_count() - 1];
            return last.into_iter().map(|hop| self.hops[first(hop)].least_transit()).min().unwrap_or(Span::ZERO);
        }
        (0..self.hop_count()).fold(Span::ZERO, |sum, hop| sum + self.hops[first(hop)].least_transit())
    }

    fn least_transit_of(&self, at: Time, port: PortId, bytes: u32) -> Span {
        self.least_transit_beside(at, port.end(), bytes, |_, _, _, _| Span::ZERO)
    }

    fn state_in_force(&self, _user: u16) -> StateInForce {
        StateInForce { number: self.schedule.state(), entries: self.schedule.entries() }
    }

    fn held(&self) -> u64 {
        if self.loads.is_empty() {
            return self.held_of_all();
        }
        self.users_inside
    }

    fn wants_escapes(&self, port: PortId) -> Option<Framing> {
        self.framings.get(usize::from(port.0)).copied().flatten()
    }

    fn wants_headers(&self, port: PortId) -> bool {
        self.reads_headers.get(usize::from(port.0)).is_some_and(|reads| *reads)
    }

    fn wants_filters(&self, _port: PortId) -> Option<Arc<dyn PacketFilters>> {
        let filters = self.filters.as_ref()?;
        Some(Arc::clone(filters) as Arc<dyn PacketFilters>)
    }

    fn controls_flow(&self, port: PortId) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.stops(port.end()))
    }

    fn never_idle(&self) -> bool {
        !self.loads.is_empty() || self.hops.iter().any(Hop::never_idle)
    }
}
