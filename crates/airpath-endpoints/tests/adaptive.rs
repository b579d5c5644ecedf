// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Adaptive media against the equilibrium that RFC 8698 computes, and against other flows.

use airpath_core::{End, Time};
use airpath_endpoints::Options;

use crate::common::{Run, link, run, seconds};

fn play(plain: &str, texts: &[&str], end: f64) -> Run {
    run(link(plain, 5), texts, &Options::default(), 5, seconds(end))
}

/// Mean rate at which IP packets of a flow reach the client, in bit/s.
fn rate(run: &Run, flow: u32, from: f64, to: f64) -> f64 {
    let (begin, end) = (seconds(from), seconds(to));
    let inside = |at: Time| at >= begin && at < end;
    let bytes: u64 = run
        .got
        .iter()
        .filter(|passed| passed.end == End::Client && passed.pdu.flow == flow && inside(passed.at))
        .map(|passed| u64::from(passed.pdu.len))
        .sum();
    bytes as f64 * 8.0 / (to - from)
}

fn between(value: f64, least: f64, greatest: f64) {
    assert!((least..=greatest).contains(&value), "{value} is not from {least} to {greatest}");
}

#[test]
fn one_flow_fills_the_link_with_the_queue_of_the_equilibrium() {
    let run = play("1 Mbit/s,50 ms,300 ms", &["adaptive-media duration='60 s'"], 70.0);
    between(rate(&run, 0, 30.0, 60.0), 0.95e6, 1.0e6);
    // x = XREF × RMAX / r = 15 ms above the least delay.
    let transits: Vec<f64> = run
        .got
        .iter()
        .filter(|passed| passed.end == End::Client && passed.at > seconds(30.0))
        .map(|passed| passed.at.since(passed.pdu.arrived).as_secs_f64() * 1e3)
        .collect();
    let mean = transits.iter().sum::<f64>() / transits.len() as f64;
    between(mean - 50.0, 10.0, 35.0);
    let media = run.reports[0].media.clone().unwrap();
    assert_eq!((media.frames_sent, media.frames_lost, media.frames_late), (1_800, 0, 0));
}

#[test]
fn the_rate_stays_within_its_bounds() {
    let run = play("10 Mbit/s,20 ms", &["adaptive-media duration='30 s' greatest_rate='700 kbit/s'"], 40.0);
    between(rate(&run, 0, 15.0, 30.0), 0.69e6, 0.705e6);
    let narrow = play("100 kbit/s,20 ms,300 ms", &["adaptive-media duration='30 s' least_rate='150 kbit/s'"], 40.0);
    let sent = narrow.reports[0].downlink.as_ref().unwrap().sent_bytes as f64 * 8.0 / 30.0;
    between(sent, 0.148e6, 0.16e6);
}

#[test]
fn equal_flows_share_equally_and_weights_count() {
    let flow = "adaptive-media duration='120 s'";
    let run = play("2 Mbit/s,50 ms,300 ms", &[flow, flow], 130.0);
    let (one, other) = (rate(&run, 0, 60.0, 120.0), rate(&run, 1, 60.0, 120.0));
    between(one + other, 1.9e6, 2.0e6);
    between(one / other, 0.9, 1.1);
    let heavy = "adaptive-media duration='120 s' weight=2";
    let run = play("1.5 Mbit/s,50 ms,300 ms", &[flow, heavy], 130.0);
    // In the equilibrium both see one signal: x = PRIO × XREF × RMAX / r.
    between(rate(&run, 1, 60.0, 120.0) / rate(&run, 0, 60.0, 120.0), 1.7, 2.2);
}

#[test]
fn a_flow_gives_way_when_capacity_falls_and_loses_little() {
    let steps = r#"
        [[hops]]
        [hops.link]
        propagation = "50 ms"
        queue = { type = "tail_drop", limit = "300 ms" }
        rate = { type = "steps", steps = ["0 s: 2 Mbit/s", "20 s: 600 kbit/s"] }
    "#;
    let run = run(
        crate::common::scenario(steps, 5),
        &["adaptive-media duration='60 s'"],
        &Options::default(),
        5,
        seconds(70.0),
    );
    between(rate(&run, 0, 10.0, 20.0), 1.4e6, 1.51e6);
    between(rate(&run, 0, 40.0, 60.0), 0.55e6, 0.6e6);
    let delivery = run.reports[0].downlink.as_ref().unwrap();
    assert!(delivery.packets_lost * 20 < delivery.packets_sent, "{delivery:?}");
}

#[test]
fn a_paused_flow_is_silent_and_its_frames_are_not_lost() {
    let run = play(
        "2 Mbit/s,50 ms",
        &["adaptive-media frames_per_second=25 duration='30 s' pause='10 s' resume='20 s'"],
        40.0,
    );
    let times = run.sending_times(End::Server);
    assert!(!times.iter().any(|at| (10_200_000_000..20_000_000_000).contains(at)), "a packet in the pause");
    let media = run.reports[0].media.clone().unwrap();
    assert_eq!((media.frames_sent, media.frames_on_time, media.frames_lost), (500, 500, 0));
    assert!(rate(&run, 0, 21.0, 30.0) > 0.5e6);
}

#[test]
fn marks_keep_the_queue_short_without_losses() {
    let text = r#"
        [[hops]]
        [hops.link]
        rate = "1 Mbit/s"
        propagation = "50 ms"
        queue = { type = "codel", limit = "100 packets", ecn = true }
    "#;
    let media = "adaptive-media duration='60 s' ecn=yes greatest_rate='4 Mbit/s'";
    let run = run(crate::common::scenario(text, 5), &[media], &Options::default(), 5, seconds(70.0));
    let delivery = run.reports[0].downlink.as_ref().unwrap();
    assert_eq!(delivery.packets_lost, 0);
    between(rate(&run, 0, 30.0, 60.0), 0.5e6, 1.0e6);
}

#[test]
fn equal_seeds_give_equal_packets() {
    let text = ["adaptive-media duration='20 s' variation=20%", "tcp bytes=1MB start='5 s'"];
    let again = || play("1 Mbit/s,50 ms,300 ms,1%", &text, 30.0).trace();
    assert_eq!(again(), again());
}
