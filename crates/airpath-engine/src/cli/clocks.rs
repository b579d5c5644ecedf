// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath timing sync` and `airpath timing correct`.

use std::net::IpAddr;
use std::path::PathBuf;

use airpath_clocks::DEFAULT_PORT;
use airpath_clocks::simulated::Error;
use airpath_core::Span;
use clap::Args;

/// The examples of `airpath timing sync`.
pub const SYNC_EXAMPLES: &str = "\
Examples:
  airpath timing sync --serve                                  # on one host
  airpath timing sync other.example --seconds 60 --out clocks.json   # on the other, while it records
  airpath timing sync --status                                 # state of this host's own clock

The offset is the other host's clock minus this one's. Its error bound holds for any split of the delay
between the two directions.

Exit status: 0 on success; 1 if there were no answers, or too few; 2 if the options are invalid.";

/// The examples of `airpath timing correct`.
pub const CORRECT_EXAMPLES: &str = "\
Examples:
  airpath timing correct results/run --by clocks.json --out results/run-corrected
  airpath timing correct eth0.pcap --by clocks.json --recorded-at remote --out corrected

The original is not modified. Timestamps outside the period of the estimate need --extrapolate.";

/// `airpath timing sync`.
#[derive(Args, Debug)]
pub struct SyncArgs {
    /// The serving host: a name or an address, with a port if it is not 5210 ([::1]:5211).
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["serve", "status"])]
    pub host: Option<HostPort>,
    /// Serve measuring hosts until Ctrl-C.
    #[arg(long, conflicts_with_all = ["host", "status"])]
    pub serve: bool,
    /// Address to listen on: ADDRESS, ADDRESS:PORT, or :PORT for all addresses [default: 127.0.0.1, and all addresses
    /// behind a link of Airpath; port 5210].
    #[arg(long, value_name = "ADDRESS:PORT", requires = "serve")]
    pub listen: Option<Listen>,
    /// Print the state of this host's own clock.
    #[arg(long, conflicts_with = "host")]
    pub status: bool,
    /// Duration of the measurement in seconds.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with_all = ["serve", "status"])]
    pub seconds: u64,
    /// Interval between exchanges: 1 ms to 1 s.
    #[arg(long, value_name = "TIME", default_value = "50 ms", conflicts_with_all = ["serve", "status"])]
    pub interval: Span,
    /// Write the estimate to this file, for `airpath timing correct`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["serve", "status"])]
    pub out: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long, conflicts_with = "serve")]
    pub json: bool,
    /// Simulated error of this host's clock, OFFSET_NS,DRIFT_PPM[,STEP_NS,STEP_AFTER_NS], for tests.
    #[arg(long, value_name = "ERROR", hide = true, allow_hyphen_values = true, default_value = "0,0")]
    pub simulated_error: Error,
}

/// `airpath timing correct`.
#[derive(Args, Debug)]
pub struct CorrectArgs {
    /// The directory of a run, or a capture (pcapng or pcap).
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The estimate, as `airpath timing sync --out` wrote it.
    #[arg(long, value_name = "FILE")]
    pub by: PathBuf,
    /// The directory of the corrected copy: new, or empty.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The host that recorded it: local (the measuring host) or remote (the serving host) [default: as in run.json,
    /// otherwise local].
    #[arg(long, value_name = "HOST")]
    pub recorded_at: Option<RecordedAt>,
    /// Also correct timestamps outside the period of the estimate.
    #[arg(long)]
    pub extrapolate: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A host of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RecordedAt {
    /// The measuring host.
    Local,
    /// The serving host.
    Remote,
}

/// A host, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl std::str::FromStr for HostPort {
    type Err = String;
    fn from_str(text: &str) -> Result<HostPort, String> {
        let (host, port) = divide(text)?;
        if host.is_empty() {
            return Err("no host is given; write HOST or HOST:PORT".into());
        }
        Ok(HostPort { host: host.to_owned(), port: port.unwrap_or(DEFAULT_PORT) })
    }
}

/// An address to listen at, or all, and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; none for all.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

impl std::str::FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Listen, String> {
        let (host, port) = divide(text)?;
        let wrong =
            |_| format!("`{host}` is not an IP address; write one of this host, such as 192.0.2.1:5210 or [::]:5210");
        let address = if host.is_empty() { None } else { Some(host.parse().map_err(wrong)?) };
        Ok(Listen { address, port: port.unwrap_or(DEFAULT_PORT) })
    }
}

/// "HOST:PORT" in its parts; addresses of IPv6 stand in brackets where a port follows.
pub(super) fn divide(text: &str) -> Result<(&str, Option<u16>), String> {
    let number = |port: &str| {
        let number = port.parse::<u16>().ok().filter(|port| *port > 0);
        number.map(Some).ok_or_else(|| format!("`{port}` is not a port; ports are 1 to 65535"))
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a bracket is not closed; write [ADDRESS]:PORT")?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, number(port)?)),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(format!("`{rest}` after the bracket is not a port; write [ADDRESS]:PORT")),
        };
    }
    match text.split_once(':') {
        // More than one colon: an address of IPv6 by itself.
        Some((_, rest)) if rest.contains(':') => Ok((text, None)),
        Some((host, port)) => Ok((host, number(port)?)),
        None => Ok((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        let parsed = |text: &str| text.parse::<HostPort>().map(|one| (one.host, one.port));
        assert_eq!(parsed("server"), Ok(("server".into(), DEFAULT_PORT)));
        assert_eq!(parsed("server:99"), Ok(("server".into(), 99)));
        assert_eq!(parsed("::1"), Ok(("::1".into(), DEFAULT_PORT)));
        assert_eq!(parsed("[::1]:99"), Ok(("::1".into(), 99)));
        for wrong in ["", ":99", "server:", "server:0", "server:65536", "[::1", "[::1]x"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        let listen = |text: &str| text.parse::<Listen>().map(|one| (one.address, one.port));
        assert_eq!(listen(":99"), Ok((None, 99)));
        assert_eq!(listen("127.0.0.1"), Ok((Some(IpAddr::from([127, 0, 0, 1])), DEFAULT_PORT)));
        assert!(listen("localhost:99").is_err());
    }
}
