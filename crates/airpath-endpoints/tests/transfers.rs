// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP: transfers complete, and take the time that they should.

use airpath_core::{End, Time};
use airpath_endpoints::{Options, WorkloadOutcome};

use crate::common::{link, run, scenario, seconds};

const MS: u64 = 1_000_000;

#[test]
fn a_bulk_transfer_fills_the_link() {
    for (text, port) in [
        ("tcp bytes='5 MB' cc=reno", End::Client),
        ("tcp bytes='5 MB' cc=cubic from=client", End::Server),
        ("tcp bytes='5 MB' cc=none recv_window='60 kB'", End::Client),
    ] {
        let run = run(link("10 Mbit/s,20 ms", 1), &[text], &Options::default(), 1, seconds(60.0));
        let report = &run.reports[0];
        assert_eq!(report.outcome, WorkloadOutcome::Complete, "{text}");
        let delivery = report.delivery(port.other().sends()).unwrap();
        assert_eq!(delivery.delivered_bytes, 5_000_000);
        // 1460 of 1500 bytes are data.
        let most = 10e6 * 1460.0 / 1500.0;
        let goodput = delivery.goodput_bits_per_second.unwrap();
        assert!((0.9 * most..most).contains(&goodput), "{text}: {goodput}");
        assert!(run.sent.iter().all(|passed| passed.pdu.len <= 1_500));
    }
}

#[test]
fn a_window_limits_a_transfer_to_itself_in_each_round_trip() {
    let text = "tcp bytes='1 MB' cc=none recv_window=14600 mss=1460";
    let run = run(link("1 Gbit/s,50 ms", 1), &[text], &Options::default(), 1, seconds(60.0));
    // 1 MB is 68.5 windows of 10 segments. The first arrives after 150 ms: connection, acknowledgement
    // and data take 50 ms each. The 68 others follow in 100 ms each, and the 10 ms by which the
    // acknowledgement of a single segment is delayed.
    let elapsed = run.reports[0].elapsed_ns.unwrap();
    assert!((6_950 * MS..7_650 * MS + 100 * MS).contains(&elapsed), "{elapsed}");
    assert_eq!(run.reports[0].downlink.as_ref().unwrap().packets_retransmitted, Some(0));
}

#[test]
fn losses_and_damage_are_made_good() {
    for cc in ["reno", "cubic", "none"] {
        for (from, plain) in [("server", "9600 bit/s,200 ms,7 packets,5%"), ("client", "1 Mbit/s,5 ms,20 packets,2%")] {
            let text = format!("tcp bytes=102400 from={from} cc={cc}");
            let options = Options { mtu_bytes: 296, ..Options::default() };
            let run = run(link(plain, 4), &[&text], &options, 4, seconds(3_600.0));
            let report = &run.reports[0];
            assert_eq!(report.outcome, WorkloadOutcome::Complete, "{text} {plain}");
            let (to, other) = match from {
                "server" => (report.downlink.as_ref().unwrap(), report.uplink.as_ref().unwrap()),
                _ => (report.uplink.as_ref().unwrap(), report.downlink.as_ref().unwrap()),
            };
            assert_eq!((to.delivered_bytes, other.delivered_bytes), (102_400, 0));
            assert!(to.packets_lost > 0 && to.packets_retransmitted.unwrap() >= to.packets_lost / 2, "{to:?}");
            assert_eq!(run.sent.iter().map(|passed| passed.pdu.len).max(), Some(296));
        }
    }
    let noisy = r#"
        [[hops]]
        name = "radio"
        [hops.link]
        rate = "1 Mbit/s"
        errors = { type = "bernoulli", per = "bit", probability = 0.00001, effect = "corrupt" }
    "#;
    let run = run(scenario(noisy, 1), &["tcp bytes=1000000"], &Options::default(), 1, seconds(3_600.0));
    let delivery = run.reports[0].downlink.as_ref().unwrap();
    assert_eq!((delivery.delivered_bytes, delivery.packets_damaged), (1_000_000, 0));
    assert!(delivery.packets_rejected > 10, "{delivery:?}");
}

#[test]
fn a_transfer_gives_up_when_nothing_comes_back_and_not_before() {
    let options = Options::default();
    for text in ["tcp bytes=102400", "tcp bytes=102400 from=client", "request count=2 request=100 response=100"] {
        let dead = run(link("1 Mbit/s,20 ms,100 packets,100%", 1), &[text], &options, 1, seconds(100_000.0));
        let WorkloadOutcome::Failed(why) = &dead.reports[0].outcome else { panic!("{text}: {:?}", dead.reports[0]) };
        assert!(why.contains("924.6 s"), "{why}");
        let last = dead.sent.last().unwrap().at;
        assert!(last <= seconds(925.0), "{text}: {last:?}");
    }
    // Silence with nothing to send is no failure: the user thinks for longer than that.
    let text = "request count=2 request=100 response=100 think='2000 s'";
    let slow = run(link("1 Mbit/s,20 ms", 1), &[text], &options, 1, seconds(100_000.0));
    assert_eq!(slow.reports[0].outcome, WorkloadOutcome::Complete);
}

#[test]
fn requests_on_an_empty_link_take_a_round_trip_each() {
    let text = "request count=3 request=200 response=1000 think='30 ms'";
    let run = run(link(",50 ms", 1), &[text], &Options::default(), 1, seconds(60.0));
    let report = &run.reports[0];
    let requests = report.requests.as_ref().unwrap();
    assert_eq!((requests.completed, &requests.durations_ns), (3, &vec![100 * MS; 3]));
    // A round trip to connect, three of requests, and 30 ms twice in between.
    assert_eq!(report.elapsed_ns, Some(460 * MS));
    assert_eq!(report.uplink.as_ref().unwrap().delivered_bytes, 600);
    assert_eq!(report.downlink.as_ref().unwrap().delivered_bytes, 3_000);
}

#[test]
fn a_request_takes_what_its_packets_take_on_the_link() {
    let run =
        run(link("1 Mbit/s,50 ms", 1), &["request request=200 response=1000"], &Options::default(), 1, seconds(9.0));
    // With headers and timestamps: SYN and its answer, the acknowledgement of that, the request, the acknowledgement
    // that a new connection sends at once, the response.
    let sent = |end: End| run.sent.iter().filter(move |passed| passed.end == end).map(|passed| passed.pdu.len);
    let (up, down): (Vec<u32>, Vec<u32>) = (sent(End::Client).collect(), sent(End::Server).collect());
    assert_eq!((&up[..3], &down[..3]), (&[60, 52, 252][..], &[60, 52, 1_052][..]));
    let bytes = 60 + 60 + 52 + 252 + 52 + 1_052;
    let elapsed = run.reports[0].elapsed_ns.unwrap();
    let expected = 200 * MS + bytes * 8_000;
    assert_eq!(elapsed, expected);
}

#[test]
fn a_transfer_for_a_time_ends_with_it() {
    let run = run(
        link("1 Mbit/s,50 ms", 1),
        &["tcp duration='10 s' recv_window='64 kB'"],
        &Options::default(),
        1,
        seconds(99.0),
    );
    let report = &run.reports[0];
    assert_eq!((report.elapsed_ns, &report.outcome), (Some(10_000 * MS), &WorkloadOutcome::Complete));
    let delivered = report.downlink.as_ref().unwrap().delivered_bytes;
    assert!((1_050_000..1_250_000).contains(&delivered), "{delivered}");
    assert!(run.end < seconds(11.0), "{:?}", run.end);
}

#[test]
fn flows_share_a_link_and_keep_apart() {
    let texts = ["tcp bytes=300000 cc=cubic", "tcp bytes=300000 cc=reno start='1 s'", "request response=5000 count=20"];
    let run = run(link("2 Mbit/s,20 ms,40 packets", 1), &texts, &Options::default(), 1, seconds(60.0));
    for report in &run.reports {
        assert_eq!(report.outcome, WorkloadOutcome::Complete, "{}", report.name);
    }
    assert_eq!(run.reports[1].start_ns, Some(1_000 * MS));
    assert_eq!(run.reports[2].downlink.as_ref().unwrap().delivered_bytes, 100_000);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_other_numbers() {
    let bytes = |seed: u64| {
        let run = run(
            link("1 Mbit/s,20 ms,10 packets,3%", 9),
            &["tcp bytes=200000"],
            &Options::default(),
            seed,
            seconds(600.0),
        );
        let all = run.sent.iter().map(|passed| {
            let bytes = passed.pdu.contents().into_owned();
            assert_eq!(bytes.len(), passed.pdu.len as usize);
            (passed.at, passed.end, bytes)
        });
        all.collect::<Vec<_>>()
    };
    let (one, again, two) = (bytes(1), bytes(1), bytes(2));
    assert_eq!(one, again);
    assert_ne!(one[0].2, two[0].2);
    // Another sequence number changes no time.
    let trace = |all: &[(Time, End, _)]| all.iter().map(|(at, end, _)| (*at, *end)).collect::<Vec<_>>();
    assert_eq!(trace(&one), trace(&two));
}
