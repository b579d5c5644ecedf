// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Margin of wake-ups before deadlines, within a budget of processor time.
//!
//! A timer wakes the loop late, by an amount that differs from machine to machine and from second to
//! second. Whoever wakes by a margin earlier and watches the clock for the rest is late only where the timer
//! is later than the margin (Gurtov 1999, section 3; Kojo et al. 2001, section 6, where the user finds the
//! margin in preliminary runs). Here the loop keeps a histogram of the timer's lateness that forgets within
//! seconds, and chooses from it the least margin with which enough packets leave within the bound.

mod awake;
mod lateness;
mod policy;

use awake::Awake;
pub use awake::Turn;
use lateness::Lateness;
pub use policy::{AutoSpin, SpinPolicy, WHOLE_CORE_PPM, share_of_a_core, show_share};

/// The share of deadlines for which the margin is to suffice: a little more than the 99 in 100 that are
/// promised, since what is remembered is a sample.
const WANTED: f64 = 0.995;
/// Tolerance where that cannot be had: the cheapest margin whose share of met deadlines is so little below the
/// best is taken.
const NEAR_THE_BEST: f64 = 0.005;
/// Unused budget is kept for at most this long a burst of deadlines.
const CREDIT_LIMIT_NS: u64 = 5_000_000;
/// Half of the usual bound on lateness.
const BATCH_NAP_NS: u64 = 500_000;
/// Lateness above this, in ns, is the scheduler's doing, and no margin would cover it.
pub const MOST_MARGIN_NS: u64 = 250_000;
/// The margin is chosen anew after so many wake-ups.
const CHOOSE_EVERY: u32 = 16;
/// Nothing is chosen from fewer wake-ups than this.
const LEAST_REMEMBERED: f32 = 24.0;
/// Wake-ups older than this weigh less than a third.
const FORGET_NS: f32 = 1_500_000_000.0;
/// Weight that is kept however old it is: less tells nothing of one in a hundred.
const KEPT: f32 = 100.0;

/// The way of the margin during a run, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarginCourse {
    /// At the beginning.
    pub start_ns: u64,
    /// At the end.
    pub end_ns: u64,
    /// The least.
    pub least_ns: u64,
    /// The greatest.
    pub most_ns: u64,
    /// Number of deadlines for which the budget was spent: they were slept up to.
    pub unaffordable: u64,
}

/// Decides the margin and keeps account of its cost.
#[derive(Debug)]
pub struct Spin {
    policy: SpinPolicy,
    credit_ns: u64,
    credited_at_ns: u64,
    lateness: Lateness,
    /// Running mean and mean deviation of the time from a deadline, with the loop awake, until its packets
    /// were gone.
    work_ns: u64,
    work_deviation_ns: u64,
    /// Current margin before each deadline.
    margin_ns: u64,
    /// Wake-ups since the margin was chosen, and when that was.
    wake_ups: u32,
    chosen_at_ns: u64,
    /// Running mean of the time between wake-ups.
    interval_ns: u64,
    /// Time spent watching the clock since the run began.
    spun_ns: u64,
    /// True while an adaptive margin is not worth its cost.
    rests: bool,
    course: MarginCourse,
    /// Account of a loop that polls all the time, once the run has begun.
    awake: Option<Awake>,
}

impl Spin {
    /// A fresh account.
    pub fn new(policy: SpinPolicy, now_ns: u64) -> Spin {
        let margin_ns = match policy {
            SpinPolicy::Off | SpinPolicy::Batch | SpinPolicy::Always => 0,
            SpinPolicy::Margin(margin_ns) => margin_ns,
            SpinPolicy::Auto(auto) => auto.start_ns.min(MOST_MARGIN_NS),
        };
        Spin {
            policy,
            credit_ns: CREDIT_LIMIT_NS / 2,
            credited_at_ns: now_ns,
            lateness: Lateness::default(),
            work_ns: 0,
            work_deviation_ns: 0,
            margin_ns,
            wake_ups: 0,
            chosen_at_ns: now_ns,
            interval_ns: 0,
            spun_ns: 0,
            rests: false,
            course: MarginCourse {
                start_ns: margin_ns,
                end_ns: margin_ns,
                least_ns: margin_ns,
                most_ns: margin_ns,
                unaffordable: 0,
            },
            awake: None,
        }
    }

    /// Lets a loop poll from `now_ns` on if that is its policy: while the ends are made, nothing is to be met.
    pub fn begin(&mut self, now_ns: u64) {
        if self.policy == SpinPolicy::Always && self.awake.is_none() {
            self.awake = Some(Awake::since(now_ns));
        }
    }

    /// Next turn of a loop that polls all the time; nothing for other policies. `deadline_ns` is `u64::MAX` for no
    /// deadline.
    pub fn polling(&mut self, now_ns: u64, deadline_ns: u64) -> Option<Turn> {
        self.awake.as_mut().map(|awake| awake.next(now_ns, deadline_ns))
    }

    /// Leaves out an adaptive margin while departures are late by choice; one that the user gave stays.
    pub fn rest(&mut self, rests: bool) {
        self.rests = rests;
    }

    /// Margin of the next wake-up before its deadline.
    pub fn margin_ns(&mut self, now_ns: u64) -> u64 {
        let SpinPolicy::Auto(auto) = self.policy else { return self.margin_ns };
        if self.rests {
            return 0;
        }
        let earned = now_ns.saturating_sub(self.credited_at_ns).min(WHOLE_CORE_PPM * CREDIT_LIMIT_NS) * auto.budget_ppm
            / WHOLE_CORE_PPM;
        if earned > 0 {
            self.credited_at_ns = now_ns;
            self.credit_ns = (self.credit_ns + earned).min(CREDIT_LIMIT_NS);
        }
        if self.credit_ns >= self.margin_ns {
            self.margin_ns
        } else {
            self.course.unaffordable += 1;
            0
        }
    }

    /// The shortest time to sleep where nothing but departures calls for a wake-up.
    pub fn least_nap_ns(&self) -> u64 {
        if self.policy == SpinPolicy::Batch { BATCH_NAP_NS } else { 0 }
    }

    /// Learns that the timer set for `target_ns` woke the loop at `woke_ns`.
    pub fn woke(&mut self, target_ns: u64, woke_ns: u64) {
        let SpinPolicy::Auto(auto) = self.policy else { return };
        self.lateness.note(woke_ns.saturating_sub(target_ns));
        self.wake_ups += 1;
        if self.wake_ups < CHOOSE_EVERY {
            return;
        }
        let elapsed_ns = woke_ns.saturating_sub(self.chosen_at_ns);
        let interval_ns = elapsed_ns / u64::from(self.wake_ups);
        self.interval_ns = if self.interval_ns == 0 { interval_ns } else { (self.interval_ns * 3 + interval_ns) / 4 };
        self.wake_ups = 0;
        self.chosen_at_ns = woke_ns;
        let total = self.lateness.total();
        if total > KEPT {
            self.lateness.fade((-(elapsed_ns as f32) / FORGET_NS).exp().max(KEPT / total));
        }
        if total >= LEAST_REMEMBERED {
            self.choose(auto);
        }
    }

    /// Learns that with the loop awake at a deadline, its packets were gone `work_ns` after it.
    pub fn worked(&mut self, work_ns: u64) {
        if self.work_ns == 0 {
            self.work_ns = work_ns;
        }
        // A preemption on the way is none of the work's.
        let work_ns = work_ns.min(4 * self.work_ns.max(1_000));
        self.work_deviation_ns = (self.work_deviation_ns * 15 + work_ns.abs_diff(self.work_ns)) / 16;
        self.work_ns = (self.work_ns * 15 + work_ns) / 16;
    }

    /// Chooses the least margin that meets the bound. Where the budget cannot pay for it at every deadline, the
    /// clock is watched before as many as it pays for, and the margin is the one with which most are met.
    fn choose(&mut self, auto: AutoSpin) {
        let slack_ns = auto.bound_ns.saturating_sub(self.work_ns + 2 * self.work_deviation_ns);
        let affordable_ns = self.interval_ns as f64 * auto.budget_ppm as f64 / WHOLE_CORE_PPM as f64;
        let mut without = 0.0;
        let met = |margin_ns: u64, met: f64, cost_ns: f64, without: &mut f64| {
            if margin_ns == 0 {
                *without = met;
            }
            let paid = if cost_ns > affordable_ns { affordable_ns / cost_ns } else { 1.0 };
            *without + paid * (met - *without)
        };
        let best = self
            .lateness
            .prospects(slack_ns, MOST_MARGIN_NS)
            .map(|prospect| met(prospect.margin_ns, prospect.met, prospect.cost_ns, &mut without))
            .fold(0.0, f64::max);
        let wanted = WANTED.min(best - NEAR_THE_BEST);
        let chosen = self
            .lateness
            .prospects(slack_ns, MOST_MARGIN_NS)
            .find(|prospect| met(prospect.margin_ns, prospect.met, prospect.cost_ns, &mut without) >= wanted);
        self.margin_ns = chosen.map_or(0, |prospect| prospect.margin_ns);
        self.course.least_ns = self.course.least_ns.min(self.margin_ns);
        self.course.most_ns = self.course.most_ns.max(self.margin_ns);
        self.course.end_ns = self.margin_ns;
    }

    /// Accounts for `nanoseconds` of watching the clock.
    pub fn spent(&mut self, nanoseconds: u64) {
        self.spun_ns += nanoseconds;
        self.credit_ns = self.credit_ns.saturating_sub(nanoseconds);
    }

    /// Accounts for `nanoseconds` of polling that found nothing to do.
    pub fn polled(&mut self, nanoseconds: u64) {
        self.spun_ns += nanoseconds;
    }

    /// Time spent watching the clock since the run began, in ns.
    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
    }

    /// The way of the margin so far.
    pub fn course(&self) -> MarginCourse {
        self.course
    }
}

#[cfg(test)]
mod tests;
