// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A serial line in place of an end's interface: whoever speaks PPP on it is that end.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use airpath_core::Span;
use airpath_ppp::{Configuration, Method};

use super::secrets::AuthenticationOptions;
use crate::addressing::{End, Link};
use crate::error::{LiveError, Result};
use crate::namespaces::HostNames;
use crate::ports::{Baud, LineSpec, Listener, PppPort, line_news};

/// A line and how PPP runs on it.
#[derive(Debug, Clone)]
pub struct LineOptions {
    /// End of the link that the peer is.
    pub end: End,
    /// The line.
    pub line: LineSpec,
    /// Options of PPP.
    pub ppp: PppOptions,
}

/// Address of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerAddress {
    /// The one that the end has in every run.
    #[default]
    OfTheLink,
    /// This one.
    Fixed(Ipv4Addr),
    /// Whichever the peer says.
    Any,
}

/// Options of PPP on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PppOptions {
    /// Speed of the line; none leaves it as it is.
    pub baud: Option<Baud>,
    /// Longest packet that we take, in bytes; none: the MTU of the run.
    pub mru_bytes: Option<u16>,
    /// Characters below 0x20 that the line does not pass, or inserts.
    pub character_map: u32,
    /// Address of the link's other end for the peer; none: the one that it has in every run.
    pub address: Option<Ipv4Addr>,
    /// Address of the peer.
    pub peer: PeerAddress,
    /// Name servers that the peer is told, two at most.
    pub name_servers: Vec<Ipv4Addr>,
    /// IPv6 is offered.
    pub ipv6: bool,
    /// Frames have a sequence of 32 bits where the peer can do that.
    pub long_sequences: bool,
    /// Names and passwords of the two ends.
    pub authentication: AuthenticationOptions,
    /// Time between two LCP Echo-Requests; zero for none.
    pub echo_interval: Span,
    /// Maximum time until packets pass.
    pub timeout: Span,
}

impl Default for PppOptions {
    fn default() -> Self {
        Self {
            baud: None,
            mru_bytes: None,
            character_map: 0,
            address: None,
            peer: PeerAddress::OfTheLink,
            name_servers: Vec::new(),
            ipv6: true,
            long_sequences: false,
            authentication: AuthenticationOptions::default(),
            echo_interval: Span::from_secs(10),
            timeout: Span::from_secs(60),
        }
    }
}

/// The keys of the options, with the form of their values.
const KEYS: &str = "baud=115200, mru=1500, accm=0x000a0000, address=10.1.2.3, peer=10.1.2.4 or peer=any, dns=10.1.2.5, \
                    ipv6=off, echo=10 s or echo=off, timeout=60 s, fcs=32, secrets=FILE, user=NAME, auth=chap or auth=pap";

impl FromStr for PppOptions {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut options = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("`{part}` has no value; options are {KEYS}"))?;
            options.set(key.trim(), value.trim())?;
        }
        options.authentication.check()?;
        Ok(options)
    }
}

impl PppOptions {
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        let address = || {
            let address: std::result::Result<Ipv4Addr, _> = value.parse();
            address.map_err(|_| format!("`{key}={value}`: write an IPv4 address, such as {key}=10.1.2.3"))
        };
        let time = || value.parse::<Span>().map_err(|error| format!("`{key}={value}`: {error}"));
        match key {
            "baud" => self.baud = Some(value.parse()?),
            "mru" => {
                let bytes = value.parse().ok().filter(|bytes| *bytes >= 128);
                self.mru_bytes =
                    Some(bytes.ok_or_else(|| format!("`mru={value}`: write a number of bytes from 128 to 65535"))?);
            }
            "accm" => {
                let digits = value.trim_start_matches("0x");
                self.character_map = u32::from_str_radix(digits, 16).map_err(|_| {
                    format!("`accm={value}`: write the map as 8 hexadecimal digits, as pppd's asyncmap")
                })?;
            }
            "address" => self.address = Some(address()?),
            "peer" if value == "any" => self.peer = PeerAddress::Any,
            "peer" => self.peer = PeerAddress::Fixed(address()?),
            "dns" if self.name_servers.len() == 2 => return Err("a peer is told two name servers at most".into()),
            "dns" => self.name_servers.push(address()?),
            "ipv6" if value == "on" => self.ipv6 = true,
            "ipv6" if value == "off" => self.ipv6 = false,
            "ipv6" => return Err(format!("`ipv6={value}`: write ipv6=on or ipv6=off")),
            "echo" if value == "off" => self.echo_interval = Span::ZERO,
            "echo" => self.echo_interval = time()?,
            "timeout" => self.timeout = time()?,
            "fcs" if matches!(value, "16" | "32") => self.long_sequences = value == "32",
            "fcs" => return Err(format!("`fcs={value}`: a frame check sequence has 16 or 32 bits")),
            "secrets" => self.authentication.secrets = Some(value.into()),
            "user" => self.authentication.user = Some(value.to_owned()),
            "auth" => {
                self.authentication.demanded = Some(match value {
                    "chap" => Method::Chap,
                    "pap" => Method::Pap,
                    _ => return Err(format!("`auth={value}`: write auth=chap or auth=pap")),
                });
            }
            _ => return Err(format!("there is no option `{key}`; options are {KEYS}")),
        }
        Ok(())
    }
}

/// The line of a session.
#[derive(Debug)]
pub struct SessionLine {
    /// End of the link that the peer is.
    pub end: End,
    /// Path at which a peer finds the line.
    pub name: String,
    /// News of the line.
    pub listener: Listener,
}

impl LineOptions {
    /// Opens the line for `link`, whose packets have `mtu_bytes` at most; `magic_number` differs from run to run.
    pub(super) fn open(&self, link: Link, mtu_bytes: u32, magic_number: u32) -> Result<(PppPort, SessionLine)> {
        let ppp = &self.ppp;
        let mru_bytes = ppp.mru_bytes.unwrap_or_else(|| u16::try_from(mtu_bytes.max(128)).unwrap_or(u16::MAX));
        if u32::from(mru_bytes) < mtu_bytes {
            return Err(LiveError::Request(format!(
                "the MRU of PPP is {mru_bytes} bytes and the MTU of the link {mtu_bytes}: the peer could not send what \
                 the link carries; add --mtu {mru_bytes}, or leave mru= out"
            )));
        }
        // The number is the host's part of the address: the peer needs the prefix alone to have the whole.
        let identifier = |end: End| u128::from(link.ipv6(end)) as u64;
        let configuration = Configuration {
            address: Some(ppp.address.unwrap_or_else(|| link.ipv4(self.end.other()))),
            peer_address: self.peer_address(link),
            name_servers: ppp.name_servers.clone(),
            ipv6: ppp.ipv6,
            interface_identifiers: Some((identifier(self.end.other()), identifier(self.end))),
            mru_bytes,
            character_map: ppp.character_map,
            magic_number,
            long_sequences: ppp.long_sequences,
            authentication: ppp.authentication.read()?,
            echo_interval_ns: ppp.echo_interval.nanos(),
            ..Configuration::default()
        };
        let (teller, listener) = line_news()?;
        let port = PppPort::open(&self.line, ppp.baud, configuration, teller)?;
        let name = port.name().to_owned();
        Ok((port, SessionLine { end: self.end, name, listener }))
    }

    fn peer_address(&self, link: Link) -> Option<Ipv4Addr> {
        match self.ppp.peer {
            PeerAddress::OfTheLink => Some(link.ipv4(self.end)),
            PeerAddress::Fixed(address) => Some(address),
            PeerAddress::Any => None,
        }
    }

    /// Names the peer by the address that it is given. PPP gives it none of IPv6, so that names lead to IPv4 alone.
    pub(super) fn rename(&self, names: &mut HostNames, link: Link) {
        let of_peer = IpAddr::V4(link.ipv4(self.end));
        names.entries.retain(|(address, _)| address.is_ipv4());
        for (address, _) in names.entries.iter_mut().filter(|(address, _)| *address == of_peer) {
            *address = self.peer_address(link).map_or(of_peer, IpAddr::V4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let text = "baud=9600, mru=576, accm=0x000a0000, address=10.1.2.3, peer=any, dns=10.0.0.5, ipv6=off, echo=off, \
                    timeout=5 min";
        let options: PppOptions = text.parse().unwrap();
        assert_eq!(options.baud, Some("9600".parse().unwrap()));
        assert_eq!((options.mru_bytes, options.character_map), (Some(576), 0x000a_0000));
        assert_eq!((options.peer, options.ipv6), (PeerAddress::Any, false));
        assert_eq!((options.echo_interval, options.timeout), (Span::ZERO, Span::from_secs(300)));
        assert_eq!("".parse::<PppOptions>().unwrap(), PppOptions::default());
        for (wrong, named) in [
            ("mtu=500", "no option `mtu`"),
            ("mru=100", "128"),
            ("mru", "no value"),
            ("accm=zz", "asyncmap"),
            ("peer=ten", "IPv4 address"),
            ("baud=12345", "12345"),
            ("ipv6=maybe", "ipv6=off"),
            ("fcs=8", "16 or 32 bits"),
            ("auth=md5,secrets=x", "auth=chap"),
            ("auth=chap", "secrets=FILE"),
            ("user=me", "secrets=FILE"),
            ("secrets=x", "user=NAME"),
            ("dns=1.1.1.1,dns=1.1.1.2,dns=1.1.1.3", "two name servers"),
        ] {
            let error = wrong.parse::<PppOptions>().unwrap_err();
            assert!(error.contains(named), "{wrong}: {error}");
        }
    }
}
