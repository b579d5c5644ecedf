// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A recording over the loopback interface, both ends in this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_clocks::simulated::Error;
use airpath_load::server::Server;
use airpath_record::analysis::{Split, analyse};
use airpath_record::client::{Outcome, Recorder};
use airpath_record::plan::{Load, Phase};
use airpath_record::recording::{Clocks, FORMAT_VERSION, Kind, Part, Recording, Way};

/// This host's clock as the client takes it is 3 s ahead.
const AHEAD_NS: i64 = 3_000_000_000;

fn phase(load: Load, uplink: bool, downlink: bool, millis: u64, length_bytes: u32) -> Phase {
    Phase {
        load,
        uplink,
        downlink,
        duration: Duration::from_millis(millis),
        length_bytes,
        most_bytes: 1_000_000,
        most_rate_bits_per_second: 4_000_000,
        deepest: Duration::ZERO,
    }
}

fn part(load: Kind, direction: Way, packet_bytes: u32) -> Part {
    let file = format!("{}-{}.csv", direction.name(), load.name());
    Part { load, direction, packet_bytes, interval_ns: None, train_packets: 1, file, overflowed: 0, complete: true }
}

#[test]
fn both_ends_agree_on_what_was_sent_and_on_the_clocks() {
    let server =
        Server::bind(Some([127, 0, 0, 1].into()), 0).unwrap().with_recordings(Box::new(|connection, version| {
            airpath_record::server::serve(connection, version, Error::default())
        }));
    let port = server.address().unwrap().port();
    let serving = std::thread::spawn(move || server.serve(true, None, &|outcome| drop(outcome.unwrap())));
    let error = Error { offset_ns: AHEAD_NS, ..Error::default() };
    let mut recorder = Recorder::connect("127.0.0.1", port, error).unwrap();
    let estimate = recorder.compare_clocks(Duration::from_millis(300), Duration::from_millis(10)).unwrap();
    assert!((estimate.offset_ns + AHEAD_NS).unsigned_abs() <= estimate.bound_ns, "{estimate:?}");
    let go = AtomicBool::new(false);
    let light = Load::Light { interval: Duration::from_millis(10), train: 1 };
    let both = recorder.run(&phase(light, true, true, 500, 100), &go, &|_| {}).unwrap();
    let Outcome { uplink: Some(up), downlink: Some(down), failure: None, .. } = both else { panic!("{both:?}") };
    for packets in [&up, &down] {
        // 50, but for those whose time was over when a loaded machine came to them.
        let (sent, arrived) = (packets.all.len(), packets.arrived().len());
        assert!((25..=50).contains(&sent) && arrived >= sent * 4 / 5, "{arrived} of {sent}");
    }
    let one = recorder.run(&phase(Load::Saturating, false, true, 500, 1_000), &go, &|_| {}).unwrap();
    let Outcome { uplink: None, downlink: Some(saturating), failure: None, .. } = one else { panic!("{one:?}") };
    // No faster than the limit: 4 Mbit/s for 0.5 s, and what a late sender makes up for.
    assert!((10..=260).contains(&saturating.all.len()), "{}", saturating.all.len());
    // The duration ends trains that take longer than it.
    let train = Load::Light { interval: Duration::from_millis(50), train: 1_000 };
    let brief = Phase {
        most_rate_bits_per_second: 1_000_000_000,
        duration: Duration::from_micros(100),
        ..phase(train, true, false, 1, 100)
    };
    let cut = recorder.run(&brief, &go, &|_| {}).unwrap();
    assert!(cut.failure.is_none() && cut.uplink.is_some_and(|packets| packets.all.len() < 1_000));
    // A stop ends a long phase, and what was sent is kept.
    let stop = AtomicBool::new(true);
    let stopped = recorder.run(&phase(light, true, true, 600_000, 100), &stop, &|_| {}).unwrap();
    assert!(stopped.failure.is_none() && stopped.uplink.is_some_and(|packets| packets.all.len() < 1_000));
    assert!(!go.load(Ordering::Relaxed));
    let recording = Recording {
        format_version: FORMAT_VERSION,
        airpath_version: String::new(),
        host: "127.0.0.1".into(),
        peer: recorder.peer().to_string(),
        began_unix_ns: 0,
        clocks: Clocks { same: false, estimates: vec![estimate] },
        parts: vec![part(Kind::Light, Way::Uplink, 100), part(Kind::Light, Way::Downlink, 100)],
        warnings: Vec::new(),
    };
    let analysis = analyse(&recording, &[up, down]);
    assert_eq!(analysis.delay_split, Split::Compared);
    for way in Way::ALL {
        // On a loaded machine a packet may wait for long; the clock's 3 s are gone in any case.
        let delay = analysis.of(way).unwrap().delay.as_ref().unwrap();
        assert!(delay.propagation_ns.abs() < 500_000_000, "{way:?}: {delay:?}");
    }
    let scenario = airpath_record::scenario::scenario(&recording, &analysis);
    assert!(scenario.contains(", recorded 1970-01-01T00:00:00Z\"\n"), "{scenario}");
    drop(recorder);
    serving.join().unwrap().unwrap();
}

#[test]
fn a_plan_beyond_all_limits_and_another_version_are_refused() {
    let server =
        Server::bind(Some([127, 0, 0, 1].into()), 0).unwrap().with_recordings(Box::new(|connection, version| {
            airpath_record::server::serve(connection, version + 1, Error::default())
        }));
    let port = server.address().unwrap().port();
    let serving = std::thread::spawn(move || {
        server.serve(true, None, &|outcome| {
            assert!(outcome.unwrap_err().to_string().contains("use the same airpath at both ends"));
        })
    });
    let refused = Recorder::connect("127.0.0.1", port, Error::default()).unwrap_err().to_string();
    assert!(refused.contains("use the same airpath at both ends"), "{refused}");
    serving.join().unwrap().unwrap();
    let endless = phase(Load::Saturating, true, false, 7_200_000, 1_500);
    assert_eq!(endless.problem(), Some("a phase lasts an hour at most"));
    assert!(phase(Load::Saturating, false, false, 1, 1_500).problem().is_some());
    assert!(phase(Load::Saturating, true, false, 1, 20).problem().is_some());
}
