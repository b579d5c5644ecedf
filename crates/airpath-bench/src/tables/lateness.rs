// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lateness of packets, with and without calibration, on an idle machine and on a loaded one.

use std::time::Duration;

use airpath_calibration::{Prober, Wish};
use airpath_core::Span;
use airpath_live::engine_loop::{AutoSpin, SpinPolicy};
use airpath_live::ports::PortKind;
use airpath_log::{Distribution, Level};
use airpath_models::LinkConfig;

use super::Options;
use crate::busy::Busy;
use crate::report::{Table, Target, short};
use crate::testbed::{Emulation, Failure, Link, LinkOutcome, Setting};
use crate::traffic::{self, Pace};

const PACKETS_PER_SECOND: f64 = 100.0;
const MANY: usize = 10;
/// Goal of the calibration.
const WISH: Wish = Wish { bound_ns: 20_000, budget_ppm: 30_000, duration: Duration::from_secs(8) };
/// Initial margin of `auto` where nothing is known.
const START_NS: u64 = AutoSpin::USUAL.start_ns;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!("lateness of emissions, links of {PACKETS_PER_SECOND} packets/s in one loop, port packet");
    let columns = [
        "machine",
        "links",
        "spin",
        "packets",
        "lateness p50 µs",
        "p99",
        "p99.9",
        "max",
        "core %",
        "watching %",
        "margin µs",
    ];
    let mut table = Table::new("lateness", title, &columns);
    let usual = Setting::new(PortKind::Packet, Level::Counters);
    let found = airpath_calibration::search(&WISH, &mut Prober::create()?, &mut |_| ())?;
    let spin =
        SpinPolicy::Auto(AutoSpin { budget_ppm: WISH.budget_ppm, bound_ns: WISH.bound_ns, start_ns: found.margin_ns });
    let settings = [
        ("off", Setting { spin: SpinPolicy::Off, ..usual }),
        ("fixed margin", Setting { spin: SpinPolicy::Margin(START_NS), ..usual }),
        ("auto, not calibrated", usual),
        ("calibrated", Setting { policy: found.policy, affinity: found.affinity, spin, ..usual }),
    ];
    let seconds = options.seconds(10.0);
    for loaded in [false, true] {
        let _busy = loaded.then(Busy::start).transpose()?;
        for links in [1, MANY] {
            for (name, setting) in settings {
                let outcome = run(links, setting, seconds)?;
                let machine = if loaded { "loaded" } else { "idle" };
                add(&mut table, machine, links, name, &outcome);
            }
        }
    }
    table.notes.push(format!("fixed margin: {}; calibrated: {}", Span::from_nanos(START_NS), found.reasons.join("; ")));
    table.notes.push("lateness: when the call that wrote the packet returned, less when it was due".into());
    table.notes.push("with several links: the median of p50, and the worst link's p99, p99.9 and max".into());
    Ok(table)
}

fn run(links: usize, setting: Setting, seconds: f64) -> Result<LinkOutcome, Failure> {
    let config = LinkConfig { propagation: Span::from_millis(5).into(), ..LinkConfig::default() };
    let emulation = Emulation::start_many(&vec![Link::hop(config); links], 1, setting)?;
    let pace = Pace { ip_bytes: 500, packets_per_second: PACKETS_PER_SECOND, seconds };
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..links)
            .map(|index| {
                let [client, server] = emulation.ends(index);
                scope.spawn(move || traffic::run(&client, &server, pace, Duration::from_millis(100)).map(drop))
            })
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("a sender does not panic"))
    })?;
    emulation.stop()
}

/// All links as one: the median of their medians, and the worst of the rest.
fn together(links: &[Distribution]) -> Distribution {
    let mut medians: Vec<u64> = links.iter().map(|link| link.p50_ns).collect();
    medians.sort_unstable();
    let worst = |of: fn(&Distribution) -> u64| links.iter().map(of).max().unwrap_or(0);
    Distribution {
        count: links.iter().map(|link| link.count).sum(),
        mean_ns: 0.0,
        p50_ns: medians[medians.len() / 2],
        p99_ns: worst(|link| link.p99_ns),
        p999_ns: worst(|link| link.p999_ns),
        max_ns: worst(|link| link.max_ns),
    }
}

fn add(table: &mut Table, machine: &str, links: usize, name: &str, outcome: &LinkOutcome) {
    let late = together(&outcome.latenesses);
    let margin = &outcome.reports[0].margin;
    let micros = [late.p50_ns, late.p99_ns, late.p999_ns, late.max_ns].map(|ns| short(ns as f64 / 1e3));
    let costs = [outcome.core_percent(), outcome.spin_percent()].map(short);
    let margins = format!("{}..{}", margin.least_ns / 1_000, margin.most_ns / 1_000);
    let what = [machine.to_owned(), links.to_string(), name.to_owned(), late.count.to_string()];
    table.row(what.into_iter().chain(micros).chain(costs).chain([margins]));
    let aims = match (name, machine, links) {
        ("calibrated", "idle", 1) => Some((20.0, 3.0)),
        ("calibrated", "loaded", 1) => Some((100.0, 10.0)),
        _ => None,
    };
    let setting = format!("{machine}, {links} links, {name}");
    let at_most = |limit: Option<f64>| limit.map(Target::AtMost);
    let p99_us = late.p99_ns as f64 / 1e3;
    table.figure("lateness p99", setting.clone(), p99_us, "µs", at_most(aims.map(|(late, _)| late)));
    table.figure("core", setting, outcome.core_percent(), "%", at_most(aims.map(|(_, core)| core)));
}
