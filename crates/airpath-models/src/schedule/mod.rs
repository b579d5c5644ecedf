// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Schedulers: the bearer of each resource of a slot, in a cell that several bearers share.
//!
//! A scheduler is asked once for each slot in which somebody has something to send. Every scheduler keeps these rules:
//!
//! - A resource goes to a bearer that has something left to send, and for which the resource is usable.
//! - A bearer that was given as many bits as it has waiting gets no more in that slot.
//! - Equals are served in the order of their last turns, the longest ago first (`turns.rs`), and before their first
//!   turns in the order of their numbers.
//! - Slots in which nobody has anything to send change nothing, and neither do contenders that have nothing to send,
//!   so that the cell may leave both out. Averages decay by the number of slots passed, in closed form.

mod bearers;
mod best_channel;
mod deficit;
mod earliest_deadline;
mod fixed;
mod max_ci;
mod modified_largest_weighted_delay_first;
mod proportional_fair;
mod round_robin;
mod score_based;
mod turns;
mod window;

use std::collections::BTreeSet;

use airpath_core::{DrawKey, Time};

use crate::problem::Problem;
use crate::registry::registry;

pub use bearers::{EXAMPLE_BEARERS, PerBearer};
pub(crate) use bearers::{example as example_of_bearers, unknown_bearer, weight_problem};
pub use best_channel::{BestChannel, BestChannelConfig};
pub use deficit::{Deficit, DeficitConfig};
pub use earliest_deadline::{EarliestDeadline, EarliestDeadlineConfig};
pub use fixed::{Static, StaticConfig};
pub use max_ci::{MaxCi, MaxCiConfig};
pub use modified_largest_weighted_delay_first::{
    ModifiedLargestWeightedDelayFirst, ModifiedLargestWeightedDelayFirstConfig,
};
pub use proportional_fair::{ProportionalFair, ProportionalFairConfig};
pub use round_robin::{RoundRobin, RoundRobinConfig};
pub use score_based::{ScoreBased, ScoreBasedConfig};
pub use window::Window;

/// The bearer of a resource that nobody gets.
pub const NOBODY: u16 = u16::MAX;

/// A bearer of the cell in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its number among the bearers of the cell.
    pub bearer: u16,
    /// Number of bits that it could send now; 0: nothing.
    pub backlog_bits: u64,
    /// Arrival of its oldest waiting packet.
    pub since: Time,
}

/// A slot whose resources are to be shared.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// Its number, higher than that of the slot before.
    pub number: u64,
    /// Its beginning.
    pub start: Time,
    /// Number of its resources.
    pub resources: usize,
    /// Bearers in the order of their numbers. A bearer with nothing to send may be left out.
    pub contenders: &'a [Contender],
    /// Number of bits that each resource would carry, by the predicted quality; 0: unusable. All resources of the
    /// first contender, then those of the second, and so on.
    pub bits: &'a [u32],
}

impl Slot<'_> {
    /// Number of bits that `resource` would carry for the contender at `place`.
    #[inline(always)]
    pub fn bits_of(&self, place: usize, resource: usize) -> u32 {
        self.bits[place * self.resources + resource]
    }

    /// True if nobody has anything to send.
    fn is_empty(&self) -> bool {
        self.contenders.iter().all(|contender| contender.backlog_bits == 0)
    }
}

/// Surroundings of a scheduler at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// Names of all bearers of the cell, in the order of their numbers.
    pub bearers: &'a [&'a str],
    /// Number of resources of a slot.
    pub resources: usize,
    /// Number of slots in a second.
    pub slots_per_second: u32,
    /// Key of the draws.
    pub key: DrawKey,
}

/// A scheduler.
pub trait Scheduler: Send {
    /// Writes the bearer of each resource: its place among the contenders, or [`NOBODY`].
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]);

    /// Result of a transmission of `bits` that the sender of `bearer` has learnt of.
    fn outcome(&mut self, _bearer: u16, _bits: u32, _is_ok: bool) {}

    /// True if a resource stays free only where nobody who has something left to send can use it.
    fn is_work_conserving(&self) -> bool;
}

/// Parameters of a scheduler, seen from the cell.
trait InCell {
    /// Names of bearers in the parameters, each with its key.
    fn names(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// Errors of the parameters in a cell with that number of resources, if any.
    fn problems_with(&self, _resources: usize) -> Vec<Problem> {
        Vec::new()
    }
}

registry! {
    /// The scheduler of a cell: `{ type = "round_robin" }`.
    config SchedulerConfig,
    /// A scheduler of any registered kind.
    model SchedulerModel,
    dispatch dispatch_scheduler, dispatch_scheduler_config,
    built from crate::schedule::Beginning<'_>,
    reconfigured no,
    /// Each resource for the bearer that it belongs to.
    /// Source: Alfredsson et al. 2006.
    Static = fixed::{StaticConfig, Static},
    /// For each bearer in turn the resource that is best for it.
    /// Source: Alfredsson et al. 2006.
    BestChannel = best_channel::{BestChannelConfig, BestChannel},
    /// One resource for each bearer in turn.
    /// Source: Nagle 1985 (RFC 970).
    RoundRobin = round_robin::{RoundRobinConfig, RoundRobin},
    /// Each resource for the bearer for which it carries most.
    /// Source: Knopp and Humblet 1995.
    MaxCi = max_ci::{MaxCiConfig, MaxCi},
    /// Each resource for the bearer whose quality is best relative to its throughput.
    /// Source: Jalali et al. 2000.
    ProportionalFair = proportional_fair::{ProportionalFairConfig, ProportionalFair},
    /// Each resource for the bearer whose quality is best relative to its past.
    /// Source: Bonald 2004.
    ScoreBased = score_based::{ScoreBasedConfig, ScoreBased},
    /// Bits in proportion to weights: deficit round robin.
    /// Source: Shreedhar and Varghese 1996.
    Deficit = deficit::{DeficitConfig, Deficit},
    /// All resources for the bearer whose packet is due first.
    /// Source: Liu and Layland 1973.
    EarliestDeadline = earliest_deadline::{EarliestDeadlineConfig, EarliestDeadline},
    /// Each resource by quality, delay and weight.
    /// Source: Andrews et al. 2001.
    ModifiedLargestWeightedDelayFirst = modified_largest_weighted_delay_first::{
        ModifiedLargestWeightedDelayFirstConfig, ModifiedLargestWeightedDelayFirst
    },
}

impl SchedulerConfig {
    /// Errors of the configuration in a cell of `bearers` with `resources` a slot, if any.
    pub fn problems_of(&self, bearers: &[&str], resources: usize) -> Vec<Problem> {
        let known: BTreeSet<&str> = bearers.iter().copied().collect();
        let (names, mut problems) =
            dispatch_scheduler_config!(self, config => (config.names(), config.problems_with(resources)));
        for (key, name) in names.into_iter().filter(|(_, name)| !known.contains(name)) {
            problems.push(unknown_bearer(key, name, "in the cell", bearers));
        }
        problems
    }
}

impl Scheduler for SchedulerModel {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        dispatch_scheduler!(self, scheduler => scheduler.assign(slot, to));
    }
    fn outcome(&mut self, bearer: u16, bits: u32, is_ok: bool) {
        dispatch_scheduler!(self, scheduler => scheduler.outcome(bearer, bits, is_ok));
    }
    fn is_work_conserving(&self) -> bool {
        dispatch_scheduler!(self, scheduler => scheduler.is_work_conserving())
    }
}
