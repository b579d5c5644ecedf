// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Many links in one process.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::Span;
use airpath_live::ports::PortKind;
use airpath_live::{clock, scheduling};
use airpath_load::clock::sleep_until;
use airpath_log::{Economy, Grade, Level};
use airpath_models::LinkConfig;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::{Options, ports};
use crate::report::{Table, Target, short};
use crate::sockets::{Arrival, Receiver, Sender};
use crate::statistics::Samples;
use crate::testbed::{Departures, Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{UDP_HEADERS_BYTES, pair};

const IP_BYTES: usize = 1500;
const TRANSMISSION_NS: u64 = 1_200_000;
const PROPAGATION_NS: u64 = 20_000_000;
/// Nothing has come for so long after the last packet: nothing will.
const DRAIN_NS: u64 = 300_000_000;
/// The sender wakes at most so often: it shares the processors with the links.
const TICK_NS: u64 = 250_000;
/// Links, and what is offered to each, in bit/s.
const LOADS: [(usize, f64); 3] = [(50, 8e6), (100, 8e6), (500, 1e6)];

/// One measurement.
struct Case {
    links: usize,
    bits_per_second: f64,
    port: PortKind,
    level: Level,
    loops: usize,
    economy: Economy,
}

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "links of 10 Mbit/s and 20 ms in one process, 1500-byte packets offered to each";
    let columns = [
        "links, Mbit/s each",
        "port",
        "log",
        "loops",
        "economy",
        "sent",
        "lost",
        "outside model",
        "delay error µs: p50",
        "p99",
        "max",
        "not trusted",
        "core %",
    ];
    let mut table = Table::new("many-links", title, &columns);
    for case in cases() {
        add(&mut table, &case, options.seconds(4.0))?;
    }
    table.notes.push(
        "delay error: against an ideal link that is given the same packets at the times at which they were sent".into(),
    );
    table.notes.push(
        "not trusted: links whose verdict, of lateness, reads and losses, is not `trusted`; sender and receiver share \
         the processors with the loops"
            .into(),
    );
    Ok(table)
}

fn cases() -> Vec<Case> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let [(links, bits_per_second), ..] = LOADS;
    let usual = |port, level, loops| Case { links, bits_per_second, port, level, loops, economy: Economy::Off };
    let levels = [Level::Counters, Level::Packets];
    let few = ports().into_iter().flat_map(|port| levels.map(|level| usual(port, level, cores)));
    let in_one_loop = ports().into_iter().map(|port| usual(port, Level::Counters, 1));
    let many = LOADS[1..].iter().flat_map(|(links, bits_per_second)| {
        [Economy::Off, Economy::On].map(|economy| Case {
            links: *links,
            bits_per_second: *bits_per_second,
            economy,
            ..usual(PortKind::Packet, Level::Counters, cores)
        })
    });
    few.chain(in_one_loop).chain(many).collect()
}

fn add(table: &mut Table, case: &Case, seconds: f64) -> Result<(), Failure> {
    let Case { links, bits_per_second, port, level, loops, economy } = *case;
    let config = LinkConfig {
        rate: "10 Mbit/s".parse()?,
        propagation: Span::from_nanos(PROPAGATION_NS).into(),
        ..LinkConfig::default()
    };
    let setting = Setting { departures: Departures::Within(economy), ..Setting::new(port, level) };
    let emulation = Emulation::start_many(&vec![Link::hop(config); links], loops, setting)?;
    let (sent, arrivals) = offer(&emulation, links, bits_per_second, seconds)?;
    let outcome = emulation.stop()?;
    let received: usize = arrivals.iter().map(Vec::len).sum();
    let errors = Samples::new(arrivals.iter().flat_map(|link| delay_errors_us(link)));
    let lost = sent.saturating_sub(received as u64);
    let beside = lost.saturating_sub(outcome.dropped).max(outcome.lost_outside);
    let untrusted: Vec<_> = outcome.verdicts.iter().filter(|verdict| verdict.grade != Grade::Trusted).collect();
    let load = format!("{links}, {}", bits_per_second / 1e6);
    let counts = [sent, lost, beside].map(|count| count.to_string());
    let times = [errors.quantile(0.5), errors.quantile(0.99), errors.max()].map(short);
    let what = [load, port_name(port).to_owned(), level.to_string(), loops.to_string(), economy.to_string()];
    let verdict = [untrusted.len().to_string(), short(outcome.core_percent())];
    table.row(what.into_iter().chain(counts).chain(times).chain(verdict));
    let counted = level == Level::Counters && loops > 1 || loops == 1 && links != LOADS[0].0;
    let target = |limit| counted.then_some(Target::AtMost(limit));
    let where_ = format!(
        "{links} links, {} Mbit/s each, {}, {loops} loops, economy {economy}",
        bits_per_second / 1e6,
        setting.label()
    );
    table.figure("loss outside the model", where_.clone(), beside as f64, "packets", target(0.0));
    table.figure("delay error p99", where_.clone(), errors.quantile(0.99), "µs", target(2_000.0));
    table.figure("processor time", where_.clone(), outcome.core_percent(), "% of a core", None);
    if let Some(reason) = untrusted.iter().find_map(|verdict| verdict.reasons.first()) {
        table.notes.push(format!("{where_}: not trusted, such as: {}", reason.what));
    }
    Ok(())
}

/// The delays of one link's packets less those of an ideal link.
fn delay_errors_us(arrivals: &[Arrival]) -> Vec<f64> {
    let mut free_ns = 0;
    let errors = arrivals.iter().map(|arrival| {
        let departs_ns = free_ns.max(arrival.sent_ns) + TRANSMISSION_NS;
        free_ns = departs_ns;
        (arrival.stamp_ns as f64 - (departs_ns + PROPAGATION_NS) as f64) / 1e3
    });
    errors.collect()
}

fn offer(
    emulation: &Emulation,
    links: usize,
    bits_per_second: f64,
    seconds: f64,
) -> io::Result<(u64, Vec<Vec<Arrival>>)> {
    let mut pairs = Vec::new();
    for index in 0..links {
        let [client, server] = emulation.ends(index);
        pairs.push(pair(&client, &server)?);
    }
    let sent_all = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&pairs, &sent_all));
        let sender = scope.spawn(|| {
            let sent = send(&pairs, bits_per_second, seconds);
            sent_all.store(true, Ordering::Release);
            sent
        });
        let sent = sender.join().expect("the sender does not panic")?;
        Ok((sent, receiver.join().expect("the receiver does not panic")?))
    })
}

fn send(pairs: &[(UdpSocket, UdpSocket)], bits_per_second: f64, seconds: f64) -> io::Result<u64> {
    scheduling::timer_slack(1);
    let mut senders: Vec<Sender> =
        pairs.iter().map(|(sending, _)| Sender::new(sending, IP_BYTES - UDP_HEADERS_BYTES)).collect();
    let interval_ns = IP_BYTES as f64 * 8e9 / bits_per_second / pairs.len() as f64;
    let total = (seconds * 1e9 / interval_ns) as u64;
    let start_ns = clock::monotonic_ns() + 1_000_000;
    for index in 0..total {
        sleep_until(start_ns + ((index as f64 * interval_ns) as u64).next_multiple_of(TICK_NS))?;
        senders[index as usize % pairs.len()].send(1)?;
    }
    Ok(total)
}

fn receive(pairs: &[(UdpSocket, UdpSocket)], sent_all: &AtomicBool) -> io::Result<Vec<Vec<Arrival>>> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut receivers: Vec<(Receiver, Vec<Arrival>)> = Vec::new();
    for (index, (_, receiving)) in pairs.iter().enumerate() {
        epoll.add(receiving.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
        receivers.push((Receiver::new(receiving), Vec::with_capacity(4096)));
    }
    let mut events = vec![EpollEvent::empty(); pairs.len()];
    let mut quiet_since_ns = clock::monotonic_ns();
    loop {
        let done = sent_all.load(Ordering::Acquire);
        let count = match epoll.wait(&mut events, EpollTimeout::from(50_u8)) {
            Err(nix::errno::Errno::EINTR) => 0,
            other => other?,
        };
        for event in &events[..count] {
            let (receiver, arrivals) = &mut receivers[event.data() as usize];
            receiver.receive(false, arrivals)?;
        }
        let now_ns = clock::monotonic_ns();
        if count > 0 || !done {
            quiet_since_ns = now_ns;
        } else if now_ns - quiet_since_ns > DRAIN_NS {
            return Ok(receivers.into_iter().map(|(_, arrivals)| arrivals).collect());
        }
    }
}
