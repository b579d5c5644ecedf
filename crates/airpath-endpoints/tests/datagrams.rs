// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sources of datagrams: when they send, against times computed by hand.

use airpath_core::{End, Payload, Time};
use airpath_endpoints::{Options, WorkloadOutcome};

use crate::common::{link, run, scenario, seconds};

const MS: u64 = 1_000_000;

#[test]
fn a_constant_rate_is_constant_to_the_nanosecond() {
    // 200 bytes at 64 kbit/s: one each 25 ms. At 1 Mbit/s each takes 1.6 ms, and then 20 ms more.
    let over = link("1 Mbit/s,20 ms", 1);
    let run = run(over, &["cbr rate=64kbit/s size=200 packets=5 start='3 ms'"], &Options::default(), 1, Time::NEVER);
    let expected: Vec<u64> = (0..5).map(|k| 3 * MS + k * 25 * MS).collect();
    assert_eq!(run.sending_times(End::Server), expected);
    let arrivals: Vec<u64> = expected.iter().map(|at| at + 21_600_000).collect();
    assert_eq!(run.arrival_times(End::Client), arrivals);
    let report = &run.reports[0];
    assert_eq!((report.name.as_str(), &report.outcome), ("cbr-0", &WorkloadOutcome::Complete));
    let delivery = report.downlink.as_ref().unwrap();
    assert_eq!((delivery.packets_sent, delivery.packets_received, delivery.packets_lost), (5, 5, 0));
    assert_eq!((delivery.received_bytes, delivery.delivered_bytes), (1_000, 5 * 172));
    assert_eq!((delivery.least_delay_ns, delivery.longest_delay_ns), (Some(21_600_000), Some(21_600_000)));
    assert_eq!(delivery.jitter_ns, Some(0));
    assert_eq!(delivery.first_byte_ns, Some(24_600_000));
    // 860 bytes in 100 ms and 21.6 ms.
    assert_eq!(delivery.goodput_bits_per_second, Some(860.0 * 8e9 / 121_600_000.0));
    assert_eq!(report.uplink, None);
}

#[test]
fn a_rate_that_divides_nothing_is_exact_over_any_number_of_packets() {
    let text = "cbr rate=7kbit/s size=100 from=client duration='10 s'";
    let run = run(link("", 1), &[text], &Options::default(), 1, Time::NEVER);
    // 800 bit at 7000 bit/s are 114.285714… ms; the 88th packet would come after 10 s.
    let expected: Vec<u64> = (0..88).map(|k| k * 800 * 1_000_000_000 / 7_000).collect();
    assert_eq!(run.sending_times(End::Client), expected);
}

#[test]
fn the_first_limit_ends_a_source() {
    for (limits, packets) in [
        ("packets=3 duration=1s", 3),
        ("bytes=450", 5),
        ("bytes=500 packets=9", 5),
        ("duration='40 ms'", 4),
        ("duration='40001 us'", 5),
    ] {
        let text = format!("cbr interval='10 ms' size=100 {limits}");
        let run = run(link("", 1), &[&text], &Options::default(), 1, Time::NEVER);
        assert_eq!(run.sent.len(), packets, "{limits}");
    }
}

#[test]
fn poisson_arrivals_are_exponential_and_independent() {
    let text = "poisson interval='10 ms' size=100 packets=100000";
    let run = run(link("", 1), &[text], &Options::default(), 7, Time::NEVER);
    let times = run.sending_times(End::Server);
    let gaps: Vec<f64> =
        std::iter::once(0).chain(times.iter().copied()).zip(&times).map(|(a, b)| (b - a) as f64 / 10e6).collect();
    let n = gaps.len() as f64;
    assert_eq!(gaps.len(), 100_000);
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    let lag: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n / variance;
    // Standard errors 0.0032, 0.0089 and 0.0032; five of them: a level of 6 in ten million each.
    assert!((mean - 1.0).abs() < 0.016, "mean {mean}");
    assert!((variance - 1.0).abs() < 0.045, "variance {variance}");
    assert!(lag.abs() < 0.016, "autocorrelation {lag}");
    // Kolmogorov and Smirnov's distance, at a level of one in a million: sqrt(ln(2e6) / 2 / n).
    let mut sorted = gaps;
    sorted.sort_by(f64::total_cmp);
    let distance = sorted.iter().enumerate().map(|(k, gap)| ((k as f64 + 0.5) / n - (1.0 - (-gap).exp())).abs());
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < (2e6f64.ln() / 2.0 / n).sqrt(), "distance {distance}");
}

#[test]
fn another_seed_or_flow_draws_other_times_and_the_same_the_same() {
    let text = "poisson interval='10 ms' size=100 packets=20";
    let times = |seed| {
        let run = run(link("", 1), &[text, text], &Options::default(), seed, Time::NEVER);
        let of = |flow| run.sent.iter().filter(|it| it.pdu.flow == flow).map(|it| it.at).collect::<Vec<_>>();
        [of(0), of(1)]
    };
    let (one, again, two) = (times(1), times(1), times(2));
    assert_eq!(one, again);
    assert!(one[0] != one[1] && one[0] != two[0] && one[1] != two[1]);
}

#[test]
fn periods_alternate_and_keep_the_rest_of_an_interval() {
    let text = "on-off on='1 s' off='2 s' interval='300 ms' size=100 packets=8";
    let run = run(link("", 1), &[text], &Options::default(), 1, Time::NEVER);
    // Sending takes place from 0 to 1 s, 3 to 4 s and 6 to 7 s; after 1.2 s of it comes the fifth.
    let expected: Vec<u64> = [0, 300, 600, 900, 3_200, 3_500, 3_800, 6_100].iter().map(|ms| ms * MS).collect();
    assert_eq!(run.sending_times(End::Server), expected);
}

#[test]
fn exponential_periods_leave_the_mean_rate_that_they_should() {
    let text = "on-off on='exponential 100 ms' off='exponential 300 ms' interval='1 ms' size=100 duration='1000 s'";
    let run = run(link("", 1), &[text], &Options::default(), 3, Time::NEVER);
    // A quarter of 1000 s at 1000 packets/s. The time spent sending in T has the variance
    // 2 T a² b² / (a + b)³ (renewal theory) = 2 * 1000 * 0.0009 / 0.064 = 28.1 s², so 5.3 s: 5,300
    // packets; five of them.
    let packets = run.sent.len() as f64;
    assert!((packets - 250_000.0).abs() < 26_500.0, "{packets}");
}

#[test]
fn a_saturated_link_is_never_idle_and_not_flooded() {
    for (plain, from, to) in [("1 Mbit/s,20 ms,7 packets", 1_230, 1_250), ("1 Mbit/s,20 ms", 1_230, 1_250)] {
        let text = "saturate size=1000 duration='10 s' window=50";
        let run = run(link(plain, 1), &[text], &Options::default(), 1, seconds(10.0));
        let got = run.got.len();
        // 8 ms each, 1250 in 10 s; a few fewer for the beginning and what is under way.
        assert!((from..=to).contains(&got), "{plain}: {got} of {}", run.sent.len());
        assert!(run.sent.len() < 5 * got / 2, "{plain}: {} sent", run.sent.len());
        assert!(run.most_held <= 51, "{plain}: {} held", run.most_held);
    }
    // Of a slow link, whose first packet takes 12 s, only a few dozen wait.
    let run = run(link("1 kbit/s", 1), &["saturate duration='10 min'"], &Options::default(), 1, seconds(600.0));
    assert_eq!(run.got.len(), 50);
    assert!(run.most_held < 120, "{}", run.most_held);
}

#[test]
fn a_saturating_source_finds_its_link_again_after_an_interruption() {
    let text = r#"
        [[hops]]
        name = "radio"
        [hops.link]
        rate = "1 Mbit/s"
        propagation = "20 ms"
        queue = { type = "tail_drop", limit = "7 packets" }
        errors = { type = "bernoulli", per = "packet", probability = 0.0, effect = "drop" }
        [[states]]
        name = "gone"
        at = "2 s"
        set = { "radio.link.errors.probability" = 1.0 }
        [[states]]
        name = "back"
        at = "6 s"
    "#;
    let run = run(scenario(text, 1), &["saturate size=1000"], &Options::default(), 1, seconds(20.0));
    let after = run.got.iter().filter(|passed| passed.at > seconds(10.0)).count();
    assert!((1_230..=1_250).contains(&after), "{after}");
}

/// A link that flips one bit in a thousand.
const NOISY: &str = r#"
    [[hops]]
    name = "radio"
    [hops.link]
    rate = "1 Mbit/s"
    errors = { type = "bernoulli", per = "bit", probability = 0.001, effect = "corrupt" }
"#;

#[test]
fn damage_is_dropped_or_delivered_as_checksums_cover_it() {
    // A packet of 100 bytes is whole with 0.999^800 = 0.449, and its first 40 bytes with 0.726.
    let deliver = |text: &str| {
        let with = |bytes| {
            let options = Options { bytes, ..Options::default() };
            run(scenario(NOISY, 5), &[text], &options, 5, Time::NEVER).reports
        };
        let (lengths, whole) = (with(false), with(true));
        assert_eq!(lengths, whole);
        lengths[0].downlink.clone().unwrap()
    };
    let udp = deliver("cbr rate=500kbit/s size=100 packets=20000");
    assert_eq!(udp.packets_received + udp.packets_rejected, 20_000);
    // Two flipped bits make up for each other where they are in the same column of the words and differ: in
    // one in 33 of the 2,874 packets with two. Those with more, and carries, add a few. Five deviations.
    assert!((40..150).contains(&udp.packets_damaged), "{udp:?}");
    let lite = deliver("cbr rate=500kbit/s size=100 packets=20000 protocol=udp-lite coverage=20");
    assert_eq!(lite.packets_received + lite.packets_rejected, 20_000);
    // Five standard errors of 20,000 draws: 0.018 and 0.016.
    assert!((udp.packets_received as f64 / 20_000.0 - 0.4492).abs() < 0.018, "{udp:?}");
    assert!((lite.packets_received as f64 / 20_000.0 - 0.7260).abs() < 0.016, "{lite:?}");
    let intact = lite.packets_received - lite.packets_damaged;
    assert!((intact as f64 / 20_000.0 - 0.4492).abs() < 0.018, "{lite:?}");
    let covered = deliver("cbr rate=500kbit/s size=100 packets=20000 protocol=udp-lite");
    assert!(covered.packets_received.abs_diff(udp.packets_received) < 60, "{covered:?}");
}

/// A link that inverts one in ten of the frames of 28 bytes in which packets go.
const INVERTING: &str = r#"
    [[hops]]
    name = "radio"
    [hops.link]
    rate = "1 Mbit/s"
    fragmentation = { frame_payload = "28 bytes", last_frame = "short" }
    errors = { type = "bernoulli", per = "frame", probability = 0.1, effect = "corrupt", flips = 224 }
"#;

/// Inverted words of zeros would add nothing to a checksum; an inverted block of random words escapes it with
/// probability 1 / 65,535.
#[test]
fn an_inverted_block_is_seen_by_the_checksum() {
    for text in ["cbr rate=500kbit/s size=100 packets=2000", "media frames=200 bitrate=500kbit/s"] {
        let report = run(scenario(INVERTING, 5), &[text], &Options::default(), 5, Time::NEVER).reports.remove(0);
        let delivery = report.downlink.unwrap();
        assert!(delivery.packets_rejected > 100 && delivery.packets_damaged == 0, "{text}: {delivery:?}");
    }
}

/// Payloads of a flow depend on the seed, and on the seed alone.
#[test]
fn payloads_are_those_of_the_seed() {
    let payloads = |seed| {
        let texts = ["cbr rate=64kbit/s size=200 packets=2", "cbr rate=64kbit/s size=200 packets=2 from=client"];
        let run = run(link("", 1), &texts, &Options { bytes: true, ..Options::default() }, seed, Time::NEVER);
        let bytes = |pdu: &airpath_core::Pdu| match &pdu.payload {
            Payload::Whole(bytes) => bytes[28..].to_vec(),
            other => panic!("{other:?}"),
        };
        run.sent.iter().map(|passed| bytes(&passed.pdu)).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(payloads(1), payloads(1));
    // Two flows with two seeds: four payloads, none alike.
    assert_eq!(&payloads(1) | &payloads(2), [payloads(1), payloads(2)].into_iter().flatten().collect());
    assert_eq!((&payloads(1) | &payloads(2)).len(), 4);
    let most = payloads(3).into_iter().flatten().filter(|byte| *byte == 0).count();
    assert!(most < 20, "{most}");
}

#[test]
fn bytes_are_there_when_they_are_wanted_and_change_nothing_else() {
    let texts = ["cbr rate=64kbit/s size=200 packets=9", "poisson rate=1Mbit/s size=28 packets=9 from=client"];
    let with = |bytes| {
        let options = Options { bytes, link: 2, ..Options::default() };
        run(link("1 Mbit/s,20 ms,,10%", 3), &texts, &options, 3, Time::NEVER)
    };
    let (lengths, whole) = (with(false), with(true));
    assert_eq!(lengths.trace(), whole.trace());
    assert_eq!(lengths.reports, whole.reports);
    assert!(lengths.sent.iter().all(|passed| matches!(passed.pdu.payload, Payload::LengthOnly)));
    for passed in &whole.sent {
        let Payload::Whole(bytes) = &passed.pdu.payload else { panic!() };
        assert_eq!(bytes.len(), passed.pdu.len as usize);
        assert_eq!(bytes[12..16], passed.end.ipv4(2).octets());
        assert_eq!(bytes[16..20], passed.end.other().ipv4(2).octets());
        assert_eq!(passed.pdu.header_len, 28);
    }
}

#[test]
fn a_packet_above_the_mtu_is_refused_with_advice() {
    use airpath_workload::Workload;
    let workload = Workload::parse("cbr interval=1s size=1000").unwrap();
    let options = Options { mtu_bytes: 296, ..Options::default() };
    let error = airpath_endpoints::endpoints(&workload, 0, airpath_core::Seed(1), &options).err().unwrap();
    assert_eq!(error.to_string(), "size=1000 is above the MTU of 296 bytes; make it smaller, or the MTU larger");
}

/// Copies, at once and late, are told apart from packets that are late; TCP gets through both.
#[test]
fn copies_and_late_packets_are_told_apart() {
    let text = |disorder: &str| format!("[[hops]]\n[hops.downlink]\nrate = \"1 Mbit/s\"\n{disorder}\n");
    let cbr = "cbr interval='10 ms' size=100 packets=10";
    let delivery = |disorder: &str| {
        let run = run(scenario(&text(disorder), 1), &[cbr], &Options::default(), 1, Time::NEVER);
        let delivery = run.reports[0].downlink.clone().unwrap();
        assert_eq!((delivery.packets_received, delivery.packets_lost), (10, 0), "{disorder}");
        (delivery.packets_duplicated, delivery.packets_reordered)
    };
    assert_eq!(delivery("duplicate = { probability = 1 }"), (10, 0));
    // The copy comes behind the next two packets.
    assert_eq!(delivery("duplicate = { probability = 1, delay = \"25 ms\", copies = 2 }"), (20, 0));
    // Packets 2, 4, 6 and 8 arrive behind the one after them, the last of all behind nothing.
    assert_eq!(delivery("reorder = { probability = 1, gap = 2, distance = 1, delay = \"15 ms\" }"), (0, 4));
    let both = "duplicate = { probability = 0.2, delay = \"5 ms\" }\nreorder = { probability = 0.1, delay = \"5 ms\" }";
    let tcp = run(scenario(&text(both), 1), &["tcp bytes='200 kB'"], &Options::default(), 1, Time::NEVER);
    assert_eq!(tcp.reports[0].outcome, WorkloadOutcome::Complete);
}
