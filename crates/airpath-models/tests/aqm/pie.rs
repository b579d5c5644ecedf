// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! PIE against the pseudocode of RFC 8033 (sections 4 and 5), with a timer that fires at every update.

use std::collections::VecDeque;

use airpath_core::{DrawKey, Ecn, EventKind, Time};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::pie::{PieConfig, PieLaw, PieState};

use super::link::{Deeds, Discipline, Packet, arrivals, compare, key, managed, run};
use crate::common::{Action, Script, read};

struct Rfc8033 {
    packets: VecDeque<Packet>,
    limit: usize,
    qdelay_ref: f64,
    t_update: u64,
    alpha: f64,
    beta: f64,
    max_burst: i64,
    mean_pktsize: u64,
    ecn: bool,
    mark_ecnth: f64,
    key: DrawKey,
    draws: u64,
    next_update: u64,
    drop_prob: f64,
    accu_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: i64,
}

impl Rfc8033 {
    fn new(config: &PieConfig) -> Rfc8033 {
        Rfc8033 {
            packets: VecDeque::new(),
            limit: 200,
            qdelay_ref: config.target.nanos() as f64 / 1e9,
            t_update: config.update.nanos(),
            alpha: config.alpha,
            beta: config.beta,
            max_burst: config.max_burst.nanos() as i64,
            mean_pktsize: config.mtu.get() / 8,
            ecn: config.ecn,
            mark_ecnth: config.mark_ecnth.get(),
            key: key(),
            draws: 0,
            next_update: config.update.nanos(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: config.max_burst.nanos() as i64,
        }
    }

    fn byte_length(&self) -> u64 {
        self.packets.iter().map(|packet| packet.len).sum()
    }

    fn timer(&mut self, now: u64) {
        while self.next_update <= now {
            self.next_update += self.t_update;
            self.calculate_drop_prob();
        }
    }

    fn calculate_drop_prob(&mut self) {
        let mut p =
            self.alpha * (self.current_qdelay - self.qdelay_ref) + self.beta * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = (self.burst_allowance - self.t_update as i64).max(0);
        let half = self.qdelay_ref / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.max_burst;
        }
        self.qdelay_old = self.current_qdelay;
    }

    fn drop_early(&mut self, u: f64) -> bool {
        if (self.qdelay_old < self.qdelay_ref / 2.0 && self.drop_prob < 0.2)
            || self.byte_length() <= 2 * self.mean_pktsize
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 || u < self.drop_prob {
            self.accu_prob = 0.0;
            return true;
        }
        false
    }
}

impl Discipline for Rfc8033 {
    fn enqueue(&mut self, now: u64, mut packet: Packet, deeds: &mut Deeds) {
        self.timer(now);
        let u = self.key.unit(self.draws, 0);
        self.draws += 1;
        if self.packets.len() >= self.limit {
            self.accu_prob = 0.0;
            return deeds.dropped.push((now, packet.id));
        }
        if self.burst_allowance == 0 && self.drop_early(u) {
            if self.ecn && self.drop_prob < self.mark_ecnth && packet.ecn != Ecn::NotEct {
                deeds.mark(now, &mut packet);
            } else {
                return deeds.dropped.push((now, packet.id));
            }
        }
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: u64, _: &mut Deeds) -> Option<Packet> {
        self.timer(now);
        let packet = self.packets.pop_front()?;
        self.current_qdelay = (now - packet.arrived) as f64 / 1e9;
        if self.packets.is_empty() {
            self.current_qdelay = 0.0;
        }
        Some(packet)
    }
}

fn config(ecn: bool) -> PieConfig {
    PieConfig {
        limit: read("200 packets"),
        target: read("15 ms"),
        update: read("15 ms"),
        alpha: 0.125,
        beta: 1.25,
        max_burst: read("150 ms"),
        ecn,
        mark_ecnth: read("0.1"),
        mtu: read("1500 bytes"),
    }
}

#[test]
fn pie_does_what_the_rfc_says() {
    let (mut drops, mut marks) = (0, 0);
    for seed in 0..24 {
        let plain = config(seed % 2 == 0);
        let config = match seed % 3 {
            0 => plain,
            1 => PieConfig { target: read("4 ms"), update: read("7 ms"), max_burst: read("20 ms"), ..plain },
            _ => PieConfig { alpha: 1.25, beta: 12.5, max_burst: read("0 s"), mark_ecnth: read("0.5"), ..plain },
        };
        let (trace, deeds) = compare(QueueConfig::Pie(config), Rfc8033::new(&config), &arrivals(100 + seed, 12.0));
        drops += managed(&trace);
        marks += deeds.marked.len();
    }
    assert!(drops > 1_000 && marks > 500, "{drops} {marks}");
}

/// 1000 bytes each half millisecond against a link of 1000 bytes each millisecond: the delay grows by
/// half a second in a second. Nothing is dropped within the burst allowance, and later on every second
/// packet.
#[test]
fn a_steady_overload_is_dropped_to_what_the_link_takes() {
    let script: Script = (0..120_000)
        .map(|step| {
            let action = Action::Offer { port: airpath_core::PortId::CLIENT, len: 1000, header_len: 20 };
            (Time::from_nanos(step * 500_000), action)
        })
        .collect();
    let trace = run(QueueConfig::Pie(PieConfig { limit: read("unlimited"), ..config(false) }), &script);
    let drops: Vec<u64> = trace.of_kind(EventKind::Dropped).iter().map(|event| event.at.nanos()).collect();
    assert!(drops[0] >= 150_000_000, "{}", drops[0]);
    // In the last ten seconds: 20,000 packets come, of which 10,000 can go, and the queue is near its
    // target, 15 packets.
    let late = drops.iter().filter(|at| **at >= 50_000_000_000).count();
    assert!(late.abs_diff(10_000) < 30, "{late}");
    let waits: Vec<f64> = trace
        .departures
        .iter()
        .filter(|left| left.arrived.nanos() >= 50_000_000_000 && left.at.nanos() < 60_000_000_000)
        .map(|left| left.at.since(left.arrived).as_secs_f64())
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 0.016).abs() < 0.004, "{mean}");
}

/// Making up for a long time gives what waking at every update gives, and quickly.
#[test]
fn updates_are_made_up_for_exactly() {
    let law = PieLaw {
        target: read("15 ms"),
        update: read("15 ms"),
        alpha: 0.125,
        beta: 1.25,
        max_burst: read("150 ms"),
        mark_ecnth: 0.1,
        mtu_bytes: 1500,
    };
    for waited in ["0 s", "1 ms", "16 ms", "300 ms", "20 s"] {
        for left in [0, 1] {
            let mut once = PieState::new(&law);
            once.departed(Some(read("2 s")), 1);
            once.catch_up(&law, Time::from_nanos(1_000_000_000));
            once.departed(Some(read(waited)), left);
            let mut each = once;
            let day = 86_400_000_000_000;
            once.catch_up(&law, Time::from_nanos(day));
            for step in 1..=86_400_000 / 15 {
                each.catch_up(&law, Time::from_nanos(step * 15_000_000));
            }
            each.catch_up(&law, Time::from_nanos(day));
            assert_eq!(format!("{once:?}"), format!("{each:?}"));
        }
    }
}
