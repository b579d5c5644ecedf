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

Exit status: 0 if everything arrived or, of datagrams, was counted; 1 if the transfer failed; 2 if the\noptions are wrong.";

/// What makes no sense with requests. An option that requires another is taken without it where that
/// other conflicts with a third: every option of requests must conflict by itself.
const NOT_REQUESTS: [&str; 5] = ["bytes", "time", "reverse", "udp", "udp_lite"];

pub const RECV_EXAMPLES: &str = "\
Examples:
  airpath recv
  airpath recv --once --port 6000
  airpath recv --listen ::
  airpath exec --rate '1 Mbit/s' --server 'airpath recv --once' -- airpath send server --bytes '1 MB'

The client decides what is sent, in which direction, and over which protocol.";

/// `airpath send`.
#[derive(Args, Debug, Clone)]
pub struct SendArgs {
    /// Where `airpath recv` listens: a name or an address.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Its port.
    #[arg(long, short, value_name = "N", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// How much to send: bytes, or with a unit (kB, MB, GB).
    #[arg(long, short = 'n', value_name = "BYTES", value_parser = bytes, conflicts_with = "time", help_heading = "The load")]
    pub bytes: Option<u64>,
    /// How long to send [default without --bytes: 10 s].
    #[arg(long, short, value_name = "TIME", help_heading = "The load")]
    pub time: Option<Span>,
    /// The server sends.
    #[arg(long, short = 'R', help_heading = "The load")]
    pub reverse: bool,
    /// So many streams at the same time.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128), help_heading = "The load")]
    pub parallel: u32,
    /// Requests of so many bytes over TCP, each after the response to the one before.
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "response", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub request: Option<u64>,
    /// Responses of so many bytes.
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "request", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub response: Option<u64>,
    /// How many requests.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST_REQUESTS), requires = "request", conflicts_with_all = NOT_REQUESTS, help_heading = "Requests")]
    pub count: u64,
    /// Datagrams over UDP instead of bytes over TCP.
    #[arg(long, short, help_heading = "Datagrams")]
    pub udp: bool,
    /// Datagrams over UDP-Lite.
    #[arg(long, conflicts_with = "udp", help_heading = "Datagrams")]
    pub udp_lite: bool,
    /// Rate of the datagrams' payload [default: 1 Mbit/s].
    #[arg(long, short = 'b', value_name = "RATE", help_heading = "Datagrams")]
    pub rate: Option<Rate>,
    /// Payload of each datagram in bytes [default: 1200].
    #[arg(long, short, value_name = "BYTES", value_parser = bytes, help_heading = "Datagrams")]
    pub length: Option<u64>,
    /// Send at random times (a Poisson process) of that rate instead of at equal distances.
    #[arg(long, help_heading = "Datagrams")]
    pub poisson: bool,
    /// The seed of --poisson; chosen and reported if not given.
    #[arg(long, value_name = "N", requires = "poisson", help_heading = "Datagrams")]
    pub seed: Option<u64>,
    /// Bytes that the checksum of UDP-Lite covers, its header of 8 included; 0 for all.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 0,
        requires = "udp_lite",
        conflicts_with = "udp",
        help_heading = "Datagrams"
    )]
    pub coverage: u16,
    /// The congestion control of the sending end.
    #[arg(long, short = 'C', value_name = "NAME", help_heading = "TCP")]
    pub cc: Option<String>,
    /// The largest segment in bytes.
    #[arg(long, short = 'M', value_name = "BYTES", help_heading = "TCP")]
    pub mss: Option<u32>,
    /// Send small segments at once (TCP_NODELAY), at both ends.
    #[arg(long, short = 'N', help_heading = "TCP")]
    pub nodelay: bool,
    /// Report so often; 0 s for the end only.
    #[arg(long, short, value_name = "TIME", default_value = "1 s", help_heading = "The report")]
    pub interval: Span,
    /// Print one JSON document at the end, with the keys of iperf3.
    #[arg(long, short = 'J', help_heading = "The report")]
    pub json: bool,
}

/// `airpath recv`.
#[derive(Args, Debug, Clone)]
pub struct RecvArgs {
    /// The port to listen at.
    #[arg(long, short, value_name = "N", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The address to listen at, `::` for every one [default: 127.0.0.1, and every one behind a link of Airpath].
    #[arg(long, short = 'B', value_name = "ADDRESS", alias = "bind")]
    pub listen: Option<IpAddr>,
    /// End after one client.
    #[arg(long, short = '1')]
    pub once: bool,
    /// Needs no saying: what the client sends decides.
    #[arg(long, short, hide = true)]
    pub udp: bool,
    /// Report so often in --json; 0 s for the end only.
    #[arg(long, short, value_name = "TIME", default_value = "1 s")]
    pub interval: Span,
    /// Print a JSON document to standard output for every stream, with the keys of iperf3.
    #[arg(long, short = 'J')]
    pub json: bool,
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
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
