// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Goodput against the configured rate.

use std::time::Duration;

use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::testbed::{Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{self, Pace};

/// The rate, packets' IP length, and seconds.
const CASES: [(&str, f64, usize, f64); 4] = [
    ("9600 bit/s", 9_600.0, 300, 10.0),
    ("1 Mbit/s", 1e6, 1500, 4.0),
    ("12 Mbit/s", 12e6, 1500, 4.0),
    ("100 Mbit/s", 100e6, 1500, 4.0),
];
/// Ratio of offered load to the rate.
const OVERLOAD: f64 = 1.3;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "goodput of saturating UDP against the rate; bits counted are those of the IP packets";
    let columns = ["rate", "port", "log", "packets", "goodput bit/s", "error %"];
    let mut table = Table::new("goodput", title, &columns);
    for (text, rate, ip_bytes, seconds) in CASES {
        let link = Link::hop(LinkConfig { rate: text.parse()?, ..LinkConfig::default() });
        let packets_per_second = rate * OVERLOAD / (ip_bytes * 8) as f64;
        let pace = Pace { ip_bytes, packets_per_second, seconds: options.seconds(seconds) };
        // At a low rate the last packets of a full queue would take minutes.
        let drain = Duration::from_millis(500);
        for (port, level) in ports_and_levels() {
            let setting = Setting::new(port, level);
            let emulation = Emulation::start(&link, setting)?;
            let [client, server] = emulation.ends(0);
            let received = traffic::run(&client, &server, pace, drain)?;
            emulation.stop()?;
            // By then the queue holds enough for a sender that is held up not to matter.
            let arrivals = &received.arrivals[received.arrivals.len() / 10..];
            let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else {
                return Err(format!("nothing came over a link of {text}").into());
            };
            let bits = (arrivals.len() - 1) as f64 * (ip_bytes * 8) as f64;
            let goodput = bits * 1e9 / (last.stamp_ns - first.stamp_ns) as f64;
            let error = (goodput / rate - 1.0) * 100.0;
            let name = [text.to_owned(), port_name(port).to_owned(), level.to_string()];
            let cells = [arrivals.len().to_string(), format!("{goodput:.1}"), format!("{error:+.5}")];
            table.row(name.into_iter().chain(cells));
            let target = (level == Level::Counters).then_some(Target::AtMost(0.05));
            table.figure("goodput error", format!("{text}, {}", setting.label()), error.abs(), "%", target);
        }
    }
    table.notes.push(format!("offered {} of the rate; from the kernel's stamp of the first packet (after a tenth of them) to that of the last", short(OVERLOAD)));
    Ok(table)
}
