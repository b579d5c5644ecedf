// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files of a run do not depend on the pieces in which it was carried out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use airpath_scenario::Scenario;

/// Pieces of given lengths, in turn.
struct Given {
    lengths: Vec<Span>,
    next: usize,
}

impl Pieces for Given {
    fn length(&self) -> Span {
        self.lengths[self.next % self.lengths.len()]
    }

    fn took(&mut self, _: Duration) {
        self.next += 1;
    }
}

/// A load over two hops, of which the machine leaves as much undone as it may until somebody looks.
const SCENARIO: &str = r#"
[[hops]]
name = "radio"
[hops.link]
rate = "20 Mbit/s"
propagation = "5 ms"
queue = { limit = "60 packets" }

[[hops]]
name = "core"
[hops.link]
rate = "16 Mbit/s"
propagation = { type = "normal", mean = "20 ms", deviation = "2 ms" }
queue = { limit = "50 packets" }

[[background]]
name = "others"
type = "poisson"
hop = "core"
until = "radio"
direction = "downlink"
rate = "15 Mbit/s"
packet_size = "400 bytes"
"#;

fn files(workload: &str, duration: Option<Span>, lengths: &[Span]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::from_toml(SCENARIO, "two-hops.toml").unwrap();
    let request = SimRequest {
        machine: crate::link::machine(&scenario).unwrap(),
        workloads: vec![(0, Workload::parse(workload).unwrap())],
        duration,
        mtu_bytes: 1500,
        level: Level::Packets,
        snaplen: Snaplen::default(),
        frames: true,
        scenario,
    };
    let interrupt = Interrupt::default();
    let mut pieces = Given { lengths: lengths.to_vec(), next: 0 };
    run_in(&mut pieces, &Simulation::new(&request), 42, Some(folder.path()), false, &interrupt).unwrap();
    let files = ["events.arrow", "input.arrow", "client.pcapng", "server.pcapng"];
    files.map(|name| (name.to_string(), std::fs::read(folder.path().join(name)).unwrap())).into()
}

#[test]
fn a_run_in_other_pieces_leaves_the_same_bytes() {
    for (workload, duration) in [
        ("cbr interval=\"1 s\" packets=12 size=100 from=client", None),
        ("tcp bytes=300000 from=server", Some(Span::from_secs(9))),
    ] {
        let whole = files(workload, duration, &[Span::from_secs(1_000)]);
        for lengths in [
            vec![Span::from_millis(37)],
            vec![Span::from_micros(1), Span::from_millis(700), Span::from_millis(3)],
            vec![Span::from_millis(1_303), Span::from_nanos(1)],
        ] {
            let pieces = files(workload, duration, &lengths);
            for (name, bytes) in &whole {
                assert!(pieces[name] == *bytes, "{workload}: {name} differs in pieces of {lengths:?}");
            }
        }
    }
}

/// Two users behind a wired bottleneck, of whom one has a second hop, and a state of his own.
const CELL: &str = r#"
[[media]]
name = "bottleneck"
type = "continuous"
downlink = "4 Mbit/s"
uplink = "1 Mbit/s"
order = "round_robin"

[[paths]]
name = "alice"
[[paths.hops]]
[paths.hops.link]
medium = "bottleneck"
propagation = "5 ms"

[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
[paths.hops.link]
medium = "bottleneck"
propagation = "20 ms"
errors = { type = "bernoulli", probability = 0.01, per = "packet" }
[[paths.hops]]
name = "core"
[paths.hops.link]
rate = "100 Mbit/s"
[[paths.states]]
name = "later"
at = "1 s"
[paths.states.set]
"radio.link.propagation" = "30 ms"
"#;

/// A run of `CELL` with these workloads, by user.
fn cell(folder: &Folder, workloads: &[(u16, &str)]) -> Simulated {
    let scenario = Scenario::from_toml(CELL, "cell.toml").unwrap();
    let request = SimRequest {
        machine: crate::link::machine(&scenario).unwrap(),
        workloads: workloads.iter().map(|(user, text)| (*user, Workload::parse(text).unwrap())).collect(),
        duration: Some(Span::from_secs(3)),
        mtu_bytes: 1500,
        level: Level::Packets,
        snaplen: Snaplen::default(),
        frames: true,
        scenario,
    };
    Simulation::new(&request).run(7, Some(folder), false, &Interrupt::default()).unwrap()
}

#[test]
fn users_share_a_bottleneck_and_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let bulk = "saturate size=1000 window=40 from=server";
    let simulated = cell(folder.path(), &[(0, bulk), (1, bulk), (1, "cbr interval=\"10 ms\" size=100 from=client")]);
    let summary = &simulated.summary;
    let [alice, bob] = summary.users.as_slice() else { panic!("{:?}", summary.users) };
    assert_eq!((alice.name.as_str(), bob.name.as_str()), ("alice", "bob"));
    // One every 10 ms, from 0 s to 3 s.
    assert_eq!((alice.uplink.offered_packets, bob.uplink.offered_packets), (0, 301));
    // Each gets half of 4 Mbit/s as long as both have packets: 250 packets of 1000 bytes a second.
    for user in [alice, bob] {
        let delivered = user.downlink.delivered_packets;
        assert!((720..=780).contains(&delivered), "{}: {delivered}", user.name);
    }
    let total = alice.downlink.delivered_packets + bob.downlink.delivered_packets;
    assert_eq!(summary.downlink.delivered_packets, total);
    assert_eq!(alice.downlink.dropped.len(), 0);
    assert_eq!(bob.downlink.dropped[0].cause, "channel_error");
    // Propagation is the user's own, and the state later only bob's.
    assert!(alice.downlink.delay.max_ns < bob.downlink.delay.max_ns);
    let shown = summary.to_string();
    assert!(shown.contains("\nalice      uplink 0 packets") && shown.contains("\nbob        uplink "), "{shown}");

    let manifest = Manifest::read(folder.path()).unwrap();
    let users: Vec<_> =
        manifest.users.iter().map(|user| (user.name.as_str(), user.hops.len(), user.states.len())).collect();
    assert_eq!(users, [("alice", 1, 1), ("bob", 2, 2)]);
    assert_eq!(
        (manifest.hops.as_slice(), manifest.states.as_slice()),
        (&["radio".into(), "core".into()][..], &["initial".into(), "later".into()][..])
    );
    let counters = manifest.results.unwrap().counters;
    let delivered = counters
        .iter()
        .filter(|site| site.hop == "path")
        .filter_map(|site| Some((site.user.as_str(), site.kinds.get("delivered")?.count)));
    let of_bob: u64 = delivered.filter(|(user, _)| *user == "bob").map(|(_, count)| count).sum();
    assert_eq!(of_bob, bob.uplink.delivered_packets + bob.downlink.delivered_packets);
    for (name, user) in [("alice-client", alice), ("bob-server", bob)] {
        let capture = std::fs::metadata(folder.path().join(format!("{name}.pcapng"))).unwrap();
        assert!(capture.len() > user.downlink.delivered_packets * 100, "{name}");
    }
}

#[test]
fn events_name_the_user_and_a_replay_of_a_cell_is_identical() {
    let folder = tempfile::tempdir().unwrap();
    cell(folder.path(), &[(0, "tcp bytes=200kB"), (1, "tcp bytes=200kB"), (1, "poisson rate=\"100 kbit/s\" size=200")]);
    let mut seen = BTreeMap::<(String, String, String), u64>::new();
    for batch in airpath_log::read::open_events(folder.path()).unwrap() {
        let batch = airpath_log::tables::events::EventBatch::new(&batch.unwrap(), folder.path()).unwrap();
        for row in batch.rows() {
            *seen.entry((row.user.into(), row.hop.into(), row.state.into())).or_default() += 1;
        }
    }
    let seen: Vec<_> = seen.keys().map(|(user, hop, state)| (user.as_str(), hop.as_str(), state.as_str())).collect();
    let of_bob = ["core", "path", "radio"].into_iter().flat_map(|hop| [("bob", hop, "initial"), ("bob", hop, "later")]);
    let expected: Vec<_> =
        [("alice", "path", "initial"), ("alice", "radio", "initial")].into_iter().chain(of_bob).collect();
    assert_eq!(seen, expected);
    let mut ports = std::collections::BTreeSet::new();
    for batch in airpath_log::read::open_inputs(folder.path()).unwrap() {
        let batch = airpath_log::tables::inputs::InputBatch::new(&batch.unwrap(), folder.path()).unwrap();
        ports.extend(batch.rows().map(|row| (row.port, row.user.to_string())));
    }
    let user = |port: u16| if port < 2 { "alice" } else { "bob" };
    assert_eq!(ports, (0..4).map(|port| (Some(port), user(port).to_string())).collect());
    let again = crate::run::replay::replay(folder.path(), None).unwrap();
    assert!(again.difference.is_none() && again.events > 1000, "{:?}", again.difference);
}

#[test]
fn a_cell_of_one_unnamed_user_leaves_the_files_of_its_path() {
    let files = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let scenario = Scenario::from_toml(text, "one.toml").unwrap();
        let request = SimRequest {
            machine: crate::link::machine(&scenario).unwrap(),
            workloads: vec![(0, Workload::parse("tcp bytes=100kB").unwrap())],
            duration: None,
            mtu_bytes: 1500,
            level: Level::Packets,
            snaplen: Snaplen::default(),
            frames: true,
            scenario,
        };
        Simulation::new(&request).run(3, Some(folder.path()), false, &Interrupt::default()).unwrap();
        ["events.arrow", "input.arrow", "client.pcapng", "server.pcapng"]
            .map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    let path = "[[hops]]\n[hops.link]\nrate = \"1 Mbit/s\"\nerrors = { type = \"bernoulli\", probability = 0.02, per = \"packet\" }\n";
    let medium = "[[media]]\nname = \"cell\"\ntype = \"continuous\"\nuplink = \"1 Mbit/s\"\ndownlink = \"1 Mbit/s\"\n";
    let cell = format!("{medium}{}", path.replace("rate = \"1 Mbit/s\"", "medium = \"cell\""));
    assert!(files(path) == files(&cell));
}

/// Filters of headers and of contents, in a queue and in errors that begin with a state.
const FILTERS: &str = r#"
[[hops]]
name = "radio"
[hops.link]
rate = "400 kbit/s"
[hops.link.queue]
type = "classes"
[[hops.link.queue.classes]]
name = "media"
match = { filter = "rtp" }
[[hops.link.queue.classes]]
name = "rest"

[[states]]
name = "lossy"
at = "2 s"
[states.set]
"radio.link.errors" = { type = "bernoulli", probability = 0.5, only = { filter = "udp[2:2] = 49154" } }
"#;

/// Results of a run of `FILTERS` in virtual time.
fn filtered(folder: Option<&Folder>, level: Level) -> Simulated {
    let scenario = Scenario::from_toml(FILTERS, "filters.toml").unwrap();
    let workloads = [
        "media frames_per_second=25 bitrate=\"200 kbit/s\" from=server",
        "cbr interval=\"10 ms\" size=400 from=server",
    ];
    let request = SimRequest {
        machine: crate::link::machine(&scenario).unwrap(),
        workloads: workloads.map(|text| (0, Workload::parse(text).unwrap())).into(),
        duration: Some(Span::from_secs(6)),
        mtu_bytes: 1500,
        level,
        snaplen: Snaplen::default(),
        frames: true,
        scenario,
    };
    Simulation::new(&request).run(7, folder, false, &Interrupt::default()).unwrap()
}

#[test]
fn filters_choose_among_packets_of_endpoints_and_a_replay_is_identical() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = filtered(Some(folder.path()), Level::Events);
    // What is recorded changes nothing.
    let counted = filtered(None, Level::Counters);
    let drops = |simulated: &Simulated| simulated.summary.downlink.dropped.clone();
    assert_eq!(drops(&recorded), drops(&counted));
    assert!(drops(&recorded).iter().any(|drop| drop.cause == "channel_error" && drop.packets > 50));

    let mut matches = BTreeMap::new();
    for batch in airpath_log::read::open_inputs(folder.path()).unwrap() {
        let batch = airpath_log::tables::inputs::InputBatch::new(&batch.unwrap(), folder.path()).unwrap();
        for row in batch.rows().filter(|row| row.pdu.is_some()) {
            matches.insert(row.pdu.unwrap(), (row.flow.unwrap(), row.matches));
        }
    }
    let seen: std::collections::BTreeSet<_> = matches.values().copied().collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, Some(1)), (2, Some(2))]);
    for batch in airpath_log::read::open_events(folder.path()).unwrap() {
        let batch = airpath_log::tables::events::EventBatch::new(&batch.unwrap(), folder.path()).unwrap();
        let lost = batch.rows().filter(|row| row.cause == "channel_error").map(|row| matches[&row.pdu].0);
        assert!(lost.into_iter().all(|flow| flow == 2));
    }
    let again = crate::run::replay::replay(folder.path(), None).unwrap();
    assert!(again.difference.is_none() && again.events > 1000, "{:?}", again.difference);
}
