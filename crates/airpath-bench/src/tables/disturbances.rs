// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lateness of packets under disturbances, and remedies against it.
//!
//! Source: Gurtov 1999, section 4: disk, processor, scheduling, paging.

mod load;

use std::time::Duration;

use airpath_core::Span;
use airpath_live::ports::PortKind;
use airpath_live::tuning::{Policy, REAL_TIME_PRIORITY};
use airpath_log::Level;
use airpath_models::LinkConfig;

use load::Load;
pub use load::disturb;

use super::Options;
use crate::report::{Table, short};
use crate::testbed::{Emulation, Failure, Link, Setting};
use crate::traffic::{self, Pace};

const PACKETS_PER_SECOND: f64 = 100.0;
const IP_BYTES: usize = 500;
const FIFO: Policy = Policy::Fifo(REAL_TIME_PRIORITY);
const ROUND_ROBIN: Policy = Policy::RoundRobin(REAL_TIME_PRIORITY);
/// Time for a load to get going.
const LEAD: Duration = Duration::from_millis(700);

/// Compared settings: the load, the policy, locked memory, held wake latency.
const ROWS: [(Load, Policy, bool, bool); 14] = [
    (Load::Nothing, Policy::Other, false, false),
    (Load::Nothing, FIFO, true, false),
    (Load::Nothing, Policy::Other, false, true),
    (Load::Nothing, FIFO, true, true),
    (Load::Processors, Policy::Other, false, false),
    (Load::Processors, FIFO, true, false),
    (Load::Processors, ROUND_ROBIN, true, false),
    (Load::Processors, FIFO, true, true),
    (Load::Disk, Policy::Other, false, false),
    (Load::Disk, FIFO, false, false),
    (Load::Disk, FIFO, true, true),
    (Load::Memory, Policy::Other, false, false),
    (Load::Memory, FIFO, false, false),
    (Load::Memory, FIFO, true, true),
];

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!(
        "{PACKETS_PER_SECOND} packets/s of {IP_BYTES} bytes over 20 ms, every packet logged, spin auto: lateness in µs"
    );
    let columns = [
        "load",
        "policy",
        "memory locked",
        "wake latency",
        "p50",
        "p99",
        "p99.9",
        "max",
        "core %",
        "put aside",
        "faults minor",
        "major",
    ];
    let mut table = Table::new("disturbances", title, &columns);
    let link = Link::hop(LinkConfig { propagation: Span::from_millis(20).into(), ..LinkConfig::default() });
    let pace = Pace { ip_bytes: IP_BYTES, packets_per_second: PACKETS_PER_SECOND, seconds: options.seconds(16.0) };
    for (load, policy, lock_memory, wake_latency) in ROWS {
        let running = match load.start() {
            Ok(running) => running,
            Err(error) => {
                table.notes.push(format!("{load} is not measured: {error}"));
                continue;
            }
        };
        std::thread::sleep(LEAD);
        let setting = Setting { policy, lock_memory, wake_latency, ..Setting::new(PortKind::Packet, Level::Packets) };
        let emulation = Emulation::start(&link, setting)?;
        let [client, server] = emulation.ends(0);
        traffic::run(&client, &server, pace, Duration::from_millis(300))?;
        let outcome = emulation.stop()?;
        drop(running);
        let lateness = outcome.lateness;
        let quantiles = [lateness.p50_ns, lateness.p99_ns, lateness.p999_ns, lateness.max_ns];
        let usage = outcome.reports[0].usage;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let held = if wake_latency { "held" } else { "left" }.to_owned();
        let counts =
            [usage.involuntary_switches, usage.minor_faults, usage.major_faults].map(|count| count.to_string());
        table.row(
            [load.to_string(), policy.to_string(), yes(lock_memory), held]
                .into_iter()
                .chain(quantiles.map(|ns| short(ns as f64 / 1e3)))
                .chain([short(outcome.core_percent())])
                .chain(counts),
        );
        let setting = format!("{load}, {policy}, locked {}, wake latency held {}", yes(lock_memory), yes(wake_latency));
        table.figure("lateness p99", setting.clone(), lateness.p99_ns as f64 / 1e3, "µs", None);
        table.figure("lateness max", setting, lateness.max_ns as f64 / 1e3, "µs", None);
        if !outcome.log_complete {
            table.notes.push(format!("the log is incomplete under {load}"));
        }
    }
    table.notes.push(
        "cpu: a busy process for each processor; disk: 8 MB written and waited for over and over beside the log; \
         memory: a process in the same memory group of 512 MB that takes 448 MB and reads a file of 256 MB"
            .into(),
    );
    Ok(table)
}
