// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests that concern hops on another host: asked there, and carried out on all hosts at one instant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use airpath_live::clock;
use serde_json::Value;

use crate::control::protocol::{Refusal, Request};
use crate::hosts::channel::Channel;
use crate::hosts::clocks::Clocks;
use crate::hosts::mouth::Mouth;
use crate::hosts::wire::Word;

/// Maximum time for an answer of a loop.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time from a request to the instant at which it takes effect on all hosts, beside two round trips.
const LEAD_NS: u64 = 30_000_000;

/// The engine of one other host, as the control of a run reaches it.
pub(super) struct Elsewhere {
    mouth: Mouth,
    answers: Receiver<Word>,
    clocks: Arc<Clocks>,
    host: String,
    hops: Vec<String>,
    number: u64,
}

impl Elsewhere {
    /// The other host of `channel`, whose answers come through `answers`; none at the far host itself.
    pub(super) fn of(channel: &Channel, answers: Receiver<Word>) -> Option<Elsewhere> {
        Some(Elsewhere {
            mouth: channel.mouth().ok()?,
            answers,
            clocks: channel.clocks.clone()?,
            host: channel.host().to_owned(),
            hops: channel.hops.clone(),
            number: 0,
        })
    }

    /// The name of the host.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The names of its hops.
    pub(super) fn hops(&self) -> &[String] {
        &self.hops
    }

    /// True if a parameter is that of a hop there.
    pub(super) fn has(&self, parameter: &str) -> bool {
        let first = parameter.split('.').next().unwrap_or_default().trim();
        self.hops.iter().any(|hop| hop == first)
    }

    /// Those of `parameters` that are of hops there; they are taken out.
    pub(super) fn take(&self, parameters: &mut BTreeMap<String, Value>) -> BTreeMap<String, Value> {
        let (there, here) = std::mem::take(parameters).into_iter().partition(|(name, _)| self.has(name));
        *parameters = here;
        there
    }

    /// An instant that all of `others` and this host can meet, by CLOCK_MONOTONIC here.
    pub(super) fn instant<'a>(others: impl Iterator<Item = &'a Elsewhere>) -> u64 {
        let one_way_ns = others.map(|other| other.clocks.one_way_ns()).max().unwrap_or(0);
        clock::monotonic_ns() + LEAD_NS + 4 * one_way_ns
    }

    fn say(&mut self, request: &Request, at_ns: Option<u64>, checks: bool) -> u64 {
        self.number += 1;
        let at_ns = at_ns.map(|at_ns| self.clocks.far_monotonic_ns(at_ns));
        let request = serde_json::to_value(request).unwrap_or_default();
        self.mouth.say(&Word::Ask { number: self.number, at_ns, checks, request });
        self.number
    }

    /// Asks whether the other engine could carry `request` out.
    pub(super) fn check(&mut self, request: &Request) -> Result<(), Refusal> {
        let number = self.say(request, None, true);
        self.answer(number).map(drop)
    }

    /// Tells the other engine to carry `request` out at `at_ns`; returns the number of the request.
    pub(super) fn tell(&mut self, request: &Request, at_ns: Option<u64>) -> u64 {
        self.say(request, at_ns, false)
    }

    /// Waits until the other engine says that the request of this number is right.
    pub(super) fn accepted(&mut self, number: u64) -> Result<(), Refusal> {
        match self.next(number)? {
            Word::Answered { answer, .. } => Err(self.refusal(&answer)),
            _ => Ok(()),
        }
    }

    /// The answer to the request of this number.
    pub(super) fn answer(&mut self, number: u64) -> Result<Value, Refusal> {
        match self.next(number)? {
            Word::Answered { answer, .. } if answer["ok"] == true => Ok(answer),
            Word::Answered { answer, .. } => Err(self.refusal(&answer)),
            _ => Err(Refusal::new("host", format!("host `{}` did not answer", self.host))),
        }
    }

    fn refusal(&self, answer: &Value) -> Refusal {
        let message = answer["error"]["message"].as_str().unwrap_or("it did not say why");
        Refusal::new("host", format!("host `{}`: {message}", self.host))
    }

    fn next(&mut self, wanted: u64) -> Result<Word, Refusal> {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.answers.recv_timeout(left) {
                // Answers to earlier requests, which nobody waits for any more.
                Ok(Word::Accepted { number } | Word::Answered { number, .. }) if number != wanted => {}
                Ok(word) => return Ok(word),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Refusal::new("ended", format!("host `{}` is lost, and its path has ended", self.host)));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Refusal::new("host", format!("host `{}` did not answer", self.host)));
                }
            }
        }
    }
}

/// Request of the near engine that the far host's desk carries out.
pub(super) struct Asked {
    pub(super) mouth: Mouth,
    pub(super) number: u64,
    /// Instant at which it takes effect, by CLOCK_MONOTONIC.
    pub(super) at_ns: Option<u64>,
    /// True if the near engine only wants to know whether it can be carried out.
    pub(super) checks: bool,
}

impl Asked {
    /// The request is right, and waits for its instant.
    pub(super) fn accept(&self) {
        self.mouth.say(&Word::Accepted { number: self.number });
    }
}

/// Time to wait for an order that takes effect at `at_ns`.
pub(super) fn patience(at_ns: Option<u64>) -> Duration {
    let left_ns = at_ns.map_or(0, |at_ns| at_ns.saturating_sub(clock::monotonic_ns()));
    PATIENCE + Duration::from_nanos(left_ns)
}
