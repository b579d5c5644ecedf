// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing sync`: this host's clock beside that of another.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use airpath_clocks::client::{self, MOST_REQUESTS, Plan, Progress};
use airpath_clocks::server::{Notice, Server};
use airpath_clocks::{DEFAULT_PORT, Estimate};
use airpath_log::{place, show};

use super::{ppm, signed, status, unix, unsigned};
use crate::cli::clocks::{HostPort, SyncArgs};
use crate::commands::recv::only_this_host;
use crate::error::{Failure, Result};
use crate::load::on_interrupt;
use crate::terminal::{say, show};

/// Measures, serves, or tells the state of this host's clock.
///
/// # Errors
/// When nobody answers, the port cannot be had, or the estimate cannot be written.
pub fn run(args: &SyncArgs) -> Result<i32> {
    match &args.host {
        _ if args.status => Ok(status::run(args.json)),
        Some(host) => measure(args, host),
        None => serve(args),
    }
}

fn serve(args: &SyncArgs) -> Result<i32> {
    let (address, port) = match args.listen {
        Some(listen) => (listen.address, listen.port),
        None => (only_this_host()?, DEFAULT_PORT),
    };
    let server = Arc::new(Server::bind(address, port, args.simulated_error).map_err(Failure::clocks)?);
    let watched = Arc::clone(&server);
    on_interrupt(move || Some(format!("{} answered", show::counted(watched.answered(), "request"))))?;
    match server.local_addr() {
        Ok(address) if args.listen.is_none() && address.ip().is_loopback() => say!(
            "airpath: listening on {address} (UDP) only; to serve other hosts, use --listen ADDRESS, or `--listen \
             :{port}` for all addresses; stop with Ctrl-C"
        ),
        Ok(address) => say!("airpath: listening on {address} (UDP); stop with Ctrl-C"),
        Err(error) => say!("airpath: listening; stop with Ctrl-C ({error})"),
    }
    let notice = |notice| match notice {
        Notice::Session(address) => say!("airpath: measurement from {address}"),
        Notice::Foreign(address) => say!(
            "airpath: a datagram from {address} does not belong to this protocol \
            (reported once)"
        ),
        Notice::TooMany(address) => {
            say!("airpath: request rate limit exceeded, last by {address} (reported once)");
        }
    };
    let Err(error) = server.serve(notice);
    Err(Failure::clocks(error))
}

fn measure(args: &SyncArgs, host: &HostPort) -> Result<i32> {
    let interval = Duration::from_nanos(args.interval.nanos());
    if !(Duration::from_millis(1)..=Duration::from_secs(1)).contains(&interval) {
        return Err(Failure::usage(format!("--interval {}: write 1 ms to 1 s", args.interval)));
    }
    let duration = Duration::from_secs(args.seconds);
    if duration.as_nanos() / interval.as_nanos() >= u128::from(MOST_REQUESTS) {
        return Err(Failure::usage(format!(
            "{} s with an exchange every {} are more than {MOST_REQUESTS} exchanges; use a longer --interval",
            args.seconds, args.interval
        )));
    }
    if let Some(out) = &args.out {
        may_be_written(out)?;
    }
    let named = host.host.clone();
    on_interrupt(move || Some(format!("the clocks of this host and {named} were not compared; nothing was written")))?;
    let plan = Plan { duration, interval, error: args.simulated_error };
    let mut watch = Watch::new(&host.host, args.seconds);
    let outcome = client::measure(&host.host, host.port, &plan, |progress| watch.tell(progress));
    watch.end();
    let estimate = outcome.map_err(Failure::clocks)?;
    let mut document = serde_json::to_string_pretty(&estimate).expect("numbers and words make JSON");
    document.push('\n');
    if let Some(out) = &args.out {
        write(out, &document)?;
    }
    match args.json {
        true => show!("{document}"),
        false => text(&estimate, args.out.as_deref()),
    }
    for warning in &estimate.warnings {
        say!("airpath: {warning}");
    }
    Ok(0)
}

/// Says before the measurement what would otherwise be said after it.
fn may_be_written(path: &Path) -> Result<()> {
    let cannot =
        |what: &str| Failure::unwritable(format!("cannot write {}: {what}; name another file", path.display()));
    if path.is_dir() {
        return Err(cannot("it is a folder"));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(cannot(&format!("{} is not a directory", parent.display())));
    }
    nix::unistd::access(parent, nix::unistd::AccessFlags::W_OK).map_err(|errno| cannot(errno.desc()))
}

/// Writes the file in one step: a reader sees the old one or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    place::replace(path, |file| file.write_all(text.as_bytes())).map_err(|error| {
        Failure::unwritable(format!("cannot write {}: {error}; free space there, or name another file", path.display()))
    })
}

fn text(estimate: &Estimate, out: Option<&Path>) {
    let [low, high] = estimate.drift_interval_ppm;
    let [least, greatest] = estimate.drift_bound_ppm;
    let counts = &estimate.exchanges;
    let holds_s = (estimate.to_unix_ns - estimate.from_unix_ns) as f64 / 1e9;
    show!(
        "offset      {} ± {} (this host's clock + offset = that of {})\n",
        signed(estimate.offset_ns),
        unsigned(estimate.bound_ns),
        estimate.remote.name
    );
    show!("at          {} s since 1970, by this host's clock\n", unix(estimate.at_unix_ns));
    show!(
        "drift       {} ppm, 95 % {} to {}, certainly {} to {}\n",
        ppm(estimate.drift_ppm),
        ppm(low),
        ppm(high),
        ppm(least),
        ppm(greatest)
    );
    show!("monotonic   {} (CLOCK_MONOTONIC)\n", signed(estimate.monotonic_offset_ns));
    show!(
        "round trip  least {}, median {}\n",
        unsigned(estimate.least_round_trip_ns),
        unsigned(estimate.median_round_trip_ns)
    );
    show!("exchanges   {} of {} answered, {} used\n", counts.answered, counts.sent, counts.used);
    show!("holds for   {holds_s:.3} s, from {} to {}\n", unix(estimate.from_unix_ns), unix(estimate.to_unix_ns));
    if let Some(out) = out {
        show!("written to  {}\n", out.display());
    }
}

/// Tells on a terminal how far a measurement is.
struct Watch {
    terminal: bool,
    told: Duration,
    seconds: u64,
}

impl Watch {
    fn new(host: &str, seconds: u64) -> Watch {
        let terminal = std::io::stderr().is_terminal();
        if !terminal && seconds > 2 {
            say!("airpath: comparing the clocks of this host and {host} for {seconds} s");
        }
        Watch { terminal, told: Duration::ZERO, seconds }
    }

    fn tell(&mut self, progress: Progress) {
        if self.terminal && progress.elapsed >= self.told + Duration::from_millis(500) {
            self.told = progress.elapsed;
            let mut out = std::io::stderr().lock();
            let _ = write!(
                out,
                "\r{} of {} s, {} of {} exchanges answered\x1b[K",
                progress.elapsed.as_secs(),
                self.seconds,
                progress.answered,
                progress.sent
            );
            let _ = out.flush();
        }
    }

    fn end(&self) {
        if self.terminal && self.told > Duration::ZERO {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
