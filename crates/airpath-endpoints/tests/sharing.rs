// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An elastic flow and a sparse one share a link.

use airpath_core::Direction;
use airpath_endpoints::{Delivery, Options};

use crate::common::{run, scenario, seconds};

const SPARSE: &str = "cbr from=server size='200 B' interval='20 ms' duration='20 s'";

/// Results of the elastic flow and of the sparse one over 10 Mbit/s and 20 ms.
fn share(queue: &str, elastic: &str, seed: u64) -> [Delivery; 2] {
    let text = format!(
        "[[hops]]\n[hops.link]\nrate = \"10 Mbit/s\"\npropagation = \"20 ms\"\n[hops.downlink]\nqueue = {queue}\n"
    );
    let workloads = [elastic, SPARSE];
    let run = run(scenario(&text, seed), &workloads, &Options::default(), seed, seconds(40.0));
    [0, 1].map(|flow: usize| run.reports[flow].delivery(Direction::Downlink).unwrap().clone())
}

const ELASTIC: [&str; 3] =
    ["tcp duration='20 s' cc=cubic", "tcp duration='20 s' cc=reno", "saturate from=server duration='20 s'"];

/// A sparse packet waits for the packet under transmission, and in the queue for a quantum of the
/// other flow and what that began with a little credit: three packets of 1.2 ms; then come its own 0.16
/// ms and 20 ms of propagation.
#[test]
fn a_sparse_flow_hardly_waits_and_loses_nothing() {
    const BOUND_NS: u64 = 20_000_000 + 160_000 + 3 * 1_200_000;
    for queue in ["{ type = \"fq_codel\" }", "{ type = \"fq_pie\" }"] {
        for elastic in ELASTIC {
            for seed in [1, 2] {
                let [large, sparse] = share(queue, elastic, seed);
                let longest = sparse.longest_delay_ns.unwrap();
                assert!(longest <= BOUND_NS, "{queue} {elastic}: {longest}");
                assert!(sparse.packets_sent == 1_000 && sparse.packets_lost == 0, "{queue} {elastic}: {sparse:?}");
                // The elastic flow has nearly all of the rest: 9.92 Mbit/s less headers and slow start.
                let bits = large.delivered_bytes * 8 / 20;
                assert!((7_500_000..9_920_000).contains(&bits), "{queue} {elastic}: {bits}");
            }
        }
    }
}

/// Without fair queueing the sparse flow suffers what the elastic one causes; and so it does when both
/// share the only queue.
#[test]
fn without_queues_of_their_own_the_sparse_flow_suffers() {
    for queue in ["{ type = \"tail_drop\", limit = \"200 packets\" }", "{ type = \"fq_pie\", flows = 1 }"] {
        let [_, sparse] = share(queue, ELASTIC[0], 1);
        assert!(sparse.longest_delay_ns.unwrap() > 60_000_000, "{queue}: {sparse:?}");
    }
}

/// Strict priority for the sparse flow, told by its port, does the same; the order of the classes
/// decides.
#[test]
fn a_class_of_its_own_does_the_same() {
    let queue = |first: &str, last: &str| {
        let rest = "limit = \"200 packets\"";
        format!(
            "{{ type = \"classes\", classes = [{{ name = \"first\", match = {first} }}, \
             {{ name = \"last\", match = {last}, queue = {{ {rest} }} }}] }}"
        )
    };
    // Flow 1 has the server's second port.
    let (sparse_only, tcp) = ("{ protocol = \"udp\", server_port = 5002 }", "{ protocol = \"tcp\" }");
    let [_, sparse] = share(&queue(sparse_only, "{}"), ELASTIC[0], 1);
    // The packet under transmission, and its own time.
    assert!(sparse.longest_delay_ns.unwrap() <= 20_000_000 + 1_200_000 + 160_000, "{sparse:?}");
    // The other way round it starves while the elastic flow has something queued.
    let [_, sparse] = share(&queue(tcp, "{}"), ELASTIC[0], 1);
    assert!(sparse.packets_lost > 500, "{sparse:?}");
}
