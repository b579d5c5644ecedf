// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue by itself: packets are put in, and the link asks for them one by one.

use std::collections::HashSet;

use airpath_core::counters::Site;
use airpath_core::{
    Cause, Cx, Direction, DrawKey, DrawScope, Event, EventKind, FiveTuple, LogLevel, Outputs, Pdu, Seed, Stage, Time,
};
use airpath_models::queueing::{InputQueue, QueueConfig, Queueing};
use airpath_models::stage::{QueueLength, StageCx};

pub struct Bench {
    pub queue: InputQueue,
    pub outputs: Outputs,
    pub at: Time,
    direction: Direction,
    next_id: u64,
    /// Number of events looked at, and the packets that they say were queued.
    seen: usize,
    queued: HashSet<u64>,
}

pub fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Uplink, role: "queue", instance: 0 })
}

pub fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// A packet of `len` bytes of a DSCP and a flow.
pub fn packet(len: u32, class: u8, flow: u32) -> Pdu {
    Pdu { len, class, flow, ..Pdu::default() }
}

/// The same between ports.
pub fn between(source: &str, destination: &str, ports: (u16, u16), protocol: u8) -> Pdu {
    let fold = |text: &str| FiveTuple::fold(text.parse().unwrap());
    let tuple = FiveTuple {
        source: fold(source),
        destination: fold(destination),
        source_port: ports.0,
        destination_port: ports.1,
        protocol,
    };
    Pdu { len: 100, tuple, ..Pdu::default() }
}

impl Bench {
    pub fn new(config: &QueueConfig) -> Bench {
        Bench::serving(config, Direction::Uplink, 1)
    }

    pub fn serving(config: &QueueConfig, direction: Direction, seed: u64) -> Bench {
        assert_eq!(config.problems(), []);
        let outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
        let queue = InputQueue::new(config, key(seed), direction);
        Bench { queue, outputs, at: Time::ZERO, direction, next_id: 1, seen: 0, queued: HashSet::new() }
    }

    fn with<R>(&mut self, work: impl FnOnce(&mut InputQueue, &mut StageCx<'_, '_>) -> R) -> R {
        let site = Site { hop: 0, direction: self.direction, state: 0, stage: Stage::Queue };
        let cx = &mut Cx::new(&mut self.outputs);
        let seen = self.queue.length();
        let result = work(&mut self.queue, &mut StageCx::new(site, self.at, cx));
        self.check(seen);
        result
    }

    /// Puts a packet in; its number.
    pub fn put(&mut self, pdu: Pdu) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.with(|queue, stage| queue.enqueue(Pdu { id, ..pdu }, stage));
        id
    }

    /// The number and length of the packet that goes next.
    pub fn take(&mut self) -> Option<(u64, u32)> {
        self.with(|queue, stage| queue.dequeue(|_| true, stage)).map(|pdu| (pdu.id, pdu.len))
    }

    /// The packet that would go next but finds no room.
    pub fn refuse(&mut self) -> Option<u64> {
        let mut asked = None;
        let refused = |pdu: &Pdu| {
            asked = Some(pdu.id);
            false
        };
        assert!(self.with(|queue, stage| queue.dequeue(refused, stage)).is_none());
        asked
    }

    pub fn is_empty(&self) -> bool {
        self.queue.length() == QueueLength::default()
    }

    pub fn take_all(&mut self) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| self.take()).collect()
    }

    pub fn ids(&mut self) -> Vec<u64> {
        self.take_all().into_iter().map(|(id, _)| id).collect()
    }

    pub fn configure(&mut self, config: &QueueConfig) {
        let before = self.queue.length();
        self.queue.configure(config, self.at);
        assert_eq!(self.queue.length(), before, "a change loses nothing");
    }

    pub fn events(&self, kind: EventKind) -> Vec<&Event> {
        self.outputs.events.iter().filter(|event| event.kind == kind).collect()
    }

    pub fn drops(&self) -> Vec<(u64, Cause)> {
        self.events(EventKind::Dropped).iter().map(|event| (event.pdu, event.cause)).collect()
    }

    /// Every event tells the length of the whole queue: what it was, and what has happened since.
    fn check(&mut self, before: QueueLength) {
        let (mut packets, mut bytes) = (i64::from(before.packets), before.bytes as i64);
        for event in &self.outputs.events[self.seen..] {
            let change = match event.kind {
                EventKind::Enqueued => {
                    self.queued.insert(event.pdu);
                    1
                }
                EventKind::Dequeued => -1,
                // What is dropped without having been queued is not in what is held.
                EventKind::Dropped if self.queued.contains(&event.pdu) => -1,
                _ => 0,
            };
            packets += change;
            bytes += change * event.bits as i64 / 8;
            assert_eq!((i64::from(event.queue_packets), event.queue_bytes as i64), (packets, bytes), "{event:?}");
        }
        let now = self.queue.length();
        assert_eq!((i64::from(now.packets), now.bytes as i64), (packets, bytes));
        self.seen = self.outputs.events.len();
    }
}
