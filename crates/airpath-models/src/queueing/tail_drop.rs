// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue that, when full, drops the packet that arrives (tail drop).
//!
//! Source: Kojo et al. 2001, section 4.3 (input queue, queue drop policy); the limit in time is
//! their optional timer of section 3. A packet that has waited for exactly the limit may still be
//! served at that instant; otherwise it is dropped then.

use std::collections::VecDeque;

use airpath_core::{DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the tail-drop queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TailDropConfig {
    /// Capacity of the queue. Smaller limits in packets and bytes apply to the packets that arrive from then
    /// on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
}

impl Configured for TailDropConfig {
    type Model = TailDrop;

    fn build(&self, _key: DrawKey) -> TailDrop {
        TailDrop::new(self)
    }

    fn examples() -> Vec<TailDropConfig> {
        ["7 packets", "3000 bytes", "40 ms", "5 packets, 4 kB, 25 ms", "unlimited"]
            .into_iter()
            .map(|limit| TailDropConfig { limit: limit.parse().expect("an example is valid") })
            .collect()
    }
}

impl Reconfigured for TailDropConfig {
    fn configure(&self, model: &mut TailDrop, at: Time) {
        model.configure(self, at);
    }
}

/// The tail-drop queue.
#[derive(Clone, Debug)]
pub struct TailDrop(Fifo);

impl TailDrop {
    pub(super) fn new(config: &TailDropConfig) -> TailDrop {
        TailDrop(Fifo::new(config.limit))
    }

    pub(super) fn limit(&self) -> QueueLimit {
        self.0.limit()
    }

    pub(super) fn configure(&mut self, config: &TailDropConfig, at: Time) {
        self.0.set_limit(config.limit, at);
    }
}

impl Queueing for TailDrop {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        match self.0.overflow(pdu.len) {
            Some(cause) => stage.dropped(cause, &pdu, self.0.length()),
            None => self.0.push(pdu, stage),
        }
    }

    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.0.pop_if(fits, stage)
    }

    keeps_packets_in_fifo!(0);
}
