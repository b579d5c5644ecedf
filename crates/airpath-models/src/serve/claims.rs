// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Claims of flows on a medium: the account by which effort and outcome are divided at once.
//!
//! Source: Eckhardt and Steenkiste 2002, section 6, equation 1: of a medium, flow i gets the part
//! A_i = min(W_i / (1 − E_i), P_i W_i), with its weight W, its power factor P and its error rate E. No estimate of E is
//! needed. With S_i, the outcome of the flow (what has arrived), and N_i, its effort (what it took), the flow has the
//! tag
//!
//!   t_i = max(S_i / W_i, N_i / (P_i W_i)),
//!
//! which its effort pushes forward at the rate of 1 / A_i: where S_i = (1 − E_i) N_i, it is N_i max((1 − E_i) / W_i,
//! 1 / (P_i W_i)) = N_i / A_i. Serving the least tag makes all tags equal, and therefore N_i proportional to A_i. A flow
//! with P = 1 is served by its effort alone, as by start-time fair queueing (Goyal, Vin and Cheng 1996), and one with
//! an infinite P by its outcome alone.
//!
//! The difference between the tag and S_i / W_i is the lag of a flow in its effort region. It stays on the account, up
//! to a limit: when errors end, the flow is served beyond its weight until the lag is repaid, and up to P_i W_i, as its
//! effort still counts. A flow that has nothing to send keeps no lag.

use super::Waiting;
use super::unit::Service;

/// Account of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    weight: f64,
    power_factor: f64,
    /// S / W, and N / (P W), both from a beginning that moves with the clock.
    outcome: f64,
    effort: f64,
}

impl Claim {
    pub fn new(weight: f64, power_factor: f64) -> Claim {
        Claim { weight, power_factor, outcome: 0.0, effort: 0.0 }
    }

    fn tag(&self) -> f64 {
        self.outcome.max(self.effort)
    }

    fn charge(&mut self, service: &Service) {
        self.outcome += service.outcome / self.weight;
        self.effort += service.effort / (self.power_factor * self.weight);
    }

    /// Forgets what the flow has not had before `outcome` and `effort`.
    fn forget(&mut self, outcome: f64, effort: f64) {
        self.outcome = self.outcome.max(outcome);
        self.effort = self.effort.max(effort);
    }
}

/// Limits of what a flow may have saved up, in exchanges of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time in which the medium without errors would give the flow all of its lag.
    pub lag: f64,
    /// Time in which the flow may make all of the effort that it has not made.
    pub effort: f64,
}

/// Place among those that wait of the one with the least tag, of those that `fits`; the first of equals.
fn least(claims: &[Claim], waiting: &[Waiting], fits: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
    let mut least: Option<(usize, f64)> = None;
    for (place, waiting) in waiting.iter().enumerate().filter(|(_, it)| fits(usize::from(it.bearer))) {
        let tag = claims[usize::from(waiting.bearer)].tag();
        if least.is_none_or(|(_, least)| tag < least) {
            least = Some((place, tag));
        }
    }
    least
}

/// Flows that share what is there by their claims.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    claims: Vec<Claim>,
    /// True for those that share.
    is_in: Vec<bool>,
    /// True for those that had something to send at the last choice.
    waited: Vec<bool>,
    /// Tag of the last choice: all who wait have had what is due to them up to here.
    clock: f64,
    limits: Limits,
}

impl Sharing {
    /// Flows with these claims, of which those share that are `in`. Limits are turned into those of the tags: without
    /// errors the clock moves on by 1 / Σ W in an exchange.
    pub fn new(claims: Vec<Claim>, is_in: Vec<bool>, limits: Limits) -> Sharing {
        let weights: f64 = claims.iter().zip(&is_in).filter(|(_, is_in)| **is_in).map(|(claim, _)| claim.weight).sum();
        let limits = Limits { lag: limits.lag / weights, effort: limits.effort / weights };
        Sharing { waited: vec![false; claims.len()], claims, is_in, clock: 0.0, limits }
    }

    /// Place of the one that is served next, if one of them waits.
    pub fn pick(&mut self, waiting: &[Waiting]) -> Option<usize> {
        let mut waits = waiting.iter().peekable();
        for (bearer, (claim, waited)) in self.claims.iter_mut().zip(&mut self.waited).enumerate() {
            let is_waiting = waits.next_if(|waiting| usize::from(waiting.bearer) == bearer).is_some();
            if is_waiting && !*waited {
                claim.forget(self.clock, self.clock);
            }
            *waited = is_waiting;
        }
        let (place, tag) = least(&self.claims, waiting, |bearer| self.is_in[bearer])?;
        self.clock = self.clock.max(tag);
        Some(place)
    }

    pub fn charge(&mut self, bearer: u16, service: &Service) {
        let claim = &mut self.claims[usize::from(bearer)];
        claim.charge(service);
        claim.forget(self.clock - self.limits.lag, self.clock - self.limits.effort);
    }
}

/// Flows with reservations: W is the part of the medium that each has reserved, and the clock is the medium's time.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    claims: Vec<Claim>,
    is_in: Vec<bool>,
    /// Exchanges of the medium.
    clock: f64,
    limits: Limits,
}

impl Reservations {
    pub fn new(claims: Vec<Claim>, is_in: Vec<bool>, limits: Limits) -> Reservations {
        Reservations { claims, is_in, clock: 0.0, limits }
    }

    pub fn is_in(&self, bearer: u16) -> bool {
        self.is_in[usize::from(bearer)]
    }

    /// Forgets what is beyond the limits.
    pub fn update(&mut self, waiting: &[Waiting]) {
        let Reservations { claims, is_in, clock, limits } = self;
        let first = least(claims, waiting, |bearer| is_in[bearer]).map(|(_, tag)| tag);
        if let Some(tag) = first {
            // Reservations that exceed the medium fall behind for ever: nothing beyond the limit is saved up.
            *clock = clock.min(tag + limits.lag);
        }
        let reached = first.map_or(*clock, |tag| tag.min(*clock));
        let mut waits = waiting.iter().peekable();
        for (bearer, claim) in claims.iter_mut().enumerate() {
            if waits.next_if(|waiting| usize::from(waiting.bearer) == bearer).is_some() {
                claim.forget(reached - limits.lag, reached - limits.effort);
            } else {
                // Who has nothing to send keeps one packet's worth.
                claim.forget(*clock - 1.0 / claim.weight, *clock - limits.effort);
            }
        }
    }

    /// Place of the one that is served next of those with something due, and of those that `fits`, if there is one.
    pub fn pick(&self, waiting: &[Waiting], fits: impl Fn(u16) -> bool) -> Option<usize> {
        let fits = |bearer: usize| self.is_in[bearer] && fits(bearer as u16);
        least(&self.claims, waiting, fits).filter(|(_, tag)| *tag < self.clock).map(|(place, _)| place)
    }

    /// Place of the one with a reservation whose next service is due first, if one of them waits.
    pub fn pick_early(&self, waiting: &[Waiting]) -> Option<usize> {
        least(&self.claims, waiting, |bearer| self.is_in[bearer]).map(|(place, _)| place)
    }

    /// The medium has been used.
    pub fn pass(&mut self, service: &Service) {
        self.clock += service.effort;
    }

    pub fn charge(&mut self, bearer: u16, service: &Service) {
        self.claims[usize::from(bearer)].charge(service);
    }

    /// Charges what nobody else wanted: it repays a lag, and costs nothing beyond.
    pub fn charge_early(&mut self, bearer: u16, service: &Service) {
        let claim = &mut self.claims[usize::from(bearer)];
        let repaid = claim.outcome + service.outcome / claim.weight;
        claim.outcome = claim.outcome.max(repaid.min(self.clock));
    }
}
