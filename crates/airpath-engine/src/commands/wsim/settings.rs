// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options that must fit together.

use clap::ValueEnum;

use crate::cli::wsim::WsimArgs;
use crate::error::{Failure, Result};
use crate::wsim::{LEAST_COVERAGE_BYTES, Protocol, Receiver, TraceUnit, Within};

/// The receiver that the options mean.
///
/// # Errors
/// When the ADU is too long, or the coverage is none.
pub fn receiver(args: &WsimArgs) -> Result<Receiver> {
    let headers = args.headers;
    let adu = args.adu_size as usize;
    if adu > headers.longest_adu_bytes() {
        return Err(Failure::usage(format!(
            "--adu-size {adu} is too long: an IP packet of 65535 bytes holds an ADU of {} at most",
            headers.longest_adu_bytes()
        )));
    }
    if args.trace_unit == TraceUnit::Byte && args.errors_within != Within::All {
        return Err(Failure::usage(
            "--errors-within is about blocks; a trace of bytes (--trace-unit byte) says itself which are damaged",
        ));
    }
    let longest = headers.datagram_bytes(adu);
    match args.coverage {
        Some(_) if args.protocol == Protocol::Udp => {
            return Err(Failure::usage("--coverage belongs to --protocol udp-lite; UDP's checksum covers everything"));
        }
        Some(bytes @ 1..LEAST_COVERAGE_BYTES) => {
            return Err(Failure::usage(format!(
                "--coverage {bytes} ends within the UDP-Lite header; write {LEAST_COVERAGE_BYTES} to {longest}, or 0 \
                 for the whole datagram"
            )));
        }
        Some(bytes) if bytes as usize > longest => {
            return Err(Failure::usage(format!(
                "--coverage {bytes} is longer than the datagram, {longest} bytes with an ADU of {adu}; write \
                 {LEAST_COVERAGE_BYTES} to {longest}, or 0 for the whole datagram"
            )));
        }
        _ => {}
    }
    Ok(Receiver { headers, protocol: args.protocol, coverage_bytes: args.coverage })
}

/// The word of the command line for a choice.
pub fn name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The message for a trace of `units` elements where `needed` are.
pub fn too_short(args: &WsimArgs, needed: u64, units: u64) -> String {
    let what = name(args.trace_unit);
    let trace = args.trace.as_ref().map_or_else(|| "the trace".into(), |path| path.display().to_string());
    let from = match args.offset {
        0 => String::new(),
        offset => format!(", {} of them from --offset {offset} on", units.saturating_sub(offset)),
    };
    format!(
        "the trace is too short: the input needs {needed} {what}s, {trace} has {units}{from}; use a longer trace, or \
         --repeat"
    )
}
