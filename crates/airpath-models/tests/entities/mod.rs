// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Link entities with frames of their own: the laws over all of them, and each by hand.

mod arq;
mod arq_combining;
mod arq_patterns;
mod blocks;
mod blocks_decoding;
mod blocks_patterns;
mod codec;
mod egprs;
mod exploration;
mod gprs;
mod laws;
mod nr_rlc;
mod nr_rlc_reference;
mod persistent;
mod residual_losses;
mod rlc_exploration;
mod rlc_messages;
mod rlp;
mod segments;
mod transparent;
mod vj;

use airpath_core::{Bits, Span};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::medium::VaryingConfig;
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::{HopConfig, LinkConfig};

use crate::common::*;

/// Blocks of 240 bits in 20 ms.
pub fn blocks() -> VaryingConfig {
    VaryingConfig::Slotted(SlottedConfig {
        slot: Span::from_millis(20),
        bits: Bits::new(240),
        period: None,
        offset: Span::ZERO,
    })
}

/// A radio link of `entity`, with a propagation delay of 90 ms.
pub fn radio(entity: EntityConfig, errors: ErrorsConfig) -> LinkConfig {
    LinkConfig {
        rate: blocks().into(),
        propagation: read("90 ms"),
        send_buffer: read("unlimited"),
        errors,
        entity,
        ..LinkConfig::default()
    }
}

/// A radio link of `entity` over slots of `bits` in 20 ms, with a propagation delay of 90 ms and flows that take
/// 200 ms to set up.
pub fn cell(entity: EntityConfig, bits: u64, errors: ErrorsConfig) -> LinkConfig {
    let slots = SlottedConfig { slot: Span::from_millis(20), bits: Bits::new(bits), period: None, offset: Span::ZERO };
    let rate = VaryingConfig::Slotted(slots).into();
    LinkConfig { rate, allocation_delay: read("200 ms"), ..radio(entity, errors) }
}

pub fn hop(link: &LinkConfig) -> HopConfig {
    HopConfig::new("radio", link.clone(), link.clone())
}

/// Independent errors of `probability` that lose blocks.
pub fn losses(probability: &str) -> ErrorsConfig {
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read(probability) });
    ErrorsConfig { process, per: Per::Block, block: Some(Span::from_millis(20)), ..ErrorsConfig::default() }
}
