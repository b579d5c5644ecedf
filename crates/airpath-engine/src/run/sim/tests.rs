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
        scenario,
    };
    let interrupt = Interrupt::default();
    let mut pieces = Given { lengths: lengths.to_vec(), next: 0 };
    run_in(&mut pieces, &request, 42, Some(folder.path()), false, &interrupt).unwrap();
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
