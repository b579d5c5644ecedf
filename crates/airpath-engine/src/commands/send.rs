// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath send`: puts a load on the way to `airpath recv`.

use std::time::Duration;

use airpath_core::Span;
use airpath_load::{Arrivals, Datagrams, Endpoints, Extent, Interval, Plan, ProgressObserver, Transport, Work};

use crate::cli::SendArgs;
use crate::error::{Failure, Result};
use crate::load::{failure, json, on_interrupt, text};
use crate::terminal::show;

/// Rate of datagrams where none was asked for, as iperf3 has it, in bit/s.
const DEFAULT_RATE_BITS_PER_SECOND: u64 = 1_000_000;
/// Payload of datagrams where none was asked for: fits every link that carries IPv6, in bytes.
const DEFAULT_LENGTH_BYTES: u64 = 1_200;
/// Default duration where neither a time nor an amount was asked for.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Sends it and prints what became of it.
///
/// # Errors
/// When the options make no sense, nobody answers, or the transfer breaks off.
pub fn run(args: &SendArgs) -> Result<i32> {
    let plan = plan(args)?;
    let host = args.host.clone();
    on_interrupt(move || Some(format!("the transfer with {host} was incomplete")))?;
    let mut observer = Printer { quiet: args.json, plan: &plan };
    let outcome = airpath_load::send(&args.host, args.port, &plan, &mut observer);
    match &outcome {
        Ok(report) if args.json => show!("{:#}\n", json::document(report, Some((&args.host, args.port)))),
        Ok(report) => text::end(report).iter().for_each(|line| show!("{line}\n")),
        Err(error) if args.json => show!("{:#}\n", json::failed(&error.to_string())),
        Err(_) => {}
    }
    outcome.map(|_| 0).map_err(|error| failure(&error))
}

/// Prints what happens while it happens.
struct Printer<'a> {
    quiet: bool,
    plan: &'a Plan,
}

impl ProgressObserver for Printer<'_> {
    fn connected(&mut self, streams: &[Endpoints]) {
        if !self.quiet {
            for ends in streams {
                show!("{} to {}: {}\n", ends.local, ends.remote, text::plan(self.plan.work, self.plan.reverse));
            }
        }
    }

    fn interval(&mut self, interval: &Interval) {
        if !self.quiet {
            show!("{}\n", text::interval(interval, matches!(self.plan.work, Work::Datagrams(_))));
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

fn plan(args: &SendArgs) -> Result<Plan> {
    let extent = match (args.bytes, args.time) {
        (Some(bytes), _) => Extent::Bytes(bytes),
        (None, Some(time)) => Extent::Time(duration(time)),
        (None, None) => Extent::Time(DEFAULT_TIME),
    };
    let work = match (args.request, args.response) {
        (Some(request_bytes), Some(response_bytes)) => {
            Work::Requests { request_bytes, response_bytes, count: args.count }
        }
        _ if args.udp || args.udp_lite => Work::Datagrams(datagrams(args, extent)),
        _ => Work::Bulk(extent),
    };
    if !matches!(work, Work::Datagrams(_)) && (args.rate.is_some() || args.length.is_some() || args.poisson) {
        return Err(Failure::usage(
            "--rate, --length and --poisson apply to datagrams: add --udp. TCP sends as fast as it can; for a slower \
             link, use `airpath exec --rate`",
        ));
    }
    Ok(Plan {
        work,
        reverse: args.reverse,
        congestion_control: args.cc.clone(),
        mss_bytes: args.mss,
        no_delay: args.nodelay,
        parallel: args.parallel,
        interval: (args.interval != Span::ZERO).then(|| duration(args.interval)),
    })
}

fn datagrams(args: &SendArgs, extent: Extent) -> Datagrams {
    let transport = match args.udp_lite {
        true => Transport::UdpLite { coverage_bytes: args.coverage },
        false => Transport::Udp,
    };
    let arrivals = match args.poisson {
        true => Arrivals::Poisson { seed: args.seed.unwrap_or_else(crate::seed::fresh_seed) },
        false => Arrivals::Constant,
    };
    Datagrams {
        transport,
        extent,
        rate_bits_per_second: args.rate.map_or(DEFAULT_RATE_BITS_PER_SECOND, airpath_core::Rate::bits_per_second),
        // What is too long is refused with the plan.
        length_bytes: u32::try_from(args.length.unwrap_or(DEFAULT_LENGTH_BYTES)).unwrap_or(u32::MAX),
        arrivals,
    }
}
