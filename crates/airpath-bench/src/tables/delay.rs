// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One-way delay at a low rate.

use std::time::Duration;

use airpath_core::Span;
use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::{BareVeth, Emulation, Failure, Link, NetworkEnd, Setting};
use crate::traffic::{self, Pace};

const PACKETS_PER_SECOND: f64 = 194.0;
const IP_BYTES: usize = 200;
/// Address resolution and cold caches.
const SKIP: usize = 20;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!("one-way delay, {PACKETS_PER_SECOND} packets/s of {IP_BYTES} bytes, spin auto");
    let columns =
        ["between the ends", "log", "mean µs", "p50", "p99", "max", "above bare: mean", "p99", "core %", "spin %"];
    let mut table = Table::new("delay", title, &columns);
    let pace = Pace { ip_bytes: IP_BYTES, packets_per_second: PACKETS_PER_SECOND, seconds: options.seconds(8.0) };
    let delays = |ends: [NetworkEnd<'_>; 2]| -> Result<Samples, Failure> {
        let received = traffic::run(&ends[0], &ends[1], pace, Duration::from_millis(300))?;
        Ok(Samples::new(received.delays_us(SKIP)))
    };
    let cells =
        |samples: &Samples| [samples.mean(), samples.quantile(0.5), samples.quantile(0.99), samples.max()].map(short);

    let bare = delays(BareVeth::create()?.ends())?;
    let name = |name: &str, level: &str| [name.to_owned(), level.to_owned()];
    let row = name("bare veth pair", "-").into_iter().chain(cells(&bare));
    table.row(row);
    let floor = (bare.mean(), bare.quantile(0.5));
    let mut emulated = |link: &Link, setting: Setting, what: String, delay_ms: u64| -> Result<(), Failure> {
        let emulation = Emulation::start(link, setting)?;
        let samples = delays(emulation.ends(0))?;
        let outcome = emulation.stop()?;
        let nominal = delay_ms as f64 * 1e3;
        let (mean, p99) = (samples.mean() - nominal - floor.0, samples.quantile(0.99) - nominal - floor.1);
        let costs = [mean, p99, outcome.core_percent(), outcome.spin_percent()].map(short);
        table.row(name(&what, setting.level.name()).into_iter().chain(cells(&samples)).chain(costs));
        if delay_ms > 0 {
            let (where_, counts) = (format!("{delay_ms} ms, {}", setting.label()), setting.level == Level::Counters);
            let target = |limit| counts.then_some(Target::AtMost(limit));
            table.figure("mean delay error above bare veth", where_.clone(), mean, "µs", target(15.0));
            table.figure("p99 delay error above bare veth", where_.clone(), p99, "µs", target(60.0));
            table.figure("processor time", where_, outcome.core_percent(), "% of a core", None);
        }
        Ok(())
    };
    for port in ports() {
        let setting = Setting::new(port, Level::Counters);
        emulated(&Link::Pass, setting, format!("pass-through, {}", crate::testbed::port_name(port)), 0)?;
    }
    for delay_ms in [10, 100] {
        for (port, level) in ports_and_levels() {
            let link =
                Link::hop(LinkConfig { propagation: Span::from_millis(delay_ms).into(), ..LinkConfig::default() });
            let what = format!("{delay_ms} ms, {}", crate::testbed::port_name(port));
            emulated(&link, Setting::new(port, level), what, delay_ms)?;
        }
    }
    table.notes.push(
        "delay: from just before the system call that sends to the receiving kernel's stamp; above bare: less the \
         emulated delay and the mean (p99: the median) of the bare veth pair"
            .into(),
    );
    Ok(table)
}
