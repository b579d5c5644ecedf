// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Both ends of RLP under every pattern of losses in up to eight consecutive blocks of both directions: no
//! deadlock, and nothing lost, doubled, or out of order.

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use airpath_models::entity::rlp::header::{Body, Header, Supervision};
use airpath_models::entity::rlp::protocol::{Options, Protocol, Signal};
use airpath_models::entity::rlp::xid::Xid;

/// Blocks of 20 ms.
const BLOCK: u64 = 20_000_000;

#[derive(Clone, Copy)]
struct World {
    window: u16,
    /// T1, in units of 10 ms.
    t1: u8,
    /// Blocks from the end of a frame until it arrives.
    delay: u64,
    selective: bool,
    discontinuous: bool,
    /// Information that each end has to send.
    amount: [u32; 2],
}

/// A frame under way: the block at whose end it arrives, and what it carries.
type Flying = (u64, Header, Option<u32>, Option<Xid>);

struct Ends {
    world: World,
    ends: [Protocol<u32>; 2],
    flying: [VecDeque<Flying>; 2],
    next: [u32; 2],
    delivered: [u32; 2],
    resets: u32,
    block: u64,
}

impl Ends {
    fn new(world: World) -> Ends {
        let xid = Xid {
            version: 1,
            window_to_mobile: world.window,
            window_from_mobile: world.window,
            t1: world.t1,
            n2: 6,
            t2: 8,
        };
        let options = |mobile| Options {
            xid,
            mobile,
            opens: mobile,
            negotiates: false,
            selective: world.selective,
            discontinuous: world.discontinuous,
            reconnect: Some(Span::from_secs(5)),
        };
        Ends {
            world,
            ends: [true, false].map(|mobile| Protocol::new(options(mobile))),
            flying: Default::default(),
            next: [0; 2],
            delivered: [0; 2],
            resets: 0,
            block: 0,
        }
    }

    fn heed(&mut self, end: usize, signals: Vec<Signal<u32>>) {
        for signal in signals {
            match signal {
                Signal::Deliver(number) => {
                    assert_eq!(number, self.delivered[1 - end], "end {end} at block {}", self.block);
                    self.delivered[1 - end] += 1;
                }
                Signal::Reset | Signal::Disconnected => self.resets += 1,
                Signal::Acknowledged(number) => assert!(number < self.delivered[end], "what never arrived"),
                Signal::Connected => {}
            }
        }
    }

    /// One block: what has arrived is taken, and each end sends, unless its direction is `lost`.
    fn step(&mut self, lost: [bool; 2]) {
        let now = Time::from_nanos(self.block * BLOCK);
        for end in 0..2 {
            let mut signals = Vec::new();
            while let Some((_, header, information, xid)) =
                self.flying[1 - end].pop_front_if(|(arrives, ..)| *arrives < self.block)
            {
                self.ends[end].receive(now, header, information, xid, &mut signals);
            }
            self.heed(end, signals);
        }
        for (end, lost) in lost.into_iter().enumerate() {
            let mut signals = Vec::new();
            let waiting = self.next[end] < self.world.amount[end];
            let ready = self.ends[end].ready_at(waiting) <= now;
            let next = &mut self.next[end];
            let give = || {
                *next += 1;
                Some(*next - 1)
            };
            let sent = if ready { self.ends[end].next_frame(now, give, waiting, &mut signals) } else { None };
            assert!(!self.world.discontinuous || sent.is_some() || !ready, "ready, and nothing to say");
            if let Some(sent) = sent.filter(|_| !lost) {
                let arrives = self.block + self.world.delay;
                self.flying[end].push_back((arrives, sent.header, sent.information, sent.xid));
            }
            self.heed(end, signals);
        }
        self.block += 1;
    }

    fn is_done(&self) -> bool {
        self.delivered == self.world.amount
    }
}

/// Loses blocks by `up` and `down`, a bit for each, from block `start` on, and says after how many blocks all is
/// delivered.
fn play(world: World, start: u64, up: u32, down: u32) -> u64 {
    let mut ends = Ends::new(world);
    while !ends.is_done() {
        let lost = |pattern: u32| ends.block.checked_sub(start).is_some_and(|bit| bit < 32 && pattern >> bit & 1 == 1);
        let lost = [lost(up), lost(down)];
        ends.step(lost);
        assert!(ends.block < 4_000, "nothing moves: {:?} of {:?}", ends.delivered, world.amount);
    }
    assert_eq!(ends.resets, 0);
    ends.block
}

/// Ends that are connected from block 10 at the latest, with a round trip of four blocks.
const SMALL: World = World { window: 3, t1: 10, delay: 1, selective: true, discontinuous: false, amount: [14, 14] };

fn explore(world: World, start: u64, bits: u32) {
    for up in 0..1u32 << bits {
        for down in 0..1u32 << bits {
            play(world, start, up, down);
        }
    }
}

#[test]
fn every_loss_of_eight_blocks_is_repaired() {
    explore(SMALL, 10, 8);
}

#[test]
fn every_loss_is_repaired_in_every_manner() {
    for selective in [true, false] {
        for discontinuous in [true, false] {
            for (window, amount) in [(1, [5, 0]), (2, [8, 3]), (7, [20, 20])] {
                for start in [9, 11, 14] {
                    explore(World { window, amount, selective, discontinuous, ..SMALL }, start, 5);
                }
            }
        }
    }
}

/// A round trip of 61 blocks and more, so that the window of 61 of 62 numbers is full: losses at its beginning, in
/// the middle and where the numbers begin anew.
#[test]
fn a_full_window_of_61_takes_no_second_copy_for_a_new_frame() {
    let world = World { window: 61, t1: 150, delay: 30, amount: [200, 150], ..SMALL };
    for start in [70, 100, 129, 131, 160] {
        explore(world, start, 4);
        for pattern in [0xff, 0xffff, 0xffff_ffff, 0x5555_5555, 0x8000_0001] {
            for (up, down) in [(pattern, 0), (0, pattern), (pattern, pattern)] {
                play(world, start, up, down);
            }
        }
    }
}

/// While a connection is set up, a lost answer begins it anew, which may cost what the other end has sent
/// meanwhile; it never doubles anything or changes the order.
#[test]
fn every_loss_during_the_beginning_ends_in_a_connection() {
    for up in 0..256 {
        for down in 0..256 {
            let mut ends = Ends::new(World { amount: [14, 0], ..SMALL });
            while !ends.is_done() {
                let lost = |pattern: u32| ends.block < 8 && pattern >> ends.block & 1 == 1;
                let lost = [lost(up), lost(down)];
                ends.step(lost);
                assert!(ends.block < 2_000, "no connection with losses {up:08b} and {down:08b}");
            }
        }
    }
}

/// Information that comes while a poll waits is sent when the final is there. Sent before, it would arrive, and be sent
/// again from the N(R) of the final on: its second copies are within a window of 61, and where a frame of the next
/// round is lost, one of them would be delivered in its place.
#[test]
fn information_that_comes_while_a_poll_waits_is_delivered_once() {
    for lost in 0..150 {
        let mut ends = Ends::new(World { window: 61, t1: 30, delay: 5, amount: [40, 0], ..SMALL });
        let is_poll =
            |header: &Header| header.command && header.poll_final && matches!(header.body, Body::Supervisory { .. });
        // The answers to the end of the information are lost, until T1 brings a poll.
        while !ends.flying[0].back().is_some_and(|(_, header, ..)| is_poll(header)) {
            let silences = ends.delivered[0] > 30;
            ends.step([false, silences]);
            assert!(ends.block < 300, "no poll");
        }
        ends.world.amount[0] = 200;
        let from = ends.block;
        while !ends.is_done() {
            let is_lost = ends.block == from + lost;
            ends.step([is_lost, false]);
            assert!(ends.block < 1_000, "nothing moves");
        }
        assert_eq!(ends.resets, 0);
    }
}

/// An end that is told to wait sends no information until the other end is ready again.
#[test]
fn receive_not_ready_stops_information() {
    let mut ends = Ends::new(SMALL);
    (0..20).for_each(|_| ends.step([false; 2]));
    let supervise = |ends: &mut Ends, kind| {
        let nr = ends.ends[0].variables().v_a.unwrap();
        let header = Header { command: true, poll_final: false, body: Body::Supervisory { kind, nr } };
        ends.ends[0].receive(Time::from_nanos(ends.block * BLOCK), header, None, None, &mut Vec::new());
    };
    let before = ends.next[0];
    for _ in 0..10 {
        supervise(&mut ends, Supervision::Rnr);
        ends.flying[1].clear();
        ends.step([false; 2]);
    }
    assert_eq!(ends.next[0], before);
    supervise(&mut ends, Supervision::Rr);
    while !ends.is_done() {
        ends.step([false; 2]);
        assert!(ends.block < 500);
    }
}
