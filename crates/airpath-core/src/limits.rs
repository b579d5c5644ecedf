// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limits of IP that every crate keeps.

/// The smallest MTU of an end: every IPv4 host forwards packets of this length whole (RFC 791).
pub const LEAST_MTU_BYTES: u32 = 68;
/// The longest IP packet, and therefore the largest MTU of an end.
pub const LONGEST_PACKET_BYTES: u32 = 65_535;
