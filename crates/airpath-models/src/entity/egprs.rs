// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! EGPRS: RLC over radio blocks of the coding schemes MCS-1 to MCS-9, with repetition in other schemes of the same
//! family and with incremental redundancy.
//!
//! Source: 3GPP TS 45.003, clause 5.1 (lengths of headers, data and codes), TS 44.060, clauses 8.1.1 (families,
//! resegmentation), 9 and 10 (2048 block sequence numbers, window of 64 to 1024). A radio block counts 1392 bits of
//! 8-PSK; a bit of GMSK (MCS-1 to MCS-4 and control messages) takes three of them. Header and data have codes of their
//! own: a copy of a block adds up with others only if its header is understood. What codes correct, and how copies
//! add up, is in `rlc::schemes`: the puncturing schemes P1 to P3 are taken to bring new bits each time. The bitmap of
//! an acknowledgement always covers the window; the standard compresses it, or sends it in parts.

use airpath_core::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rlc::Parameters;
use super::rlc::config::{FlowConfig, SetUpConfig, System};
use super::rlc::schemes::{Code, Scheme, Schemes};
use super::rlc::segments::Indicators;
use super::{EntityBeginning, EntityConfig, OwnFrames};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

pub use super::rlc::Rlc;

/// Number of block sequence numbers.
const MODULUS: u16 = 2048;

/// Modulation and coding scheme of EGPRS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mcs {
    /// 22 octets, family C, GMSK.
    Mcs1,
    /// 28 octets, family B, GMSK.
    Mcs2,
    /// 37 octets, family A, GMSK.
    Mcs3,
    /// 44 octets, family C, GMSK.
    Mcs4,
    /// 56 octets, family B, 8-PSK.
    #[default]
    Mcs5,
    /// 74 octets, family A, 8-PSK.
    Mcs6,
    /// Twice 56 octets, family B, 8-PSK.
    Mcs7,
    /// Twice 68 octets, family A, 8-PSK.
    Mcs8,
    /// Twice 74 octets, family A, 8-PSK.
    Mcs9,
}

/// RLC of EGPRS: `{ type = "egprs", coding = "mcs6" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EgprsConfig {
    /// Coding scheme of new blocks; a state may change it.
    pub coding: Mcs,
    /// Coding scheme that is commanded for repetitions: a block goes in the scheme of its family that is nearest below.
    /// Without it, that of new blocks. A state may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Mcs>,
    /// True if a block may be repeated in halves, in a lower scheme of its family.
    pub resegments: bool,
    /// True if copies of a block add up (incremental redundancy).
    pub incremental_redundancy: bool,
    /// Window: the number of blocks that may be sent and not acknowledged, in steps of 32. The largest is 192 with one
    /// timeslot, and otherwise 128 for each timeslot.
    #[schemars(range(min = 64, max = 1024))]
    pub window: u16,
    /// Parameters that GPRS and EGPRS have in common.
    #[serde(flatten)]
    pub flow: FlowConfig,
}

impl Default for EgprsConfig {
    fn default() -> EgprsConfig {
        EgprsConfig {
            coding: Mcs::Mcs5,
            repetition: None,
            resegments: true,
            incremental_redundancy: true,
            window: 64,
            flow: FlowConfig::default(),
        }
    }
}

const fn code(information: u32, coded: u32) -> Code {
    Code { information, coded }
}

/// GMSK: 464 bits, of which 372 are data.
const fn gmsk(octets: u32) -> Scheme {
    let header = Some([code(39, 80), code(36, 68)]);
    Scheme { octets, blocks: 1, code: code(octets * 8 + 20, 372), header, bits: 464, stride: 3 }
}

/// 8-PSK with one RLC block: 1392 bits, of which 1248 are data.
const fn single(octets: u32) -> Scheme {
    let header = Some([code(45, 136), code(33, 100)]);
    Scheme { octets, blocks: 1, code: code(octets * 8 + 20, 1248), header, bits: 1392, stride: 1 }
}

/// 8-PSK with two RLC blocks of 612 coded bits.
const fn double(octets: u32) -> Scheme {
    let header = Some([code(54, 160), code(45, 124)]);
    Scheme { octets, blocks: 2, code: code(octets * 8 + 20, 612), header, bits: 1392, stride: 1 }
}

const TABLE: [Scheme; 9] =
    [gmsk(22), gmsk(28), gmsk(37), gmsk(44), single(56), single(74), double(56), double(68), double(74)];

/// The coding schemes of EGPRS. Control messages go in CS-1.
pub static SCHEMES: Schemes = Schemes {
    table: &TABLE,
    control: Scheme { octets: 20, blocks: 1, code: code(228, 456), header: None, bits: 456, stride: 3 },
    block_bits: 1392,
    repetition,
    single: alone,
};

/// The scheme in which a block goes again (3GPP TS 44.060, clause 8.1.1.1).
fn repetition(home: usize, commanded: usize, resegments: bool) -> usize {
    let (home, commanded) = (home + 1, commanded + 1);
    let scheme = match (home, commanded) {
        // Blocks of 74 octets.
        (6 | 9, 9..) => 9,
        (6 | 9, 6..) => 6,
        (6 | 9, _) if resegments => 3,
        (6 | 9, _) => 6,
        // Those of 68 are filled up with six octets of padding.
        (8, 8..) => 8,
        (8, 6..) => 6,
        (8, _) if resegments => 3,
        (8, _) => 6,
        (5 | 7, 7..) => 7,
        (5 | 7, 5..) => 5,
        (5 | 7, _) if resegments => 2,
        (5 | 7, _) => 5,
        (4, 4..) => 4,
        (4, _) if resegments => 1,
        _ => home,
    };
    scheme - 1
}

/// The scheme of one block of MCS-7 to MCS-9.
fn alone(scheme: usize) -> usize {
    match scheme + 1 {
        7 => 4,
        8 | 9 => 5,
        _ => scheme,
    }
}

impl EgprsConfig {
    fn system(&self) -> System {
        System {
            schemes: &SCHEMES,
            modulus: MODULUS,
            resegments: self.resegments,
            combines: self.incremental_redundancy,
        }
    }

    /// Places of the schemes of new blocks and of repetitions.
    fn places(&self) -> (usize, usize) {
        (self.coding as usize, self.repetition.unwrap_or(self.coding) as usize)
    }
}

impl Configured<EntityBeginning<'_>> for EgprsConfig {
    type Model = Rlc;

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if !(64..=1024).contains(&self.window) || !self.window.is_multiple_of(32) {
            let message = format!("is {}; it is from 64 to 1024, in steps of 32", self.window);
            found.push(Problem::new("window", message));
        }
        found.extend(self.flow.problems());
        found
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Rlc {
        let theirs = match beginning.receives.kind {
            EntityConfig::Egprs(config) => config,
            _ => self,
        };
        let (scheme, repetition) = self.places();
        let (ours, other) = (&self.flow, &theirs.flow);
        let parameters = Parameters {
            scheme,
            repetition,
            indicators: Indicators::Egprs,
            ..Parameters::new((ours, self.system(), self.window), (other, theirs.system(), theirs.window), &beginning)
        };
        Rlc::new(parameters, &beginning)
    }

    fn examples() -> Vec<EgprsConfig> {
        let plain = EgprsConfig::default();
        vec![
            plain.clone(),
            // Repetitions in halves.
            EgprsConfig {
                coding: Mcs::Mcs9,
                repetition: Some(Mcs::Mcs3),
                flow: FlowConfig { acknowledge_every: 3, ..plain.flow.clone() },
                ..plain.clone()
            },
            EgprsConfig {
                coding: Mcs::Mcs8,
                flow: FlowConfig { release_delay: Span::from_millis(100), ..FlowConfig::unacknowledged() },
                ..plain.clone()
            },
            EgprsConfig {
                coding: Mcs::Mcs4,
                repetition: Some(Mcs::Mcs1),
                incremental_redundancy: false,
                flow: FlowConfig {
                    t3182: Span::from_millis(600),
                    set_up: SetUpConfig::examples()[1].clone(),
                    ..plain.flow.clone()
                },
                ..plain.clone()
            },
            EgprsConfig {
                coding: Mcs::Mcs7,
                flow: FlowConfig { bs_cv_max: 0, release_delay: Span::from_secs(1), ..FlowConfig::ideal() },
                ..plain.clone()
            },
            EgprsConfig {
                coding: Mcs::Mcs7,
                flow: FlowConfig {
                    release_delay: Span::from_millis(500),
                    set_up: SetUpConfig::examples()[2].clone(),
                    ..plain.flow.clone()
                },
                ..plain
            },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for EgprsConfig {
    fn configure(&self, entity: &mut Rlc, _at: Time) {
        let (scheme, repetition) = self.places();
        entity.command(scheme, repetition);
    }
}

impl OwnFrames for EgprsConfig {
    const OWN_FRAMES: bool = true;
    const ALLOCATES: bool = true;
    const CHANGES: &[&str] = &["coding", "repetition"];

    fn slot_bits(&self) -> Option<u64> {
        Some(SCHEMES.block_bits.into())
    }

    fn timeslot_problems(&self, timeslots: u64) -> Vec<Problem> {
        let (most, with) = if timeslots == 1 {
            (192, "1 timeslot".to_string())
        } else {
            (128 * timeslots, format!("{timeslots} timeslots"))
        };
        if u64::from(self.window) <= most {
            return Vec::new();
        }
        vec![Problem::new("window", format!("is {}; with {with} it is {most} at most", self.window))]
    }
}
