// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A shared medium that is always there: in each direction one frame after the other, whoever sends it.
//!
//! The bearers have queues of their own. The order in which the medium serves them is that of a common queue
//! (`first_come`), or one frame of each in turn (`round_robin`). With one bearer it is [`Continuous`].
//!
//! With `queue` the users have one limit in common beside those of their own queues: a packet that comes is dropped if
//! as many packets of all users wait as the limit says. A packet waits until its first frame begins, in the queue of
//! its hop or in the send buffer behind that.

use std::collections::VecDeque;

use airpath_core::{Bits, Direction, LinkRate, QueueLimit, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Request, SharedBeginning, SharedMedium, Shares};
use crate::air::{Air, Backlog, Frame, Grant};
use crate::config::HopConfig;
use crate::file::{VisitFile, under};
use crate::medium::{Continuous, Medium, RateConfig};
use crate::problem::Problem;
use crate::quality::Quality;
use crate::registry::Configured;

/// A shared medium that is always there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedContinuousConfig {
    /// Rate from the clients to the servers; without it only the other direction is on the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<RateConfig>,
    /// Rate from the servers to the clients; without it only the other direction is on the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downlink: Option<RateConfig>,
    /// Order in which bearers are served.
    #[serde(default)]
    pub order: Order,
    /// One limit for the packets of all users that wait, beside those of their own queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<CommonQueueConfig>,
}

/// The common queue of the users of a medium: `{ limit = "100 packets" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommonQueueConfig {
    /// Capacity in packets, bytes or both, in each direction. A packet that comes and finds no room is dropped.
    pub limit: QueueLimit,
}

/// Order in which bearers of a shared medium are served; a user without bearers is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The bearer whose packet has waited longest.
    #[default]
    FirstCome,
    /// One frame of each bearer in turn.
    RoundRobin,
}

impl SharedContinuousConfig {
    fn rate(&self, direction: Direction) -> Option<&RateConfig> {
        match direction {
            Direction::Uplink => self.uplink.as_ref(),
            Direction::Downlink => self.downlink.as_ref(),
        }
    }
}

impl Shares for SharedContinuousConfig {
    fn carries(&self, direction: Direction) -> bool {
        self.rate(direction).is_some()
    }

    fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<Problem> {
        let has_fading = hop.link(direction).fading.is_some();
        let message = "has no meaning on this medium, which has a rate and no radio channels; write a medium of type \
                       \"ofdm\"";
        has_fading.then(|| Problem::new("fading", message)).into_iter().collect()
    }

    fn has_common_queue(&self) -> bool {
        self.queue.is_some()
    }

    fn is_unlimited(&self, direction: Direction) -> bool {
        self.rate(direction).is_some_and(|rate| rate.constant() == Some(LinkRate::Unlimited))
    }
}

impl Configured<SharedBeginning<'_>> for SharedContinuousConfig {
    type Model = SharedContinuous;

    fn problems(&self) -> Vec<Problem> {
        if self.uplink.is_none() && self.downlink.is_none() {
            return vec![Problem::new("downlink", "is missing; write the rate of a direction, or of both")];
        }
        let of = |direction: Direction, key: &'static str| {
            self.rate(direction).into_iter().flat_map(RateConfig::problems).map(move |problem| problem.under(key))
        };
        let mut problems: Vec<Problem> =
            of(Direction::Uplink, "uplink").chain(of(Direction::Downlink, "downlink")).collect();
        if self.queue.is_some_and(|queue| queue.limit.age.is_some()) {
            let message = "has a time; a common queue is limited in packets or bytes: write the time into the queues \
                           of the users";
            problems.push(Problem::new("queue.limit", message));
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        for (rate, key) in [(&mut self.uplink, "uplink"), (&mut self.downlink, "downlink")] {
            if let Some(rate) = rate {
                rate.files(&mut under(key, visit));
            }
        }
    }

    fn build(&self, beginning: SharedBeginning<'_>) -> SharedContinuous {
        let unlimited = RateConfig::default();
        let rates = Direction::ALL.map(|direction| self.rate(direction).unwrap_or(&unlimited));
        let keys = Direction::ALL.map(|direction| beginning.key.child("rate", direction as u64));
        let turns = || Turns::new(self.order, beginning.bearers.len());
        let limit = self.queue.map(|queue| queue.limit);
        SharedContinuous { medium: Box::new(Continuous::new(rates, keys)), turns: Box::new([turns(), turns()]), limit }
    }

    fn examples() -> Vec<SharedContinuousConfig> {
        let rate = |text: &str| Some(text.parse::<RateConfig>().expect("an example is valid"));
        vec![
            SharedContinuousConfig {
                uplink: rate("200 kbit/s"),
                downlink: rate("1 Mbit/s"),
                order: Order::FirstCome,
                queue: None,
            },
            SharedContinuousConfig {
                uplink: None,
                downlink: rate("300 kbit/s"),
                order: Order::RoundRobin,
                queue: None,
            },
            SharedContinuousConfig {
                uplink: rate("100 kbit/s"),
                downlink: rate("300 kbit/s"),
                order: Order::FirstCome,
                queue: Some(CommonQueueConfig { limit: "4 packets, 2 kB".parse().expect("an example is valid") }),
            },
        ]
    }
}

/// A shared medium that is always there.
#[derive(Clone, Debug)]
pub struct SharedContinuous {
    medium: Box<Continuous>,
    turns: Box<[Turns; 2]>,
    /// Limit of the packets of all stations that wait.
    limit: Option<QueueLimit>,
}

/// Turns of the bearers in one direction.
#[derive(Clone, Debug)]
struct Turns {
    order: Order,
    /// Time from which each bearer has something to send, as far as the medium knows; `Time::NEVER` without a
    /// request.
    ready: Vec<Time>,
    /// Bearer after the one that was served last.
    next: usize,
    /// Bearers of the frames on the air, which end in the order in which they began.
    on_air: VecDeque<u16>,
    /// Scratch of `in_order`.
    asked: Vec<(Time, u16)>,
}

impl Turns {
    fn new(order: Order, bearers: usize) -> Turns {
        Turns { order, ready: vec![Time::NEVER; bearers], next: 0, on_air: VecDeque::new(), asked: Vec::new() }
    }

    /// The bearers that may have something to send at `at`, in the order in which they are served.
    fn in_order<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        let bearers = self.ready.len();
        let in_turn = (0..bearers).map(|offset| (self.next + offset) % bearers);
        self.asked.clear();
        self.asked.extend(in_turn.filter(|bearer| self.ready[*bearer] <= at).map(|bearer| (at, bearer as u16)));
        if self.order == Order::FirstCome && self.asked.len() > 1 {
            for (since, bearer) in &mut self.asked {
                *since = air.backlog(at, *bearer, direction).since;
            }
            // The lower number first where two have waited equally long.
            self.asked.sort_unstable();
        }
    }
}

/// The air as the transmitters of a hop alone see it, with the bearer whose turn it is in each grant.
struct InTurn<'a, A> {
    air: &'a mut A,
    turns: &'a mut [Turns; 2],
}

impl<A: Air> Air for InTurn<'_, A> {
    fn backlog(&mut self, at: Time, bearer: u16, direction: Direction) -> Backlog {
        self.air.backlog(at, bearer, direction)
    }

    fn next_frame(&mut self, grant: &Grant) -> Option<Frame> {
        let turns = &mut self.turns[grant.direction as usize];
        turns.in_order(grant.start, grant.direction, self.air);
        for index in 0..turns.asked.len() {
            let (_, bearer) = turns.asked[index];
            let frame = self.air.next_frame(&Grant { bearer, ..*grant });
            if frame.is_some() {
                turns.next = (usize::from(bearer) + 1) % turns.ready.len();
                turns.on_air.push_back(bearer);
                return frame;
            }
        }
        // Nobody has anything that fits: who has requests again.
        for (_, bearer) in &turns.asked {
            turns.ready[usize::from(*bearer)] = Time::NEVER;
        }
        None
    }

    fn sent_at(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        let grant = self.ended(at, grant);
        self.air.sent_at(at, &grant, frame, quality)
    }

    fn sent_acknowledged(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        let grant = self.ended(at, grant);
        self.air.sent_acknowledged(at, &grant, frame, quality)
    }
}

impl<A> InTurn<'_, A> {
    /// The grant of the frame that ends at `at`, with the bearer that sent it.
    fn ended(&mut self, at: Time, grant: &Grant) -> Grant {
        let turns = &mut self.turns[grant.direction as usize];
        let bearer = turns.on_air.pop_front().unwrap_or(grant.bearer);
        // Its send buffer may have room for more now.
        let ready = &mut turns.ready[usize::from(bearer)];
        *ready = (*ready).min(at);
        Grant { bearer, ..*grant }
    }
}

impl SharedMedium for SharedContinuous {
    fn request(&mut self, Request { at, .. }: Request, bearer: u16, direction: Direction) {
        let ready = &mut self.turns[direction as usize].ready[usize::from(bearer)];
        *ready = (*ready).min(at);
        self.medium.request(at, 0, direction);
    }

    fn next_deadline(&self) -> Time {
        self.medium.next_deadline()
    }

    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        self.medium.step(at, &mut InTurn { air, turns: &mut self.turns });
        // A bearer may become ready later than the moment at which the transmitter found nothing to send.
        for direction in Direction::ALL {
            let turns = &self.turns[direction as usize];
            let later = turns.ready.iter().copied().filter(|ready| *ready > at).min().unwrap_or(Time::NEVER);
            if let Some(later) = later.finite() {
                self.medium.request(later, 0, direction);
            }
        }
    }

    fn common_limit(&self, _direction: Direction) -> Option<QueueLimit> {
        self.limit
    }

    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        self.medium.least_time(at, direction, bits)
    }
}
