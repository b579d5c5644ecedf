// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::bound::LatenessBound;
use crate::histogram::{Excess, Late};
use crate::verdict::ends::Waits;
use crate::verdict::{Measurements, judge};
use airpath_core::{Event, Pdu, Time};

fn summary(measured: &Measurements) -> Summary {
    let mut counters = Counters::default();
    let mut timings = Timings::new(LatenessBound::USUAL);
    for id in 0..500u64 {
        let pdu = Pdu { id, len: 296, ..Pdu::default() };
        let mut count = |direction, kind, cause| {
            counters.count(&Event::of_path(Time::ZERO, direction, kind, cause, &pdu, 0));
        };
        count(Direction::Downlink, EventKind::Offered, Cause::None);
        match id % 10 {
            0 => count(Direction::Downlink, EventKind::Dropped, Cause::ChannelError),
            1 if id < 100 => count(Direction::Downlink, EventKind::Dropped, Cause::QueuePackets),
            _ => {
                count(Direction::Downlink, EventKind::Delivered, Cause::None);
                let due = Time::from_nanos(200_000_000 + id * 1_000_000);
                timings.emitted(Direction::Downlink, Time::ZERO, due, due + Span::from_micros(id / 10), || Span::ZERO);
            }
        }
        if id < 4 {
            count(Direction::Uplink, EventKind::Discarded, Cause::Noise);
            count(Direction::Downlink, EventKind::Discarded, Cause::Noise);
        }
    }
    Summary::new(&counters, &timings, Span::from_millis(170_500), judge(measured))
}

#[test]
fn five_aligned_lines() {
    let text = summary(&Measurements::default()).to_string();
    let expected = "\
delivered  uplink 0 packets, 0 B, 0 bit/s   downlink 440 packets, 130 kB, 6.11 kbit/s   in 170 s
dropped    uplink none                      downlink 50 channel_error, 10 queue_packets   filtered 8 (host chatter)
delay      uplink none measured             downlink p50 455 ms, p99 696 ms, max 699 ms
exactness  one-way delays and departures to 49.0 us (0.011 %)
verdict    trusted";
    assert_eq!(text, expected);
}

#[test]
fn what_the_ends_suffered_has_a_line_where_it_is_not_nothing() {
    let mut summary = summary(&Measurements::default());
    summary.seed = Some(7);
    let mut ends = EndResults { not_ip_frames: 3, too_long_frames: 4, ..EndResults::default() };
    let mut waits = Waits::default();
    (waits.client.kept_waiting_ns, waits.client.longest_ns) = (1_550_000_000, 41_000_000);
    waits.server.kept_waiting_ns = 900_000;
    ends.waits = Some(waits);
    ends.client_sockets.listen_drops = 1;
    ends.server_sockets.udp_receive_buffer = 117;
    ends.refused_writes = 2;
    summary.ends = Some(ends);
    let text = summary.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with("   in 170 s, seed 7"), "{text}");
    assert!(lines[1].ends_with("filtered 8 (host chatter), 3 (not IP), 4 (longer than the MTU)"), "{text}");
    let expected = "ends       client waited 1.55 s for a CPU, at most 41.0 ms at a time; \
                    client 1 connection request dropped; server 117 datagrams lost in sockets; 2 packets refused by the kernel behind the link";
    assert_eq!((lines.len(), lines[3]), (6, expected));
    summary.ends = Some(EndResults::default());
    assert_eq!(summary.to_string().lines().count(), 5);
}

#[test]
fn bearers_have_a_line_each() {
    let user = |name: &str| crate::places::UserNames {
        name: name.into(),
        hops: vec!["radio".into()],
        states: vec!["initial".into()],
        bearers: vec![vec!["voice".into(), "rest".into()]],
    };
    let places = Places::of_users(vec![user("alice"), user("bob")]);
    let mut counters = Counters::default();
    let pdu = Pdu { id: 1, len: 125, ..Pdu::default() };
    let mut count = |place, kind, cause| {
        let event = Event::of_path(Time::ZERO, Direction::Downlink, kind, cause, &pdu, 0);
        counters.count(&Event { hop: place, ..event });
    };
    // Bob's first bearer has the place behind the whole path of bob, which is behind the two of alice.
    count(3, EventKind::Enqueued, Cause::None);
    count(3, EventKind::FrameSent, Cause::None);
    count(4, EventKind::Dropped, Cause::QueuePackets);
    let timings = Timings::new(LatenessBound::USUAL);
    let delays = vec![Delays::default(); 2];
    let duration = Span::from_secs(1);
    let summary = Summary::new(&counters, &timings, duration, judge(&Measurements::default()));
    let text = summary.with_users(&counters, &places, &delays, duration).to_string();
    let lines: Vec<_> = text.lines().collect();
    let none = "0 packets queued, none dropped, 0 frames sent";
    let expected = [
        format!("alice.radio.voice  uplink {none}   downlink {none}"),
        format!("alice.radio.rest   uplink {none}   downlink {none}"),
        format!("bob.radio.voice    uplink {none}   downlink 1 packet queued, none dropped, 1 frame sent"),
        format!("bob.radio.rest     uplink {none}   downlink 0 packets queued, 1 queue_packets dropped, 0 frames sent"),
    ];
    assert_eq!(lines[5..9], expected);
}

#[test]
fn background_load_has_a_line_of_its_own_and_is_in_no_other() {
    let mut counters = Counters::default();
    let timings = Timings::new(LatenessBound::USUAL);
    for id in 0..10u64 {
        let pdu = Pdu { id, len: 1250, origin: Origin::Background, ..Pdu::default() };
        let mut count = |hop, kind, cause| {
            let event = Event::of_path(Time::ZERO, Direction::Uplink, kind, cause, &pdu, 0);
            counters.count(&Event { hop, ..event });
        };
        count(0, EventKind::Generated, Cause::None);
        match id {
            0..3 => count(1, EventKind::Dropped, Cause::QueuePackets),
            3..8 => count(1, EventKind::Consumed, Cause::None),
            _ => {}
        }
    }
    let summary = Summary::new(&counters, &timings, Span::from_secs(1), judge(&Measurements::default()));
    let text = summary.to_string();
    let lines: Vec<_> = text.lines().collect();
    let expected = "background uplink 10 packets, 100 kbit/s, dropped 3 queue_packets, 2 still inside   downlink none";
    assert_eq!((lines.len(), lines[3]), (6, expected));
    assert!(lines[0].starts_with("delivered  uplink 0 packets") && lines[1].starts_with("dropped    uplink none "));
    assert_eq!(summary.to_json()["uplink"]["background"]["consumed_packets"], 5);
    assert!(summary.to_json()["downlink"].get("background").is_none());
}

#[test]
fn in_virtual_time_the_speed_stands_where_the_lateness_was() {
    let live = summary(&Measurements::default());
    let text = live.clone().in_virtual_time(1_705_000).to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[3], "clock      virtual, run in 1.71 ms: 100,000 times real-time speed");
    let json = live.in_virtual_time(1_705_000).to_json();
    assert_eq!((&json["clock"], &json["wall_ns"]), (&"virtual".into(), &1_705_000.into()));
}

#[test]
fn a_step_of_the_clock_is_told_where_it_did_no_harm() {
    let step = crate::verdict::ClockStep { at_ns: 3_200_000_000, by_ns: 500_000_000 };
    let wall_clock = WallClock { count: 1, largest_ns: 500_000_000, steps: vec![step], ..WallClock::default() };
    let measured = Measurements { wall_clock: wall_clock.clone(), ..Measurements::default() };
    let summary = Summary { wall_clock, ..summary(&measured) };
    let text = summary.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[4],
        "clock      the wall clock was stepped once, by +500 ms 3.20 s into the run; no packet was affected"
    );
    assert_eq!((lines.len(), lines[5]), (6, "verdict    trusted"));
    assert_eq!(summary.to_json()["wall_clock"]["steps"][0]["by_ns"], 500_000_000);
}

#[test]
fn reasons_stand_below_each_other() {
    let measured = Measurements {
        offered: 1_000,
        outside_drops: 1,
        log_incomplete: vec!["9 events were lost".into()],
        ..Measurements::default()
    };
    let text = summary(&measured).to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[4].starts_with("verdict    suspect: 1 of 1,001 packets"), "{}", lines[4]);
    assert!(lines[5].starts_with("           log incomplete: 9 events were lost; "), "{}", lines[5]);
}

#[test]
fn advice_that_reasons_share_is_given_once() {
    let late = Late { packets: 1, worst: Excess { late_ns: 2_000_000, bound_ns: 1_000_000 } };
    let reads = crate::verdict::Reads::Gaps { late };
    let text = summary(&Measurements { late_emissions: late, reads, offered: 500, ..Measurements::default() });
    let text = text.to_string();
    assert_eq!(text.matches("no cause").count(), 1, "{text}");
    assert!(text.lines().last().is_some_and(|line| line.contains("no cause")), "{text}");
}

#[test]
fn json_carries_the_same() {
    let json = summary(&Measurements::default()).to_json();
    assert_eq!(json["exactness"]["departures_ns"], 49_000);
    assert_eq!(json["downlink"]["dropped"][0], serde_json::json!({"cause": "channel_error", "packets": 50}));
    assert_eq!(json["verdict"]["grade"], "trusted");
}
