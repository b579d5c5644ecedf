// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Blackouts: for a time nothing is transmitted over a link, and packets are dropped or kept.
//!
//! Source: Kojo et al. 2001, section 3 (link blackouts: "whether to drop or store the PDUs during the
//! blackout"), in three parts: what is queued when it begins, what is in flight then, and what arrives
//! while it lasts. A blackout begins and ends with a change of parameters, so at one instant it
//! comes behind all service and before all arrivals: a frame whose transmission or propagation ends at
//! the instant at which the blackout begins is not concerned, and one may start at the instant at
//! which it ends.
//!
//! *No frame starts while it lasts.* Buffers go on working: the send buffer takes packets while it has
//! room, an allocation runs, limits in time drop what has been queued for too long.
//!
//! *Queued* is what is in the queue or in the send buffer, as long as no frame of it has started.
//!
//! *In flight* are the frame under transmission and those that propagate. Dropped: what propagates is
//! lost when the blackout begins, the frame under transmission when that would have ended; the rest of
//! its packet is still sent, as after an error of the channel. Stored: what would have arrived during
//! the blackout arrives when it ends, in order; the frame under transmission is sent again from its
//! beginning, not before the blackout ends and not before its first transmission would have ended.
//! Passed: both go on as if nothing had happened. What the receiving end already holds is not concerned.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Treatment of waiting packets in a blackout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// They are kept, within the limits of the queue.
    #[default]
    Store,
    /// They are dropped.
    Drop,
}

/// Treatment of frames under transmission or propagation when the blackout begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// They arrive once it is over, in order.
    #[default]
    Store,
    /// They are lost.
    Drop,
    /// They arrive as if there were no blackout.
    Pass,
}

/// A blackout in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// The link works.
    #[default]
    None,
    /// Nothing is transmitted, and nothing is lost because of that.
    Store,
    /// Nothing is transmitted, and everything on the link is dropped.
    Drop,
}

/// A blackout in its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Packets in the queue and in the send buffer when it begins.
    #[serde(default)]
    pub queued: Waiting,
    /// Frames under transmission or propagation when it begins.
    #[serde(default)]
    pub in_flight: InFlight,
    /// Packets that arrive during the blackout.
    #[serde(default)]
    pub arriving: Waiting,
}

/// Blackout of the link, and its treatment of packets: `"none"`, `"store"`, `"drop"`, or `{ queued = "store",
/// in_flight = "drop", arriving = "store" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BlackoutConfig {
    /// One word for all packets.
    Whole(Whole),
    /// A word for each part; omitted parts are stored.
    Parts(Parts),
}

impl Default for BlackoutConfig {
    fn default() -> BlackoutConfig {
        BlackoutConfig::Whole(Whole::None)
    }
}

impl BlackoutConfig {
    /// A blackout that drops everything.
    pub const DROP: BlackoutConfig = BlackoutConfig::Whole(Whole::Drop);
    /// A blackout that stores everything.
    pub const STORE: BlackoutConfig = BlackoutConfig::Whole(Whole::Store);

    /// The parts of the blackout; none where the link works.
    pub fn parts(self) -> Option<Parts> {
        match self {
            BlackoutConfig::Whole(Whole::None) => None,
            BlackoutConfig::Whole(Whole::Store) => Some(Parts::default()),
            BlackoutConfig::Whole(Whole::Drop) => {
                Some(Parts { queued: Waiting::Drop, in_flight: InFlight::Drop, arriving: Waiting::Drop })
            }
            BlackoutConfig::Parts(parts) => Some(parts),
        }
    }

    /// Every blackout; the laws are tested with each of them.
    pub fn examples() -> Vec<BlackoutConfig> {
        let waiting = [Waiting::Store, Waiting::Drop];
        let mut all = vec![BlackoutConfig::default()];
        for queued in waiting {
            for in_flight in [InFlight::Store, InFlight::Drop, InFlight::Pass] {
                all.extend(waiting.map(|arriving| BlackoutConfig::Parts(Parts { queued, in_flight, arriving })));
            }
        }
        all
    }
}

/// Effects of a change of the blackout on a direction of a hop, besides its effects from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Drops queued packets.
    pub drops_queued: bool,
    /// Loses frames in flight.
    pub drops_in_flight: bool,
    /// Stores frames under transmission, to be sent again.
    pub stores_in_flight: bool,
    /// Delivers frames at once that propagate and would have arrived already.
    pub releases: bool,
}

/// The blackout of one direction of a hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blackout {
    now: Option<Parts>,
    /// Time at which frames in flight were last condemned to be lost.
    dropped_at: Option<Time>,
    /// Time at which frames in flight were last stored.
    stored_at: Option<Time>,
}

impl Blackout {
    pub(crate) fn new(config: BlackoutConfig) -> Blackout {
        Blackout { now: config.parts(), dropped_at: None, stored_at: None }
    }

    /// True if nothing may be transmitted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.now.is_some()
    }

    /// True if arriving packets are dropped.
    #[inline]
    pub(crate) fn drops_arriving(&self) -> bool {
        self.now.is_some_and(|parts| parts.arriving == Waiting::Drop)
    }

    /// True if propagating frames wait for the end of the blackout.
    #[inline]
    pub(crate) fn holds_in_flight(&self) -> bool {
        self.now.is_some_and(|parts| parts.in_flight == InFlight::Store)
    }

    /// Puts `config` in force at `at`. What the new blackout has in common with the one before, it does
    /// not do again: a state that is entered twice drops once.
    pub(crate) fn configure(&mut self, config: BlackoutConfig, at: Time) -> Change {
        let before = self.now;
        self.now = config.parts();
        let had = |waiting: fn(&Parts) -> bool| before.as_ref().is_some_and(waiting);
        let has = |waiting: fn(&Parts) -> bool| self.now.as_ref().is_some_and(waiting);
        let begins = |part: fn(&Parts) -> bool| has(part) && !had(part);
        let stores: fn(&Parts) -> bool = |parts| parts.in_flight == InFlight::Store;
        let change = Change {
            drops_queued: begins(|parts| parts.queued == Waiting::Drop),
            drops_in_flight: begins(|parts| parts.in_flight == InFlight::Drop),
            stores_in_flight: begins(stores),
            releases: had(stores) && !has(stores),
        };
        if change.drops_in_flight {
            self.dropped_at = Some(at);
        }
        if change.stores_in_flight {
            self.stored_at = Some(at);
        }
        change
    }

    /// Fate of a frame whose transmission began at `start` and has just ended.
    #[inline]
    pub(crate) fn fate(&self, start: Time) -> InFlight {
        if self.dropped_at.is_some_and(|at| start <= at) {
            InFlight::Drop
        } else if self.stored_at.is_some_and(|at| start <= at) {
            InFlight::Store
        } else {
            InFlight::Pass
        }
    }
}
