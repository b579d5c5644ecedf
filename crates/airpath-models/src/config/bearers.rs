// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bearers: the parts of a user's traffic on a shared medium, each with a queue and a pair of link entities.
//!
//! Sources: 3GPP TS 36.300, section 13 (a radio bearer has a queue and RLC entities of its own, and filters choose the
//! bearer of a packet); Eckhardt and Steenkiste 2000 (the flows of a station are what a scheduler weighs, while errors
//! are those of the station).
//!
//! A bearer is a hop of its own beside those of the other bearers, with the parameters of the link but for those that
//! it names itself.

use airpath_core::{Bits, BufferLimit, Direction, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HopConfig, LinkConfig};
use crate::channel::ErrorsConfig;
use crate::entity::{EntityConfig, Fragmentation};
use crate::file::{VisitFile, under};
use crate::filter::VisitFilter;
use crate::problem::Problem;
use crate::queueing::QueueConfig;
use crate::queueing::classes::MatchConfig;
use crate::random::Random;

/// Maximum number of bearers of a hop, as many as a user equipment has at most (3GPP TS 36.331, `maxDRB` is 11) and
/// some more.
const MOST_BEARERS: usize = 32;

/// A bearer of a hop on shared media. What it does not name it has from the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Bearer")]
pub struct BearerConfig {
    /// Its name: a letter, then letters, digits, `_` or `-`. Schedulers know it behind the name of the user, as in
    /// `alice.voice`.
    pub name: String,
    /// Packets of the bearer. The first bearer that matches takes a packet; the last one has no conditions, and takes
    /// what is left.
    #[serde(rename = "match", default, skip_serializing_if = "MatchConfig::is_any")]
    pub matching: MatchConfig,
    /// Its input queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueConfig>,
    /// Its link entities. Both directions have the same kind, and no state changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<EntityConfig>,
    /// Its transmission errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorsConfig>,
    /// Capacity of its sending end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<BufferLimit>,
    /// Capacity of its receiving end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<BufferLimit>,
    /// Link-layer bits added to each of its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bits>,
    /// The factor by which the link compresses its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Ratio>,
    /// Division of its packets into frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragmentation: Option<Fragmentation>,
    /// The delay before transmission when a packet meets an empty bearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_delay: Option<Random<Span>>,
}

impl BearerConfig {
    /// A bearer called `name` that takes what `matching` says, with all else from the link.
    pub fn new(name: impl Into<String>, matching: MatchConfig) -> BearerConfig {
        BearerConfig {
            name: name.into(),
            matching,
            queue: None,
            entity: None,
            errors: None,
            send_buffer: None,
            receive_buffer: None,
            overhead: None,
            compression: None,
            fragmentation: None,
            allocation_delay: None,
        }
    }

    /// True if the bearer names the key at the beginning of `key` itself.
    fn names(&self, key: &str) -> bool {
        match key.split('.').next().unwrap_or_default() {
            "queue" => self.queue.is_some(),
            "entity" => self.entity.is_some(),
            "errors" => self.errors.is_some(),
            "send_buffer" => self.send_buffer.is_some(),
            "receive_buffer" => self.receive_buffer.is_some(),
            "overhead" => self.overhead.is_some(),
            "compression" => self.compression.is_some(),
            "fragmentation" => self.fragmentation.is_some(),
            "allocation_delay" => self.allocation_delay.is_some(),
            _ => false,
        }
    }

    /// Visits the files that its parameters name.
    pub(super) fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let Some(errors) = &mut self.errors {
            errors.files(&mut under("errors", visit));
        }
        if let Some(entity) = &mut self.entity {
            entity.files(&mut under("entity", visit));
        }
        if let Some(delay) = &mut self.allocation_delay {
            delay.files(&mut under("allocation_delay", visit));
        }
    }

    /// Visits the filters of packets in its parameters.
    pub(super) fn filters(&mut self, visit: &mut VisitFilter<'_>) {
        self.matching.filters(visit);
        if let Some(queue) = &mut self.queue {
            queue.filters(visit);
        }
        if let Some(errors) = &mut self.errors {
            errors.filters(visit);
        }
    }

    /// The `problem` of the bearer's link as one of the list of bearers. A key that the bearer does not name itself
    /// stays a part of the message.
    fn placed(&self, problem: Problem) -> Problem {
        let problem = if self.names(&problem.key) {
            problem
        } else {
            Problem::new("", format!("with `{}` of the link: {}", problem.key, problem.message))
        };
        problem.under(&self.name).under("bearers")
    }
}

impl LinkConfig {
    /// The link as `bearer` has it.
    fn of_bearer(&self, bearer: &BearerConfig) -> LinkConfig {
        fn or<T: Clone>(own: &Option<T>, link: &T) -> T {
            own.as_ref().unwrap_or(link).clone()
        }
        LinkConfig {
            rate: self.rate.clone(),
            propagation: self.propagation.clone(),
            queue: or(&bearer.queue, &self.queue),
            flow_control: self.flow_control.clone(),
            overhead: or(&bearer.overhead, &self.overhead),
            compression: or(&bearer.compression, &self.compression),
            fragmentation: bearer.fragmentation.or(self.fragmentation),
            send_buffer: or(&bearer.send_buffer, &self.send_buffer),
            receive_buffer: or(&bearer.receive_buffer, &self.receive_buffer),
            allocation_delay: or(&bearer.allocation_delay, &self.allocation_delay),
            errors: or(&bearer.errors, &self.errors),
            reorder: self.reorder.clone(),
            duplicate: self.duplicate.clone(),
            blackout: self.blackout,
            entity: or(&bearer.entity, &self.entity),
            medium: self.medium.clone(),
            fading: self.fading.clone(),
            bearers: Vec::new(),
        }
    }

    /// Errors in the bearers, if any; `of_link` are those of the link without them.
    pub(super) fn bearer_problems(&self, of_link: &[Problem]) -> Vec<Problem> {
        let mut problems = Vec::new();
        let Some(last) = self.bearers.last() else { return problems };
        if self.bearers.len() > MOST_BEARERS {
            let message = format!("are {}; a hop may have {MOST_BEARERS}", self.bearers.len());
            problems.push(Problem::new("bearers", message));
        }
        if self.medium.own().is_some() {
            let message = "need media that users share, in both directions; write medium = \"NAME\" of one of the \
                           [[media]] under `link`, or one medium for `uplink` and another for `downlink`";
            problems.push(Problem::new("bearers", message));
        }
        if !last.matching.is_any() {
            let message = "takes no packet that does not match, and is the last one, so that there would be packets \
                           without a bearer; add a bearer without `match`, such as { name = \"rest\" }";
            problems.push(Problem::new("match", message).under(&last.name).under("bearers"));
        }
        for (index, bearer) in self.bearers.iter().enumerate() {
            let place = |problem: Problem| problem.under(&bearer.name).under("bearers");
            let before = &self.bearers[..index];
            let mut characters = bearer.name.chars();
            let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
            if !begins || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                let name = &bearer.name;
                let message = format!("`{name}` is no name; it is a letter, then letters, digits, `_` or `-`");
                problems.push(place(Problem::new("name", message)));
            }
            if before.iter().any(|other| other.name == bearer.name) {
                let message = format!("another bearer is called `{}`, too", bearer.name);
                problems.push(place(Problem::new("name", message)));
            }
            if let Some(all) = before.iter().find(|other| other.matching.is_any()) {
                let message = format!(
                    "no packet gets here, as bearer `{}` before it takes all; put it before, or give that one a `match`",
                    all.name
                );
                problems.push(place(Problem::new("", message)));
            }
            problems.extend(bearer.matching.problems().into_iter().map(|problem| place(problem.under("match"))));
            let own = self.of_bearer(bearer).problems().into_iter();
            let own = own.filter(|problem| bearer.names(&problem.key) || !of_link.contains(problem));
            problems.extend(own.map(|problem| bearer.placed(problem)));
        }
        problems
    }
}

impl HopConfig {
    /// Names of the bearers; none of a hop without.
    pub fn bearer_names(&self) -> impl Iterator<Item = &str> {
        self.uplink.bearers.iter().map(|bearer| bearer.name.as_str())
    }

    /// Number of bearers, counting a hop without as one.
    pub fn bearer_count(&self) -> usize {
        self.uplink.bearers.len().max(1)
    }

    /// The hop as each of its bearers has it, in their order; the hop itself, if it has no bearers. The last bearer,
    /// which takes what is left, draws what the hop draws without bearers: others change nothing for it.
    pub fn of_bearers(&self) -> Vec<HopConfig> {
        let bearers = self.uplink.bearers.iter().zip(&self.downlink.bearers);
        let last = self.uplink.bearers.len().saturating_sub(1);
        let of_bearer = |(index, (uplink, downlink)): (usize, (&BearerConfig, &BearerConfig))| HopConfig {
            // No hop has a name with a dot.
            name: if index == last { self.name.clone() } else { format!("{}.{}", self.name, uplink.name) },
            uplink: self.uplink.of_bearer(uplink),
            downlink: self.downlink.of_bearer(downlink),
        };
        if self.uplink.bearers.is_empty() {
            return vec![self.clone()];
        }
        bearers.enumerate().map(of_bearer).collect()
    }

    /// The `problem` of the bearer at `index` with its key in the link: that of the bearer, if it names the key itself.
    pub fn bearer_problem(&self, index: usize, direction: Direction, problem: Problem) -> Problem {
        match self.link(direction).bearers.get(index).filter(|bearer| bearer.names(&problem.key)) {
            Some(bearer) => problem.under(&bearer.name).under("bearers"),
            None => problem,
        }
    }

    /// Errors in the choice of bearers, and in the kinds of their link entities, if any: both directions have the same,
    /// and so has `beginning`. `known` are those of the hop without bearers.
    pub(super) fn bearer_kind_problems(&self, beginning: &HopConfig, known: &[Problem]) -> Vec<Problem> {
        let names = |link: &LinkConfig| link.bearers.iter().map(|bearer| bearer.name.clone()).collect::<Vec<_>>();
        if names(&self.uplink) != names(&self.downlink) {
            let message = "are not the same in both directions; write them under `link`, and under `uplink` or \
                           `downlink` only as many, with the same names";
            return vec![Problem::new("bearers", message)];
        }
        if names(&self.uplink) != names(&beginning.uplink) {
            let message = "are others than at the beginning; a state can change their parameters, and not which there \
                           are";
            return vec![Problem::new("bearers", message)];
        }
        if self.uplink.bearers.is_empty() {
            return Vec::new();
        }
        let mut problems: Vec<Problem> = Vec::new();
        for (index, (own, first)) in self.of_bearers().iter().zip(beginning.of_bearers()).enumerate() {
            let found = own.kind_problems(&first).into_iter().filter(|problem| !known.contains(problem));
            problems.extend(found.map(|problem| self.uplink.bearers[index].placed(problem)));
        }
        problems
    }
}
