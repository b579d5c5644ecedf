// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP segments in IPv4 packets, by their fields.

use airpath_core::{Ecn, HeaderBytes, Pdu};

pub const URG: u8 = 0x20;
pub const ACK: u8 = 0x10;
pub const PSH: u8 = 0x08;

/// A segment whose data are octets of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub tos: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub ttl: u8,
    pub ip_options: Vec<u8>,
    pub addresses: [u32; 2],
    pub ports: [u16; 2],
    pub sequence: u32,
    pub acknowledgement: u32,
    /// Reserved bits, of which the lowest four are those of the data offset's octet.
    pub reserved: u8,
    pub flags: u8,
    pub window: u16,
    pub urgent: u16,
    pub options: Vec<u8>,
    pub data: u16,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment {
            tos: 0,
            identification: 1,
            dont_fragment: true,
            ttl: 64,
            ip_options: Vec::new(),
            addresses: [0x0a00_0001, 0x0a00_0002],
            ports: [40_000, 23],
            sequence: 1_000,
            acknowledgement: 2_000,
            reserved: 0,
            flags: ACK,
            window: 8_192,
            urgent: 0,
            options: Vec::new(),
            data: 0,
        }
    }
}

/// The Internet checksum, word by word.
pub fn sum(octets: &[u8]) -> u16 {
    let mut total = 0u32;
    for pair in octets.chunks(2) {
        total += u32::from(pair[0]) * 256 + u32::from(*pair.get(1).unwrap_or(&0));
        total = total % 65_536 + total / 65_536;
    }
    !(total as u16)
}

impl Segment {
    /// Octets of the headers.
    pub fn header_len(&self) -> u16 {
        (40 + self.ip_options.len() + self.options.len()) as u16
    }

    /// Its headers, with both checksums.
    pub fn header(&self) -> Vec<u8> {
        let length = self.header_len() + self.data;
        let ip_len = 20 + self.ip_options.len();
        let mut ip = vec![0x40 | (ip_len / 4) as u8, self.tos];
        ip.extend(length.to_be_bytes());
        ip.extend(self.identification.to_be_bytes());
        ip.extend(if self.dont_fragment { [0x40, 0] } else { [0, 0] });
        ip.extend([self.ttl, 6, 0, 0]);
        ip.extend(self.addresses.iter().flat_map(|address| address.to_be_bytes()));
        ip.extend(&self.ip_options);
        let checksum = sum(&ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let tcp_len = 20 + self.options.len();
        let mut tcp: Vec<u8> = self.ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        tcp.extend([(tcp_len / 4 * 16) as u8 | self.reserved, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(&self.options);
        let checksum = tcp_sum(&ip, &tcp, length);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        [ip, tcp].concat()
    }

    /// Its packet as a driver offers it.
    pub fn pdu(&self, id: u64) -> Pdu {
        let header = self.header();
        let header_len = self.header_len();
        Pdu {
            id,
            len: u32::from(header_len + self.data),
            header_len,
            ecn: Ecn::of(self.tos),
            headers: HeaderBytes::of(&header, header_len),
            ..Pdu::default()
        }
    }
}

/// The TCP checksum of `tcp`, whose data are octets of 0, behind `ip` in a packet of `length`.
fn tcp_sum(ip: &[u8], tcp: &[u8], length: u16) -> u16 {
    let mut covered = ip[12..20].to_vec();
    covered.extend([0, 6]);
    covered.extend((length - ip.len() as u16).to_be_bytes());
    covered.extend(tcp);
    sum(&covered)
}

/// True if the TCP checksum of a header fits to data of octets of 0.
pub fn is_good(header: &[u8]) -> bool {
    let ip_len = usize::from(header[0] % 16) * 4;
    let length = u16::from_be_bytes([header[2], header[3]]);
    tcp_sum(&header[..ip_len], &header[ip_len..], length) == 0
}
