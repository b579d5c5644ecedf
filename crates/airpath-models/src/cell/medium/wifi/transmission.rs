// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Transmissions: what a contender sends at a turn, frames of one bearer, with the time that they and their answer take.

use airpath_core::{Bits, Direction, Span, Time};
use smallvec::SmallVec;

use super::channel::Channel;
use super::config::{Aggregation, WifiConfig};
use super::contention::Ready;
use super::phy::{ACK_BYTES, BLOCK_ACK_BYTES, CTS_BYTES, Mode, Phy, RTS_BYTES};
use super::rate_control::RateControl;
use super::service::Service;
use crate::air::{Air, Frame, Grant};
use crate::quality::Quality;

/// Longest frame that is tried for the rest of a transmission opportunity.
const LONGEST_FRAME_BYTES: u64 = 1 << 20;

/// Frames of one contender.
#[derive(Clone, Debug)]
pub(super) struct Transmission {
    pub contender: usize,
    /// Number of the bearer, and its place among those of the contender.
    pub bearer: u16,
    pub place: usize,
    pub direction: Direction,
    pub mode: Mode,
    pub frames: SmallVec<[(Grant, Frame); 1]>,
    pub begin: Time,
    /// True if RTS and CTS come before the frames.
    pub is_announced: bool,
    /// End of the last frame; of RTS where that is not answered.
    pub end: Time,
    /// Time from the end of the last frame to that of the answer.
    pub answer: Span,
    pub has_ended: bool,
}

/// Rate controls of the stations, by direction, and the modes between which they choose.
#[derive(Clone, Debug)]
pub(super) struct Controls {
    pub modes: Vec<Mode>,
    pub of_stations: Vec<[RateControl; 2]>,
}

/// Part of a transmission opportunity that is left for an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opportunity {
    /// Time that is left; none without a limit.
    pub left: Option<Span>,
    /// True for the first exchange, whose first packet may be longer.
    pub is_first: bool,
}

impl Opportunity {
    /// The beginning of one of that length; without a limit if that is 0.
    pub fn first(limit: Span) -> Opportunity {
        Opportunity { left: (limit > Span::ZERO).then_some(limit), is_first: true }
    }
}

/// The transmitting side of all contenders.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    pub phy: Phy,
    pub config: Box<WifiConfig>,
    /// Mode of each bearer, where no rate control chooses.
    pub modes: Vec<Mode>,
    /// Rate controls, if there are any.
    pub controls: Option<Box<Controls>>,
    /// Station of each bearer.
    pub stations: Vec<u16>,
    /// Radio channels of the stations, by direction; none where errors are those of the link alone.
    pub channels: Vec<[Option<Box<Channel>>; 2]>,
    /// Bearers of each contender.
    pub services: Vec<Service>,
}

impl Transmitter {
    /// The transmission of a contender that begins at `at`; none if it has nothing to send that fits.
    pub fn transmission<A: Air>(
        &mut self,
        at: Time,
        contender: usize,
        opportunity: Opportunity,
        air: &mut A,
    ) -> Option<Transmission> {
        for number in 0..self.services[contender].put_in_order(at, air) {
            let service = &self.services[contender];
            let place = service.asked(number);
            let (bearer, direction) = (service.bearer(place), service.direction());
            let mode = self.mode(bearer, direction);
            let frames = self.frames(at, (bearer, direction), mode, opportunity, air);
            let service = &mut self.services[contender];
            let Some(frames) = frames else {
                // What does not fit into the rest of an opportunity waits for another one.
                if opportunity.is_first || air.backlog(at, bearer, direction).bits == 0 {
                    service.has_nothing(place);
                }
                continue;
            };
            service.serves(place);
            let is_announced = opportunity.is_first && self.is_announced(&frames);
            let before = if is_announced { self.announcement(mode) } else { Span::ZERO };
            return Some(Transmission {
                contender,
                bearer,
                place,
                direction,
                mode,
                begin: at,
                is_announced,
                end: at + before + self.air_time(mode, &frames),
                answer: self.answer(mode, frames.len()),
                frames,
                has_ended: false,
            });
        }
        None
    }

    /// True if a contender has something to send in a slot that begins at `at`, of which nothing is taken.
    pub fn has_backlog<A: Air>(&mut self, at: Time, contender: usize, air: &mut A) -> bool {
        for number in 0..self.services[contender].put_in_order(at, air) {
            let service = &mut self.services[contender];
            let place = service.asked(number);
            if air.backlog(at, service.bearer(place), service.direction()).bits > 0 {
                return true;
            }
            service.has_nothing(place);
        }
        false
    }

    /// Notes that a transmission has ended at `at`; the time from which its contender may have more.
    pub fn served(&mut self, at: Time, transmission: &Transmission) -> Ready {
        let time = transmission.end.since(transmission.begin) + transmission.answer;
        let service = &mut self.services[transmission.contender];
        // Its send buffer may have room for more now.
        service.served(transmission.place, time, (at, false));
        service.ready()
    }

    /// Mode of the next transmission of a bearer in a direction.
    fn mode(&mut self, bearer: u16, direction: Direction) -> Mode {
        let station = usize::from(self.stations[usize::from(bearer)]);
        match &mut self.controls {
            Some(controls) => controls.modes[controls.of_stations[station][direction as usize].choose()],
            None => self.modes[usize::from(bearer)],
        }
    }

    /// Errors of a frame of a transmission by its radio channel, if it has one.
    fn quality(&mut self, transmission: &Transmission, frame: &Frame) -> Option<Quality> {
        let station = usize::from(self.stations[usize::from(transmission.bearer)]);
        let bytes = self.bytes(frame);
        let channel = self.channels[station][transmission.direction as usize].as_mut()?;
        Some(channel.quality(transmission.begin, transmission.mode.scheme?, bytes))
    }

    /// Tells the rate control of a transmission that `received` of the `sent` packets arrived.
    fn heard(&mut self, at: Time, transmission: &Transmission, sent: u32, received: u32) {
        let station = usize::from(self.stations[usize::from(transmission.bearer)]);
        if let Some(controls) = &mut self.controls {
            controls.of_stations[station][transmission.direction as usize].heard(at, sent, received);
        }
    }

    /// Ends the frames of a transmission at `at`, all of which are lost if there is a `collision`; true if one of them
    /// arrives.
    pub fn end_frames<A: Air>(
        &mut self,
        at: Time,
        transmission: &mut Transmission,
        collision: Option<&Quality>,
        air: &mut A,
    ) -> bool {
        let frames = std::mem::take(&mut transmission.frames);
        let (sent, mut received) = (frames.len() as u32, 0);
        for (grant, frame) in frames {
            let own = if collision.is_none() { self.quality(transmission, &frame) } else { None };
            received += u32::from(air.sent_acknowledged(at, &grant, frame, collision.or(own.as_ref())));
        }
        self.heard(at, transmission, sent, received);
        received > 0
    }

    /// All modes in which frames may be sent.
    pub fn all_modes(&self) -> &[Mode] {
        self.controls.as_ref().map_or(&self.modes, |controls| &controls.modes)
    }

    /// End of RTS, where nothing follows it.
    pub fn end_of_announcement(&self, transmission: &Transmission) -> Time {
        transmission.begin + self.phy.control_time(transmission.mode, RTS_BYTES)
    }

    /// Time on the air of CTS.
    pub fn time_of_cts(&self, mode: Mode) -> Span {
        self.phy.control_time(mode, CTS_BYTES)
    }

    /// Time of RTS and CTS with what is behind them.
    fn announcement(&self, mode: Mode) -> Span {
        let sifs = self.phy.standard.sifs();
        self.phy.control_time(mode, RTS_BYTES) + sifs + self.phy.control_time(mode, CTS_BYTES) + sifs
    }

    /// Time from the end of so many frames to that of the answer.
    fn answer(&self, mode: Mode, frames: usize) -> Span {
        let bytes = if frames > 1 { BLOCK_ACK_BYTES } else { ACK_BYTES };
        self.phy.standard.sifs() + self.phy.control_time(mode, bytes)
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

    /// The frames that a bearer sends in a direction from `at` on; none if there are none that fit.
    fn frames<A: Air>(
        &self,
        at: Time,
        (bearer, direction): (u16, Direction),
        mode: Mode,
        opportunity: Opportunity,
        air: &mut A,
    ) -> Option<SmallVec<[(Grant, Frame); 1]>> {
        let plain = Grant { resource: 0, bearer, direction, bits: None, start: at };
        let mut grant = plain;
        if let Some(left) = opportunity.left.filter(|_| !opportunity.is_first) {
            let most = self.longest(mode, rest(left, self.answer(mode, 1))?)?;
            grant.bits = Some(Bits::new(most.checked_sub(self.config.overhead_bytes())? * 8));
        }
        let mut frames = SmallVec::new();
        frames.push((plain, air.next_frame(&grant)?));
        let Some(Aggregation { packets, duration }) = self.config.aggregation else { return Some(frames) };
        let mut sum = aggregated(self.bytes(&frames[0].1));
        let mut longest = sum;
        // Octets of an aggregate that the opportunity has room for.
        let room = opportunity.left.map(|left| {
            let before = if opportunity.is_first { self.longest_announcement(mode) } else { Span::ZERO };
            rest(left, before + self.answer(mode, 2)).and_then(|left| self.longest(mode, left)).unwrap_or(0)
        });
        while frames.len() < usize::from(packets) && self.phy.air_time(mode, sum + longest) <= duration {
            if let Some(room) = room {
                // The delimiter, and up to 3 octets to a whole number of 4.
                let Some(most) = (room & !3).checked_sub(sum + 4 + self.config.overhead_bytes()) else { break };
                grant.bits = Some(Bits::new(most * 8));
            }
            let Some(frame) = air.next_frame(&grant) else { break };
            let bytes = aggregated(self.bytes(&frame));
            sum += bytes;
            longest = longest.max(bytes);
            frames.push((plain, frame));
        }
        Some(frames)
    }

    /// Time before an aggregate that may be announced.
    fn longest_announcement(&self, mode: Mode) -> Span {
        if self.config.rts_threshold.is_some() { self.announcement(mode) } else { Span::ZERO }
    }

    /// Greatest number of octets on the air for up to `time`; none if not even a header is.
    fn longest(&self, mode: Mode, time: Span) -> Option<u64> {
        let fits = |bytes: u64| self.phy.air_time(mode, bytes) <= time;
        let (mut low, mut high) = (0, LONGEST_FRAME_BYTES);
        if !fits(low) {
            return None;
        }
        while low + 1 < high {
            let middle = (low + high) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }
}

/// Rest of `time` behind `part`, if that fits in.
fn rest(time: Span, part: Span) -> Option<Span> {
    (part <= time).then(|| time - part)
}

/// Octets of a frame within an aggregate.
fn aggregated(bytes: u64) -> u64 {
    4 + bytes.next_multiple_of(4)
}
