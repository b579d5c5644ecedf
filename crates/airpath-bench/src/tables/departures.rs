// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Gaps between the departures of a saturated link.

use std::time::Duration;

use airpath_live::engine_loop::SpinPolicy;
use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::sockets::Arrival;
use crate::statistics::Samples;
use crate::testbed::{BareVeth, Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{self, Pace};

const IP_BYTES: usize = 1500;
/// The first packets fill the queue.
const SKIP: usize = 50;
const GAP_NS: f64 = 1e6;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "gaps between 1500-byte packets on a saturated link of 12 Mbit/s (1 ms each)";
    let columns = ["port", "log", "spin", "gaps", "error µs: p50", "p90", "p99", "max", "core %", "spin %"];
    let mut table = Table::new("departures", title, &columns);
    let link = Link::hop(LinkConfig { rate: "12 Mbit/s".parse()?, ..LinkConfig::default() });
    let seconds = options.seconds(8.0);
    let floor = Pace { ip_bytes: IP_BYTES, packets_per_second: 1e9 / GAP_NS, seconds };
    let bare = BareVeth::create()?;
    let [client, server] = bare.ends();
    let errors = gap_errors(&traffic::exact(&client, &server, floor)?);
    let name = ["bare veth pair", "-", "a thread that watches the clock"].map(str::to_owned);
    table.row(name.into_iter().chain(cells(&errors)));
    table.figure("gap error p99", "bare veth pair", errors.quantile(0.99), "µs", None);
    let pace = Pace { packets_per_second: 1_080.0, ..floor };
    let usual = ports_and_levels().into_iter().map(|(port, level)| Setting::new(port, level));
    let always = usual.clone().filter(|setting| setting.level == Level::Counters);
    let always = always.map(|setting| Setting { spin: SpinPolicy::Always, ..setting });
    for setting in usual.chain(always) {
        let emulation = Emulation::start(&link, setting)?;
        let [client, server] = emulation.ends(0);
        let received = traffic::run(&client, &server, pace, Duration::from_millis(300))?;
        let outcome = emulation.stop()?;
        // Only while packets are sent is the queue sure to hold some.
        let last = received.arrivals.len() - received.arrivals.len() / 10;
        let errors = gap_errors(&received.arrivals[SKIP.min(last)..last]);
        let costs = [outcome.core_percent(), outcome.spin_percent()].map(short);
        let name = [port_name(setting.port).to_owned(), setting.level.to_string(), setting.spin.to_string()];
        table.row(name.into_iter().chain(cells(&errors)).chain(costs));
        let what = format!("{}, spin {}", setting.label(), setting.spin);
        let target = |limit| (setting.level == Level::Counters).then_some(Target::AtMost(limit));
        table.figure("gap error p50", what.clone(), errors.quantile(0.5), "µs", target(2.0));
        table.figure("gap error p99", what, errors.quantile(0.99), "µs", target(40.0));
    }
    Ok(table)
}

/// Differences between the gaps and a millisecond, in µs.
fn gap_errors(arrivals: &[Arrival]) -> Samples {
    let gaps = arrivals.windows(2).map(|pair| pair[1].stamp_ns as f64 - pair[0].stamp_ns as f64);
    Samples::new(gaps.map(|gap_ns| (gap_ns - GAP_NS).abs() / 1e3))
}

fn cells(errors: &Samples) -> impl Iterator<Item = String> {
    let quantiles = [0.5, 0.9, 0.99].map(|share| short(errors.quantile(share)));
    [errors.count().to_string()].into_iter().chain(quantiles).chain([short(errors.max())])
}
