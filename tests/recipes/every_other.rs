// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue discipline made by the recipe: without limit, as the infinite one.

use std::collections::VecDeque;

use airpath_core::{DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// No parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EveryOtherConfig {}

impl Configured for EveryOtherConfig {
    type Model = EveryOther;

    fn build(&self, _key: DrawKey) -> EveryOther {
        EveryOther(Fifo::new(QueueLimit::default()))
    }

    fn examples() -> Vec<EveryOtherConfig> {
        vec![EveryOtherConfig {}]
    }
}

impl Reconfigured for EveryOtherConfig {
    fn configure(&self, _model: &mut EveryOther, _at: Time) {}
}

/// The queue.
#[derive(Clone, Debug)]
pub struct EveryOther(Fifo);

impl Queueing for EveryOther {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.0.push(pdu, stage);
    }

    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.0.pop_if(fits, stage)
    }

    keeps_packets_in_fifo!(0);
}
