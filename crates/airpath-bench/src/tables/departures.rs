// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Gaps between the departures of a saturated link.

use std::time::Duration;

use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::{Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{self, Pace};

const IP_BYTES: usize = 1500;
/// The first packets fill the queue.
const SKIP: usize = 50;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "gaps between 1500-byte packets on a saturated link of 12 Mbit/s (1 ms each), spin auto";
    let columns = ["port", "log", "gaps", "error µs: p50", "p90", "p99", "max", "core %", "spin %"];
    let mut table = Table::new("departures", title, &columns);
    let link = Link::hop(LinkConfig { rate: "12 Mbit/s".parse()?, ..LinkConfig::default() });
    let pace = Pace { ip_bytes: IP_BYTES, packets_per_second: 1_080.0, seconds: options.seconds(8.0) };
    for (port, level) in ports_and_levels() {
        let setting = Setting::new(port, level);
        let emulation = Emulation::start(&link, setting)?;
        let [client, server] = emulation.ends(0);
        let received = traffic::run(&client, &server, pace, Duration::from_millis(300))?;
        let outcome = emulation.stop()?;
        // Only while packets are sent is the queue sure to hold some.
        let last = received.arrivals.len() - received.arrivals.len() / 10;
        let saturated = &received.arrivals[SKIP.min(last)..last];
        let errors = saturated.windows(2).map(|pair| {
            let gap_ns = pair[1].stamp_ns as f64 - pair[0].stamp_ns as f64;
            (gap_ns - 1e6).abs() / 1e3
        });
        let errors = Samples::new(errors);
        let quantiles = [0.5, 0.9, 0.99].map(|share| short(errors.quantile(share)));
        let costs = [errors.max(), outcome.core_percent(), outcome.spin_percent()].map(short);
        let name = [port_name(port).to_owned(), level.to_string(), errors.count().to_string()];
        table.row(name.into_iter().chain(quantiles).chain(costs));
        let target = |limit| (level == Level::Counters).then_some(Target::AtMost(limit));
        table.figure("gap error p50", setting.label(), errors.quantile(0.5), "µs", target(2.0));
        table.figure("gap error p99", setting.label(), errors.quantile(0.99), "µs", target(40.0));
    }
    Ok(table)
}
