// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packet schedulers: the bearer that a transmitter serves next, one exchange at a time.
//!
//! A scheduler of a cell (`schedule/`) shares the resources of a slot; these share the time of a medium that has one
//! thing on the air at a time. They hear how each exchange ended, as its acknowledgement tells, and nothing else of the
//! channels: no estimate comes from elsewhere. Every packet scheduler keeps these rules:
//!
//! - It chooses among those that may have something to send, and always one of them: all are work conserving.
//! - A choice by itself changes no account: a bearer that turns out to have nothing is left out and the scheduler is
//!   asked again. An exchange is charged when it has ended, with all the time that it took.
//! - Equals are served in the order of their numbers.

mod cif_q;
mod claims;
mod effort_limited;
mod fair_queueing;
mod first_come;
mod flows;
mod outcome_fair;
mod round_robin;
mod server_based;
mod strict_priority;
mod unit;
mod weighted_round_robin;

use airpath_core::{Bits, Span, Time};

use crate::problem::Problem;
use crate::registry::registry;
use crate::schedule::unknown_bearer;

pub use cif_q::{CifQ, CifQConfig};
pub use effort_limited::{Elf, ElfConfig, PowerClass};
pub use fair_queueing::{Wfq, WfqConfig};
pub use first_come::{FirstCome, FirstComeConfig};
pub use flows::{ElfFlow, PriorityFlow};
pub use outcome_fair::{OutcomeFair, OutcomeFairConfig};
pub use round_robin::{InTurn, InTurnConfig};
pub use server_based::{ServerBased, ServerBasedConfig};
pub use strict_priority::{StrictPriority, StrictPriorityConfig};
pub use unit::ServiceUnit;
pub use weighted_round_robin::{Wrr, WrrConfig};

/// A bearer that may have something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its number among the bearers of the medium.
    pub bearer: u16,
    /// Arrival of its oldest waiting packet, where the scheduler asks for it ([`PacketScheduler::needs_ages`]).
    pub since: Time,
}

/// Result of an exchange, as its acknowledgements tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Time for which nobody else could use the medium.
    pub air: Span,
    /// Number of frames that were sent.
    pub frames: u32,
    /// Number of those that were acknowledged.
    pub arrived: u32,
    /// Bits of the frames that were acknowledged.
    pub arrived_bits: Bits,
}

/// The medium on which a packet scheduler works: an exchange of a frame that is neither short nor lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nominal {
    /// Bits of the frame.
    pub frame: Bits,
    /// Time of the exchange.
    pub exchange: Span,
}

impl Nominal {
    /// Rate of the medium without errors, in bit/s.
    pub fn capacity(&self) -> f64 {
        self.frame.get() as f64 / self.exchange.as_secs_f64()
    }
}

/// Surroundings of a packet scheduler at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// Names of all bearers of the medium, in the order of their numbers.
    pub bearers: &'a [&'a str],
    /// The medium.
    pub nominal: Nominal,
}

/// A packet scheduler.
pub trait PacketScheduler: Send {
    /// Place in `waiting`, which is not empty and in the order of the numbers, of the bearer that is served next.
    fn pick(&mut self, at: Time, waiting: &[Waiting]) -> usize;

    /// An exchange of `bearer`, the one that was picked last, has ended.
    fn outcome(&mut self, at: Time, bearer: u16, outcome: &Outcome);

    /// True if it has to know how long packets have waited.
    fn needs_ages(&self) -> bool {
        false
    }
}

/// Parameters of a packet scheduler, seen from the medium.
trait OnMedium {
    /// Names of bearers in the parameters, each with its key.
    fn names(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// Errors of the parameters on a medium, if any.
    fn problems_on(&self, _nominal: &Nominal) -> Vec<Problem> {
        Vec::new()
    }
}

registry! {
    /// The packet scheduler of a medium: `{ type = "round_robin" }`.
    config PacketSchedulerConfig,
    /// A packet scheduler of any registered kind.
    model PacketSchedulerModel,
    dispatch dispatch_packet_scheduler, dispatch_packet_scheduler_config,
    built from crate::serve::Beginning<'_>,
    reconfigured no,
    /// The bearer whose packet has waited longest.
    FirstCome = first_come::{FirstComeConfig, FirstCome},
    /// One exchange of each bearer in turn.
    /// Source: Nagle 1985 (RFC 970).
    RoundRobin = round_robin::{InTurnConfig, InTurn},
    /// Exchanges in proportion to weights.
    /// Source: Katevenis et al. 1991.
    Wrr = weighted_round_robin::{WrrConfig, Wrr},
    /// Time in proportion to weights, whatever arrives: start-time fair queueing.
    /// Source: Goyal et al. 1996.
    Wfq = fair_queueing::{WfqConfig, Wfq},
    /// Levels one above the other, and reservations within them.
    /// Source: Eckhardt and Steenkiste 2002, section 5.
    StrictPriority = strict_priority::{StrictPriorityConfig, StrictPriority},
    /// Outcome in proportion to weights, whatever time that takes.
    /// Source: Eckhardt and Steenkiste 2002, section 5.2.
    OutcomeFair = outcome_fair::{OutcomeFairConfig, OutcomeFair},
    /// Outcome in proportion to weights, or as reserved, within a limit of the effort.
    /// Source: Eckhardt and Steenkiste 2000; 2002, sections 6 and 7.
    Elf = effort_limited::{ElfConfig, Elf},
    /// A server that gives bearers a part of the medium for what they have lost.
    /// Source: Ramanathan and Agrawal 1998.
    ServerBased = server_based::{ServerBasedConfig, ServerBased},
    /// Leads and lags against a medium without errors.
    /// Source: Ng et al. 1998.
    CifQ = cif_q::{CifQConfig, CifQ},
}

impl PacketSchedulerConfig {
    /// Errors of the configuration on a medium with these bearers, if any.
    pub fn problems_of(&self, bearers: &[&str]) -> Vec<Problem> {
        let names = dispatch_packet_scheduler_config!(self, config => config.names());
        let unknown = names.into_iter().filter(|(_, name)| !bearers.contains(name));
        unknown.map(|(key, name)| unknown_bearer(key, name, "on the medium", bearers)).collect()
    }

    /// Errors of the configuration on a medium, whoever is on it, if any.
    pub fn problems_on(&self, nominal: &Nominal) -> Vec<Problem> {
        dispatch_packet_scheduler_config!(self, config => config.problems_on(nominal))
    }
}

impl PacketScheduler for PacketSchedulerModel {
    fn pick(&mut self, at: Time, waiting: &[Waiting]) -> usize {
        dispatch_packet_scheduler!(self, scheduler => scheduler.pick(at, waiting))
    }
    fn outcome(&mut self, at: Time, bearer: u16, outcome: &Outcome) {
        dispatch_packet_scheduler!(self, scheduler => scheduler.outcome(at, bearer, outcome));
    }
    fn needs_ages(&self) -> bool {
        dispatch_packet_scheduler!(self, scheduler => scheduler.needs_ages())
    }
}
