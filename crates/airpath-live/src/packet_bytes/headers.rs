//! Where the headers of a packet are and what they say.

use std::net::{IpAddr, SocketAddr};

use airpath_core::FiveTuple;

/// The transport header that a packet begins with, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportHeader {
    /// Source and destination port; zero where there are none (ICMP).
    pub ports: (u16, u16),
    /// Length of the header, in bytes.
    pub bytes: usize,
    /// Where the checksum lies, counted from the beginning of the header.
    pub checksum_offset: usize,
}

/// The headers of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// 4 or 6.
    pub version: u8,
    /// Length of the IP header with options or extension headers, in bytes.
    pub ip_bytes: usize,
    /// Protocol number of what follows the IP header and its extensions.
    pub protocol: u8,
    /// Length of the whole packet as the IP header states it, in bytes.
    pub stated_bytes: usize,
    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The packet is a fragment.
    pub fragment: bool,
    /// The packet is a fragment other than the first: no transport header.
    pub later_fragment: bool,
    /// The transport header, if it is there, whole and of a known kind.
    pub transport: Option<TransportHeader>,
}

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ICMPV4: u8 = 1;
const ICMPV6: u8 = 58;
const DESTINATION_OPTIONS: u8 = 60;
const UDP_LITE: u8 = 136;
const IPV6_BYTES: usize = 40;

impl Headers {
    /// Reads the headers; `None` when the packet is no IP packet or is shorter
    /// than its IP header.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_ipv4(packet),
            6 => Self::read_ipv6(packet),
            _ => None,
        }
    }

    fn read_ipv4(packet: &[u8]) -> Option<Self> {
        let ip_bytes = usize::from(packet[0] & 0xf) * 4;
        if ip_bytes < 20 || packet.len() < ip_bytes {
            return None;
        }
        let protocol = packet[9];
        let later_fragment = word(packet, 6)? & 0x1fff != 0;
        Some(Self {
            version: 4,
            ip_bytes,
            protocol,
            stated_bytes: usize::from(word(packet, 2)?),
            traffic_class: packet[1],
            fragment: word(packet, 6)? & 0x3fff != 0,
            later_fragment,
            transport: if later_fragment { None } else { transport(protocol, &packet[ip_bytes..]) },
        })
    }

    fn read_ipv6(packet: &[u8]) -> Option<Self> {
        if packet.len() < IPV6_BYTES {
            return None;
        }
        let mut protocol = packet[6];
        let mut ip_bytes = IPV6_BYTES;
        let (mut fragment, mut later_fragment) = (false, false);
        loop {
            let extension = packet.get(ip_bytes..).unwrap_or_default();
            let length = match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS if extension.len() >= 2 => 8 + usize::from(extension[1]) * 8,
                FRAGMENT if extension.len() >= 8 => {
                    // A whole packet may bear the header, too (RFC 6946).
                    fragment |= word(extension, 2)? & 0xfff9 != 0;
                    later_fragment |= word(extension, 2)? & 0xfff8 != 0;
                    8
                }
                _ => break,
            };
            if extension.len() < length {
                break;
            }
            protocol = extension[0];
            ip_bytes += length;
            if later_fragment {
                break;
            }
        }
        Some(Self {
            version: 6,
            ip_bytes,
            protocol,
            stated_bytes: IPV6_BYTES + usize::from(word(packet, 4)?),
            traffic_class: packet[0] << 4 | packet[1] >> 4,
            fragment,
            later_fragment,
            transport: if later_fragment { None } else { transport(protocol, &packet[ip_bytes..]) },
        })
    }

    /// IP and transport headers together, in bytes: what a corruption that
    /// spares headers must spare.
    pub fn bytes(&self) -> usize {
        self.ip_bytes + self.transport.map_or(0, |transport| transport.bytes)
    }

    /// The DSCP, 0 to 63.
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Both addresses, source first: 8 or 32 bytes of `packet`, from which
    /// these headers were read.
    pub fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        match self.version {
            4 => &packet[12..20],
            _ => &packet[8..40],
        }
    }

    /// Between whom the packet travels. The ports of fragments are zero, of the
    /// first one too, so that all fragments of a packet are taken for the same.
    pub fn tuple(&self, packet: &[u8]) -> FiveTuple {
        let addresses = self.addresses(packet);
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let ports = self.transport.filter(|_| !self.fragment).map_or((0, 0), |transport| transport.ports);
        FiveTuple {
            source: folded(source),
            destination: folded(destination),
            source_port: ports.0,
            destination_port: ports.1,
            protocol: self.protocol,
        }
    }

    /// A hash of addresses, protocol and ports: equal for packets of one flow
    /// in one direction, on every machine and in every run. Fragments of one
    /// flow share a hash among them (without ports), not with its whole
    /// packets.
    pub fn flow_hash(&self, packet: &[u8]) -> u64 {
        let ports = self.transport.map_or((0, 0), |transport| transport.ports);
        hash_of(self.addresses(packet), self.protocol, ports)
    }
}

/// The flow, as in the event log, of the TCP packets from `source` to
/// `destination`, which are of the same family.
pub fn tcp_flow(source: SocketAddr, destination: SocketAddr) -> u32 {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let addresses = [bytes(source.ip()), bytes(destination.ip())].concat();
    flow_number(hash_of(&addresses, TCP, (source.port(), destination.port())))
}

/// The number of a flow in the event log, of its hash.
pub fn flow_number(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

/// Of both addresses, source first.
fn hash_of(addresses: &[u8], protocol: u8, (source, destination): (u16, u16)) -> u64 {
    let mut hash = Fnv::new();
    hash.write(addresses);
    hash.write(&[protocol]);
    hash.write(&source.to_be_bytes());
    hash.write(&destination.to_be_bytes());
    hash.finish()
}

/// An address of 4 or 16 bytes.
fn folded(address: &[u8]) -> u32 {
    match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
        (Ok(address), _) => FiveTuple::fold(address.into()),
        (_, Ok(address)) => FiveTuple::fold(address.into()),
        _ => 0,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn transport(protocol: u8, bytes: &[u8]) -> Option<TransportHeader> {
    let (ports, length, checksum_offset) = match protocol {
        TCP if bytes.len() >= 20 => {
            let length = usize::from(bytes[12] >> 4) * 4;
            if length < 20 || bytes.len() < length {
                return None;
            }
            ((word(bytes, 0)?, word(bytes, 2)?), length, 16)
        }
        UDP | UDP_LITE if bytes.len() >= 8 => ((word(bytes, 0)?, word(bytes, 2)?), 8, 6),
        ICMPV4 | ICMPV6 if bytes.len() >= 8 => ((0, 0), 8, 2),
        _ => return None,
    };
    Some(TransportHeader { ports, bytes: length, checksum_offset })
}

/// FNV-1a with a final mix, which spreads the low bits.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_bytes::segment::tests::{tcp_packet, udp_packet};
    use proptest::prelude::*;

    #[test]
    fn lengths_ports_and_classes_are_found() {
        for version in [4, 6] {
            let mut packet = tcp_packet(version, 12, 100);
            let headers = Headers::read(&packet).unwrap();
            let ip_bytes = if version == 4 { 20 } else { 40 };
            assert_eq!(headers.version, version);
            assert_eq!(headers.ip_bytes, ip_bytes);
            assert_eq!(headers.bytes(), ip_bytes + 32);
            assert_eq!(headers.stated_bytes, packet.len());
            assert_eq!(headers.transport.unwrap().ports, (4000, 5001));
            packet.truncate(ip_bytes + 31);
            assert_eq!(Headers::read(&packet).unwrap().transport, None);
            packet.truncate(ip_bytes - 1);
            assert_eq!(Headers::read(&packet), None);
        }
    }

    #[test]
    fn tuples_are_what_the_headers_say() {
        for (version, addresses) in [(4, ["10.0.0.1", "10.0.0.2"]), (6, ["fd00::1", "fd00::2"])] {
            let [source, destination] = addresses.map(|address| address.parse::<std::net::IpAddr>().unwrap());
            let tuple = |mut packet: Vec<u8>, change: &dyn Fn(&mut Vec<u8>)| {
                match (source, destination) {
                    (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) => {
                        packet[12..16].copy_from_slice(&source.octets());
                        packet[16..20].copy_from_slice(&destination.octets());
                    }
                    (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) => {
                        packet[8..24].copy_from_slice(&source.octets());
                        packet[24..40].copy_from_slice(&destination.octets());
                    }
                    _ => unreachable!(),
                }
                change(&mut packet);
                Headers::read(&packet).unwrap().tuple(&packet)
            };
            let expected = FiveTuple {
                source: FiveTuple::fold(source),
                destination: FiveTuple::fold(destination),
                source_port: 4000,
                destination_port: 5001,
                protocol: 6,
            };
            let plain: &dyn Fn(&mut Vec<u8>) = &|_| {};
            assert_eq!(tuple(tcp_packet(version, 12, 100), plain), expected);
            assert_eq!(tuple(udp_packet(version, 100), plain).protocol, 17);
            // An unknown protocol has addresses and a number; fragments have no ports, not even the first.
            let unknown = FiveTuple { source_port: 0, destination_port: 0, protocol: 253, ..expected };
            let at = if version == 4 { 9 } else { 6 };
            assert_eq!(tuple(tcp_packet(version, 0, 100), &|packet| packet[at] = 253), unknown);
            for first in [true, false] {
                let fragment = |packet: &mut Vec<u8>| {
                    let word: u16 = if first { 1 } else { 64 };
                    if version == 4 {
                        packet[6..8].copy_from_slice(&(if first { 0x2000u16 } else { 8 }).to_be_bytes());
                    } else {
                        packet[6] = FRAGMENT;
                        packet.splice(40..40, [6, 0, (word >> 8) as u8, word as u8, 0, 0, 0, 1]);
                    }
                };
                let expected = FiveTuple { source_port: 0, destination_port: 0, ..expected };
                assert_eq!(tuple(tcp_packet(version, 0, 100), &fragment), expected, "{version} {first}");
            }
        }
    }

    #[test]
    fn flows_are_told_apart() {
        let hash = |packet: &[u8]| Headers::read(packet).unwrap().flow_hash(packet);
        let one = tcp_packet(4, 0, 10);
        assert_eq!(hash(&one), hash(&tcp_packet(4, 12, 999)));
        assert_ne!(hash(&one), hash(&udp_packet(4, 10)));
        assert_ne!(hash(&one), hash(&tcp_packet(6, 0, 10)));
        let mut other = one.clone();
        other[21] ^= 1;
        assert_ne!(hash(&one), hash(&other));
    }

    #[test]
    fn the_flow_of_addresses_is_that_of_their_packets() {
        for version in [4, 6] {
            let packet = tcp_packet(version, 0, 10);
            let headers = Headers::read(&packet).unwrap();
            let ports = headers.transport.unwrap().ports;
            let (source, destination) = headers.addresses(&packet).split_at(headers.addresses(&packet).len() / 2);
            let address = |bytes: &[u8]| match version {
                4 => IpAddr::from(<[u8; 4]>::try_from(bytes).unwrap()),
                _ => IpAddr::from(<[u8; 16]>::try_from(bytes).unwrap()),
            };
            let flow = tcp_flow((address(source), ports.0).into(), (address(destination), ports.1).into());
            assert_eq!(flow, flow_number(headers.flow_hash(&packet)));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(packet in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(headers) = Headers::read(&packet) {
                prop_assert!(headers.bytes() <= packet.len());
                headers.flow_hash(&packet);
            }
        }
    }
}
