// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Times the Seawind case study with endpoints in virtual time: 20 transfers of 100 KB at 9600 bit/s.
//!
//! `cargo run --release -p airpath-endpoints --example seawind`

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use airpath_core::{Seed, Time};
use airpath_endpoints::Options;
use airpath_models::Path;
use airpath_scenario::Scenario;

const REPLICATIONS: u64 = 20;

fn main() {
    let scenario = Scenario::profile("seawind-case").expect("the profile is built in");
    let config = &scenario.paths().expect("the profile is right")[0].config;
    let workloads = [
        ("tcp bytes=102400 cc=reno", 296),
        ("tcp bytes=102400 cc=cubic", 296),
        ("quic bytes=102400 cc=newreno", 1_500),
        ("quic bytes=102400 cc=cubic", 1_500),
    ];
    for (workload, mtu_bytes) in workloads {
        let options = Options { mtu_bytes, ..Options::default() };
        let began = Instant::now();
        let mut elapsed: Vec<f64> = (1..=REPLICATIONS)
            .map(|seed| {
                let machine = Box::new(Path::new(config, Seed(seed)));
                let run = common::run(machine, &[workload], &options, seed, Time::NEVER);
                run.reports[0].elapsed_ns.map_or(f64::NAN, |elapsed| elapsed as f64 / 1e9)
            })
            .collect();
        let took = began.elapsed();
        elapsed.sort_by(f64::total_cmp);
        let (least, median, most) = (elapsed[0], elapsed[elapsed.len() / 2], elapsed[elapsed.len() - 1]);
        println!(
            "{workload:28} MTU {mtu_bytes:4}: {REPLICATIONS} transfers of {least:.1} to {most:.1} s, median {median:.1} s, in {:.1} ms",
            took.as_secs_f64() * 1e3
        );
    }
}
