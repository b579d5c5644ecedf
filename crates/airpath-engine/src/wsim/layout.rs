// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The packet around an ADU, and the damage for which a receiver drops it.
//!
//! Source: Singh 2000, Figure 3 and section 5.1, steps (b), (e) and (f). UDP-Lite's coverage counts from the
//! beginning of the UDP-Lite header (RFC 3828, section 3.1).

use clap::ValueEnum;

/// The least checksum coverage in bytes: the UDP-Lite header (RFC 3828, section 3.1).
pub const LEAST_COVERAGE_BYTES: u32 = UDP_BYTES as u32;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// The frame check sequence of PPP (RFC 1662).
const FCS_BYTES: usize = 2;
/// The longest IP packet in bytes.
const LONGEST_IP_BYTES: usize = u16::MAX as usize;

/// Part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// PPP framing.
    Ppp,
    /// The IPv4 header.
    Ip,
    /// The header of UDP or UDP-Lite.
    Udp,
    /// The RTP header.
    Rtp,
    /// The ADU.
    Payload,
}

/// Sizes of the headers around an ADU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Headers {
    /// Those of Singh 2000, Figure 3: PPP 7, IP 20, UDP 8, RTP 7 bytes, all before the ADU
    Thesis,
    /// Those of the RFCs: PPP 5 (opening flag, address, control, protocol), IP 20, UDP 8, RTP 12 bytes, and behind the
    /// ADU PPP 3 (frame check sequence, closing flag); no escapes
    Real,
}

impl Headers {
    fn ppp_before_bytes(self) -> usize {
        match self {
            Headers::Thesis => 7,
            Headers::Real => 5,
        }
    }

    fn rtp_bytes(self) -> usize {
        match self {
            Headers::Thesis => 7,
            Headers::Real => 12,
        }
    }

    fn behind_bytes(self) -> usize {
        match self {
            Headers::Thesis => 0,
            Headers::Real => FCS_BYTES + 1,
        }
    }

    /// Bytes before the ADU.
    pub fn before_bytes(self) -> usize {
        self.ppp_before_bytes() + IP_BYTES + UDP_BYTES + self.rtp_bytes()
    }

    /// All bytes that are not the ADU's.
    pub fn bytes(self) -> usize {
        self.before_bytes() + self.behind_bytes()
    }

    /// Length of the UDP datagram of an ADU of `adu_bytes`.
    pub fn datagram_bytes(self, adu_bytes: usize) -> usize {
        UDP_BYTES + self.rtp_bytes() + adu_bytes
    }

    /// The longest ADU that fits into an IP packet.
    pub fn longest_adu_bytes(self) -> usize {
        LONGEST_IP_BYTES - IP_BYTES - UDP_BYTES - self.rtp_bytes()
    }

    /// The header in which byte number `position` before the ADU lies.
    fn region(self, position: usize) -> Region {
        let ends = [(Region::Ppp, self.ppp_before_bytes()), (Region::Ip, IP_BYTES), (Region::Udp, UDP_BYTES)];
        let mut end = 0;
        for (region, bytes) in ends {
            end += bytes;
            if position < end {
                return region;
            }
        }
        Region::Rtp
    }
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// UDP over PPP: any damage drops the packet
    Udp,
    /// UDP-Lite over PPP Lite: damage in the headers or within the coverage drops the packet
    UdpLite,
}

/// A receiver, by the checks that it makes.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// The headers of its packets.
    pub headers: Headers,
    /// Its protocol.
    pub protocol: Protocol,
    /// With UDP-Lite: bytes that the checksum covers, counted from the beginning of the UDP-Lite header; 0 is the
    /// whole datagram; none is the headers alone. A datagram that is shorter is covered whole.
    pub coverage_bytes: Option<u32>,
}

impl Receiver {
    /// The region for which a packet is dropped whose byte number `position` is damaged; none if that drops nothing.
    pub fn drops(&self, position: usize, adu_bytes: usize) -> Option<Region> {
        let before = self.headers.before_bytes();
        if position < before {
            return Some(self.headers.region(position));
        }
        match (position.checked_sub(before + adu_bytes), self.protocol) {
            (None, Protocol::Udp) => Some(Region::Payload),
            (None, Protocol::UdpLite) => self.covers(position).then_some(Region::Payload),
            (Some(_), Protocol::Udp) => Some(Region::Ppp),
            // PPP Lite does not look at the frame check sequence; without a closing flag there is no frame.
            (Some(behind), Protocol::UdpLite) => (behind >= FCS_BYTES).then_some(Region::Ppp),
        }
    }

    fn covers(&self, position: usize) -> bool {
        let datagram = self.headers.ppp_before_bytes() + IP_BYTES;
        match self.coverage_bytes {
            None => false,
            Some(0) => true,
            Some(bytes) => position < datagram + bytes as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(headers: Headers, protocol: Protocol, coverage_bytes: Option<u32>) -> Receiver {
        Receiver { headers, protocol, coverage_bytes }
    }

    /// The first byte of each run of equal answers, over a packet with an ADU of 10 bytes.
    fn runs(receiver: &Receiver) -> Vec<(usize, Option<Region>)> {
        let packet = receiver.headers.bytes() + 10;
        let all: Vec<_> = (0..packet).map(|position| (position, receiver.drops(position, 10))).collect();
        all.iter().filter(|(position, what)| *position == 0 || all[position - 1].1 != *what).copied().collect()
    }

    #[test]
    fn headers_of_the_thesis_are_42_bytes_and_real_ones_48() {
        assert_eq!((Headers::Thesis.bytes(), Headers::Thesis.before_bytes()), (42, 42));
        assert_eq!((Headers::Real.bytes(), Headers::Real.before_bytes()), (48, 45));
        assert_eq!((Headers::Thesis.longest_adu_bytes(), Headers::Real.longest_adu_bytes()), (65_500, 65_495));
    }

    #[test]
    fn udp_drops_for_any_byte_and_udp_lite_for_headers() {
        use Region::{Ip, Payload, Ppp, Rtp, Udp};
        let head = [(0, Some(Ppp)), (7, Some(Ip)), (27, Some(Udp)), (35, Some(Rtp))];
        let with = |more: &[(usize, Option<Region>)]| [&head[..], more].concat();
        let thesis = |protocol, coverage| runs(&receiver(Headers::Thesis, protocol, coverage));
        assert_eq!(thesis(Protocol::Udp, None), with(&[(42, Some(Payload))]));
        assert_eq!(thesis(Protocol::UdpLite, None), with(&[(42, None)]));
        assert_eq!(thesis(Protocol::UdpLite, Some(0)), with(&[(42, Some(Payload))]));
        // 8 of UDP-Lite, 7 of RTP, 4 of the ADU.
        assert_eq!(thesis(Protocol::UdpLite, Some(19)), with(&[(42, Some(Payload)), (46, None)]));
        // A coverage that ends in the headers changes nothing: the thesis drops for all of them.
        assert_eq!(thesis(Protocol::UdpLite, Some(8)), thesis(Protocol::UdpLite, None));
        assert_eq!(thesis(Protocol::UdpLite, Some(900)), thesis(Protocol::UdpLite, Some(0)));
    }

    #[test]
    fn real_ppp_has_bytes_behind_the_adu() {
        use Region::{Ip, Payload, Ppp, Rtp, Udp};
        let head = [(0, Some(Ppp)), (5, Some(Ip)), (25, Some(Udp)), (33, Some(Rtp))];
        let real = |protocol| runs(&receiver(Headers::Real, protocol, None));
        assert_eq!(real(Protocol::Udp), [&head[..], &[(45, Some(Payload)), (55, Some(Ppp))]].concat());
        // The frame check sequence at 55 and 56, the closing flag at 57.
        assert_eq!(real(Protocol::UdpLite), [&head[..], &[(45, None), (57, Some(Ppp))]].concat());
    }
}
