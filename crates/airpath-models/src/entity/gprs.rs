// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! GPRS: RLC over radio blocks of the coding schemes CS-1 to CS-4.
//!
//! Source: 3GPP TS 45.003, clause 5.1 (456 coded bits in a radio block, in the four schemes), TS 44.060, clauses 9
//! and 10 (RLC data of 20, 30, 36 and 50 octets, 128 block sequence numbers, window of 64). The block check sequence
//! is taken to notice every error. What the code of a scheme corrects is in `rlc::schemes`; CS-4 has no code.

use airpath_core::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rlc::Parameters;
use super::rlc::config::System;
use super::rlc::schemes::{Code, Scheme, Schemes};
use super::rlc::segments::Indicators;
use super::{EntityBeginning, EntityConfig, OwnFrames};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

pub use super::rlc::Rlc;
pub use super::rlc::config::{Access, FlowConfig, Mode, SetUpConfig, Signalling};

/// Number of block sequence numbers.
const MODULUS: u16 = 128;

/// Coding scheme of GPRS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodingScheme {
    /// 20 octets in a radio block, code rate 1/2: 8 kbit/s of RLC data a timeslot.
    Cs1,
    /// 30 octets, about 2/3: 12 kbit/s.
    #[default]
    Cs2,
    /// 36 octets, about 3/4: 14.4 kbit/s.
    Cs3,
    /// 50 octets, without a code: 20 kbit/s.
    Cs4,
}

/// RLC of GPRS: `{ type = "gprs", coding = "cs2" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GprsConfig {
    /// Coding scheme of new blocks; a state may change it. A block is repeated in the scheme in which it was sent
    /// first.
    pub coding: CodingScheme,
    /// Window: the number of blocks that may be sent and not acknowledged. The standard has 64.
    #[schemars(range(min = 1, max = 64))]
    pub window: u16,
    /// Parameters that GPRS and EGPRS have in common.
    #[serde(flatten)]
    pub flow: FlowConfig,
}

impl Default for GprsConfig {
    fn default() -> GprsConfig {
        GprsConfig { coding: CodingScheme::Cs2, window: 64, flow: FlowConfig::default() }
    }
}

/// Octets of the headers of a radio block: MAC (1), and RLC with TFI, BSN and the bits for their like (2), in either
/// direction (TS 44.060, clause 10.2).
const HEADER_OCTETS: u32 = 3;

/// A scheme of 456 coded bits, with `octets` of header and data, block check sequence and tail in one code.
const fn scheme(octets: u32, information: u32) -> Scheme {
    let code = Code { information, coded: 456 };
    Scheme { octets: octets - HEADER_OCTETS, blocks: 1, code, header: None, bits: 456, stride: 1 }
}

const TABLE: [Scheme; 4] = [scheme(23, 228), scheme(33, 294), scheme(39, 338), scheme(53, 456)];

/// The coding schemes of GPRS. A block is repeated as it was.
pub static SCHEMES: Schemes = Schemes {
    table: &TABLE,
    control: TABLE[0],
    block_bits: 456,
    repetition: |home, _, _| home,
    single: |scheme| scheme,
};

const SYSTEM: System = System { schemes: &SCHEMES, modulus: MODULUS, resegments: false, combines: false };

impl Configured<EntityBeginning<'_>> for GprsConfig {
    type Model = Rlc;

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if !(1..=64).contains(&self.window) {
            found.push(Problem::new("window", format!("is {}; it is from 1 to 64", self.window)));
        }
        found.extend(self.flow.problems());
        found
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Rlc {
        let theirs = match beginning.receives.kind {
            EntityConfig::Gprs(config) => config,
            _ => self,
        };
        let parameters = Parameters {
            scheme: self.coding as usize,
            repetition: self.coding as usize,
            indicators: Indicators::Gprs,
            ..Parameters::new((&self.flow, SYSTEM, self.window), (&theirs.flow, SYSTEM, theirs.window), &beginning)
        };
        Rlc::new(parameters, &beginning)
    }

    fn examples() -> Vec<GprsConfig> {
        let plain = GprsConfig::default();
        vec![
            plain.clone(),
            GprsConfig { coding: CodingScheme::Cs4, flow: FlowConfig::unacknowledged(), ..plain.clone() },
            // A small window, few acknowledgements, and flows that stay.
            GprsConfig {
                coding: CodingScheme::Cs1,
                window: 5,
                flow: FlowConfig {
                    acknowledge_every: 3,
                    release_delay: Span::from_millis(300),
                    t3182: Span::from_millis(700),
                    set_up: SetUpConfig::examples()[1].clone(),
                    ..plain.flow.clone()
                },
            },
            GprsConfig {
                coding: CodingScheme::Cs3,
                flow: FlowConfig { bs_cv_max: 0, rrbp: Span::from_millis(100), ..FlowConfig::ideal() },
                ..plain.clone()
            },
            GprsConfig {
                flow: FlowConfig { set_up: SetUpConfig::examples()[2].clone(), ..plain.flow.clone() },
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for GprsConfig {
    fn configure(&self, entity: &mut Rlc, _at: Time) {
        entity.command(self.coding as usize, self.coding as usize);
    }
}

impl OwnFrames for GprsConfig {
    const OWN_FRAMES: bool = true;
    const ALLOCATES: bool = true;
    const CHANGES: &[&str] = &["coding"];

    fn slot_bits(&self) -> Option<u64> {
        Some(SCHEMES.block_bits.into())
    }
}
