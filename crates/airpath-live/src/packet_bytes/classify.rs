// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that a kernel sends of its own accord, and that would use up link
//! time and random draws: they are discarded before the machine, and counted.

use airpath_packet::Headers;
use airpath_packet::protocol::{ICMPV6, IGMP};

/// Kinds of such packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Noise {
    /// Neighbour solicitation and advertisement, redirect.
    NeighbourDiscovery,
    /// Router solicitation and advertisement.
    RouterDiscovery,
    /// Multicast listener reports and queries, IGMP.
    MulticastMembership,
}

/// Returns the kind of noise that a packet is; none for all other packets.
pub fn noise(packet: &[u8]) -> Option<Noise> {
    let headers = Headers::read(packet)?;
    match (headers.version, headers.protocol) {
        (4, IGMP) => Some(Noise::MulticastMembership),
        (6, ICMPV6) if !headers.is_later_fragment() => match packet.get(headers.ip_bytes)? {
            130..=132 | 143 => Some(Noise::MulticastMembership),
            133 | 134 => Some(Noise::RouterDiscovery),
            135..=137 => Some(Noise::NeighbourDiscovery),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_bytes::segment::tests::tcp_packet;

    /// An ICMPv6 message behind a hop-by-hop header if asked for.
    fn icmpv6(kind: u8, hop_by_hop: bool) -> Vec<u8> {
        let mut packet = tcp_packet(6, 0, 0);
        packet.truncate(40);
        packet[6] = if hop_by_hop { 0 } else { ICMPV6 };
        if hop_by_hop {
            packet.extend([ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
        }
        packet.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        packet
    }

    #[test]
    fn chatter_is_noise_and_pings_are_not() {
        assert_eq!(noise(&icmpv6(143, true)), Some(Noise::MulticastMembership));
        assert_eq!(noise(&icmpv6(133, false)), Some(Noise::RouterDiscovery));
        assert_eq!(noise(&icmpv6(135, false)), Some(Noise::NeighbourDiscovery));
        for kind in [1, 2, 3, 128, 129] {
            assert_eq!(noise(&icmpv6(kind, false)), None);
        }
        assert_eq!(noise(&tcp_packet(4, 0, 10)), None);
        let mut igmp = tcp_packet(4, 0, 10);
        igmp[9] = IGMP;
        assert_eq!(noise(&igmp), Some(Noise::MulticastMembership));
        assert_eq!(noise(&[]), None);
    }
}
