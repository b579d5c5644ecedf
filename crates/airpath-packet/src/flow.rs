// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Flows: packets of one protocol between the same two addresses and ports, in one direction.

use std::net::{IpAddr, SocketAddr};

use airpath_core::FiveTuple;

use crate::headers::Headers;
use crate::protocol::TCP;

impl Headers {
    /// Ends and protocol of the packet, from which these headers were read. The ports of fragments
    /// are zero, of the first one too, so that all fragments of a packet are taken for the same.
    pub fn tuple(&self, packet: &[u8]) -> FiveTuple {
        let [source, destination] = self.ends(packet);
        let ports = self.transport.filter(|_| self.fragment.is_none()).map_or((0, 0), |transport| transport.ports);
        FiveTuple {
            source: FiveTuple::fold(source),
            destination: FiveTuple::fold(destination),
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

/// The flow, as in the event log, of the TCP packets from `source` to `destination`, which are of the
/// same family.
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

/// A hash of both addresses, source first, the protocol and both ports.
fn hash_of(addresses: &[u8], protocol: u8, (source, destination): (u16, u16)) -> u64 {
    let mut hash = Fnv::new();
    hash.write(addresses);
    hash.write(&[protocol]);
    hash.write(&source.to_be_bytes());
    hash.write(&destination.to_be_bytes());
    hash.finish()
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

    /// The headers of a TCP or UDP packet from 10.0.0.1:4000 to 10.0.0.2:5001.
    fn packet(protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        packet
    }

    fn hash(packet: &[u8]) -> u64 {
        Headers::read(packet).unwrap().flow_hash(packet)
    }

    #[test]
    fn flows_are_told_apart() {
        let one = packet(TCP, [4000, 5001]);
        let mut longer = one.clone();
        longer.extend([7; 99]);
        assert_eq!(hash(&one), hash(&longer));
        assert_ne!(hash(&one), hash(&packet(crate::protocol::UDP, [4000, 5001])));
        assert_ne!(hash(&one), hash(&packet(TCP, [4001, 5001])));
        assert_ne!(hash(&one), hash(&packet(TCP, [5001, 4000])));
        let mut elsewhere = one.clone();
        elsewhere[19] = 3;
        assert_ne!(hash(&one), hash(&elsewhere));
    }

    #[test]
    fn numbers_of_flows_do_not_change_between_releases() {
        // They are in logs. FNV-1a and the mix, computed by another program.
        assert_eq!(hash(&packet(TCP, [4000, 5001])), 0x21ee_447f_cb7c_cb74);
        assert_eq!(flow_number(0x0123_4567_89ab_cdef), 0x0123_4567 ^ 0x89ab_cdef);
    }

    #[test]
    fn the_flow_of_addresses_is_that_of_their_packets() {
        let packet4 = packet(TCP, [4000, 5001]);
        let flow = tcp_flow("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:5001".parse().unwrap());
        assert_eq!(flow, flow_number(hash(&packet4)));
        let mut packet6 = vec![0x60, 0, 0, 0, 0, 20, TCP, 64];
        packet6.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet6.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet6.extend(&packet4[20..]);
        let flow = tcp_flow("[fd00::1]:4000".parse().unwrap(), "[fd00::2]:5001".parse().unwrap());
        assert_eq!(flow, flow_number(hash(&packet6)));
    }
}
