//! IP packets within frames of several kinds of links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpath_core::{Ecn, FiveTuple};

/// An IP packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Captured {
    /// When, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length.
    pub len: u32,
    /// The bytes of its network and transport headers, as far as they are known.
    pub header_len: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub class: u8,
    pub ecn: Ecn,
    /// Between whom it travels; fragments have no ports.
    pub tuple: FiveTuple,
    /// What was captured of it, from the IP header on.
    pub bytes: Vec<u8>,
}

/// What a capture holds of each packet: the registry of link types of libpcap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Raw,
    Ethernet,
    LinuxCooked,
    LinuxCooked2,
    /// Four bytes of a protocol family, in the byte order of whoever captured.
    Loopback,
}

impl LinkType {
    pub(super) fn new(number: u32) -> Result<LinkType, String> {
        match number {
            12 | 14 | 101 | 228 | 229 => Ok(LinkType::Raw),
            1 => Ok(LinkType::Ethernet),
            113 => Ok(LinkType::LinuxCooked),
            276 => Ok(LinkType::LinuxCooked2),
            0 | 108 => Ok(LinkType::Loopback),
            other => Err(format!(
                "its packets are of link type {other}; raw IP (101), Ethernet (1), Linux cooked (113, 276) and \
                 loopback (0) can be read"
            )),
        }
    }

    /// The length of the header before the IP packet; none for a frame of something else.
    fn header_bytes(self, frame: &[u8]) -> Option<usize> {
        const IPV4: u16 = 0x0800;
        const IPV6: u16 = 0x86dd;
        const VLAN: [u16; 2] = [0x8100, 0x88a8];
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let is_ip = |kind: u16| kind == IPV4 || kind == IPV6;
        match self {
            LinkType::Raw => Some(0),
            LinkType::Loopback => Some(4),
            LinkType::LinuxCooked => is_ip(word(14)?).then_some(16),
            LinkType::LinuxCooked2 => is_ip(word(0)?).then_some(20),
            LinkType::Ethernet => {
                let mut at = 12;
                while VLAN.contains(&word(at)?) {
                    at += 4;
                }
                is_ip(word(at)?).then_some(at + 2)
            }
        }
    }
}

impl Captured {
    /// The IP packet in `frame`; none where there is none.
    pub(super) fn read(unix_ns: u64, link_type: LinkType, frame: &[u8]) -> Option<Captured> {
        let bytes = frame.get(link_type.header_bytes(frame)?..)?;
        let (len, ip_bytes, protocol, traffic_class, source, destination): (u32, usize, u8, u8, IpAddr, IpAddr);
        let fragment: bool;
        match bytes.first()? >> 4 {
            4 => {
                let header = bytes.first_chunk::<20>()?;
                len = u32::from(u16::from_be_bytes([header[2], header[3]]));
                ip_bytes = usize::from(header[0] & 0xf) * 4;
                (protocol, traffic_class) = (header[9], header[1]);
                fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
                (source, destination) = (address(12).into(), address(16).into());
            }
            6 => {
                let header = bytes.first_chunk::<40>()?;
                len = u32::from(u16::from_be_bytes([header[4], header[5]])) + 40;
                ip_bytes = 40;
                (protocol, traffic_class) = (header[6], header[0] << 4 | header[1] >> 4);
                // Behind an extension header no ports are looked for.
                fragment = false;
                let address =
                    |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).unwrap_or_default());
                (source, destination) = (address(8).into(), address(24).into());
            }
            _ => return None,
        }
        if (len as usize) < ip_bytes {
            return None;
        }
        // Short Ethernet frames are padded behind the packet.
        let bytes = &bytes[..bytes.len().min(len as usize)];
        let transport = bytes.get(ip_bytes..).unwrap_or_default();
        let header_len = ip_bytes + transport_bytes(protocol, transport);
        let ports = if fragment { (0, 0) } else { ports(protocol, transport) };
        let tuple = FiveTuple {
            source: FiveTuple::fold(source),
            destination: FiveTuple::fold(destination),
            source_port: ports.0,
            destination_port: ports.1,
            protocol,
        };
        Some(Captured {
            unix_ns,
            len,
            header_len: header_len.min(len as usize) as u16,
            source,
            destination,
            class: traffic_class >> 2,
            ecn: Ecn::of(traffic_class),
            tuple,
            bytes: bytes.to_vec(),
        })
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_LITE: u8 = 136;

/// The source and the destination port; 0 where there are none.
fn ports(protocol: u8, transport: &[u8]) -> (u16, u16) {
    match (protocol, transport) {
        (TCP | UDP | UDP_LITE, [a, b, c, d, ..]) => (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
        _ => (0, 0),
    }
}

fn transport_bytes(protocol: u8, transport: &[u8]) -> usize {
    match protocol {
        TCP => transport.get(12).map_or(20, |offset| usize::from(offset >> 4) * 4),
        UDP | UDP_LITE => 8,
        _ => 0,
    }
}
