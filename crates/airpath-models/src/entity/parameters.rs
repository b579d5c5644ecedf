// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The parameters of a link that concern its two ends, whatever link entity stands there.

use airpath_core::{Bits, BufferLimit, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EntityConfig;
use crate::random::Random;

/// Parameters of one direction of a link that its sending and its receiving end need.
#[derive(Clone, Copy, Debug)]
pub struct EntityParameters<'a> {
    /// The kind of link entity, with its own parameters.
    pub kind: &'a EntityConfig,
    /// Link-layer bits added to every packet.
    pub overhead: Bits,
    /// The factor by which the link compresses packets.
    pub compression: Ratio,
    /// Division of packets into frames; without it a packet is one frame.
    pub fragmentation: Option<Fragmentation>,
    /// The room at the sending end, the packet under transmission included.
    pub send_buffer: BufferLimit,
    /// The room at the receiving end for frames that wait.
    pub receive_buffer: BufferLimit,
    /// Number of timeslots: frames of an entity with frames of its own in the time of one, 1 where the rate does not
    /// say.
    pub timeslots: u16,
    /// The delay before transmission when a packet meets an empty link.
    pub allocation_delay: &'a Random<Span>,
}

/// Division of packets into frames. Frames are not shared between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fragmentation {
    /// Packet bits that a frame carries.
    pub frame_payload: Bits,
    /// Bits added to every frame.
    #[serde(default)]
    pub frame_header: Bits,
    /// Length of a packet's last frame.
    #[serde(default)]
    pub last_frame: LastFrame,
}

/// The length of a packet's last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LastFrame {
    /// As short as what is left of the packet.
    #[default]
    Short,
    /// Padded to the full frame, as on radio links with fixed blocks.
    Padded,
}
