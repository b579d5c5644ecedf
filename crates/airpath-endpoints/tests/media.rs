// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media: frames of the right size at the right time, and what becomes of them, computed by hand.

use airpath_core::{End, Payload, Time};
use airpath_endpoints::{MediaReport, Options};

use crate::common::{Run, link, run, scenario};

fn play(plain: &str, text: &str) -> Run {
    run(link(plain, 3), &[text], &Options::default(), 3, Time::NEVER)
}

fn report(run: &Run) -> MediaReport {
    run.reports[0].media.clone().unwrap()
}

#[test]
fn frames_are_late_when_the_link_is_too_slow_for_them() {
    // 1000 bytes each 100 ms in two packets of 540 bytes; at 80 kbit/s they take 108 ms, so frame k
    // is complete 118 + 8 k ms after its capture: five of ten are there in 150 ms.
    let text = "media bitrate=80kbit/s frames_per_second=10 gop=1 mtu=540 frames=10";
    let slow = play("80 kbit/s,10 ms", &format!("{text} playout=150ms"));
    let expected = MediaReport {
        frames_sent: 10,
        frames_on_time: 5,
        frames_late: 5,
        frames_lost: 0,
        frames_damaged: 0,
        frames_decodable: 5,
    };
    assert_eq!(report(&slow), expected);
    assert!(slow.sent.iter().all(|passed| passed.pdu.len == 540 && passed.pdu.header_len == 40));
    let times: Vec<u64> = (0..10).flat_map(|frame| [frame * 100_000_000; 2]).collect();
    assert_eq!(slow.sending_times(End::Server), times);
    assert_eq!(slow.reports[0].downlink.as_ref().unwrap().delivered_bytes, 10_000);
    // At 100 kbit/s every frame is complete 96.4 ms after its capture.
    for (playout, on_time) in [("96400 us", 10), ("96399 us", 0)] {
        let run = play("100 kbit/s,10 ms", &format!("{text} playout='{playout}'"));
        assert_eq!((report(&run).frames_on_time, report(&run).frames_late), (on_time, 10 - on_time));
    }
}

#[test]
fn groups_begin_with_a_larger_frame_and_keep_the_rate() {
    // A mean of 1200 bytes in groups of 4, the first three times as large: 2400, 800, 800, 800.
    let text = "media bitrate=240kbit/s frames_per_second=25 gop=4 i_ratio=3 frames=8 from=client";
    let run = play("", text);
    let mut frames: Vec<(u64, u32)> = Vec::new();
    for passed in &run.sent {
        assert_eq!(passed.end, End::Client);
        let (at, bytes) = (passed.at.nanos(), passed.pdu.len - 40);
        match frames.last_mut() {
            Some((last, sum)) if *last == at => *sum += bytes,
            _ => frames.push((at, bytes)),
        }
    }
    let expected: Vec<(u64, u32)> =
        (0..8).map(|frame| (frame * 40_000_000, if frame % 4 == 0 { 2_400 } else { 800 })).collect();
    assert_eq!(frames, expected);
}

#[test]
fn packets_are_those_of_rtp() {
    let run = play("", "media bitrate=240kbit/s frames_per_second=25 gop=4 i_ratio=3 frames=5");
    let packets: Vec<_> = run
        .sent
        .iter()
        .map(|passed| match &passed.pdu.payload {
            Payload::Whole(bytes) => bytes.slice(28..),
            _ => panic!("media has bytes"),
        })
        .collect();
    // Frames of 2400 bytes take two packets of at most 1460.
    let marked: Vec<bool> = packets.iter().map(|packet| packet[1] & 0x80 != 0).collect();
    assert_eq!(marked, [false, true, true, true, true, false, true]);
    let sequence: Vec<u16> = packets.iter().map(|packet| u16::from_be_bytes([packet[2], packet[3]])).collect();
    assert_eq!(sequence, [0, 1, 2, 3, 4, 5, 6]);
    let stamps: Vec<u32> = packets.iter().map(|p| u32::from_be_bytes([p[4], p[5], p[6], p[7]])).collect();
    assert_eq!(stamps, [0, 0, 3_600, 7_200, 10_800, 14_400, 14_400]);
    assert!(packets.iter().all(|packet| packet[8..12] == packets[0][8..12]));
}

#[test]
fn frames_vary_uniformly_around_their_mean() {
    let run = play("", "media bitrate=80kbit/s frames_per_second=10 gop=1 variation=40% frames=20000");
    let sizes: Vec<f64> = run.sent.iter().map(|passed| f64::from(passed.pdu.len - 40)).collect();
    assert_eq!(sizes.len(), 20_000);
    let mean = sizes.iter().sum::<f64>() / 20_000.0;
    // Uniform from 600 to 1400: a deviation of 230.9, so a standard error of 1.63; five of them.
    assert!((mean - 1_000.0).abs() < 8.2, "{mean}");
    assert!(sizes.iter().all(|size| (600.0..=1_400.0).contains(size)));
}

#[test]
fn a_frame_is_lost_with_any_of_its_packets() {
    // Four packets each, of which 5 % are lost: whole with 0.95^4 = 0.8145. In a group of 10 the mean
    // number of frames before the first that is lost is the sum of 0.8145^k, k from 1 to 10: 3.826.
    let text = "media bitrate=160kbit/s frames_per_second=10 gop=10 i_ratio=1 mtu=540 frames=70000";
    let run = play("1 Mbit/s,10 ms,,5%", text);
    let media = report(&run);
    assert_eq!(media.frames_on_time + media.frames_lost, 70_000);
    // Five standard errors: 0.0015 and, with a deviation below 5 in each group, 0.06.
    assert!((media.frames_on_time as f64 / 70_000.0 - 0.8145).abs() < 0.0075, "{media:?}");
    assert!((media.frames_decodable as f64 / 7_000.0 - 3.826).abs() < 0.3, "{media:?}");
    assert_eq!(run.sent.len(), 280_000);
}

#[test]
fn damage_beyond_the_coverage_reaches_the_decoder() {
    let noisy = r#"
        [[hops]]
        name = "radio"
        [hops.link]
        rate = "1 Mbit/s"
        errors = { type = "bernoulli", per = "bit", probability = 0.0001, effect = "corrupt" }
    "#;
    let media = |protocol: &str| {
        let text = format!("media bitrate=80kbit/s frames_per_second=10 gop=1 frames=5000 {protocol}");
        report(&run(scenario(noisy, 1), &[&text], &Options::default(), 1, Time::NEVER))
    };
    let (udp, lite) = (media(""), media("protocol=udp-lite coverage=20"));
    // 1040 bytes are whole with 0.9999^8320 = 0.435, the first 40 with 0.968.
    // Of the 753 with two flipped bits, those of one in 33 make up for each other.
    assert!(
        (udp.frames_on_time as f64 / 5_000.0 - 0.435).abs() < 0.035 && (5..60).contains(&udp.frames_damaged),
        "{udp:?}"
    );
    assert!((lite.frames_on_time as f64 / 5_000.0 - 0.968).abs() < 0.0125, "{lite:?}");
    assert!((lite.frames_damaged as f64 / 5_000.0 - 0.533).abs() < 0.035, "{lite:?}");
    // With its own header covered alone, damage to RTP's makes packets useless, but nothing worse.
    let bare = media("protocol=udp-lite coverage=8");
    assert!(bare.frames_on_time < lite.frames_on_time + 200, "{bare:?}");
}
