// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol numbers of IANA's registry, as in the IPv4 protocol and the IPv6 next header field.

/// Hop-by-hop options, an extension header of IPv6 (RFC 8200).
pub const HOP_BY_HOP: u8 = 0;
/// Internet Control Message Protocol (RFC 792).
pub const ICMP: u8 = 1;
/// Internet Group Management Protocol (RFC 3376).
pub const IGMP: u8 = 2;
/// Transmission Control Protocol (RFC 9293).
pub const TCP: u8 = 6;
/// User Datagram Protocol (RFC 768).
pub const UDP: u8 = 17;
/// Routing header, an extension header of IPv6 (RFC 8200).
pub const ROUTING: u8 = 43;
/// Generic Routing Encapsulation (RFC 2784).
pub const GRE: u8 = 47;
/// Fragment header, an extension header of IPv6 (RFC 8200).
pub const FRAGMENT: u8 = 44;
/// Internet Control Message Protocol for IPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// Destination options, an extension header of IPv6 (RFC 8200).
pub const DESTINATION_OPTIONS: u8 = 60;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;
