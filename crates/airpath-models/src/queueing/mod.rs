// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Input queues: where packets wait for a hop, and which of them are dropped.

pub mod classes;
pub mod codel;
pub mod dualpi2;
mod fair;
mod fifo;
pub mod fq_codel;
pub mod fq_pie;
pub mod head_drop;
pub mod infinite;
pub mod management;
pub mod pie;
pub mod random_drop;
pub mod red;
pub mod tail_drop;

use std::collections::VecDeque;

use airpath_core::{Cause, Direction, DrawKey, Pdu, QueueLimit, Time};

use crate::registry::registry;
use crate::stage::{QueueLength, StageCx};

/// A queue before a hop. Downstream pulls from it while the send buffer has room.
pub trait Queueing {
    /// Takes `pdu`, or drops it or others.
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>);

    /// The packet that goes next, if there is one and `fits` takes it; it leaves the queue. Packets
    /// that management drops on the way are gone. Where `fits` refuses the packet that would go next,
    /// none goes, and nothing but such drops has changed: it is asked for again.
    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu>;

    /// All packets, in the order in which they go, each with the time at which it came; the queue is
    /// empty afterwards.
    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)>;

    /// Everything was taken out at `at` by [`Queueing::hand_over`], and the queue stays in use.
    fn emptied(&mut self, _at: Time) {}

    /// Puts the packets of another queue into this new one at `at`. They stay as old as they are,
    /// and limits in packets and bytes do not concern them.
    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time);

    /// Length of the queue.
    fn length(&self) -> QueueLength;

    /// Time at which a packet's time in the queue runs out; `Time::NEVER` if none does.
    fn next_deadline(&self) -> Time;

    /// Drops what has run out of time.
    fn advance(&mut self, stage: &mut StageCx<'_, '_>);

    /// Tells a queue that has just been made which direction it serves: those that look at addresses
    /// and ports must know whether the client or the server is the source. Without a word it is the
    /// uplink.
    fn serve(&mut self, _direction: Direction) {}
}

registry! {
    /// The input queue of a hop: `{ type = "tail_drop", limit = "7 packets" }`.
    config QueueConfig,
    /// A queue of any registered kind.
    model Queue,
    dispatch dispatch_queue, dispatch_queue_config,
    built from airpath_core::DrawKey,
    reconfigured yes,
    /// A full queue drops the packet that arrives.
    /// Source: Kojo et al. 2001, section 4.3.
    TailDrop = tail_drop::{TailDropConfig, TailDrop},
    /// A full queue drops its oldest packets to make room for the one that arrives.
    /// Source: Kojo et al. 2001, section 5.1.
    HeadDrop = head_drop::{HeadDropConfig, HeadDrop},
    /// A full queue drops a random one of its packets and the one that arrives.
    /// Source: Mankin 1990.
    RandomDrop = random_drop::{RandomDropConfig, RandomDrop},
    /// Never full.
    Infinite = infinite::{InfiniteConfig, Infinite},
    /// Drops or marks at the tail with a probability that follows the average length (RED).
    /// Source: Floyd and Jacobson 1993.
    Red = red::{RedConfig, Red},
    /// Several queues, and a scheduler for them.
    /// Source: Kojo et al. 2001, section 4.3; Katevenis et al. 1991; Shreedhar and Varghese 1996.
    Classes = classes::{ClassesConfig, Classes},
    /// Fair queueing with CoDel in each flow, new flows first (FQ-CoDel).
    /// Source: RFC 8290.
    FqCodel = fq_codel::{FqCodelConfig, FqCodel},
    /// Fair queueing with PIE in each flow, new flows first (FQ-PIE).
    /// Source: Ramakrishnan et al. 2019.
    FqPie = fq_pie::{FqPieConfig, FqPie},
    /// Drops or marks at the head while the delay stays above a target (CoDel).
    /// Source: RFC 8289.
    Codel = codel::{CodelConfig, Codel},
    /// Drops or marks at the tail with a probability that follows the delay (PIE).
    /// Source: RFC 8033.
    Pie = pie::{PieConfig, Pie},
    /// Two queues, for scalable and for classic congestion controls, with coupled marks (L4S).
    /// Source: RFC 9332.
    Dualpi2 = dualpi2::{Dualpi2Config, Dualpi2},
}

/// The part of `limit` that one more packet of `len` bytes would exceed in a queue of `packets` packets and `bytes` bytes.
#[inline]
pub(crate) fn exceeded(limit: &QueueLimit, packets: u32, bytes: u64, len: u32) -> Option<Cause> {
    if limit.packets.is_some_and(|limit| packets >= limit) {
        Some(Cause::QueuePackets)
    } else if limit.bytes.is_some_and(|limit| bytes + u64::from(len) > limit) {
        Some(Cause::QueueBytes)
    } else {
        None
    }
}

/// Packets of several queues in order of their arrival, those of one instant by their numbers.
fn by_arrival(queues: Vec<VecDeque<(Time, Pdu)>>) -> VecDeque<(Time, Pdu)> {
    let mut all: Vec<(Time, Pdu)> = queues.into_iter().flatten().collect();
    // Stable: copies, which share a number, stay as they were.
    all.sort_by_key(|(since, pdu)| (*since, pdu.id));
    all.into()
}

/// The limit of a queue for which none was written.
pub const DEFAULT_LIMIT: QueueLimit = QueueLimit { packets: Some(1000), bytes: None, age: None };

pub(crate) fn default_limit() -> QueueLimit {
    DEFAULT_LIMIT
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig::TailDrop(tail_drop::TailDropConfig { limit: DEFAULT_LIMIT })
    }
}

/// The input queue of one direction of a hop, whose kind may change.
///
/// A hop looks at length and deadline many times for each packet, and both change only when the queue is
/// touched: they are kept here, and a look is a load instead of a branch over all kinds.
#[derive(Clone, Debug)]
pub struct InputQueue {
    queue: Queue,
    length: QueueLength,
    due: Time,
    key: DrawKey,
    direction: Direction,
    /// Number of times that it has begun anew: a queue that comes back must not repeat the draws of its first
    /// beginning.
    generation: u64,
}

impl InputQueue {
    /// An empty queue for `direction`, whose draws are those of `key`.
    pub fn new(config: &QueueConfig, key: DrawKey, direction: Direction) -> InputQueue {
        let mut queue = Queue::new(config, key);
        queue.serve(direction);
        let (length, due) = (queue.length(), queue.next_deadline());
        InputQueue { queue, length, due, key, direction, generation: 0 }
    }

    /// Changes the parameters at `at`; what is queued stays, in its order and as old as it is.
    /// Smaller limits in packets and bytes apply to the packets that arrive from now on, a limit in
    /// time to all.
    pub fn configure(&mut self, config: &QueueConfig, at: Time) {
        if !self.queue.reconfigure(config, at) {
            let packets = self.queue.hand_over();
            self.begin_anew(config, packets, at);
        }
        self.note();
    }

    /// The limit of an empty queue that takes packets until that is reached and gives them away in their order,
    /// however old they are.
    pub(crate) fn limit_in_order(&self) -> Option<QueueLimit> {
        let limit = match &self.queue {
            Queue::TailDrop(queue) => queue.limit(),
            Queue::Infinite(_) => QueueLimit::default(),
            _ => return None,
        };
        (limit.age.is_none() && self.length.packets == 0).then_some(limit)
    }

    /// Becomes a new queue that has taken over `packets` at `at`.
    fn begin_anew(&mut self, config: &QueueConfig, packets: VecDeque<(Time, Pdu)>, at: Time) {
        self.generation += 1;
        self.queue = Queue::new(config, self.key.child("generation", self.generation));
        self.queue.serve(self.direction);
        self.queue.take_over(packets, at);
        self.note();
    }

    /// To be called after everything that may change the length or the deadline.
    #[inline]
    fn note(&mut self) {
        (self.length, self.due) = dispatch_queue!(&self.queue, queue => standing(queue));
    }
}

/// The length of `queue` and its deadline.
#[inline]
fn standing(queue: &impl Queueing) -> (QueueLength, Time) {
    (queue.length(), queue.next_deadline())
}

impl Queueing for InputQueue {
    // One branch over all kinds, and not one for the packet and others for what is noted.
    #[inline]
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        (self.length, self.due) = dispatch_queue!(&mut self.queue, queue => {
            queue.enqueue(pdu, stage);
            standing(queue)
        });
    }
    #[inline]
    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        dispatch_queue!(&mut self.queue, queue => {
            let pdu = queue.dequeue(fits, stage);
            (self.length, self.due) = standing(queue);
            pdu
        })
    }
    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        let packets = self.queue.hand_over();
        self.note();
        packets
    }
    fn emptied(&mut self, at: Time) {
        self.queue.emptied(at);
        self.note();
    }
    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        self.queue.take_over(packets, at);
        self.note();
    }
    #[inline]
    fn length(&self) -> QueueLength {
        self.length
    }
    #[inline]
    fn next_deadline(&self) -> Time {
        self.due
    }
    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        self.queue.advance(stage);
        self.note();
    }
    /// The same for the direction of the queue of which this one, still empty, is a part.
    fn serve(&mut self, direction: Direction) {
        self.direction = direction;
        self.queue.serve(direction);
        self.note();
    }
}

impl Queueing for Queue {
    #[inline]
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        dispatch_queue!(self, queue => queue.enqueue(pdu, stage));
    }
    #[inline]
    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        dispatch_queue!(self, queue => queue.dequeue(fits, stage))
    }
    fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        dispatch_queue!(self, queue => queue.hand_over())
    }
    fn emptied(&mut self, at: Time) {
        dispatch_queue!(self, queue => queue.emptied(at));
    }
    fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        dispatch_queue!(self, queue => queue.take_over(packets, at));
    }
    fn length(&self) -> QueueLength {
        dispatch_queue!(self, queue => queue.length())
    }
    fn next_deadline(&self) -> Time {
        dispatch_queue!(self, queue => queue.next_deadline())
    }
    fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
        dispatch_queue!(self, queue => queue.advance(stage));
    }
    fn serve(&mut self, direction: Direction) {
        dispatch_queue!(self, queue => queue.serve(direction));
    }
}
