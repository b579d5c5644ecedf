// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of the loop while it carries 100 Mbit/s, and while it carries nothing.

use std::time::Duration;

use airpath_core::Span;
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::ports::PortKind;
use airpath_live::{clock, scheduling};
use airpath_log::Level;
use airpath_models::LinkConfig;

use super::{Options, ports, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::testbed::{Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{self, Pace};

const PACKETS_PER_SECOND: f64 = 8_333.0;
const IP_BYTES: usize = 1500;
/// An idle link is watched for this long and for twice as long: what the kernel says by itself on a
/// new interface is over by then, and the difference is the link's.
const IDLE_SECONDS: f64 = 3.0;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "processor time of the loop, 8333 packets/s of 1500 bytes over 120 Mbit/s and 20 ms, spin off";
    let columns = ["between the ends", "log", "µs a packet", "wake-ups a packet", "lateness p50 µs", "p99", "lost"];
    let mut table = Table::new("processor", title, &columns);
    let pace = Pace { ip_bytes: IP_BYTES, packets_per_second: PACKETS_PER_SECOND, seconds: options.seconds(4.0) };
    let config =
        LinkConfig { rate: "120 Mbit/s".parse()?, propagation: Span::from_millis(20).into(), ..LinkConfig::default() };
    let pass = ports().into_iter().map(|port| (Link::Pass, port, Level::Counters));
    let model = ports_and_levels().into_iter().map(|(port, level)| (Link::hop(config.clone()), port, level));
    let off = pass.chain(model).map(|(link, port, level)| (link, port, level, SpinPolicy::Off));
    let batch = [(Link::hop(config.clone()), PortKind::Packet, Level::Counters, SpinPolicy::Batch)];
    for (link, port, level, spin) in off.chain(batch) {
        let setting = Setting { spin, ..Setting::new(port, level) };
        let emulation = Emulation::start(&link, setting)?;
        let [client, server] = emulation.ends(0);
        let received = traffic::run(&client, &server, pace, Duration::from_millis(200))?;
        let outcome = emulation.stop()?;
        let packets = received.sent as f64;
        let cost = outcome.processor_ns() as f64 / 1e3 / packets;
        let is_model = matches!(link, Link::Hop(_));
        let what = format!("{}, {}", if is_model { "link" } else { "pass-through" }, port_name(port));
        let what = if spin == SpinPolicy::Off { what } else { format!("{what}, spin {spin}") };
        let lateness = [outcome.lateness.p50_ns, outcome.lateness.p99_ns].map(|ns| short(ns as f64 / 1e3));
        let costs = [short(cost), short(outcome.wake_ups() as f64 / packets)];
        let cells = costs.into_iter().chain(lateness).chain([received.lost().to_string()]);
        table.row([what.clone(), level.to_string()].into_iter().chain(cells));
        let target = (is_model && level == Level::Counters).then_some(Target::AtMost(6.0));
        table.figure("processor time", format!("{what}, {level}"), cost, "µs a packet", target);
    }
    let sleep = cost_of_a_sleep_ns();
    table.row(["bare clock_nanosleep of 100 µs".to_owned(), "-".to_owned(), short(sleep / 1e3), "1".to_owned()]);
    table.figure("processor time of a bare timed sleep", "100 µs", sleep / 1e3, "µs", None);
    for port in ports() {
        let mut wake_ups = Vec::new();
        for seconds in [IDLE_SECONDS, 2.0 * IDLE_SECONDS] {
            let emulation = Emulation::start(&Link::hop(config.clone()), Setting::new(port, Level::Counters))?;
            std::thread::sleep(Duration::from_secs_f64(seconds));
            wake_ups.push(emulation.stop()?.wake_ups());
        }
        let more = wake_ups[1].saturating_sub(wake_ups[0]);
        let what = format!("idle link, {}", port_name(port));
        let cells = ["-".to_owned(), format!("{more} in {IDLE_SECONDS} s")];
        table.row([what.clone(), "counters".to_owned()].into_iter().chain(cells));
        table.figure("wake-ups of an idle link", what, more as f64, "wake-ups", Some(Target::AtMost(0.0)));
    }
    table.notes.push(
        "the loop's thread also pays for the receiving kernel's stack, which runs within the call that writes a packet"
            .into(),
    );
    Ok(table)
}

/// Processor time of a thread that sleeps for 100 µs and wakes as the loop does: what the machine's
/// timer costs before anything is done with it.
fn cost_of_a_sleep_ns() -> f64 {
    const SLEEPS: u32 = 2_000;
    let measured = std::thread::spawn(|| {
        scheduling::timer_slack(1);
        scheduling::real_time(10);
        let before_ns = clock::thread_processor_ns();
        for _ in 0..SLEEPS {
            traffic::sleep_until(clock::monotonic_ns() + 100_000);
        }
        clock::thread_processor_ns() - before_ns
    });
    measured.join().map_or(f64::NAN, |nanoseconds| nanoseconds as f64 / f64::from(SLEEPS))
}
