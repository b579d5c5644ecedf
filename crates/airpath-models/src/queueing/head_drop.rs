// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue that, when full, drops its oldest packets until the one that arrives fits (head drop).
//!
//! Source: Kojo et al. 2001, section 5.1 (drop policies). A packet larger than the whole queue is
//! itself dropped, and displaces none.

use std::collections::VecDeque;

use airpath_core::{Cause, DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the head-drop queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeadDropConfig {
    /// Capacity of the queue. Smaller limits in packets and bytes apply to the packets that arrive from then
    /// on; a limit in time applies at once to all.
    #[serde(default = "super::default_limit")]
    pub limit: QueueLimit,
}

impl Configured for HeadDropConfig {
    type Model = HeadDrop;

    fn build(&self, _key: DrawKey) -> HeadDrop {
        HeadDrop::new(self)
    }

    fn examples() -> Vec<HeadDropConfig> {
        ["7 packets", "3000 bytes", "40 ms", "5 packets, 4 kB, 25 ms", "unlimited"]
            .into_iter()
            .map(|limit| HeadDropConfig { limit: limit.parse().expect("an example is valid") })
            .collect()
    }
}

impl Reconfigured for HeadDropConfig {
    fn configure(&self, model: &mut HeadDrop, at: Time) {
        model.configure(self, at);
    }
}

/// The head-drop queue.
#[derive(Clone, Debug)]
pub struct HeadDrop(Fifo);

impl HeadDrop {
    pub(super) fn new(config: &HeadDropConfig) -> HeadDrop {
        HeadDrop(Fifo::new(config.limit))
    }

    pub(super) fn configure(&mut self, config: &HeadDropConfig, at: Time) {
        self.0.set_limit(config.limit, at);
    }
}

impl Queueing for HeadDrop {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        if !self.0.could_ever_hold(pdu.len) {
            return stage.dropped(Cause::QueueBytes, &pdu, self.0.length());
        }
        while let Some(cause) = self.0.overflow(pdu.len) {
            self.0.drop_head(cause, stage);
        }
        self.0.push(pdu, stage);
    }

    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.0.pop_if(fits, stage)
    }

    keeps_packets_in_fifo!(0);
}
