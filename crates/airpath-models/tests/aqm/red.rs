// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RED against Figure 2 of Floyd and Jacobson 1993, ported naively, and against its formulae.

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{Cx, Direction, Ecn, Outputs, Pdu, Stage, Time};
use airpath_models::queueing::red::RedConfig;
use airpath_models::queueing::{Queue, QueueConfig, Queueing};
use airpath_models::stage::StageCx;

use super::link::{Deeds, Discipline, Packet, arrivals, compare, key, managed};
use crate::common::{Dice, read};

struct Floyd1993 {
    packets: VecDeque<Packet>,
    config: RedConfig,
    by_bytes: bool,
    minth: f64,
    maxth: f64,
    w: f64,
    maxp: f64,
    avg: f64,
    q_time: Option<u64>,
    count: i64,
    arrivals: u64,
    next_adaptation: u64,
}

impl Floyd1993 {
    fn new(config: &RedConfig, by_bytes: bool, minth: f64, maxth: f64) -> Floyd1993 {
        Floyd1993 {
            packets: VecDeque::new(),
            config: *config,
            by_bytes,
            minth,
            maxth,
            w: config.weight.get(),
            maxp: config.probability.get(),
            avg: 0.0,
            q_time: Some(0),
            count: -1,
            arrivals: 0,
            next_adaptation: 500_000_000,
        }
    }

    /// The average after idle time up to `now`.
    fn idle(&self, now: u64) -> f64 {
        let Some(q_time) = self.q_time else { return self.avg };
        let m = now.saturating_sub(q_time) as f64 / self.config.packet_time.nanos() as f64;
        self.avg * libm::pow(1.0 - self.w, m)
    }

    fn timer(&mut self, now: u64) {
        while self.config.adaptive && self.next_adaptation <= now {
            let avg = self.idle(self.next_adaptation);
            let low = self.minth + 0.4 * (self.maxth - self.minth);
            let high = self.minth + 0.6 * (self.maxth - self.minth);
            if avg > high && self.maxp <= 0.5 {
                self.maxp += f64::min(0.01, self.maxp / 4.0);
            } else if avg < low && self.maxp >= 0.01 {
                self.maxp *= 0.9;
            }
            self.next_adaptation += 500_000_000;
        }
    }
}

impl Discipline for Floyd1993 {
    fn enqueue(&mut self, now: u64, mut packet: Packet, deeds: &mut Deeds) {
        self.timer(now);
        if self.packets.is_empty() {
            self.avg = self.idle(now);
            self.q_time = Some(now);
        } else {
            let bytes: u64 = self.packets.iter().map(|packet| packet.len).sum();
            let q = if self.by_bytes { bytes as f64 } else { self.packets.len() as f64 };
            self.avg = (1.0 - self.w) * self.avg + self.w * q;
        }
        let u = key().unit(self.arrivals, 0);
        self.arrivals += 1;
        if self.packets.len() >= 200 {
            return deeds.dropped.push((now, packet.id));
        }
        let sure = if self.config.gentle { 2.0 * self.maxth } else { self.maxth };
        let hit = if self.avg < self.minth {
            self.count = -1;
            false
        } else if self.avg >= sure {
            self.count = 0;
            true
        } else {
            self.count += 1;
            let pb = if self.avg < self.maxth {
                self.maxp * (self.avg - self.minth) / (self.maxth - self.minth)
            } else {
                self.maxp + (1.0 - self.maxp) * (self.avg - self.maxth) / self.maxth
            };
            let left = 1.0 - self.count as f64 * pb;
            let hit = left <= 0.0 || u < pb / left;
            if hit {
                self.count = 0;
            }
            hit
        };
        if hit {
            let mark = self.config.ecn && packet.ecn != Ecn::NotEct;
            if !mark || (self.avg >= sure && self.config.hard_drop) {
                return deeds.dropped.push((now, packet.id));
            }
            deeds.mark(now, &mut packet);
        }
        self.q_time = None;
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: u64, _: &mut Deeds) -> Option<Packet> {
        self.timer(now);
        let packet = self.packets.pop_front()?;
        if self.packets.is_empty() {
            self.q_time = Some(now);
        }
        Some(packet)
    }
}

fn config() -> RedConfig {
    RedConfig {
        limit: read("200 packets"),
        min: read("5 packets"),
        max: read("15 packets"),
        probability: read("0.1"),
        weight: read("0.02"),
        packet_time: read("1 ms"),
        gentle: false,
        adaptive: false,
        ecn: false,
        hard_drop: false,
    }
}

#[test]
fn red_does_what_the_paper_says() {
    let (mut drops, mut marks) = (0, 0);
    for seed in 0..24 {
        let by_bytes = seed % 5 == 0;
        let flags = RedConfig {
            gentle: seed & 1 > 0,
            adaptive: seed & 2 > 0,
            ecn: seed & 4 > 0,
            hard_drop: seed & 12 == 12,
            ..config()
        };
        let config = match by_bytes {
            true => RedConfig { min: read("4 kB"), max: read("12 kB"), ..flags },
            false => flags,
        };
        let (minth, maxth) = if by_bytes { (4_000.0, 12_000.0) } else { (5.0, 15.0) };
        let reference = Floyd1993::new(&config, by_bytes, minth, maxth);
        let (trace, deeds) = compare(QueueConfig::Red(config), reference, &arrivals(400 + seed, 12.0));
        drops += managed(&trace);
        marks += deeds.marked.len();
    }
    assert!(drops > 1_000 && marks > 1_000, "{drops} {marks}");
}

/// A queue by itself, without a link.
struct Alone {
    queue: Queue,
    outputs: Outputs,
    now: Time,
    offered: u64,
}

impl Alone {
    fn new(config: RedConfig) -> Alone {
        let queue = Queue::new(&QueueConfig::Red(config), key());
        Alone { queue, outputs: Outputs::default(), now: Time::ZERO, offered: 0 }
    }

    fn stage<'a, 'b>(now: Time, cx: &'a mut Cx<'b>) -> StageCx<'a, 'b> {
        StageCx::new(Site { hop: 0, direction: Direction::Uplink, state: 0, stage: Stage::Queue }, now, cx)
    }

    /// Offers a packet; whether it was taken.
    fn offer(&mut self) -> bool {
        self.offered += 1;
        let before = self.queue.length().packets;
        let pdu = Pdu { id: self.offered, len: 1000, ..Pdu::default() };
        let mut cx = Cx::new(&mut self.outputs);
        self.queue.enqueue(pdu, &mut Self::stage(self.now, &mut cx));
        self.queue.length().packets > before
    }

    fn serve(&mut self) {
        let mut cx = Cx::new(&mut self.outputs);
        self.queue.dequeue(|_| true, &mut Self::stage(self.now, &mut cx)).unwrap();
    }
}

/// With weight 1 the average is the queue, which is kept at 10 packets of 5 to 15: the probability p_b is
/// 0.1 · (10 − 5) / (15 − 5) = 1/20, and the gaps between hits are 1 to 19 packets, all equally likely
/// (the paper's count begins with 1 after a hit).
#[test]
fn the_gaps_between_drops_follow_the_formula() {
    let mut alone = Alone::new(RedConfig { weight: read("1"), ..config() });
    // The queue is filled while it is short.
    while alone.queue.length().packets < 10 {
        alone.offer();
    }
    const HITS: usize = 19_000;
    let (mut gaps, mut gap, mut hits) = ([0u32; 20], 0, 0);
    while hits <= HITS {
        gap += 1;
        if alone.offer() {
            alone.serve();
        } else {
            // The first gap may have begun with another count.
            if hits > 0 {
                gaps[gap] += 1;
            }
            (gap, hits) = (0, hits + 1);
        }
    }
    assert_eq!(gaps[0], 0);
    let expected = HITS as f64 / 19.0;
    let chi: f64 = gaps[1..].iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // 18 degrees of freedom at a level of 1e-4: 47.6; the draws are fixed.
    assert!(chi < 47.6, "{chi} {gaps:?}");
}

/// The share of packets that are dropped while the queue, and with weight 1 its average, is `queued`.
fn share_dropped(queued: usize, gentle: bool) -> f64 {
    let packets = (0..queued).map(|_| (Time::ZERO, Pdu { len: 1000, ..Pdu::default() })).collect();
    let mut alone = Alone::new(RedConfig { weight: read("1"), gentle, ..config() });
    alone.queue.take_over(packets, Time::ZERO);
    let mut dropped = 0;
    for _ in 0..20_000 {
        if alone.offer() {
            alone.serve();
        } else {
            dropped += 1;
        }
    }
    f64::from(dropped) / 20_000.0
}

/// Above the range everything is dropped; with `gentle` the probability grows on to twice `max`.
#[test]
fn above_the_range_it_drops_all_or_gently() {
    assert_eq!(share_dropped(4, false), 0.0);
    assert_eq!(share_dropped(15, false), 1.0);
    assert_eq!(share_dropped(30, true), 1.0);
    // p_b = 0.1 + 0.9 · (18 − 15) / 15 = 0.28: after a hit the next packet is hit with 0.28 / 0.72, the
    // one after with 0.28 / 0.44, and the third surely, as 0.28 / 0.16 is above 1.
    let (one, two) = (0.28 / 0.72, 0.28 / 0.44);
    let mean_gap = one + 2.0 * (1.0 - one) * two + 3.0 * (1.0 - one) * (1.0 - two);
    let share = share_dropped(18, true);
    // Five standard errors of a share of 20,000.
    assert!((share - 1.0 / mean_gap).abs() < 0.018, "{share} {}", 1.0 / mean_gap);
}

/// A thousand packets' time of idleness with a weight of 0.002 leaves 0.998^1000 = 13.5 % of the
/// average, however often arrivals that find the queue empty are dropped or served meanwhile.
#[test]
fn the_average_decays_over_idle_time() {
    let mut dice = Dice::new(5);
    let spec = RedConfig { weight: read("0.002"), ..config() };
    for parts in [1u64, 2, 7] {
        let mut alone = Alone::new(spec);
        for _ in 0..3_000 {
            alone.offer();
            if alone.queue.length().packets > 12 {
                alone.serve();
            }
        }
        while alone.queue.length().packets > 0 {
            alone.serve();
        }
        let average = average(&alone);
        assert!(average > 8.0, "{average}");
        let mut left = 1_000_000_000;
        for part in 0..parts {
            let step = if part + 1 == parts { left } else { dice.below(left) };
            left -= step;
            alone.now = Time::from_nanos(alone.now.nanos() + step);
            if alone.offer() {
                alone.serve();
            }
        }
        let expected = average * 0.998f64.powi(1000);
        assert!((self::average(&alone) - expected).abs() < 1e-9, "{} {expected}", self::average(&alone));
    }
}

/// The average, read from what the queue shows of itself.
fn average(alone: &Alone) -> f64 {
    let shown = format!("{:?}", alone.queue);
    let from = shown.split("average: ").nth(1).unwrap();
    from.split(',').next().unwrap().parse().unwrap()
}
