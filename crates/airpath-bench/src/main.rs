// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Measures what the emulator costs and how exact it is, on this machine, now.
//!
//! Tables go to stdout, the same figures as JSON to a folder. Everything happens in namespaces that
//! end with the process.

mod apart;
mod busy;
mod carrier;
mod host;
mod pass;
mod report;
mod sockets;
mod statistics;
mod tables;
mod testbed;
mod traffic;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use host::Host;
use report::Table;
use tables::Options;
use testbed::Failure;

/// Measure what the emulator costs and how exact it is.
#[derive(Parser)]
#[command(name = "airpath-bench")]
struct Arguments {
    /// Measure only these tables (separated by commas): delay, departures, lateness, disturbances, stream,
    /// rates, small-packets, processor, many-links, start-up, goodput, frames, driver, models, cells, bearers, codes, warp.
    #[arg(long, value_delimiter = ',', value_name = "TABLE")]
    only: Vec<String>,
    /// Measure for a quarter of the time: a first look, not a result.
    #[arg(long)]
    quick: bool,
    /// The folder for the JSON.
    #[arg(long, default_value = "bench-results", value_name = "FOLDER")]
    out: PathBuf,
    /// Be what disturbs the others, in this folder, until killed.
    #[arg(long, hide = true, num_args = 2, value_names = ["LOAD", "FOLDER"])]
    disturb: Option<Vec<String>>,
    /// Be the sender of UDP for another process: address, length with headers in bytes, packets a second, seconds.
    #[arg(long, hide = true, num_args = 4, value_names = ["ADDRESS:PORT", "BYTES", "RATE", "SECONDS"])]
    send: Option<Vec<String>>,
    /// Be the receiver: port, file for the times of packets.
    #[arg(long, hide = true, num_args = 2, value_names = ["PORT", "FILE"])]
    receive: Option<Vec<String>>,
}

/// Contents of the JSON.
#[derive(Serialize)]
struct Results<'a> {
    format: u32,
    version: &'static str,
    began_unix_s: u64,
    quick: bool,
    host: &'a Host,
    busy_percent_at_end: f64,
    tables: &'a [Table],
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airpath-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some([load, folder]) = arguments.disturb.as_deref() {
        return tables::disturbances::disturb(load, folder.as_ref());
    }
    if let Some([target, ip_bytes, packets_per_second, seconds]) = arguments.send.as_deref() {
        let pace = traffic::Pace {
            ip_bytes: ip_bytes.parse()?,
            packets_per_second: packets_per_second.parse()?,
            seconds: seconds.parse()?,
        };
        return apart::send(target.parse()?, pace);
    }
    if let Some([port, file]) = arguments.receive.as_deref() {
        return apart::receive(port.parse()?, file.as_ref(), || {
            println!("ready");
            std::io::stdout().flush()
        });
    }
    let known: Vec<&str> = tables::ALL.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = arguments.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no table `{unknown}`; there are {}", known.join(", ")).into());
    }
    let privilege = airpath_live::privilege::acquire(false)?;
    let began_unix_s = airpath_live::clock::realtime_ns() / 1_000_000_000;
    let host = Host::look();
    println!("airpath-bench {}: {}", env!("CARGO_PKG_VERSION"), host.line());
    println!("rights: {}; receive stamps: the kernel's (SO_TIMESTAMPNS)\n", privilege.label());
    let options = Options { quick: arguments.quick };
    let mut done = Vec::new();
    for (name, measure) in tables::ALL {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            let table = measure(&options).map_err(|error| format!("{name}: {error}"))?;
            println!("{}", table.text());
            done.push(table);
        }
    }
    let busy_percent_at_end = host::busy_share() * 100.0;
    println!("others used {busy_percent_at_end:.0} % of all processors at the end");
    std::fs::create_dir_all(&arguments.out)?;
    let results = Results {
        format: 1,
        version: env!("CARGO_PKG_VERSION"),
        began_unix_s,
        quick: arguments.quick,
        host: &host,
        busy_percent_at_end,
        tables: &done,
    };
    let file = arguments.out.join(format!("bench-{began_unix_s}.json"));
    std::fs::write(&file, serde_json::to_string_pretty(&results)? + "\n")?;
    println!("written: {}", file.display());
    Ok(())
}
