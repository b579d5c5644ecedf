// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The highest rate of small packets at which none is lost.

use std::time::Duration;

use airpath_live::ports::PortKind;
use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::sockets::Messages;
use crate::testbed::{BareVeth, Emulation, Failure, Link, NetworkEnd, Setting, port_name};
use crate::traffic::{self, Pace, UDP_HEADERS_BYTES};

const PAYLOAD_BYTES: usize = 64;
const FIRST: f64 = 250_000.0;
const LOWEST: f64 = 1_000.0;
const HIGHEST: f64 = 800_000.0;
/// The same where the sender hands many over at once.
const HIGHEST_IN_BATCHES: f64 = 3_200_000.0;
/// Rates are told apart to this share.
const RESOLUTION: f64 = 0.04;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "highest rate of UDP datagrams of 64 bytes payload at which all are delivered, no rate limit";
    let columns = ["between the ends", "log", "lossless packets/s", "loop ns a packet"];
    let mut table = Table::new("small-packets", title, &columns);
    let seconds = options.seconds(2.0);
    let bare = BareVeth::create()?;
    for messages in [Messages::Single, Messages::Batches] {
        let (of_bare, _) =
            lossless(seconds, highest(messages), |pace| Ok((try_rate(bare.ends(), pace, messages)?, 0.0)))?;
        let what = format!("bare veth pair{}", sent_in(messages));
        table.row([what.clone(), "-".to_owned(), short(of_bare.round())]);
        table.figure("lossless small packets", what, of_bare.round(), "packets/s", None);
        let setting = Setting::new(PortKind::Packet, Level::Counters);
        for (link, name) in [(Link::Pass, "pass-through"), (Link::hop(LinkConfig::default()), "link")] {
            let (rate, cost_ns) = lossless(seconds, highest(messages), |pace| {
                let emulation = Emulation::start(&link, setting)?;
                let tried = try_rate(emulation.ends(0), pace, messages)?;
                Ok((tried, emulation.stop()?.processor_ns() as f64 / tried.packets))
            })?;
            let what = format!("{name} beside it{}", sent_in(messages));
            table.row([what.clone(), "counters".to_owned(), short(rate.round()), short(cost_ns)]);
            let target = matches!(link, Link::Hop(_)).then_some(Target::AtLeast(0.85));
            table.figure("share of the bare veth", what, rate / of_bare, "", target);
        }
    }
    let pass = ports().into_iter().map(|port| (Link::Pass, port, Level::Counters));
    let model = ports_and_levels().into_iter().map(|(port, level)| (Link::hop(LinkConfig::default()), port, level));
    for (link, port, level) in pass.chain(model) {
        let setting = Setting::new(port, level);
        let (rate, cost_ns) = lossless(seconds, HIGHEST, |pace| {
            let emulation = Emulation::start(&link, setting)?;
            let tried = try_rate(emulation.ends(0), pace, Messages::Single)?;
            let outcome = emulation.stop()?;
            let lost = tried.lost || !outcome.log_complete;
            Ok((Tried { lost, ..tried }, outcome.processor_ns() as f64 / tried.packets))
        })?;
        let is_model = matches!(link, Link::Hop(_));
        let what = format!("{}, {}", if is_model { "link" } else { "pass-through" }, port_name(port));
        let cells = [short(rate.round()), short(cost_ns)];
        table.row([what.clone(), level.to_string()].into_iter().chain(cells));
        let target = (is_model && level == Level::Counters).then_some(Target::AtLeast(250_000.0));
        table.figure("lossless small packets", format!("{what}, {level}"), rate.round(), "packets/s", target);
    }
    table.notes.push(
        "the rate received, not the one asked for; sender, receiver and loop share the processors; a lost record of \
         the log counts as a loss"
            .into(),
    );
    Ok(table)
}

/// Result at one rate.
#[derive(Clone, Copy)]
struct Tried {
    lost: bool,
    /// Packets sent.
    packets: f64,
    /// The rate at which packets were received, by their stamps.
    packets_per_second: f64,
}

/// The highest rate that is tried.
fn highest(messages: Messages) -> f64 {
    if messages == Messages::Batches { HIGHEST_IN_BATCHES } else { HIGHEST }
}

fn sent_in(messages: Messages) -> &'static str {
    if messages == Messages::Batches { ", sent in batches" } else { "" }
}

fn try_rate([client, server]: [NetworkEnd<'_>; 2], pace: Pace, messages: Messages) -> Result<Tried, Failure> {
    let received = traffic::run_in(messages, &client, &server, pace, Duration::from_millis(200))?;
    let (first, last) = match (received.arrivals.first(), received.arrivals.last()) {
        (Some(first), Some(last)) if last.stamp_ns > first.stamp_ns => (first.stamp_ns, last.stamp_ns),
        _ => return Err("next to nothing was received".into()),
    };
    Ok(Tried {
        lost: received.lost() > 0,
        packets: received.sent as f64,
        packets_per_second: (received.arrivals.len() - 1) as f64 * 1e9 / (last - first) as f64,
    })
}

/// The highest lossless rate up to `highest` and the processor time of a packet there, in ns; `run` measures one rate.
fn lossless(
    seconds: f64,
    highest: f64,
    mut run: impl FnMut(Pace) -> Result<(Tried, f64), Failure>,
) -> Result<(f64, f64), Failure> {
    let pace = |rate| Pace { ip_bytes: PAYLOAD_BYTES + UDP_HEADERS_BYTES, packets_per_second: rate, seconds };
    let (mut low, mut high) = (0.0, highest);
    let mut best = (0.0, 0.0);
    let mut rate = FIRST;
    while high - low > RESOLUTION * high && rate >= LOWEST {
        // One more chance: a single loss on a shared machine is often somebody else's doing.
        let (mut tried, mut cost_ns) = run(pace(rate))?;
        if tried.lost {
            (tried, cost_ns) = run(pace(rate))?;
        }
        // A sender that is held back has not really offered the rate.
        let reached = tried.packets_per_second > rate * (1.0 - RESOLUTION);
        if !tried.lost && tried.packets_per_second > best.0 {
            best = (tried.packets_per_second, cost_ns);
        }
        if tried.lost || !reached {
            high = rate;
        } else {
            low = rate;
        }
        rate = (low + high) / 2.0;
    }
    Ok(best)
}
