// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue that, when full, drops a random packet: one of those queued or the one that arrives, each
//! with the same probability (random drop).
//!
//! Source: Mankin 1990, "Random drop congestion control". Several are dropped where one is not enough
//! for the packet that arrives. A packet larger than the whole queue is itself dropped, and displaces
//! none.

use std::collections::VecDeque;

use airpath_core::{Cause, DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the random-drop queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RandomDropConfig {
    /// Capacity of the queue. Smaller limits in packets and bytes apply to the packets that arrive from then
    /// on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
}

impl Configured for RandomDropConfig {
    type Model = RandomDrop;

    fn build(&self, key: DrawKey) -> RandomDrop {
        RandomDrop::new(self, key)
    }

    fn examples() -> Vec<RandomDropConfig> {
        ["7 packets", "3000 bytes", "5 packets, 4 kB, 25 ms"]
            .into_iter()
            .map(|limit| RandomDropConfig { limit: limit.parse().expect("an example is valid") })
            .collect()
    }
}

impl Reconfigured for RandomDropConfig {
    fn configure(&self, model: &mut RandomDrop, at: Time) {
        model.configure(self, at);
    }
}

/// The random-drop queue.
#[derive(Clone, Debug)]
pub struct RandomDrop {
    fifo: Fifo,
    key: DrawKey,
    /// Number of draws.
    draws: u64,
}

impl RandomDrop {
    pub(super) fn new(config: &RandomDropConfig, key: DrawKey) -> RandomDrop {
        RandomDrop { fifo: Fifo::new(config.limit), key, draws: 0 }
    }

    pub(super) fn configure(&mut self, config: &RandomDropConfig, at: Time) {
        self.fifo.set_limit(config.limit, at);
    }
}

impl Queueing for RandomDrop {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        if !self.fifo.could_ever_hold(pdu.len) {
            return stage.dropped(Cause::QueueBytes, &pdu, self.fifo.length());
        }
        while let Some(cause) = self.fifo.overflow(pdu.len) {
            let queued = u64::from(self.fifo.length().packets);
            let victim = self.key.below(self.draws, 0, queued + 1);
            self.draws += 1;
            if victim == queued {
                return stage.dropped(cause, &pdu, self.fifo.length());
            }
            self.fifo.drop_at(victim as usize, cause, stage);
        }
        self.fifo.push(pdu, stage);
    }

    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.fifo.pop_if(fits, stage)
    }

    keeps_packets_in_fifo!(fifo);
}
