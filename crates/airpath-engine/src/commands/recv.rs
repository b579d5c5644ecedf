// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath recv`: waits for `airpath send` and `airpath record`, and does what they ask for.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_clocks::simulated::Error as SimulatedError;
use airpath_core::Span;
use airpath_load::server::Server;
use airpath_load::sockets::plain;

use crate::cli::RecvArgs;
use crate::commands::exec::nested;
use crate::error::Result;
use crate::load::{failure, json, on_interrupt, text};
use crate::terminal::{say, show};

/// The address at which a server listens that nobody told: behind a link of Airpath every one there is,
/// as its client comes over the link; elsewhere one that no other host reaches.
///
/// # Errors
/// When the environment tells a bad depth.
pub fn only_this_host() -> Result<Option<IpAddr>> {
    Ok((!nested()?).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// Serves until it is ended, or one client with `--once`; the exit status is then 1 if that failed.
///
/// # Errors
/// When the port cannot be had.
pub fn run(args: &RecvArgs) -> Result<i32> {
    let address = match args.listen {
        Some(address) => Some(address),
        None => only_this_host()?,
    };
    let server = Server::bind(address, args.port).map_err(|error| failure(&error))?;
    let server = Arc::new(server.with_recordings(Box::new(|connection: &TcpStream, version: u64| {
        airpath_record::server::serve(connection, version, SimulatedError::default())?;
        if let Ok(client) = connection.peer_addr() {
            say!("{}: the path was recorded", plain(client));
        }
        Ok(())
    })));
    if args.listen.is_none() && address.is_some() {
        say!(
            "airpath: listening on 127.0.0.1 only; to accept other hosts, use --listen ADDRESS, or `--listen ::` for \
             all addresses"
        );
    }
    let watched = Arc::clone(&server);
    // Who ends a server that waits knows what it does; a transfer that is cut off is worth a word.
    on_interrupt(move || match watched.under_way() {
        0 => None,
        streams => Some(format!(
            "{streams} stream{} had not come to the end\n  \
             Let the client end first; behind a link, --server-grace gives the server longer.",
            if streams == 1 { "" } else { "s" }
        )),
    })?;
    let interval = (args.json && args.interval != Span::ZERO).then(|| Duration::from_nanos(args.interval.nanos()));
    let any_failed = AtomicBool::new(false);
    let ended = |outcome: airpath_load::Result<airpath_load::Report>| match outcome {
        Ok(report) if args.json => show!("{:#}\n", json::document(&report, None)),
        // Standard output is the client's when both run behind one link.
        Ok(report) => {
            let client =
                report.streams.first().map_or_else(String::new, |stream| format!("{}: ", stream.endpoints.remote));
            text::end(&report).iter().for_each(|line| say!("{client}{line}"));
        }
        Err(error) => {
            any_failed.store(true, Ordering::Relaxed);
            say!("airpath: {error}");
        }
    };
    server.serve(args.once, interval, &ended).map_err(|error| failure(&error))?;
    Ok(i32::from(any_failed.load(Ordering::Relaxed)))
}
