// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counts of a simulation.

use serde::Serialize;

use super::layout::Region;

/// Packets dropped, by the region of the first damaged byte for which the receiver drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DroppedBy {
    /// PPP framing.
    pub ppp: u64,
    /// The IP header.
    pub ip: u64,
    /// The header of UDP or UDP-Lite.
    pub udp: u64,
    /// The RTP header.
    pub rtp: u64,
    /// The ADU; with UDP-Lite what is covered of it.
    pub payload: u64,
}

impl DroppedBy {
    /// The count of `region`.
    pub fn of(&mut self, region: Region) -> &mut u64 {
        match region {
            Region::Ppp => &mut self.ppp,
            Region::Ip => &mut self.ip,
            Region::Udp => &mut self.udp,
            Region::Rtp => &mut self.rtp,
            Region::Payload => &mut self.payload,
        }
    }
}

/// Counts of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Bytes read.
    pub input_bytes: u64,
    /// Bytes written.
    pub output_bytes: u64,
    /// Radio blocks.
    pub blocks: u64,
    /// Radio blocks with an error.
    pub damaged_blocks: u64,
    /// Elements of the trace that were used.
    pub elements: u64,
    /// Packets sent, one an ADU.
    pub packets: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Packets dropped, by what was hit first.
    pub dropped_by: DroppedBy,
    /// Bytes of ADUs whose packets were dropped.
    pub dropped_bytes: u64,
    /// ADUs delivered as they were sent.
    pub whole_adus: u64,
    /// ADUs delivered with damaged bytes.
    pub damaged_adus: u64,
    /// Damaged bytes of delivered ADUs.
    pub damaged_bytes: u64,
    /// Blocks that the same packets would need with 24 bytes in each, the standard's at 9.6 kbit/s.
    pub standard_blocks: u64,
}

impl Statistics {
    /// Block error rate; none without blocks.
    pub fn block_error_rate(&self) -> Option<f64> {
        share(self.damaged_blocks, self.blocks)
    }

    /// Share of packets that were dropped; none without packets.
    pub fn loss(&self) -> Option<f64> {
        share(self.dropped_packets, self.packets)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
