// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A queue without any limit.
//!
//! Source: the unbounded queue of queueing theory; what it holds is bounded by memory alone.

use std::collections::VecDeque;

use airpath_core::{DrawKey, Pdu, QueueLimit, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Queueing;
use super::fifo::{Fifo, keeps_packets_in_fifo};
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// The infinite queue has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InfiniteConfig {}

impl Configured for InfiniteConfig {
    type Model = Infinite;

    fn build(&self, _key: DrawKey) -> Infinite {
        Infinite::new(self)
    }

    fn examples() -> Vec<InfiniteConfig> {
        vec![InfiniteConfig {}]
    }
}

impl Reconfigured for InfiniteConfig {
    fn configure(&self, model: &mut Infinite, at: Time) {
        model.configure(self, at);
    }
}

/// The infinite queue.
#[derive(Clone, Debug)]
pub struct Infinite(Fifo);

impl Infinite {
    pub(super) fn new(_: &InfiniteConfig) -> Infinite {
        Infinite(Fifo::new(QueueLimit::default()))
    }

    pub(super) fn configure(&mut self, _: &InfiniteConfig, _: Time) {}
}

impl Queueing for Infinite {
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.0.push(pdu, stage);
    }

    fn dequeue(&mut self, fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        self.0.pop_if(fits, stage)
    }

    keeps_packets_in_fifo!(0);
}
