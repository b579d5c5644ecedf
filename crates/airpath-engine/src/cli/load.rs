// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath send` and `airpath recv`. Those that iperf3 has as well have its short names.

use std::net::IpAddr;

use airpath_core::length::BYTES_UNITS;
use airpath_core::quantity;
use airpath_core::{Rate, Span};
use airpath_load::MOST_REQUESTS;
use airpath_load::server::DEFAULT_PORT;
use clap::Args;

pub const SEND_EXAMPLES: &str = "\
Examples:
  airpath exec --profile gprs-cs2-3+1 --server 'airpath recv --once' -- airpath send server --bytes 100000
  airpath send server --time '30 s' --reverse --cc cubic --json
  airpath send server --udp --rate '64 kbit/s' --length 160 --time '10 s'
  airpath send server --request 200 --response '10 kB' --count 50

Exit status: 0 if the transfer was complete (datagrams: if the losses were counted); 1 if it failed; 2 if\nthe options are invalid.";

/// Options that conflict with requests. An option that requires another is taken without it where that other
/// conflicts with a third: every option of requests must conflict by itself.
const NOT_REQUESTS: [&str; 5] = ["bytes", "time", "reverse", "udp", "udp_lite"];

pub const RECV_EXAMPLES: &str = "\
Examples:
  airpath recv
  airpath recv --once --port 6000
  airpath recv --listen ::
  airpath exec --rate '1 Mbit/s' --server 'airpath recv --once' -- airpath send server --bytes '1 MB'

The client chooses amount, direction and protocol.";

/// `airpath send`.
#[derive(Args, Debug, Clone)]
pub struct SendArgs {
    /// The host of `airpath recv`: a name or an address.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Port of `airpath recv`.
    #[arg(long, short, value_name = "N", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Amount to send: bytes, or with a unit (kB, MB, GB).
    #[arg(long, short = 'n', value_name = "BYTES", value_parser = bytes, conflicts_with = "time", help_heading = "Traffic")]
    pub bytes: Option<u64>,
    /// Duration of the transfer [default without --bytes: 10 s].
    #[arg(long, short, value_name = "TIME", help_heading = "Traffic")]
    pub time: Option<Span>,
    /// Reverse: the server sends, the client receives.
    #[arg(long, short = 'R', help_heading = "Traffic")]
    pub reverse: bool,
    /// Number of parallel streams.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128), help_heading = "Traffic")]
    pub parallel: u32,
    /// Request size over TCP; each request follows the response to the previous one.
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "response", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub request: Option<u64>,
    /// Response size.
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "request", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub response: Option<u64>,
    /// Number of requests.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST_REQUESTS), requires = "request", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub count: u64,
    /// Send UDP datagrams instead of a TCP stream.
    #[arg(long, short, help_heading = "Datagrams")]
    pub udp: bool,
    /// Send UDP-Lite datagrams.
    #[arg(long, conflicts_with = "udp", help_heading = "Datagrams")]
    pub udp_lite: bool,
    /// Payload rate of the datagrams [default: 1 Mbit/s].
    #[arg(long, short = 'b', value_name = "RATE", help_heading = "Datagrams")]
    pub rate: Option<Rate>,
    /// Payload of each datagram in bytes [default: 1200].
    #[arg(long, short, value_name = "BYTES", value_parser = bytes, help_heading = "Datagrams")]
    pub length: Option<u64>,
    /// Send as a Poisson process of that rate instead of at equal intervals.
    #[arg(long, help_heading = "Datagrams")]
    pub poisson: bool,
    /// Seed of --poisson [default: chosen and reported].
    #[arg(long, value_name = "N", requires = "poisson", help_heading = "Datagrams")]
    pub seed: Option<u64>,
    /// Checksum coverage of UDP-Lite in bytes, including its 8-byte header; 0 for the whole datagram.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 0,
        requires = "udp_lite",
        conflicts_with = "udp",
        help_heading = "Datagrams"
    )]
    pub coverage: u16,
    /// TCP congestion control of the sender.
    #[arg(long, short = 'C', value_name = "NAME", help_heading = "TCP")]
    pub cc: Option<String>,
    /// Maximum segment size in bytes.
    #[arg(long, short = 'M', value_name = "BYTES", help_heading = "TCP")]
    pub mss: Option<u32>,
    /// Disable Nagle's algorithm (TCP_NODELAY) at both ends.
    #[arg(long, short = 'N', help_heading = "TCP")]
    pub nodelay: bool,
    /// Report interval; 0 s for a final report only.
    #[arg(long, short, value_name = "TIME", default_value = "1 s", help_heading = "Report")]
    pub interval: Span,
    /// Print one JSON document at the end, with the keys of iperf3.
    #[arg(long, short = 'J', help_heading = "Report")]
    pub json: bool,
}

/// `airpath recv`.
#[derive(Args, Debug, Clone)]
pub struct RecvArgs {
    /// Port to listen on.
    #[arg(long, short, value_name = "N", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Address to listen on, `::` for all [default: 127.0.0.1, and all addresses behind a link of Airpath].
    #[arg(long, short = 'B', value_name = "ADDRESS", alias = "bind")]
    pub listen: Option<IpAddr>,
    /// Serve one client, then exit.
    #[arg(long, short = '1')]
    pub once: bool,
    /// Accepted and ignored: the client chooses the protocol.
    #[arg(long, short, hide = true)]
    pub udp: bool,
    /// Report interval of --json; 0 s for a final report only.
    #[arg(long, short, value_name = "TIME", default_value = "1 s")]
    pub interval: Span,
    /// Print one JSON document per stream to standard output, with the keys of iperf3.
    #[arg(long, short = 'J')]
    pub json: bool,
}

/// A number of bytes, with or without a unit.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = quantity::split(text);
    let with_unit = if unit.is_empty() { format!("{number} bytes") } else { text.to_string() };
    quantity::parse(&with_unit, "number of bytes", BYTES_UNITS, "100000 or \"100 kB\"")
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_and_without_a_unit() {
        assert_eq!(
            ["100000", "100 kB", "3MB", "7 bytes"].map(|text| bytes(text).unwrap()),
            [100_000, 100_000, 3_000_000, 7]
        );
        for bad in ["", "many", "3 M", "-1", "0.5"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
