// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RTCP (RFC 3550), told from RTP by the packet type (RFC 5761).

use super::{Packet, Protocol, word};

pub(super) const PROTOCOL: Protocol = Protocol { name: "rtcp", recognises };

fn recognises(packet: &Packet<'_>) -> bool {
    let Some((_, bytes)) = packet.datagram() else { return false };
    let whole = packet.length as usize - (packet.bytes.len() - bytes.len()).min(packet.length as usize);
    let (Some([first, kind]), Some(words)) = (bytes.first_chunk(), word(bytes, 2)) else { return false };
    first >> 6 == 2 && (192..=223).contains(kind) && (usize::from(words) + 1) * 4 <= whole
}
