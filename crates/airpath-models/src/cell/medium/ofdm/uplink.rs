// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Grants of the uplink: what the scheduler knows of the stations, and from when on its decisions hold.
//!
//! Source: 3GPP TS 36.321 and TS 38.321, clauses 5.4.4 (scheduling request) and 5.4.5 (buffer status reporting). A
//! station that has something to send, and of which the scheduler knows nothing, requests at the next opportunity:
//! a multiple of `request_period`, at which it has its data already. The scheduler learns of it `request_delay`
//! later, and takes it for one bit: one resource, in which the station reports its backlog. Each slot's frames of a
//! station report what is left behind them; the report is read where one of them arrives without an error, when the
//! slot ends. Frames with errors count as backlog, since the receiver knows that they are to be repeated. What the
//! scheduler decides when slot n begins holds in the first slot that begins `grant_delay` later or after that.
//!
//! Idealised: requests and grants take nothing of the medium and are never lost; the report takes no bits of its frame;
//! a station requests again as soon as the scheduler knows of nothing and has granted nothing that is still to come.

use std::collections::VecDeque;

use airpath_core::{Direction, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grid::Grid;
use super::{Lane, NO_SLOT, OfdmConfig};
use crate::air::{Air, Backlog};
use crate::problem::Problem;

/// Grants of the uplink: `{ request_period = "5 ms", request_delay = "2 ms", grant_delay = "4 ms" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UplinkGrantsConfig {
    /// Time from one opportunity for scheduling requests to the next; the first is at 0.
    pub request_period: Span,
    /// Time from an opportunity until the scheduler knows of the request.
    pub request_delay: Span,
    /// Time from the beginning of the slot in which the scheduler decides to that of the slot in which the station
    /// sends, rounded up to whole slots.
    pub grant_delay: Span,
}

impl Default for UplinkGrantsConfig {
    fn default() -> UplinkGrantsConfig {
        UplinkGrantsConfig {
            request_period: Span::from_millis(5),
            request_delay: Span::from_millis(2),
            grant_delay: Span::from_millis(4),
        }
    }
}

/// Greatest period and delays.
const MOST_DELAY: Span = Span::from_secs(10);

impl UplinkGrantsConfig {
    /// Errors in the parameters, if any.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.request_period == Span::ZERO {
            problems.push(Problem::new("request_period", "is 0 s; write for example \"5 ms\""));
        }
        let spans = [
            ("request_period", self.request_period),
            ("request_delay", self.request_delay),
            ("grant_delay", self.grant_delay),
        ];
        for (key, span) in spans.into_iter().filter(|(_, span)| *span > MOST_DELAY) {
            problems.push(Problem::new(key, format!("is {span}; it may be {MOST_DELAY} at most")));
        }
        problems
    }

    /// The first opportunity for a station that has something to send from `at` on; `is_early` if it has that before
    /// an opportunity at this very instant.
    fn opportunity(&self, at: Time, is_early: bool) -> Time {
        let period = self.request_period.nanos().max(1);
        let number = if is_early { at.nanos().div_ceil(period) } else { at.nanos() / period + 1 };
        number.checked_mul(period).map_or(Time::NEVER, Time::from_nanos)
    }
}

/// Knowledge of the scheduler about a bearer.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Backlog that is neither sent nor granted, as far as it is reported.
    bits: u64,
    /// Time since which there is some.
    since: Time,
    /// Time at which a request reaches the scheduler; `Time::NEVER` if none is under way.
    requested: Time,
    /// Number of grants that are still to come, and their bits.
    coming: u32,
    coming_bits: u64,
    /// Backlog behind the frames on the air, where there are some.
    report: Option<u64>,
}

/// A decision: resource, bearer and bits of each grant.
#[derive(Clone, Debug)]
struct Decision {
    slot: u64,
    grants: Vec<(u16, u16, u32)>,
}

/// Grants of one direction.
#[derive(Clone, Debug)]
pub(super) struct Grants {
    config: UplinkGrantsConfig,
    /// Number of slots from a decision to its slot.
    delay_slots: u64,
    known: Vec<Known>,
    /// Decisions for slots to come, in their order.
    decided: VecDeque<Decision>,
}

impl Grants {
    pub(super) fn new(config: &OfdmConfig, direction: Direction, bearers: usize) -> Option<Grants> {
        let grants = config.uplink_grants.filter(|_| direction == Direction::Uplink)?;
        let product = u128::from(grants.grant_delay.nanos()) * u128::from(config.slots_per_second);
        let nothing =
            Known { bits: 0, since: Time::ZERO, requested: Time::NEVER, coming: 0, coming_bits: 0, report: None };
        Some(Grants {
            config: grants,
            delay_slots: product.div_ceil(1_000_000_000) as u64,
            known: vec![nothing; bearers],
            decided: VecDeque::new(),
        })
    }

    /// `bearer` may have something to send from `at` on.
    pub(super) fn request(&mut self, at: Time, is_early: bool, bearer: u16) {
        let known = &mut self.known[usize::from(bearer)];
        if known.bits == 0 && known.coming == 0 && known.report.is_none() {
            let reaches = self.config.opportunity(at, is_early) + self.config.request_delay;
            known.requested = known.requested.min(reaches);
        }
    }

    /// The frames of the slot before have ended at `at`: each with its bearer, bits, and whether it is free of
    /// errors.
    pub(super) fn ended(&mut self, at: Time, frames: &[(u16, u32, bool)]) {
        for number in 0..self.known.len() {
            let known = &mut self.known[number];
            let Some(report) = known.report.take() else { continue };
            let (mut lost, mut is_read) = (0, false);
            for (_, bits, is_ok) in frames.iter().filter(|(bearer, ..)| usize::from(*bearer) == number) {
                lost += if *is_ok { 0 } else { u64::from(*bits) };
                is_read |= *is_ok;
            }
            let bits = if is_read { report.saturating_sub(known.coming_bits) } else { known.bits };
            known.learn(at, bits + lost);
        }
    }

    /// First slot from `next` on in which there is something to do; [`NO_SLOT`] if there is none.
    pub(super) fn next_slot(&self, grid: Grid, next: u64) -> u64 {
        if self.known.iter().any(|known| known.bits > 0) {
            return next;
        }
        let decided = self.decided.front().map_or(NO_SLOT, |decision| decision.slot);
        let requested = self.known.iter().map(|known| known.requested).min().and_then(Time::finite);
        decided.min(requested.map_or(NO_SLOT, |at| grid.at_or_after(at))).max(next)
    }
}

impl Known {
    fn learn(&mut self, at: Time, bits: u64) {
        if self.bits == 0 {
            self.since = at;
        }
        self.bits = bits;
    }
}

impl Lane {
    /// Slot `number` begins at `at`: decides about a later slot, and lets the bearers send that have grants for this
    /// one.
    pub(super) fn share_granted<A: Air>(
        &mut self,
        at: Time,
        number: u64,
        grid: Grid,
        config: &OfdmConfig,
        air: &mut A,
    ) {
        self.learn(at);
        let Some(mut grants) = self.grants.take() else { return };
        for known in grants.known.iter_mut().filter(|known| known.requested <= at) {
            known.requested = Time::NEVER;
            known.learn(at, known.bits.max(1));
        }
        self.decide(number + grants.delay_slots, grid, config, &mut grants);
        while let Some(decision) = grants.decided.pop_front_if(|decision| decision.slot <= number) {
            self.send_granted(at, number, &decision, &mut grants, air);
        }
        for bearer in 0..grants.known.len() {
            let known = &grants.known[bearer];
            let is_known = known.bits > 0 || known.coming > 0 || known.report.is_some();
            if self.ready[bearer] > number || is_known || known.requested != Time::NEVER {
                continue;
            }
            if air.backlog(at, bearer as u16, Direction::Uplink).bits > 0 {
                grants.request(at, true, bearer as u16);
            } else {
                self.ready[bearer] = NO_SLOT;
            }
        }
        self.grants = Some(grants);
    }

    /// Shares slot `number` among the bearers of which the scheduler knows something.
    fn decide(&mut self, number: u64, grid: Grid, config: &OfdmConfig, grants: &mut Grants) {
        let resources = usize::from(config.resources);
        self.contenders.clear();
        self.bits.clear();
        for (bearer, known) in grants.known.iter().enumerate().filter(|(_, known)| known.bits > 0) {
            self.contend(number, bearer as u16, Backlog { bits: known.bits, since: known.since });
        }
        self.assign(number, grid.start(number), resources);
        let mut decision = Decision { slot: number, grants: Vec::new() };
        for (resource, place) in self.assigned.iter().enumerate() {
            let place = usize::from(*place);
            let Some(contender) = self.contenders.get(place) else { continue };
            let bits = self.bits[place * resources + resource];
            if bits == 0 {
                continue;
            }
            let known = &mut grants.known[usize::from(contender.bearer)];
            known.bits = known.bits.saturating_sub(bits.into());
            known.coming += 1;
            known.coming_bits += u64::from(bits);
            decision.grants.push((resource as u16, contender.bearer, bits));
        }
        if !decision.grants.is_empty() {
            grants.decided.push_back(decision);
        }
    }

    /// Lets the bearers of a decision send, and report what is left.
    fn send_granted<A: Air>(&mut self, at: Time, number: u64, decision: &Decision, grants: &mut Grants, air: &mut A) {
        for (resource, bearer, bits) in &decision.grants {
            let known = &mut grants.known[usize::from(*bearer)];
            known.coming -= 1;
            known.coming_bits -= u64::from(*bits);
            if self.transmit(at, number, Direction::Uplink, (*resource, *bearer, *bits), air) {
                known.report = Some(0);
            }
        }
        for (bearer, known) in grants.known.iter_mut().enumerate() {
            if let Some(report) = &mut known.report {
                *report = air.backlog(at, bearer as u16, Direction::Uplink).bits;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_multiples_of_the_period() {
        let config = UplinkGrantsConfig::default();
        let of = |at, is_early| config.opportunity(Time::from_nanos(at), is_early).nanos();
        assert_eq!([of(0, true), of(0, false)], [0, 5_000_000]);
        assert_eq!([of(4_999_999, true), of(4_999_999, false)], [5_000_000, 5_000_000]);
        assert_eq!([of(5_000_000, true), of(5_000_000, false)], [5_000_000, 10_000_000]);
    }
}
