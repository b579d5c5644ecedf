// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Words of the language: protocols, constants, qualifiers.

use crate::expression::primitive::SCTP;
use crate::protocol::{ICMP, ICMPV6, IGMP, TCP, UDP, UDP_LITE};
use crate::protocols::by_contents;

/// Protocols above IP.
pub(super) const NUMBERS: [(&str, u8); 7] = [
    ("tcp", TCP),
    ("udp", UDP),
    ("icmp", ICMP),
    ("icmp6", ICMPV6),
    ("igmp", IGMP),
    ("sctp", SCTP),
    ("udplite", UDP_LITE),
];

/// Named offsets and values, after pcap-filter(7).
pub(super) const CONSTANTS: [(&str, u32); 29] = [
    ("tcpflags", 13),
    ("tcp-fin", 1),
    ("tcp-syn", 2),
    ("tcp-rst", 4),
    ("tcp-push", 8),
    ("tcp-ack", 16),
    ("tcp-urg", 32),
    ("tcp-ece", 64),
    ("tcp-cwr", 128),
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
];

const OTHERS: [&str; 19] = [
    "ip",
    "ip6",
    "host",
    "net",
    "mask",
    "port",
    "portrange",
    "src",
    "dst",
    "proto",
    "less",
    "greater",
    "len",
    "and",
    "or",
    "not",
    "sni",
    "ssrc",
    "payload-type",
];

pub(super) fn protocol(word: &str) -> Option<u8> {
    NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
}

/// Version of IP to which a protocol belongs, if it is one alone.
pub(super) fn version_of(protocol: u8) -> Option<u8> {
    match protocol {
        ICMP | IGMP => Some(4),
        ICMPV6 => Some(6),
        _ => None,
    }
}

pub(super) fn all() -> impl Iterator<Item = &'static str> {
    let recognised = by_contents().map(|protocol| protocol.name);
    NUMBERS.iter().map(|(name, _)| *name).chain(recognised).chain(OTHERS)
}
