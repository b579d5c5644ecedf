// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hidden stations: contention where some stations do not hear each other, so that each has a view of the medium of its
//! own.
//!
//! Source: IEEE 802.11-2016, 10.3.2 (physical and virtual carrier sense, NAV and its reset behind RTS without an answer)
//! and 10.3.2.5 (RTS and CTS). All stations hear the access point, and it hears all. Whoever hears two transmissions at
//! once, or one while it sends, receives neither of them (no capture). A frame that is heard whole sets the NAV of all
//! whom it is not for to the end of its answer; one that is not makes them wait for EIFS.
//!
//! Without hidden stations, contention is that of `mod.rs`, exchange by exchange (a test).
//!
//! Idealised: an answer that is lost costs its contender the window of a failure, and the packets count as received; a
//! contender knows as its frame ends that nobody answers. Frames of a transmission opportunity announce their own answer
//! alone.

use airpath_core::{Span, Time};
use smallvec::SmallVec;

use super::phy::Mode;
use super::transmission::{Opportunity, Transmission};
use super::{Wifi, slot_start};
use crate::air::Air;
use crate::cell::medium::wifi::config::Wait;

/// Kind of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rts,
    Cts,
    Data,
    Answer,
    /// Another exchange of an opportunity, of which it is not known yet whether there is something to send.
    Next,
}

/// A signal on the air.
#[derive(Clone, Debug)]
struct Signal {
    kind: Kind,
    mode: Mode,
    /// Node that began the exchange.
    initiator: usize,
    sender: usize,
    receiver: usize,
    end: Time,
    /// End of the exchange that it announces.
    announced: Time,
    /// Nodes that hear something else at the same time.
    is_garbled: Vec<bool>,
}

/// The exchange of a node that has begun it.
#[derive(Clone, Debug)]
struct Course {
    transmission: Transmission,
    /// Beginning of its opportunity.
    begin: Time,
}

/// The medium as a node finds it: a station, or the access point.
#[derive(Clone, Debug)]
struct View {
    /// Number of signals that it hears or sends.
    heard: u32,
    /// Beginning of the busy period, and end of the last signal in it.
    busy_from: Time,
    last_end: Time,
    /// End of what others have announced.
    announced: Time,
    /// Time at which an announcement by RTS is forgotten unless something is heard.
    forgets: Option<Time>,
    /// True if the last signal was not heard whole.
    is_garbled: bool,
    /// True in an idle period; its slot 0 begins at `begin`.
    is_idle: bool,
    begin: Time,
    /// Contenders whose exchanges have ended in the busy period.
    have_ended: SmallVec<[usize; 2]>,
    course: Option<Box<Course>>,
}

impl View {
    /// Beginning of the idle period, if nothing more is heard.
    fn idle_from(&self) -> Time {
        self.last_end.max(self.announced)
    }

    fn is_free(&self) -> bool {
        self.heard == 0 && self.course.is_none()
    }
}

/// Views of all nodes; the access point has the number behind the last station.
#[derive(Clone, Debug)]
pub(super) struct Views {
    /// True where the first hears the second.
    hears: Vec<Vec<bool>>,
    nodes: Vec<View>,
    signals: Vec<Signal>,
    /// Signals that follow SIFS behind something else: time, kind, and the node that began the exchange.
    planned: Vec<(Time, Kind, usize)>,
}

impl Views {
    /// The views of `stations` and an access point, where `pairs` of stations do not hear each other.
    pub fn new(stations: usize, pairs: &[(usize, usize)]) -> Views {
        let nodes = stations + 1;
        let hears =
            |one: usize, other: usize| one != other && !pairs.contains(&(one, other)) && !pairs.contains(&(other, one));
        let view = View {
            heard: 0,
            busy_from: Time::ZERO,
            last_end: Time::ZERO,
            announced: Time::ZERO,
            forgets: None,
            is_garbled: false,
            is_idle: true,
            begin: Time::ZERO,
            have_ended: SmallVec::new(),
            course: None,
        };
        Views {
            hears: (0..nodes).map(|one| (0..nodes).map(|other| hears(one, other)).collect()).collect(),
            nodes: vec![view; nodes],
            signals: Vec::new(),
            planned: Vec::new(),
        }
    }

    /// Time at which something is due.
    pub fn due(&self, wifi: &Wifi) -> Time {
        let ends = self.signals.iter().map(|signal| signal.end);
        let planned = self.planned.iter().map(|(at, ..)| *at);
        let forgotten = self.nodes.iter().filter_map(|view| view.forgets);
        let idle = self.nodes.iter().filter(|view| view.is_free() && !view.is_idle).map(View::idle_from);
        let slot = wifi.slot();
        let accesses = wifi.contenders.iter().zip(&wifi.owners).filter_map(|(contender, owner)| {
            let view = &self.nodes[usize::from(*owner)];
            let number = contender.access(view.begin, slot).filter(|_| view.is_free() && view.is_idle)?;
            Some(slot_start(view.begin, slot, number))
        });
        ends.chain(planned).chain(forgotten).chain(idle).chain(accesses).min().unwrap_or(Time::NEVER)
    }

    /// Does what is due at `at`: what ends, then who is idle, then what begins.
    pub fn step<A: Air>(&mut self, at: Time, wifi: &mut Wifi, air: &mut A) {
        let mut ended = Vec::new();
        self.signals.retain(|signal| {
            let is_over = signal.end <= at;
            if is_over {
                ended.push(signal.clone());
            }
            !is_over
        });
        for signal in ended {
            self.end(at, signal, wifi, air);
        }
        for node in 0..self.nodes.len() {
            let view = &mut self.nodes[node];
            if let Some(time) = view.forgets.filter(|time| *time <= at) {
                view.forgets = None;
                view.announced = view.announced.min(time);
            }
            if view.is_free() && !view.is_idle && view.idle_from() <= at {
                self.settle(node, wifi);
            }
        }
        let mut planned = Vec::new();
        self.planned.retain(|plan| {
            let is_due = plan.0 <= at;
            if is_due {
                planned.push(*plan);
            }
            !is_due
        });
        let contending = self.contend(at, wifi, air);
        for (_, kind, initiator) in planned {
            self.follow(at, kind, initiator, wifi, air);
        }
        for (node, transmission, outdone) in contending {
            self.nodes[node].course = Some(Box::new(Course { transmission, begin: at }));
            self.announce(at, node, wifi);
            outdone.into_iter().for_each(|contender| wifi.contenders[contender].ended(false));
        }
    }

    /// Transmissions of nodes whose slot begins at `at`, each with the contenders of the same node that are outdone.
    fn contend<A: Air>(
        &mut self,
        at: Time,
        wifi: &mut Wifi,
        air: &mut A,
    ) -> Vec<(usize, Transmission, SmallVec<[usize; 4]>)> {
        let slot = wifi.slot();
        let mut begins: Vec<(usize, Transmission, SmallVec<[usize; 4]>)> = Vec::new();
        for contender in 0..wifi.contenders.len() {
            let node = usize::from(wifi.owners[contender]);
            let view = &self.nodes[node];
            let number = wifi.contenders[contender].access(view.begin, slot);
            if !view.is_free() || !view.is_idle || number.map(|number| slot_start(view.begin, slot, number)) != Some(at)
            {
                continue;
            }
            let other = begins.last_mut().filter(|(other, ..)| *other == node);
            if let Some((.., outdone)) = other {
                if wifi.transmitter.has_backlog(at, contender, air) {
                    outdone.push(contender);
                    continue;
                }
            } else {
                let opportunity = Opportunity::first(wifi.contenders[contender].txop_limit());
                if let Some(transmission) = wifi.transmitter.transmission(at, contender, opportunity, air) {
                    begins.push((node, transmission, SmallVec::new()));
                    continue;
                }
            }
            wifi.contenders[contender].ready = wifi.transmitter.services[contender].ready();
        }
        begins
    }

    /// Begins the idle period of a node.
    fn settle(&mut self, node: usize, wifi: &mut Wifi) {
        let view = &mut self.nodes[node];
        let idle_from = view.idle_from();
        for (number, contender) in wifi.contenders.iter_mut().enumerate() {
            if usize::from(wifi.owners[number]) == node && !view.have_ended.contains(&number) {
                contender.found_busy(view.busy_from, idle_from);
            }
        }
        let standard = wifi.transmitter.phy.standard;
        let is_long = view.is_garbled && wifi.transmitter.config.after_failure == Wait::Eifs;
        let longer = if is_long { standard.sifs() + wifi.transmitter.phy.slowest_ack() } else { Span::ZERO };
        // EIFS passes whatever has been announced.
        view.begin = (view.last_end + longer).max(idle_from) + wifi.space;
        view.is_idle = true;
        view.have_ended.clear();
    }

    /// Node that a transmission is for.
    fn receiver(&self, transmission: &Transmission, node: usize, wifi: &Wifi) -> usize {
        let access_point = self.nodes.len() - 1;
        if node == access_point {
            usize::from(wifi.transmitter.stations[usize::from(transmission.bearer)])
        } else {
            access_point
        }
    }

    /// Sends the first signal of a node's exchange.
    fn announce(&mut self, at: Time, node: usize, wifi: &mut Wifi) {
        let Some(course) = &self.nodes[node].course else { return };
        let is_announced = course.transmission.is_announced;
        let end = if is_announced {
            wifi.transmitter.end_of_announcement(&course.transmission)
        } else {
            course.transmission.end
        };
        self.begin(at, if is_announced { Kind::Rts } else { Kind::Data }, node, end, wifi);
    }

    /// Sends what was planned for the exchange that `initiator` has begun.
    fn follow<A: Air>(&mut self, at: Time, kind: Kind, initiator: usize, wifi: &mut Wifi, air: &mut A) {
        let Some(course) = &mut self.nodes[initiator].course else { return };
        let transmission = &course.transmission;
        match kind {
            Kind::Rts | Kind::Data => {
                let end = transmission.end;
                self.begin(at, Kind::Data, initiator, end, wifi);
            }
            Kind::Cts => {
                let end = at + wifi.transmitter.time_of_cts(transmission.mode);
                self.begin(at, kind, initiator, end, wifi);
            }
            Kind::Answer => {
                let end = transmission.end + transmission.answer;
                self.begin(at, kind, initiator, end, wifi);
            }
            Kind::Next => {
                let contender = transmission.contender;
                let left = wifi.contenders[contender].txop_limit() - at.since(course.begin);
                let opportunity = Opportunity { left: Some(left), is_first: false };
                if let Some(next) = wifi.transmitter.transmission(at, contender, opportunity, air) {
                    course.transmission = next;
                    self.announce(at, initiator, wifi);
                } else {
                    wifi.contenders[contender].ready = wifi.transmitter.services[contender].ready();
                    self.finish(initiator, true, wifi);
                    if self.nodes[initiator].is_free() && self.nodes[initiator].idle_from() <= at {
                        self.settle(initiator, wifi);
                    }
                }
            }
        }
    }

    /// A signal begins at `at`.
    fn begin(&mut self, at: Time, kind: Kind, initiator: usize, end: Time, wifi: &mut Wifi) {
        let Some(course) = &self.nodes[initiator].course else { return };
        let other = self.receiver(&course.transmission, initiator, wifi);
        let (mode, announced) = (course.transmission.mode, course.transmission.end + course.transmission.answer);
        let (sender, receiver) =
            if matches!(kind, Kind::Cts | Kind::Answer) { (other, initiator) } else { (initiator, other) };
        let mut is_garbled = vec![false; self.nodes.len()];
        for (node, garbled) in is_garbled.iter_mut().enumerate() {
            let hears = |from: usize| node == from || self.hears[node][from];
            if !hears(sender) {
                continue;
            }
            for signal in self.signals.iter_mut().filter(|signal| hears(signal.sender)) {
                signal.is_garbled[node] = true;
                *garbled = true;
            }
        }
        let slot = wifi.slot();
        for (node, view) in self.nodes.iter_mut().enumerate() {
            if node != sender && !self.hears[node][sender] {
                continue;
            }
            view.forgets = None;
            if view.is_idle {
                if at >= view.begin {
                    let slots = at.since(view.begin).nanos() / slot.nanos();
                    let own = wifi.contenders.iter_mut().zip(&wifi.owners);
                    own.filter(|(_, owner)| usize::from(**owner) == node)
                        .for_each(|(contender, _)| contender.count(slots));
                }
                view.is_idle = false;
                view.busy_from = at;
            }
            view.heard += 1;
        }
        self.signals.push(Signal { kind, mode, initiator, sender, receiver, end, announced, is_garbled });
    }

    /// A signal has ended at `at`.
    fn end<A: Air>(&mut self, at: Time, signal: Signal, wifi: &mut Wifi, air: &mut A) {
        let Signal { kind, mode, initiator, sender, receiver, announced, is_garbled, .. } = signal;
        let sifs = wifi.sifs();
        let was_free = self.nodes[receiver].announced <= at;
        let mut is_ok = !is_garbled[receiver];
        // Errors of the channel are seen by all, as `mod.rs` has it.
        let mut is_whole = true;
        if kind == Kind::Data {
            let is_received = self.end_frames(at, initiator, !is_ok, wifi, air);
            is_whole = is_received || !is_ok;
            is_ok = is_received;
        }
        for (node, view) in self.nodes.iter_mut().enumerate() {
            if node != sender && !self.hears[node][sender] {
                continue;
            }
            view.heard -= 1;
            view.last_end = at;
            if node == sender {
                continue;
            }
            view.is_garbled = is_garbled[node] || !is_whole;
            if view.is_garbled || matches!(kind, Kind::Answer | Kind::Next) || node == initiator {
                continue;
            }
            if node != receiver || is_ok {
                view.announced = view.announced.max(announced);
            }
            if kind == Kind::Rts && node != receiver {
                let slot = wifi.slot();
                view.forgets = Some(at + sifs + wifi.transmitter.time_of_cts(mode) + sifs + slot + slot);
            }
        }
        match kind {
            Kind::Rts if is_ok && was_free => self.planned.push((at + sifs, Kind::Cts, initiator)),
            Kind::Cts if is_ok => self.planned.push((at + sifs, Kind::Data, initiator)),
            Kind::Data if is_ok => self.planned.push((at + sifs, Kind::Answer, initiator)),
            Kind::Answer if is_ok && self.keeps(at, initiator, wifi) => {
                self.planned.push((at + sifs, Kind::Next, initiator));
            }
            Kind::Answer => self.finish(initiator, is_ok, wifi),
            Kind::Data | Kind::Next => self.finish(initiator, false, wifi),
            Kind::Rts | Kind::Cts => {
                if let Some(course) = &mut self.nodes[initiator].course {
                    course.transmission.end = at;
                }
                self.end_frames(at, initiator, true, wifi, air);
                self.finish(initiator, false, wifi);
            }
        }
    }

    /// Ends the frames of the exchange that a node has begun; true if one of them arrives.
    fn end_frames<A: Air>(&mut self, at: Time, initiator: usize, collides: bool, wifi: &mut Wifi, air: &mut A) -> bool {
        let Some(course) = &mut self.nodes[initiator].course else { return false };
        let Wifi { transmitter, collision, contenders, .. } = wifi;
        let lost = collides.then_some(&**collision);
        let is_received = transmitter.end_frames(at, &mut course.transmission, lost, air);
        contenders[course.transmission.contender].ready = transmitter.served(at, &course.transmission);
        is_received
    }

    /// True if a node keeps the medium for another exchange.
    fn keeps(&mut self, at: Time, initiator: usize, wifi: &mut Wifi) -> bool {
        let Some(course) = &self.nodes[initiator].course else { return false };
        let next = at + wifi.sifs();
        let contender = &mut wifi.contenders[course.transmission.contender];
        let keeps = next < course.begin + contender.txop_limit() && contender.ready.0 <= next;
        if keeps {
            contender.keeps();
        }
        keeps
    }

    /// The exchange that a node has begun is over, with an answer if `is_ok`.
    fn finish(&mut self, initiator: usize, is_ok: bool, wifi: &mut Wifi) {
        let view = &mut self.nodes[initiator];
        if let Some(course) = view.course.take() {
            let contender = course.transmission.contender;
            wifi.contenders[contender].ended(is_ok);
            view.have_ended.push(contender);
        }
        view.is_garbled |= !is_ok;
    }
}
