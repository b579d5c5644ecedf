// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A background load made by the recipe: a single packet.

use airpath_core::{DrawKey, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Packet};
use crate::registry::Configured;

/// Time of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnePacketConfig {
    /// After the load has begun.
    pub after: Span,
}

impl Configured for OnePacketConfig {
    type Model = OnePacket;

    fn build(&self, _key: DrawKey) -> OnePacket {
        OnePacket(Some(Packet { after: self.after, bytes: 100, sender: 0 }))
    }

    fn examples() -> Vec<OnePacketConfig> {
        vec![OnePacketConfig { after: Span::from_millis(3) }]
    }
}

/// The load.
#[derive(Clone, Debug)]
pub struct OnePacket(Option<Packet>);

impl Generator for OnePacket {
    fn next_packet(&mut self) -> Option<Packet> {
        self.0.take()
    }
}
