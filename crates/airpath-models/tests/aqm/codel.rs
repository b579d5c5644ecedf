// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! CoDel against the pseudocode of RFC 8289, section 5, ported line by line.

use std::collections::VecDeque;

use airpath_core::{Cause, Ecn, EventKind};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::codel::CodelConfig;

use super::link::{Deeds, Discipline, Packet, arrivals, compare, managed, run};
use crate::common::{Script, ms, offer, read};

#[derive(Default)]
struct Rfc8289 {
    packets: VecDeque<Packet>,
    bytes: u64,
    target: i64,
    interval: i64,
    maxpacket: u64,
    ecn: bool,
    limit: usize,
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

struct Dodequeue {
    packet: Option<Packet>,
    ok_to_drop: bool,
}

impl Rfc8289 {
    fn control_law(&self, t: i64, count: u32) -> i64 {
        t + (self.interval as f64 / f64::from(count).sqrt()) as i64
    }

    fn dodequeue(&mut self, now: i64) -> Dodequeue {
        let mut r = Dodequeue { packet: self.packets.pop_front(), ok_to_drop: false };
        let Some(packet) = &r.packet else {
            self.first_above_time = 0;
            return r;
        };
        self.bytes -= packet.len;
        let sojourn_time = now - packet.arrived as i64;
        if sojourn_time < self.target || self.bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            r.ok_to_drop = true;
        }
        r
    }

    /// Drops or marks the packet; whether it was marked, and goes.
    fn hit(&self, now: i64, packet: &mut Packet, deeds: &mut Deeds) -> bool {
        if self.ecn && packet.ecn != Ecn::NotEct {
            deeds.mark(now as u64, packet);
            return true;
        }
        deeds.dropped.push((now as u64, packet.id));
        false
    }
}

impl Discipline for Rfc8289 {
    fn enqueue(&mut self, now: u64, packet: Packet, deeds: &mut Deeds) {
        if self.packets.len() >= self.limit {
            return deeds.dropped.push((now, packet.id));
        }
        self.bytes += packet.len;
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: u64, deeds: &mut Deeds) -> Option<Packet> {
        let now = now as i64;
        let mut r = self.dodequeue(now);
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.hit(now, r.packet.as_mut().unwrap(), deeds) {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    break;
                }
                r = self.dodequeue(now);
                if !r.ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if r.ok_to_drop {
            if !self.hit(now, r.packet.as_mut().unwrap(), deeds) {
                r = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.packet
    }
}

fn config(ecn: bool, target: &str, interval: &str) -> CodelConfig {
    CodelConfig {
        limit: read("200 packets"),
        target: read(target),
        interval: read(interval),
        ecn,
        ce_threshold: None,
        mtu: read("1500 bytes"),
    }
}

#[test]
fn codel_does_what_the_rfc_says() {
    let (mut drops, mut marks) = (0, 0);
    for seed in 0..24 {
        let (target, interval) = [("5 ms", "100 ms"), ("2 ms", "20 ms"), ("1 ms", "7 ms")][seed as usize % 3];
        let config = config(seed % 2 == 0, target, interval);
        let reference = Rfc8289 {
            target: config.target.nanos() as i64,
            interval: config.interval.nanos() as i64,
            maxpacket: 1500,
            ecn: config.ecn,
            limit: 200,
            ..Rfc8289::default()
        };
        let (trace, deeds) = compare(QueueConfig::Codel(config), reference, &arrivals(seed, 12.0));
        assert_eq!(config.ecn, !deeds.marked.is_empty());
        drops += managed(&trace);
        marks += deeds.marked.len();
    }
    assert!(drops > 1_000 && marks > 500, "{drops} {marks}");
}

/// A packet of 1000 bytes each half millisecond against a link of one each millisecond: packet n comes
/// after n/2 ms and goes after n ms. Number 10 is the first to have waited for 5 ms; an interval
/// later, at 110 ms, comes the first drop, and the next ones are due 100, 100/√2, 100/√3, 100/√4 ms
/// after one another (210, 280.7, 338.4, 388.4), when the next packet goes.
#[test]
fn the_drops_of_a_steady_overload_come_at_the_times_of_the_control_law() {
    let script: Script = (0..800)
        .map(|step| offer(airpath_core::Time::from_nanos(step * 500_000), airpath_core::PortId::CLIENT, 1000))
        .collect();
    let trace =
        run(QueueConfig::Codel(CodelConfig { limit: read("unlimited"), ..config(false, "5 ms", "100 ms") }), &script);
    let drops: Vec<u64> = trace
        .of_kind(EventKind::Dropped)
        .iter()
        .filter(|event| event.at < ms(400))
        .map(|event| {
            assert_eq!(event.cause, Cause::QueueManagement);
            event.at.nanos() / 1_000_000
        })
        .collect();
    assert_eq!(drops, [110, 210, 281, 339, 389]);
}

/// A threshold for marks works beside the law, and at once.
#[test]
fn the_threshold_marks_every_capable_packet_that_waited_longer() {
    let script: Script = (0..40)
        .map(|number| {
            let header_len = if number % 2 == 0 { 40 } else { 20 };
            (ms(0), crate::common::Action::Offer { port: airpath_core::PortId::CLIENT, len: 1000, header_len })
        })
        .collect();
    let codel = CodelConfig { ce_threshold: Some(read("10 ms")), ..config(true, "5 ms", "100 ms") };
    let trace = run(QueueConfig::Codel(codel), &script);
    let marked: Vec<u64> = trace.of_kind(EventKind::Marked).iter().map(|event| event.pdu).collect();
    // Packet n goes after n - 1 ms; those with odd numbers are capable.
    assert_eq!(marked, (12..=40).filter(|id| id % 2 == 1).collect::<Vec<u64>>());
    assert_eq!(trace.departures.len(), 40);
}
