// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A link entity made by the recipe: the simple one, with more overhead on every packet.

use airpath_core::{Bits, Pdu, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, EntityBeginning, EntityParameters, LinkEntity, OwnFrames, Sdus, Simple};
use crate::air::{Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::registry::{Configured, Reconfigured};
use crate::stage::StageCx;

/// Padding of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaddedConfig {
    /// Bits added to every packet.
    pub padding: Bits,
}

impl Configured<EntityBeginning<'_>> for PaddedConfig {
    type Model = Padded;

    fn build(&self, EntityBeginning { sends, receives, allocation, .. }: EntityBeginning<'_>) -> Padded {
        let padding = self.padding;
        Padded { simple: Simple::new(&padded(&sends, padding), &receives, allocation), padding }
    }

    fn examples() -> Vec<PaddedConfig> {
        vec![PaddedConfig { padding: Bits::new(80) }]
    }
}

impl Reconfigured<EntityBeginning<'_>> for PaddedConfig {
    fn configure(&self, entity: &mut Padded, _at: Time) {
        entity.padding = self.padding;
    }
}

impl OwnFrames for PaddedConfig {
    const OWN_FRAMES: bool = false;
}

fn padded<'a>(link: &EntityParameters<'a>, padding: Bits) -> EntityParameters<'a> {
    EntityParameters { overhead: link.overhead + padding, ..*link }
}

/// The entity.
#[derive(Clone, Debug)]
pub struct Padded {
    simple: Simple,
    padding: Bits,
}

impl LinkEntity for Padded {
    fn has_room(&self, next: &Pdu) -> bool {
        self.simple.has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, arrival: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.simple.accept(pdu, arrival, sdus, stage);
    }

    fn ready_at(&self) -> Time {
        self.simple.ready_at()
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        self.simple.next_frame(grant, sdus, stage)
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.simple.sent(frame, sdus, stage);
    }

    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        self.simple.receive(frame, outcome, sdus, stage, up);
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        self.simple.bits_on_air(bytes)
    }

    fn next_deadline(&self) -> Time {
        self.simple.next_deadline()
    }

    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        self.simple.advance(sdus, stage, up);
    }

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.simple.abandon(sdus, stage);
    }

    fn configure(&mut self, at: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.simple.configure(at, &padded(sends, self.padding), receives);
    }
}
