// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One TCP flow through links of 1 to 10 Gbit/s, beside a bare veth pair and the kernel's own token bucket.

use std::process::{Command, Stdio};

use airpath_core::Span;
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::ports::PortKind;
use airpath_log::{Economy, Level};
use airpath_models::LinkConfig;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;

use super::Options;
use super::stream::{CONGESTION_CONTROL, goodput};
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::{BareVeth, Departures, Emulation, Failure, Link, Setting};

/// Rates of the links, in Gbit/s of IP packets.
const RATES: [u32; 4] = [1, 2, 5, 10];
const ROUNDS: usize = 5;
const IP_BYTES: f64 = 1500.0;
/// IPv4 and TCP with timestamps.
const HEADER_BYTES: f64 = 52.0;
/// Queue and burst of the kernel's token bucket: what it needs for the greatest of the rates.
const TOKEN_BUCKET: [&str; 4] = ["burst", "256k", "latency", "4ms"];
/// Ways to meet deadlines, and their names.
const WAYS: [(Departures, SpinPolicy, &str); 4] = [
    (Departures::Single, SpinPolicy::USUAL, ", single departures"),
    USUAL,
    (Departures::Within(Economy::Off), SpinPolicy::Always, ", spin always"),
    (Departures::Within(Economy::On), SpinPolicy::USUAL, ", economy"),
];
const USUAL: (Departures, SpinPolicy, &str) = (Departures::Within(Economy::Off), SpinPolicy::USUAL, "");

/// Results of one way between the ends, one for each round.
#[derive(Default)]
struct Rounds {
    gbit_per_s: Vec<f64>,
    core_percent: Vec<f64>,
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
    late: u64,
    packets: u64,
}

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!(
        "one TCP flow ({CONGESTION_CONTROL}) through a rate, 1 ms and a queue of 4 ms, MTU 1500, goodput at the receiver, medians"
    );
    let columns = ["between the ends", "Gbit/s", "least", "most", "loop core %", "lateness p50 µs", "p99", "late ‰"];
    let mut table = Table::new("rates", title, &columns);
    let seconds = options.seconds(2.0);
    let rounds = if options.quick { ROUNDS / 2 } else { ROUNDS };
    let mut bare = Rounds::default();
    let (mut unlimited, mut pass) = (Rounds::default(), Rounds::default());
    let mut buckets: Vec<Option<Rounds>> = RATES.iter().map(|_| Some(Rounds::default())).collect();
    let mut links: Vec<[Rounds; WAYS.len()]> = RATES.iter().map(|_| Default::default()).collect();
    // Ways take turns, so that a busy moment of the machine meets all of them.
    for _ in 0..rounds {
        bare.gbit_per_s.push(goodput(BareVeth::create()?.ends(), seconds)?);
        through(&mut pass, &Link::Pass, USUAL, seconds)?;
        through(&mut unlimited, &Link::hop(LinkConfig::default()), USUAL, seconds)?;
        for (index, rate) in RATES.iter().enumerate() {
            if let Some(of_bucket) = &mut buckets[index] {
                let veth = BareVeth::create()?;
                if with_token_bucket(&veth, *rate)? {
                    of_bucket.gbit_per_s.push(goodput(veth.ends(), seconds)?);
                } else {
                    buckets[index] = None;
                }
            }
            for (rounds, way) in links[index].iter_mut().zip(WAYS) {
                through(rounds, &Link::hop(link(*rate)?), way, seconds)?;
            }
        }
    }
    let veth = row(&mut table, "bare veth pair", &bare);
    let floor = row(&mut table, "pass-through, no model", &pass);
    let ours = row(&mut table, "link without a rate", &unlimited);
    table.figure("share of the pass-through", "link without a rate", ours / floor, "", Some(Target::AtLeast(0.9)));
    table.figure("share of the bare veth", "link without a rate", ours / veth, "", Some(Target::AtLeast(0.9)));
    for (index, rate) in RATES.iter().enumerate() {
        let kernel =
            buckets[index].as_ref().map(|of_bucket| row(&mut table, &format!("tbf, {rate} Gbit/s"), of_bucket));
        for (rounds, way) in links[index].iter().zip(WAYS) {
            let what = format!("link, {rate} Gbit/s{}", way.2);
            let ours = row(&mut table, &what, rounds);
            let possible = f64::from(*rate) * (IP_BYTES - HEADER_BYTES) / IP_BYTES;
            let is_usual = way == USUAL;
            let target = (is_usual && *rate <= 5).then_some(Target::AtLeast(0.95));
            table.figure("share of the rate", what.clone(), ours / possible, "", target);
            if let Some(kernel) = kernel {
                let target = (is_usual && *rate > 5).then_some(Target::AtLeast(0.9));
                table.figure("share of tbf", what, ours / kernel, "", target);
            }
        }
    }
    if buckets.iter().any(Option::is_none) {
        table.notes.push("no `tc`, or no tbf in this kernel: the token bucket was left out".into());
    }
    table.notes.push("late: packets that left later than their bound, in thousandths of all".into());
    Ok(table)
}

/// A link of `rate` Gbit/s.
fn link(rate: u32) -> Result<LinkConfig, Failure> {
    Ok(LinkConfig {
        rate: format!("{rate} Gbit/s").parse()?,
        propagation: Span::from_millis(1).into(),
        queue: QueueConfig::TailDrop(TailDropConfig { limit: "4 ms".parse()? }),
        ..LinkConfig::default()
    })
}

/// Measures one round through a link.
fn through(
    rounds: &mut Rounds,
    link: &Link,
    (departures, spin, _): (Departures, SpinPolicy, &str),
    seconds: f64,
) -> Result<(), Failure> {
    let setting = Setting { departures, spin, ..Setting::new(PortKind::Packet, Level::Counters) };
    let emulation = Emulation::start(link, setting)?;
    rounds.gbit_per_s.push(goodput(emulation.ends(0), seconds)?);
    let outcome = emulation.stop()?;
    rounds.core_percent.push(outcome.core_percent());
    rounds.p50_us.push(outcome.lateness.p50_ns as f64 / 1e3);
    rounds.p99_us.push(outcome.lateness.p99_ns as f64 / 1e3);
    rounds.late += outcome.late_packets;
    rounds.packets += outcome.lateness.count;
    Ok(())
}

/// Adds a row, and returns the median of the rates.
fn row(table: &mut Table, what: &str, rounds: &Rounds) -> f64 {
    let median = |values: &[f64]| Samples::new(values.iter().copied()).quantile(0.5);
    let rates = Samples::new(rounds.gbit_per_s.iter().copied());
    let mut cells = vec![what.to_owned(), short(rates.quantile(0.5)), short(rates.quantile(0.0)), short(rates.max())];
    if rounds.packets > 0 {
        let values = [&rounds.core_percent, &rounds.p50_us, &rounds.p99_us].map(|values| short(median(values)));
        cells.extend(values);
        cells.push(short(rounds.late as f64 * 1e3 / rounds.packets as f64));
    }
    table.row(cells);
    table.figure("TCP goodput", what, rates.quantile(0.5), "Gbit/s", None);
    rates.quantile(0.5)
}

/// Puts a token bucket of `rate` Gbit/s on the first end; whether that was possible.
fn with_token_bucket(veth: &BareVeth, rate: u32) -> Result<bool, Failure> {
    let rate = format!("{rate}gbit");
    let done = veth.ends()[0].run(|| {
        Command::new("tc")
            .args(["qdisc", "add", "dev", "bare0", "root", "tbf", "rate", &rate])
            .args(TOKEN_BUCKET)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    Ok(done.is_ok_and(|status| status.success()))
}
