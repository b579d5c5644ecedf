// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! DualPI2 against the pseudocode of RFC 9332, Appendix A (second pass), with a timer that fires at
//! every update, and a weighted round robin written another way.

use std::collections::VecDeque;

use airpath_core::{Ecn, EventKind, PortId, Time};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::dualpi2::Dualpi2Config;

use super::link::{Deeds, Discipline, Packet, arrivals, compare, managed, run};
use crate::common::{Action, Script, ms, read};

#[derive(Default)]
struct Queue {
    packets: VecDeque<Packet>,
    count: f64,
}

impl Queue {
    fn time(&self, now: u64) -> f64 {
        self.packets.front().map_or(0.0, |packet| (now - packet.arrived) as f64 / 1e9)
    }
}

fn recur(q: &mut Queue, likelihood: f64) -> bool {
    q.count += likelihood;
    if q.count > 1.0 {
        q.count -= 1.0;
        return true;
    }
    false
}

struct Rfc9332 {
    config: Dualpi2Config,
    lq: Queue,
    cq: Queue,
    /// Ninths of the bytes of L packets, of which the C queue gets one for nine: a tenth of all.
    earned: i64,
    next_update: u64,
    base: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
}

impl Rfc9332 {
    fn new(config: &Dualpi2Config) -> Rfc9332 {
        Rfc9332 {
            config: *config,
            lq: Queue::default(),
            cq: Queue::default(),
            earned: 0,
            next_update: config.update.nanos(),
            base: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0.0,
        }
    }

    fn timer(&mut self, now: u64) {
        while self.next_update <= now {
            let at = self.next_update;
            let curq = self.cq.time(at).max(self.lq.time(at));
            let target = self.config.target.nanos() as f64 / 1e9;
            self.base += self.config.alpha * (curq - target) + self.config.beta * (curq - self.prevq);
            self.base = self.base.clamp(0.0, 1.0);
            self.p_cl = self.config.coupling * self.base;
            self.p_c = self.base * self.base;
            self.prevq = curq;
            self.next_update += self.config.update.nanos();
        }
    }

    fn laqm(&self, qdelay: u64, packets: usize) -> f64 {
        let min_th = self.config.threshold.nanos();
        let max_th = min_th + self.config.range.nanos();
        if packets <= self.config.threshold_packets as usize {
            0.0
        } else if qdelay >= max_th {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th) as f64 / (max_th - min_th) as f64
        } else {
            0.0
        }
    }

    fn scheduler_is_lq(&mut self, now: u64) -> bool {
        if self.lq.packets.is_empty() || self.cq.packets.is_empty() {
            return !self.lq.packets.is_empty();
        }
        match self.config.time_shift {
            Some(shift) => {
                let since = |queue: &Queue| now - queue.packets[0].arrived;
                since(&self.lq) + shift.nanos() >= since(&self.cq)
            }
            None => self.earned < 9 * self.cq.packets[0].len as i64,
        }
    }

    fn sent(&mut self, scalable: bool, len: u64) {
        if self.cq.packets.is_empty() {
            self.earned = 0;
        } else if scalable {
            self.earned += len as i64;
        } else if !self.lq.packets.is_empty() {
            self.earned -= 9 * len as i64;
        }
    }
}

impl Discipline for Rfc9332 {
    fn enqueue(&mut self, now: u64, packet: Packet, deeds: &mut Deeds) {
        self.timer(now);
        if self.lq.packets.len() + self.cq.packets.len() >= 200 {
            return deeds.dropped.push((now, packet.id));
        }
        if packet.ecn as u8 % 2 == 1 {
            self.lq.packets.push_back(packet);
        } else {
            self.cq.packets.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: u64, deeds: &mut Deeds) -> Option<Packet> {
        self.timer(now);
        while !self.lq.packets.is_empty() || !self.cq.packets.is_empty() {
            let scalable = self.scheduler_is_lq(now);
            let mut packet;
            if scalable {
                let held = self.lq.packets.len();
                packet = self.lq.packets.pop_front().unwrap();
                let native = self.laqm(now - packet.arrived, held);
                if self.p_cl < 1.0 {
                    let p_l = native.max(self.p_cl);
                    if recur(&mut self.lq, p_l) {
                        deeds.mark(now, &mut packet);
                    }
                } else {
                    if recur(&mut self.lq, self.p_c) {
                        deeds.dropped.push((now, packet.id));
                        continue;
                    }
                    if recur(&mut self.lq, self.p_cl.min(1.0)) {
                        deeds.mark(now, &mut packet);
                    }
                }
            } else {
                packet = self.cq.packets.pop_front().unwrap();
                if recur(&mut self.cq, self.p_c) {
                    let p_cmax = (1.0 / (self.config.coupling * self.config.coupling)).min(1.0);
                    if packet.ecn == Ecn::NotEct || self.p_c >= p_cmax {
                        deeds.dropped.push((now, packet.id));
                        continue;
                    }
                    deeds.mark(now, &mut packet);
                }
            }
            self.sent(scalable, packet.len);
            return Some(packet);
        }
        None
    }
}

fn config() -> Dualpi2Config {
    Dualpi2Config {
        limit: read("200 packets"),
        target: read("15 ms"),
        update: read("15 ms"),
        alpha: 0.15,
        beta: 3.0,
        coupling: 2.0,
        threshold: read("800 us"),
        range: read("400 us"),
        threshold_packets: 1,
        classic_share: read("0.1"),
        time_shift: None,
        ecn: true,
    }
}

#[test]
fn dualpi2_does_what_the_rfc_says() {
    let (mut drops, mut marks) = (0, 0);
    for seed in 0..24 {
        let plain = config();
        let config = match seed % 4 {
            0 => plain,
            1 => Dualpi2Config { time_shift: Some(read("30 ms")), range: read("0 s"), ..plain },
            2 => Dualpi2Config { alpha: 3.0, beta: 30.0, coupling: 1.5, threshold_packets: 0, ..plain },
            _ => Dualpi2Config { target: read("5 ms"), update: read("7 ms"), threshold: read("20 ms"), ..plain },
        };
        let queue = QueueConfig::Dualpi2(config);
        let (trace, deeds) = compare(queue, Rfc9332::new(&config), &arrivals(200 + seed, 12.0));
        drops += managed(&trace);
        marks += deeds.marked.len();
    }
    assert!(drops > 1_000 && marks > 1_000, "{drops} {marks}");
}

/// A packet of 1000 bytes each half millisecond, ECT(1) and Not-ECT in turn, against a link of one each
/// millisecond: while both queues are backlogged, every tenth packet that goes is of the C queue.
#[test]
fn both_queues_share_by_weight_and_scalable_packets_wait_less() {
    let script: Script = (0..400)
        .map(|step| {
            let header_len = if step % 2 == 0 { 0 } else { 20 };
            (Time::from_nanos(step * 500_000), Action::Offer { port: PortId::CLIENT, len: 1000, header_len })
        })
        .collect();
    // A controller that does nothing.
    let idle = Dualpi2Config { alpha: 0.0, beta: 0.0, limit: read("unlimited"), ..config() };
    // L packets come as fast as the link takes them: it would be theirs alone.
    let trace = run(QueueConfig::Dualpi2(idle), &script);
    let early: Vec<_> = trace.departures.iter().filter(|left| left.at < ms(200)).collect();
    let classic = early.iter().filter(|left| left.id % 2 == 0).count();
    assert!((19..=21).contains(&classic), "{classic}");
    assert!(trace.of_kind(EventKind::Dropped).is_empty());
    // The native ramp marks only packets of the L queue, and only those that waited.
    let marked = trace.of_kind(EventKind::Marked);
    assert!(!marked.is_empty() && marked.iter().all(|event| event.pdu % 2 == 1));
}

/// Without ECN nothing is marked and nothing overtakes.
#[test]
fn without_ecn_it_is_one_queue_that_drops() {
    let plain = Dualpi2Config { ecn: false, alpha: 3.0, beta: 30.0, ..config() };
    let trace = run(QueueConfig::Dualpi2(plain), &arrivals(300, 10.0));
    assert!(trace.of_kind(EventKind::Marked).is_empty());
    assert!(managed(&trace) > 50);
    assert!(trace.departures.windows(2).all(|pair| pair[0].id < pair[1].id));
}
