// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets put together field by field, with checksums added up word by word: nothing shared with the
//! code under test.

use proptest::prelude::*;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const UDP_LITE: u8 = 136;

/// An IPv6 extension header.
#[derive(Clone, Debug)]
pub enum Extension {
    /// Hop-by-hop (0), routing (43) or destination options (60), with so many words of 8 bytes beyond
    /// the first.
    Options(u8, u8),
    /// The fragment at an offset in bytes, and whether more follow.
    Fragment(u16, bool),
}

/// The layer above IP.
#[derive(Clone, Debug)]
pub enum Upper {
    /// TCP, with so many words of options.
    Tcp(u8),
    Udp,
    UdpLite,
    /// An echo request of either version.
    Echo,
    /// A protocol without a transport header that is known.
    Other(u8),
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    pub version: u8,
    pub traffic_class: u8,
    /// Words of IPv4 options.
    pub options: u8,
    /// Offset in bytes and whether more fragments follow, of IPv4.
    pub fragment: (u16, bool),
    /// Of IPv6.
    pub extensions: Vec<Extension>,
    pub upper: Upper,
    pub ports: (u16, u16),
    pub payload: usize,
}

impl Default for Packet {
    fn default() -> Packet {
        Packet {
            version: 4,
            traffic_class: 0xb8,
            options: 0,
            fragment: (0, false),
            extensions: Vec::new(),
            upper: Upper::Udp,
            ports: (4000, 5001),
            payload: 100,
        }
    }
}

impl Packet {
    pub fn protocol(&self) -> u8 {
        match self.upper {
            Upper::Tcp(_) => TCP,
            Upper::Udp => UDP,
            Upper::UdpLite => UDP_LITE,
            Upper::Echo if self.version == 4 => 1,
            Upper::Echo => 58,
            Upper::Other(number) => number,
        }
    }

    /// Length of the transport header, and where its checksum lies in it.
    pub fn transport(&self) -> Option<(usize, usize)> {
        match self.upper {
            Upper::Tcp(words) => Some((20 + usize::from(words) * 4, 16)),
            Upper::Udp | Upper::UdpLite => Some((8, 6)),
            Upper::Echo => Some((8, 2)),
            Upper::Other(_) => None,
        }
    }

    pub fn ip_bytes(&self) -> usize {
        if self.version == 4 {
            return 20 + usize::from(self.options) * 4;
        }
        let length = |extension: &Extension| match extension {
            Extension::Options(_, words) => 8 + usize::from(*words) * 8,
            Extension::Fragment(..) => 8,
        };
        40 + self.extensions.iter().map(length).sum::<usize>()
    }

    /// The place as a fragment: offset in bytes and whether more follow.
    pub fn place(&self) -> Option<(u16, bool)> {
        let place = match self.version {
            4 => self.fragment,
            _ => self.extensions.iter().rev().find_map(|extension| match extension {
                Extension::Fragment(offset, more) => Some((*offset, *more)),
                Extension::Options(..) => None,
            })?,
        };
        (place != (0, false)).then_some(place)
    }

    /// The packet as bytes, with the checksums that it has as a whole packet.
    pub fn bytes(&self) -> Vec<u8> {
        let (source, destination) = self.ports;
        let mut upper: Vec<u8> = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        match self.upper {
            Upper::Tcp(words) => {
                upper.extend([0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, (5 + words) << 4, 0x18, 1, 2, 0, 0, 0, 0]);
                upper.extend(vec![1; usize::from(words) * 4]);
            }
            Upper::Udp => {
                upper.extend(((8 + self.payload) as u16).to_be_bytes());
                upper.extend([0, 0]);
            }
            // All of it is covered.
            Upper::UdpLite => upper.extend([0, 0, 0, 0]),
            Upper::Echo => upper = vec![if self.version == 4 { 8 } else { 128 }, 0, 0, 0, 0, 1, 0, 2],
            Upper::Other(_) => {}
        }
        upper.extend((0..self.payload).map(|index| (index * 7 + index / 256) as u8));
        let addresses: Vec<u8> = match self.version {
            4 => vec![10, 0, 0, 1, 10, 0, 0, 2],
            _ => (1..=2).flat_map(|last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]).collect(),
        };
        if let Some((_, at)) = self.transport() {
            let length = (upper.len() as u32).to_be_bytes();
            let pseudo = [&addresses[..], &length, &[0, 0, 0, self.protocol()]].concat();
            // ICMP of IPv4 has no pseudo header.
            let covered = if self.protocol() == 1 { upper.clone() } else { [pseudo, upper.clone()].concat() };
            upper[at..at + 2].copy_from_slice(&(!naive_sum(&covered)).to_be_bytes());
        }
        let mut packet = self.ip(upper.len(), &addresses);
        packet.extend(upper);
        packet
    }

    fn ip(&self, upper_bytes: usize, addresses: &[u8]) -> Vec<u8> {
        let mut ip = Vec::new();
        let total = self.ip_bytes() + upper_bytes;
        if self.version == 4 {
            ip.extend([0x45 + self.options, self.traffic_class]);
            ip.extend((total as u16).to_be_bytes());
            let (offset, more) = self.fragment;
            let place = (offset / 8) | if more { 0x2000 } else { 0 };
            ip.extend([0, 7]);
            ip.extend(place.to_be_bytes());
            ip.extend([64, self.protocol(), 0, 0]);
            ip.extend(addresses);
            ip.extend(vec![1; usize::from(self.options) * 4]);
            let checksum = !naive_sum(&ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            return ip;
        }
        ip.extend([0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
        ip.extend(((total - 40) as u16).to_be_bytes());
        let number = |extension: &Extension| match extension {
            Extension::Options(number, _) => *number,
            Extension::Fragment(..) => 44,
        };
        let mut next = self.extensions.iter().map(number).chain([self.protocol()]);
        ip.extend([next.next().unwrap(), 64]);
        ip.extend(addresses);
        for (extension, next) in self.extensions.iter().zip(next) {
            match extension {
                Extension::Options(_, words) => {
                    ip.extend([next, *words, 1, 4, 0, 0, 0, 0]);
                    ip.extend(vec![0; usize::from(*words) * 8]);
                }
                Extension::Fragment(offset, more) => {
                    ip.extend([next, 0]);
                    ip.extend((offset | u16::from(*more)).to_be_bytes());
                    ip.extend([0, 0, 0, 1]);
                }
            }
        }
        ip
    }
}

/// The folded sum, carries put back at once.
pub fn naive_sum(bytes: &[u8]) -> u16 {
    let mut total: u32 = 0;
    for pair in bytes.chunks(2) {
        total += u32::from(pair[0]) * 256 + u32::from(pair.get(1).copied().unwrap_or(0));
        if total > 65_535 {
            total -= 65_535;
        }
    }
    total as u16
}

fn upper() -> impl Strategy<Value = Upper> {
    prop_oneof![
        (0u8..=10).prop_map(Upper::Tcp),
        Just(Upper::Udp),
        Just(Upper::UdpLite),
        Just(Upper::Echo),
        prop::sample::select(vec![2u8, 50, 59, 89, 132, 253]).prop_map(Upper::Other),
    ]
}

fn place() -> impl Strategy<Value = (u16, bool)> {
    prop_oneof![3 => Just((0, false)), 1 => Just((0, true)), 1 => (1u16..8000, any::<bool>()).prop_map(|(at, more)| (at * 8, more))]
}

fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    let options =
        || (prop::sample::select(vec![0u8, 43, 60]), 0u8..4).prop_map(|(kind, words)| Extension::Options(kind, words));
    // At most one fragment header, as packets have; what follows that of a later fragment is payload.
    (prop::collection::vec(options(), 0..3), prop::option::of(place()), prop::collection::vec(options(), 0..2))
        .prop_map(|(mut all, fragment, behind)| {
            all.extend(fragment.map(|(offset, more)| Extension::Fragment(offset, more)));
            if fragment.is_none_or(|(offset, _)| offset == 0) {
                all.extend(behind);
            }
            all
        })
}

/// Any packet that a program or kernel could send.
pub fn packets() -> impl Strategy<Value = Packet> {
    let fields = (any::<bool>(), any::<u8>(), 0u8..=10, place(), extensions());
    (fields, upper(), any::<(u16, u16)>(), 0usize..300).prop_map(
        |((six, class, options, fragment, extensions), upper, ports, payload)| Packet {
            version: if six { 6 } else { 4 },
            traffic_class: class,
            options,
            fragment,
            extensions,
            upper,
            ports,
            payload,
        },
    )
}
