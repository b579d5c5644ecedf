// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The payload of an IP packet, and its numbers.

use std::net::IpAddr;

/// The payload of an IP packet, with addresses.
pub(super) struct Transport<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    /// As much of it as was captured.
    pub bytes: &'a [u8],
    /// Its whole length on the link.
    pub length: u32,
}

impl Transport<'_> {
    /// "IP a.port > b.port", or "IP6 …".
    pub fn ends(&self, ports: Option<(u16, u16)>) -> String {
        let version = if self.from.is_ipv4() { "IP" } else { "IP6" };
        match ports {
            Some((from, to)) => format!("{version} {}.{from} > {}.{to}", self.from, self.to),
            None => format!("{version} {} > {}", self.from, self.to),
        }
    }

    /// The two ports at the front, if they were captured.
    pub fn ports(&self) -> Option<(u16, u16)> {
        Some((u16_at(self.bytes, 0)?, u16_at(self.bytes, 2)?))
    }
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}
