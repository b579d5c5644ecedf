// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! QUIC: transfers complete, and the same seed gives the same packets.

use airpath_core::{Ecn, End, Payload, Seed};
use airpath_endpoints::{Options, WorkloadOutcome, endpoints};
use airpath_workload::Workload;

use crate::common::{Run, link, run, scenario, seconds};

#[test]
fn a_bulk_transfer_fills_the_link() {
    for (text, to) in [("quic bytes='5 MB'", End::Client), ("quic bytes='5 MB' cc=newreno from=client", End::Server)] {
        let run = run(link("10 Mbit/s,20 ms", 1), &[text], &Options::default(), 1, seconds(60.0));
        let report = &run.reports[0];
        assert_eq!(report.outcome, WorkloadOutcome::Complete, "{text}");
        let delivery = report.delivery(to.other().sends()).unwrap();
        assert_eq!(delivery.delivered_bytes, 5_000_000);
        // No more than 1472 bytes of 1500 on the link are a datagram, and some of that are headers.
        let most = 10e6 * 1472.0 / 1500.0;
        let goodput = delivery.goodput_bits_per_second.unwrap();
        assert!((0.85 * most..most).contains(&goodput), "{text}: {goodput}");
        let quic = report.quic.as_ref().unwrap();
        // The search for the path's MTU begins at 1200 and stops when it is known to 20 bytes.
        let found = if to == End::Client { &quic.server } else { &quic.client }.datagram_bytes;
        assert!((1_452..=1_472).contains(&found), "{text}: {found}");
    }
}

#[test]
fn losses_and_damage_are_made_good() {
    for (from, plain) in [("server", "9600 bit/s,200 ms,7 packets,5%"), ("client", "1 Mbit/s,5 ms,20 packets,5%")] {
        let text = format!("quic bytes=102400 from={from}");
        let run = run(link(plain, 4), &[&text], &Options::default(), 4, seconds(3_600.0));
        let report = &run.reports[0];
        assert_eq!(report.outcome, WorkloadOutcome::Complete, "{text} {plain}");
        let quic = report.quic.as_ref().unwrap();
        let (direction, sender) = match from {
            "server" => (&report.downlink, &quic.server),
            _ => (&report.uplink, &quic.client),
        };
        let delivery = direction.as_ref().unwrap();
        assert_eq!(delivery.delivered_bytes, 102_400);
        assert!(delivery.packets_lost > 0 && sender.lost_packets > 0, "{report:?}");
    }
    let noisy = r#"
        [[hops]]
        name = "radio"
        [hops.link]
        rate = "1 Mbit/s"
        errors = { type = "bernoulli", per = "bit", probability = 0.00001, effect = "corrupt" }
    "#;
    let run = run(scenario(noisy, 1), &["quic bytes=1000000"], &Options::default(), 1, seconds(3_600.0));
    let delivery = run.reports[0].downlink.as_ref().unwrap();
    assert_eq!((delivery.delivered_bytes, delivery.packets_damaged), (1_000_000, 0));
    assert!(delivery.packets_rejected > 10, "{delivery:?}");
}

#[test]
fn packets_are_those_of_a_kernel() {
    let run = run(link("1 Mbit/s,20 ms", 1), &["quic bytes=50000"], &Options::default(), 1, seconds(60.0));
    for passed in &run.sent {
        let Payload::Whole(bytes) = &passed.pdu.payload else { panic!("QUIC has bytes") };
        assert_eq!((bytes.len() as u32, passed.pdu.header_len), (passed.pdu.len, 28));
        assert_eq!(bytes[12..16], passed.end.ipv4(0).octets());
        assert_eq!(bytes[1], passed.pdu.ecn as u8);
        assert_eq!(airpath_packet::checksum::checksum(&bytes[..20]), 0);
    }
    // The first packet is padded to 1200 bytes, and quinn sends with ECT(0).
    assert_eq!((run.sent[0].end, run.sent[0].pdu.len, run.sent[0].pdu.ecn), (End::Client, 1_228, Ecn::Ect0));
}

#[test]
fn a_transfer_for_a_time_ends_with_it() {
    let run =
        run(link("1 Mbit/s,50 ms,50 packets", 1), &["quic duration='10 s'"], &Options::default(), 1, seconds(99.0));
    let report = &run.reports[0];
    assert_eq!((report.elapsed_ns, &report.outcome), (Some(10_000_000_000), &WorkloadOutcome::Complete));
    let delivered = report.downlink.as_ref().unwrap().delivered_bytes;
    assert!((1_000_000..1_250_000).contains(&delivered), "{delivered}");
    assert!(run.end < seconds(12.0), "{:?}", run.end);
}

#[test]
fn a_link_with_too_small_an_mtu_is_refused_with_the_reason() {
    let options = Options { mtu_bytes: 296, ..Options::default() };
    let error = endpoints(&Workload::parse("quic bytes=1").unwrap(), 0, Seed(1), &options).err().unwrap();
    assert_eq!(
        error.to_string(),
        "QUIC needs an MTU of at least 1228 bytes (RFC 9000, section 14: 1200 bytes without the headers of IP \
         and UDP); this one is 296"
    );
}

fn lossy(seed: u64) -> Run {
    let texts = ["quic bytes=60000", "quic bytes=30000 from=client cc=newreno"];
    run(link("100 kbit/s,50 ms,10 packets,5%", 9), &texts, &Options::default(), seed, seconds(600.0))
}

#[test]
fn the_same_seed_gives_the_same_packets_in_one_process() {
    let (one, again) = (lossy(1), lossy(1));
    assert_eq!(one.trace(), again.trace());
    assert_eq!(one.reports, again.reports);
    assert!(one.trace().len() > 100);
}

/// Set in the environment of the second process.
const CHILD: &str = "AIRPATH_TEST_QUIC_CHILD";

#[test]
fn the_same_seed_gives_the_same_packets_in_two_processes() {
    let trace: String = lossy(2).trace().iter().map(|(at, end, len)| format!("{at} {end} {len}\n")).collect();
    if std::env::var_os(CHILD).is_some() {
        print!("<<{trace}>>");
        return;
    }
    let name = "quic::the_same_seed_gives_the_same_packets_in_two_processes";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    let other = text.split_once("<<").and_then(|(_, rest)| rest.split_once(">>")).map(|(trace, _)| trace);
    assert_eq!(other, Some(trace.as_str()));
}
