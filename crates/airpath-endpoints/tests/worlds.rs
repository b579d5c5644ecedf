// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The laws of endpoints: wake-ups that nobody asked for change nothing, and a world of several links
//! and threads runs them like the small loop of these tests.

use std::num::NonZeroUsize;

use airpath_core::{Emission, End, Item, Pdu, PortId, Seed, Time};
use airpath_endpoints::{FlowReport, Options, Pair, endpoints};
use airpath_virtual::{Observer, Until, World};
use airpath_workload::Workload;

use crate::common::{Trace, link, run, run_nudged, seconds};

/// Every kind that needs no file.
const ALL: [&str; 9] = [
    "tcp bytes=50000 cc=reno",
    "tcp duration='3 s' from=client start='1 s'",
    "request count=5 response=3000 think='50 ms'",
    "quic bytes=20000",
    "cbr rate=20kbit/s size=200 packets=50",
    "poisson interval='50 ms' size=100 packets=50 from=client",
    "on-off on='exponential 100 ms' off='200 ms' rate=30kbit/s size=99 duration='4 s'",
    "saturate size=500 window=3 duration='2 s' start='2 s'",
    "media bitrate=30kbit/s frames_per_second=10 variation=30% duration='3 s'",
];

const LINK: &str = "500 kbit/s,30 ms,20 packets,2%";

#[test]
fn wake_ups_that_nobody_asked_for_change_nothing() {
    let last = seconds(600.0);
    let plain = run(link(LINK, 1), &ALL, &Options::default(), 1, last);
    let nudged = run_nudged(link(LINK, 1), &ALL, &Options::default(), 1, last);
    assert_eq!(plain.trace(), nudged.trace());
    assert_eq!(plain.reports, nudged.reports);
}

/// Notes what is offered.
#[derive(Default)]
struct Notes {
    sent: Trace,
    got: usize,
}

impl Observer for Notes {
    fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        let end = if port == PortId::CLIENT { End::Client } else { End::Server };
        self.sent.push((at.nanos(), end, pdu.len));
    }

    fn emitted(&mut self, emission: &Emission) {
        self.got += usize::from(matches!(emission.item, Item::Pdu(_)));
    }
}

/// Four links with all workloads each, on so many threads.
fn in_a_world(threads: usize) -> Vec<(Trace, usize, Vec<FlowReport>)> {
    let mut world = World::new();
    let mut results = Vec::new();
    for seed in 1..=4 {
        let machine = world.machine(link(LINK, seed), Notes::default());
        let mut of_this = Vec::new();
        for (flow, text) in ALL.iter().enumerate() {
            let workload = Workload::parse(text).unwrap();
            let pair = endpoints(&workload, flow as u32, Seed(seed), &Options::default()).unwrap();
            let Pair { start, client, server, results } = pair;
            world.attach(flow as u32, machine, PortId::CLIENT, start, client);
            world.attach(flow as u32, machine, PortId::SERVER, start, server);
            of_this.push(results);
        }
        results.push(of_this);
    }
    world.run(Until::Done { latest: seconds(600.0) }, NonZeroUsize::new(threads).unwrap()).unwrap();
    let machines = world.finish();
    machines
        .into_iter()
        .zip(results)
        .map(|(machine, results)| {
            (machine.observer.sent, machine.observer.got, results.iter().map(|it| it.report()).collect())
        })
        .collect()
}

#[test]
fn a_world_gives_the_same_whatever_its_threads() {
    let (one, three) = (in_a_world(1), in_a_world(3));
    assert_eq!(one, three);
    // The first packets of several flows at one instant may come in another order in this loop; all
    // of one flow come as there.
    let alone = run(link(LINK, 2), &ALL, &Options::default(), 2, seconds(600.0));
    assert_eq!(alone.sent.len(), one[1].0.len());
    assert_eq!(alone.reports, one[1].2);
}
