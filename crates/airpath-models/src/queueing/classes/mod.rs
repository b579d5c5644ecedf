// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several queues in one place: a packet joins the first class that takes it, and a scheduler decides
//! which class sends next.
//!
//! Sources: Kojo et al. 2001, section 4.3 (several input queues, priorities between them); strict
//! priority and weighted round robin as in Katevenis et al. 1991, by packets; deficit round robin as
//! in Shreedhar & Varghese 1996, Figure 3, where a class that has just sent its last packet is no
//! longer active, even if another comes before the link asks again.
//!
//! The first class that takes a packet gets it; what none takes goes to the last. Each class has a
//! queue of any kind within, further classes included. The limit of the whole drops what arrives. The
//! packet that the scheduler chooses waits while there is no room for it in the send buffer: none of
//! another class overtakes it, but until there is room the choice is open, and a packet that arrives
//! may become the chosen one.
//!
//! When parameters change, packets stay with the class of the same name, as old as they are; those of
//! a class that is gone are matched anew, and join the others in order of their arrival. When the
//! kind of the whole queue changes, packets go over in the order of their arrival.

mod classifier;
mod order;

use std::collections::VecDeque;

use airpath_core::{Bits, Cause, Direction, DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InputQueue, QueueConfig, Queueing, by_arrival};
use crate::filter::VisitFilter;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};
use order::{Scheduler, Set};

pub(crate) use classifier::Classifier;
pub use classifier::{Address, MatchConfig, MatchOrigin, Ports, Protocol};
pub use order::Order;

/// Parameters of several queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassesConfig {
    /// Scheduling between the classes.
    #[serde(default)]
    pub order: Order,
    /// Capacity of all classes together, in packets and bytes; arriving packets that would exceed it are
    /// dropped.
    #[serde(default = "unlimited", skip_serializing_if = "is_unlimited")]
    pub limit: QueueLimit,
    /// The classes; a packet joins the first class that matches, or else the last one.
    pub classes: Vec<ClassConfig>,
}

/// One class with its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassConfig {
    /// Its name, by which its parameters are named: a letter, then letters, digits, `_` or `-`.
    pub name: String,
    /// Packets of the class; without conditions all packets.
    #[serde(default, rename = "match", skip_serializing_if = "MatchConfig::is_any")]
    pub matching: MatchConfig,
    /// Number of packets in its turn, in weighted round robin. A change takes effect with its next turn.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub weight: u32,
    /// Bits in its turn, in deficit round robin. A change takes effect with its next turn.
    #[serde(default = "default_quantum", skip_serializing_if = "is_default_quantum")]
    pub quantum: Bits,
    /// Its queue.
    #[serde(default)]
    pub queue: QueueConfig,
}

const UNLIMITED: QueueLimit = QueueLimit { packets: None, bytes: None, age: None };
const DEFAULT_QUANTUM: Bits = Bits::from_bytes(1_500);
/// Less would make a long packet wait for thousands of turns, each of which costs time.
const LEAST_QUANTUM: Bits = Bits::from_bytes(64);
const LARGEST_QUANTUM: Bits = Bits::from_bytes(1_000_000_000);
/// As many as a [`Set`] has room for.
const MOST_CLASSES: usize = 64;

fn unlimited() -> QueueLimit {
    UNLIMITED
}

fn is_unlimited(limit: &QueueLimit) -> bool {
    *limit == UNLIMITED
}

fn one() -> u32 {
    1
}

fn is_one(weight: &u32) -> bool {
    *weight == 1
}

fn default_quantum() -> Bits {
    DEFAULT_QUANTUM
}

fn is_default_quantum(quantum: &Bits) -> bool {
    *quantum == DEFAULT_QUANTUM
}

impl ClassConfig {
    /// A class called `name` that takes what `matching` says, with all else at its defaults.
    pub fn new(name: impl Into<String>, matching: MatchConfig, queue: QueueConfig) -> ClassConfig {
        ClassConfig { name: name.into(), matching, weight: 1, quantum: DEFAULT_QUANTUM, queue }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        let mut characters = self.name.chars();
        let begins = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
        if !begins || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            wrong("name", format!("`{}` is no name; it is a letter, then letters, digits, `_` or `-`", self.name));
        }
        if self.weight == 0 {
            wrong("weight", "is 0, so that the class would never send; write at least 1".into());
        }
        if !(LEAST_QUANTUM..=LARGEST_QUANTUM).contains(&self.quantum) {
            let range = format!("it must be from {LEAST_QUANTUM} to {LARGEST_QUANTUM}");
            wrong("quantum", format!("is {}; {range}", self.quantum));
        }
        problems.extend(self.matching.problems().into_iter().map(|problem| problem.under("match")));
        problems.extend(self.queue.problems().into_iter().map(|problem| problem.under("queue")));
        problems
    }
}

impl Configured for ClassesConfig {
    type Model = Classes;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.classes.is_empty() {
            problems.push(Problem::new("classes", "has no class; write for example [{ name = \"all\" }]"));
        }
        if self.classes.len() > MOST_CLASSES {
            let count = self.classes.len();
            problems.push(Problem::new("classes", format!("has {count} classes; there may be {MOST_CLASSES}")));
        }
        if self.limit.age.is_some() {
            let message = "has a limit in time, which is for the queues of the classes: each has a `limit` of its own";
            problems.push(Problem::new("limit", message));
        }
        for (index, class) in self.classes.iter().enumerate() {
            let place = |problem: Problem| problem.under(&class.name).under("classes");
            let before = &self.classes[..index];
            if before.iter().any(|other| other.name == class.name) {
                problems.push(place(Problem::new("name", format!("another class is called `{}`, too", class.name))));
            }
            if let Some(all) = before.iter().find(|other| other.matching.is_any()) {
                let message = format!("no packet gets here, as class `{}` before it takes all", all.name);
                problems.push(place(Problem::new("", message)));
            }
            problems.extend(class.problems().into_iter().map(place));
        }
        problems
    }

    fn filters(&mut self, visit: &mut VisitFilter<'_>) {
        for class in &mut self.classes {
            class.matching.filters(visit);
            class.queue.filters(visit);
        }
    }

    fn build(&self, key: DrawKey) -> Classes {
        Classes::new(self, key)
    }

    fn examples() -> Vec<ClassesConfig> {
        // Packets of the law tests differ in length.
        let queue = |kind: &str, limit: &str| {
            let limit = limit.parse().expect("an example is valid");
            match kind {
                "tail_drop" => QueueConfig::TailDrop(super::tail_drop::TailDropConfig { limit }),
                _ => QueueConfig::HeadDrop(super::head_drop::HeadDropConfig { limit }),
            }
        };
        let up_to = |bytes: u64| MatchConfig { longest: Some(Bits::from_bytes(bytes)), ..MatchConfig::default() };
        let classes = || {
            vec![
                ClassConfig {
                    weight: 3,
                    quantum: Bits::from_bytes(200),
                    ..ClassConfig::new("short", up_to(130), queue("tail_drop", "5 packets, 40 ms"))
                },
                ClassConfig {
                    quantum: Bits::from_bytes(300),
                    ..ClassConfig::new("middle", up_to(300), queue("head_drop", "1 kB"))
                },
                ClassConfig::new("long", MatchConfig::default(), queue("tail_drop", "20 kB, 60 ms")),
            ]
        };
        let nested = || {
            let inner = ClassesConfig { order: Order::DeficitRoundRobin, limit: UNLIMITED, classes: classes() };
            let rest = ClassConfig::new("rest", MatchConfig::default(), queue("tail_drop", "unlimited"));
            vec![
                ClassConfig { weight: 2, ..ClassConfig::new("within", up_to(1_000), QueueConfig::Classes(inner)) },
                rest,
            ]
        };
        let filtered = || {
            let filter = |text: &str| Some(text.parse().expect("an example is valid"));
            let tcp = MatchConfig { filter: filter("tcp"), ..up_to(300) };
            let udp = MatchConfig { filter: filter("udp and port 5004"), ..MatchConfig::default() };
            vec![
                ClassConfig::new("tcp", tcp, queue("tail_drop", "4 packets")),
                ClassConfig::new("udp", udp, queue("head_drop", "1 kB")),
                ClassConfig::new("rest", MatchConfig::default(), queue("tail_drop", "20 kB, 60 ms")),
            ]
        };
        let limit = || "12 packets, 6 kB".parse().expect("an example is valid");
        vec![
            ClassesConfig { order: Order::Strict, limit: limit(), classes: classes() },
            ClassesConfig { order: Order::WeightedRoundRobin, limit: UNLIMITED, classes: classes() },
            ClassesConfig { order: Order::DeficitRoundRobin, limit: limit(), classes: classes() },
            ClassesConfig { order: Order::WeightedRoundRobin, limit: UNLIMITED, classes: nested() },
            ClassesConfig { order: Order::Strict, limit: limit(), classes: filtered() },
        ]
    }
}

impl Reconfigured for ClassesConfig {
    fn configure(&self, model: &mut Classes, at: Time) {
        model.configure(self, at);
    }
}

/// Several queues.
#[derive(Clone, Debug)]
pub struct Classes {
    limit: QueueLimit,
    scheduler: Scheduler,
    classes: Vec<Class>,
    /// Classes that hold packets.
    occupied: Set,
    length: QueueLength,
    direction: Direction,
    key: DrawKey,
    /// Number of changes of parameters: a class that comes back must not repeat its draws.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Class {
    name: String,
    classifier: Classifier,
    queue: InputQueue,
}

impl Class {
    fn new(config: &ClassConfig, key: DrawKey, generation: u64, direction: Direction) -> Class {
        let key = key.child(&format!("class {}", config.name), generation);
        Class {
            name: config.name.clone(),
            classifier: Classifier::new(&config.matching),
            queue: InputQueue::new(&config.queue, key, direction),
        }
    }
}

impl Classes {
    pub(super) fn new(config: &ClassesConfig, key: DrawKey) -> Classes {
        let direction = Direction::Uplink;
        Classes {
            limit: config.limit,
            scheduler: Scheduler::new(config.order, &config.classes),
            classes: config.classes.iter().map(|class| Class::new(class, key, 0, direction)).collect(),
            occupied: Set::default(),
            length: QueueLength::default(),
            direction,
            key,
            generation: 0,
        }
    }

    pub(super) fn configure(&mut self, config: &ClassesConfig, at: Time) {
        self.generation += 1;
        self.limit = config.limit;
        let mut old: Vec<Option<Class>> = std::mem::take(&mut self.classes).into_iter().map(Some).collect();
        let mut was = Vec::new();
        for class in &config.classes {
            let known = old.iter().position(|old| old.as_ref().is_some_and(|old| old.name == class.name));
            was.push(known);
            self.classes.push(match known.and_then(|index| old[index].take()) {
                Some(mut kept) => {
                    kept.queue.configure(&class.queue, at);
                    Class { classifier: Classifier::new(&class.matching), ..kept }
                }
                None => Class::new(class, self.key, self.generation, self.direction),
            });
        }
        let gone: Vec<_> = old.into_iter().flatten().map(|mut class| class.queue.hand_over()).collect();
        for (index, packets) in self.sorted(by_arrival(gone)).into_iter().enumerate() {
            if !packets.is_empty() {
                let queue = &mut self.classes[index].queue;
                let together = by_arrival(vec![queue.hand_over(), packets]);
                queue.begin_anew(&config.classes[index].queue, together, at);
            }
        }
        self.count();
        let mut scheduler = Scheduler::new(config.order, &config.classes);
        scheduler.go_on(&self.scheduler, &was, self.occupied);
        self.scheduler = scheduler;
    }

    /// The class that takes `pdu`.
    fn class_of(&self, pdu: &Pdu) -> usize {
        let found = self.classes.iter().position(|class| class.classifier.takes(pdu, self.direction));
        found.unwrap_or(self.classes.len().saturating_sub(1))
    }

    /// Packets by their classes.
    fn sorted(&self, packets: VecDeque<(Time, Pdu)>) -> Vec<VecDeque<(Time, Pdu)>> {
        let mut sorted: Vec<VecDeque<_>> = self.classes.iter().map(|_| VecDeque::new()).collect();
        for (since, pdu) in packets {
            let class = self.class_of(&pdu);
            sorted[class].push_back((since, pdu));
        }
        sorted
    }

    /// Looks at what the classes hold.
    fn count(&mut self) {
        (self.length, self.occupied) = (QueueLength::default(), Set::default());
        for (index, class) in self.classes.iter().enumerate() {
            self.length = self.length + class.queue.length();
            self.occupied.put(index, class.queue.length().packets > 0);
        }
    }

    /// Lets `work` do something with the queue of a class, and sees what it holds afterwards.
    #[inline]
    fn with<R>(
        &mut self,
        index: usize,
        stage: &mut StageCx<'_, '_>,
        work: impl FnOnce(&mut InputQueue, &mut StageCx<'_, '_>) -> R,
    ) -> R {
        let queue = &mut self.classes[index].queue;
        let before = queue.length();
        let others = self.length - before;
        let beside = stage.beside + others;
        let result = work(queue, &mut StageCx { site: stage.site, at: stage.at, beside, cx: stage.cx });
        let after = queue.length();
        self.length = others + after;
        match (before.packets > 0, after.packets > 0) {
            (false, true) => self.scheduler.filled(index),
            (true, false) => self.scheduler.emptied(index),
            _ => {}
        }
        self.occupied.put(index, after.packets > 0);
        result
    }
}

impl Queueing for Classes {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        let QueueLength { packets, bytes } = self.length;
        if self.limit.packets.is_some_and(|limit| packets >= limit) {
            return stage.dropped(Cause::QueuePackets, &pdu, self.length);
        }
        if self.limit.bytes.is_some_and(|limit| bytes + u64::from(pdu.len) > limit) {
            return stage.dropped(Cause::QueueBytes, &pdu, self.length);
        }
        let class = self.class_of(&pdu);
        self.with(class, stage, |queue, stage| queue.enqueue(pdu, stage));
    }

    fn dequeue(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        // The type of `fits` must not grow with every level of classes within classes.
        self.dequeue_chosen(&mut fits, stage)
    }

    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        let all = self.classes.iter_mut().map(|class| class.queue.hand_over()).collect();
        for index in 0..self.classes.len() {
            self.scheduler.emptied(index);
        }
        self.count();
        by_arrival(all)
    }

    fn emptied(&mut self, at: Time) {
        for class in &mut self.classes {
            class.queue.emptied(at);
        }
    }

    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        for (index, packets) in self.sorted(packets).into_iter().enumerate() {
            if !packets.is_empty() {
                self.classes[index].queue.take_over(packets, at);
                self.scheduler.filled(index);
            }
        }
        self.count();
    }

    fn length(&self) -> QueueLength {
        self.length
    }

    fn next_deadline(&self) -> Time {
        self.classes.iter().map(|class| class.queue.next_deadline()).min().unwrap_or(Time::NEVER)
    }

    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        for index in 0..self.classes.len() {
            if self.classes[index].queue.next_deadline() <= stage.at {
                self.with(index, stage, |queue, stage| queue.advance(stage));
            }
        }
    }

    fn serve(&mut self, direction: Direction) {
        self.direction = direction;
        self.classes.iter_mut().for_each(|class| class.queue.serve(direction));
    }
}

/// Answer to the question whether a packet may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It may, and management drops it nevertheless; or there was none.
    Yes,
    /// It is longer than its class may send in this turn.
    TooLong,
    /// There is no room for it downstream.
    NoRoom,
}

impl Classes {
    fn dequeue_chosen(&mut self, fits: &mut dyn FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.scheduler.save();
        while let Some((class, most_bits)) = self.scheduler.choose(self.occupied) {
            let mut answer = Answer::Yes;
            let may_go = |pdu: &Pdu| {
                answer = match pdu.bits().get() <= most_bits {
                    false => Answer::TooLong,
                    true if fits(pdu) => Answer::Yes,
                    true => Answer::NoRoom,
                };
                answer == Answer::Yes
            };
            let sent = self.with(class, stage, |queue, stage| queue.dequeue(may_go, stage));
            let holds_more = self.occupied.has(class);
            match (sent, answer) {
                (Some(pdu), _) => {
                    if holds_more {
                        self.scheduler.sent(class, pdu.bits().get());
                    }
                    return Some(pdu);
                }
                (None, Answer::TooLong) => self.scheduler.pass(),
                // Management has dropped all that there was.
                (None, Answer::Yes) if !holds_more => {}
                (None, _) => break,
            }
        }
        self.scheduler.undo(self.occupied);
        None
    }
}
