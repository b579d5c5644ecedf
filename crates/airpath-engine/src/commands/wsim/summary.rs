// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The summary of a simulation, as text and as JSON.

use std::fmt::Write;

use airpath_log::show::{bit_rate, bytes, count};
use serde::Serialize;

use super::files::is_standard;
use super::settings::name;
use crate::cli::wsim::WsimArgs;
use crate::terminal::{say, show};
use crate::wsim::{BLOCK_NS, Protocol, Receiver, STANDARD_BLOCK_DATA_BYTES, Statistics};

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    protocol: String,
    /// From the beginning of the UDP-Lite header; absent where only headers are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_bytes: Option<u32>,
    headers: String,
    header_bytes: usize,
    adu_size_bytes: u32,
    units: String,
    trace_unit: String,
    block_data_bytes: u32,
    errors_within: String,
    dropped: String,
    seed: u64,
    loss: Option<f64>,
    block_error_rate: Option<f64>,
    #[serde(flatten)]
    statistics: &'a Statistics,
    air_time_ns: u64,
    standard_air_time_ns: u64,
}

/// Prints it; to standard error where standard output carries the output.
pub fn print(args: &WsimArgs, receiver: &Receiver, seed: u64, statistics: &Statistics) {
    let text = if args.json { json(args, receiver, seed, statistics) } else { text(args, seed, statistics) };
    match is_standard(&args.out) || args.positions.as_deref().is_some_and(is_standard) {
        true => say!("{text}"),
        false => show!("{text}\n"),
    }
}

fn json(args: &WsimArgs, receiver: &Receiver, seed: u64, statistics: &Statistics) -> String {
    let document = Document {
        protocol: name(args.protocol),
        coverage_bytes: args.coverage,
        headers: name(args.headers),
        header_bytes: receiver.headers.bytes(),
        adu_size_bytes: args.adu_size,
        units: name(args.units),
        trace_unit: name(args.trace_unit),
        block_data_bytes: args.block_data,
        errors_within: args.errors_within.to_string(),
        dropped: name(args.dropped),
        seed,
        loss: statistics.loss(),
        block_error_rate: statistics.block_error_rate(),
        statistics,
        air_time_ns: statistics.blocks * BLOCK_NS,
        standard_air_time_ns: statistics.standard_blocks * BLOCK_NS,
    };
    serde_json::to_string(&document).expect("numbers and words are JSON")
}

fn text(args: &WsimArgs, seed: u64, statistics: &Statistics) -> String {
    let (Some(loss), Some(block_error_rate)) = (statistics.loss(), statistics.block_error_rate()) else {
        return format!("loss       none: the input is empty\nseed       {seed}");
    };
    let mut text = format!(
        "loss       {:.4} %: {} of {} packets dropped\n",
        loss * 100.0,
        count(statistics.dropped_packets),
        count(statistics.packets)
    );
    if statistics.dropped_packets > 0 {
        let by = &statistics.dropped_by;
        let payload = if args.protocol == Protocol::Udp { "payload" } else { "payload within coverage" };
        let _ = writeln!(
            text,
            "dropped    hit first in PPP {}, IP {}, UDP {}, RTP {}, {payload} {}",
            count(by.ppp),
            count(by.ip),
            count(by.udp),
            count(by.rtp),
            count(by.payload)
        );
    }
    let delivered = match statistics.damaged_adus {
        0 => format!("{} ADUs, all whole", count(statistics.whole_adus)),
        damaged => format!(
            "{} ADUs whole, {} damaged, with {} damaged bytes",
            count(statistics.whole_adus),
            count(damaged),
            count(statistics.damaged_bytes)
        ),
    };
    let _ = writeln!(
        text,
        "delivered  {delivered}; {} of {} written",
        bytes(statistics.output_bytes),
        bytes(statistics.input_bytes)
    );
    let _ = writeln!(
        text,
        "blocks     {}, {} with errors: block error rate {:.4} %",
        count(statistics.blocks),
        count(statistics.damaged_blocks),
        block_error_rate * 100.0
    );
    let _ = writeln!(
        text,
        "air time   {} with {} bytes in 20 ms ({}); {} with the standard's {} ({})",
        air_time(statistics.blocks),
        args.block_data,
        rate(args.block_data),
        air_time(statistics.standard_blocks),
        STANDARD_BLOCK_DATA_BYTES,
        rate(STANDARD_BLOCK_DATA_BYTES)
    );
    let _ = write!(text, "seed       {seed}");
    text
}

/// Time of so many blocks on the air.
fn air_time(blocks: u64) -> String {
    format!("{:.2} s", (blocks * BLOCK_NS) as f64 / 1e9)
}

/// The rate of blocks of so many bytes.
fn rate(data_bytes: u32) -> String {
    bit_rate(f64::from(data_bytes) * 8e9 / BLOCK_NS as f64)
}
