// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Both ends of RLC under every pattern of losses in up to eight consecutive blocks of both directions: no deadlock,
//! and in acknowledged mode nothing lost, doubled, or out of order.

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use airpath_models::entity::gprs::SCHEMES;
use airpath_models::entity::rlc::acknowledgement::Acknowledgement;
use airpath_models::entity::rlc::flow::{Outgoing, Polls, SenderOptions, Signal, Source};
use airpath_models::entity::rlc::message::Header;
use airpath_models::entity::rlc::receiving::{Receiver, ReceiverOptions, Releases};
use airpath_models::entity::rlc::sending::Sender;

/// Blocks of 20 ms.
const BLOCK: u64 = 20_000_000;

/// A block without information.
const NOTHING: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct World {
    modulus: u16,
    window: u16,
    every: u16,
    /// Blocks from the end of a block until it arrives.
    delay: u64,
    /// True if the network sends.
    is_downlink: bool,
    /// True if the flow stays.
    stays: bool,
    /// True if flows are released by messages.
    by_messages: bool,
    /// Blocks in each of the flow's parts, which come one after the other.
    parts: [u32; 2],
}

struct Numbers {
    next: u32,
    until: u32,
}

impl Source for Numbers {
    type Payload = u32;
    fn is_empty(&self) -> bool {
        self.next == self.until
    }
    fn cut(&mut self, _: u32, _: bool) -> Option<u32> {
        self.next += 1;
        Some(self.next - 1)
    }
    fn nothing(&self) -> u32 {
        NOTHING
    }
    fn blocks_left(&self, _: u32, _: bool, most: u32) -> Option<u32> {
        Some(self.until - self.next).filter(|left| *left <= most)
    }
    fn close(&mut self) {}
    fn reopen(&mut self) {}
}

struct Link {
    world: World,
    sender: Sender<u32>,
    receiver: Receiver<u32>,
    source: Numbers,
    data: VecDeque<(u64, Outgoing<u32>)>,
    answers: VecDeque<(u64, Acknowledgement)>,
    delivered: u32,
    block: u64,
}

impl Link {
    fn new(world: World) -> Link {
        let stay = match (world.stays, world.by_messages) {
            (false, _) => Span::ZERO,
            (true, false) => Span::from_secs(60),
            (true, true) => Span::from_millis(400),
        };
        let timeout = Span::from_millis(world.delay * 40 + 100);
        let sends = SenderOptions {
            schemes: &SCHEMES,
            modulus: world.modulus,
            window: world.window,
            acknowledged: true,
            polls: world.is_downlink,
            poll_every: world.every,
            bs_cv_max: 0,
            timeslots: 1,
            release_delay: stay,
            gives_up: Span::from_secs(5),
            resegments: false,
            messages: world.by_messages.then_some(Polls { timeout, most: 20, idle: Span::from_millis(100) }),
        };
        let receives = ReceiverOptions {
            modulus: world.modulus,
            window: world.window,
            answers_after: world.is_downlink.then_some(Span::from_millis(40)),
            acknowledges_every: world.every,
            efficiency: 1.0,
            combines: false,
            messages: world.by_messages.then_some(Releases {
                delay: stay,
                timeout,
                most: 40,
                silence: Span::from_secs(5),
                listens: Span::from_millis(1_500),
            }),
        };
        Link {
            world,
            sender: Sender::new(sends, 0, 0),
            receiver: Receiver::new(receives),
            source: Numbers { next: 0, until: 0 },
            data: VecDeque::new(),
            answers: VecDeque::new(),
            delivered: 0,
            block: 0,
        }
    }

    fn give(&mut self, blocks: u32) {
        let now = Time::from_nanos(self.block * BLOCK);
        self.source.until += blocks;
        if self.sender.needs_flow(now) {
            self.sender.allocate(now, false);
        }
    }

    fn heed(&mut self, signals: &mut Vec<Signal<u32>>) {
        for signal in signals.drain(..) {
            match signal {
                Signal::Acknowledged(number) => assert!(number < self.delivered, "what never arrived"),
                Signal::Reset | Signal::Contended => panic!("given up at block {}", self.block),
                Signal::Released => {
                    if !self.source.is_empty() {
                        self.sender.allocate(Time::from_nanos(self.block * BLOCK), false);
                    }
                }
                Signal::Began => {}
            }
        }
    }

    fn step(&mut self, lost: [bool; 2]) {
        let now = Time::from_nanos(self.block * BLOCK);
        let mut signals = Vec::new();
        while let Some((_, told)) = self.answers.pop_front_if(|(arrives, _)| *arrives < self.block) {
            let is_known = self.sender.acknowledge(now, &told, &self.source, &mut signals);
            if is_known && told.is_final && !self.sender.has_flow() {
                self.receiver.confirm(now, told.flow);
            }
            self.heed(&mut signals);
        }
        while let Some((_, out)) = self.data.pop_front_if(|(arrives, _)| *arrives < self.block) {
            let Outgoing { flow, number, scheme, poll, is_stalled, ends, tlli, .. } = out;
            self.receiver.header(now, &Header { flow, number, scheme, poll, is_stalled, ends, tlli, bsn: 0 });
            for block in out.blocks {
                let delivered = &mut self.delivered;
                let code = (SCHEMES.control.code, 0);
                self.receiver.block(now, (block.bsn, block.part, block.is_last), code, block.payload, |number| {
                    if number == NOTHING {
                        return;
                    }
                    assert_eq!(number, *delivered);
                    *delivered += 1;
                });
            }
        }
        let arrives = self.block + self.world.delay;
        if self.sender.ready_at(&self.source) <= now {
            let out = self.sender.next_frame(now, &mut self.source, &mut signals).expect("ready, and nothing to say");
            self.heed(&mut signals);
            if !lost[0] {
                self.data.push_back((arrives, out));
            }
        }
        if self.receiver.acknowledgement_at() <= now {
            // An end that gives up waiting for an answer says nothing.
            let told = self.receiver.acknowledgement(now);
            assert!(told.is_some() || self.world.by_messages, "due, and nothing to say");
            self.answers.extend(told.filter(|_| !lost[1]).map(|told| (arrives, told)));
        }
        self.block += 1;
    }

    fn is_quiet(&self) -> bool {
        self.sender.ready_at(&self.source) == Time::NEVER && self.receiver.acknowledgement_at() == Time::NEVER
    }
}

/// Loses blocks by `data` and `answers`, a bit for each, from block `start` on. All of both parts is delivered, and
/// both ends fall silent.
fn play(world: World, start: u64, data: u32, answers: u32) {
    let mut link = Link::new(world);
    link.give(world.parts[0]);
    let mut is_second = false;
    loop {
        let lost = |pattern: u32| link.block.checked_sub(start).is_some_and(|bit| bit < 32 && pattern >> bit & 1 == 1);
        let lost = [lost(data), lost(answers)];
        link.step(lost);
        if !is_second && link.source.is_empty() {
            // Where the flow may be about to end.
            is_second = true;
            link.give(world.parts[1]);
        }
        if is_second && link.is_quiet() && link.data.is_empty() && link.answers.is_empty() {
            break;
        }
        assert!(link.block < 1_000, "nothing ends with losses {data:08b} and {answers:08b} from {start} on");
    }
    assert_eq!(link.delivered, world.parts.iter().sum::<u32>(), "{data:08b} and {answers:08b} from {start} on");
}

const SMALL: World = World {
    modulus: 128,
    window: 3,
    every: 2,
    delay: 1,
    is_downlink: false,
    stays: false,
    by_messages: false,
    parts: [9, 4],
};

fn explore(world: World, starts: &[u64], bits: u32) {
    for start in starts {
        for data in 0..1u32 << bits {
            for answers in 0..1u32 << bits {
                play(world, *start, data, answers);
            }
        }
    }
}

#[test]
fn every_loss_of_eight_blocks_is_repaired() {
    for by_messages in [false, true] {
        for is_downlink in [false, true] {
            explore(World { is_downlink, by_messages, ..SMALL }, &[4], 8);
        }
    }
}

#[test]
fn every_loss_is_repaired_in_every_manner() {
    for is_downlink in [false, true] {
        for stays in [false, true] {
            for (window, every, parts) in [(1, 1, [3, 2]), (2, 7, [8, 3]), (7, 3, [20, 1])] {
                for by_messages in [false, true] {
                    let world = World { is_downlink, stays, by_messages, window, every, parts, ..SMALL };
                    explore(world, &[0, 3, 11, 14], 5);
                }
            }
        }
    }
}

/// The numbers begin anew within the flow, with a window as large as they allow: half of them.
#[test]
fn numbers_that_begin_anew_are_told_apart() {
    for (modulus, window) in [(8, 4), (128, 64)] {
        for is_downlink in [false, true] {
            let parts = [u32::from(modulus) * 2 + 5, 3];
            let world = World { modulus, window, is_downlink, parts, every: 5, delay: u64::from(window) / 2, ..SMALL };
            let wrap = u64::from(modulus);
            explore(world, &[wrap - 3, wrap, 2 * wrap + 3], 4);
            for pattern in [0xff, 0xffff, 0x5555_5555, 0x8000_0001] {
                for (data, answers) in [(pattern, 0), (0, pattern), (pattern, pattern)] {
                    play(world, wrap - 7, data, answers);
                }
            }
        }
    }
}

/// Starting sequence number and bitmap as GPRS sends them: block 3 of 0 to 6 is missing, and 129 of 125 to 130.
#[test]
fn the_received_block_bitmap_counts_back_from_v_r() {
    let told = |v_q, count, bits: u64| Acknowledgement {
        flow: 1,
        is_final: false,
        seen: 0,
        v_q,
        count,
        bitmap: [bits].into_iter().collect(),
    };
    assert_eq!(told(3, 4, 0b1110).gprs(), (7, !0b1000));
    assert_eq!(told(1, 2, 0b10).gprs(), (3, !0b10));
    assert_eq!(told(126, 5, 0b10010).gprs(), (3, !0b10110));
    assert_eq!(told(9, 0, 0).gprs(), (9, u64::MAX));
    assert_eq!(told(0, 64, 1 << 63).gprs(), (64, 1));
}
