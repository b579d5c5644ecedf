// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! GPRS: RLC over radio blocks of the coding schemes CS-1 to CS-4.
//!
//! Source: 3GPP TS 45.003, clause 5.1 (456 coded bits in a radio block, in the four schemes), TS 44.060, clauses 9
//! and 10 (RLC data of 20, 30, 36 and 50 octets, 128 block sequence numbers, window of 64). The block check sequence
//! is taken to notice every error. What the code of a scheme corrects is in `rlc::schemes`; CS-4 has no code.

use airpath_core::{End, Probability, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rlc::receiving::ReceiverOptions;
use super::rlc::schemes::{Code, Scheme, Schemes};
use super::rlc::segments::Indicators;
use super::rlc::sending::SenderOptions;
use super::rlc::{Parameters, problems};
use super::{EntityBeginning, EntityConfig, OwnFrames};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

pub use super::rlc::Rlc;

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

/// Delivery of RLC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Blocks that are lost are repeated.
    #[default]
    Acknowledged,
    /// Nothing is acknowledged or repeated.
    Unacknowledged,
}

/// RLC of GPRS: `{ type = "gprs", coding = "cs2" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GprsConfig {
    /// Coding scheme of new blocks; a state may change it. A block is repeated in the scheme in which it was sent
    /// first.
    pub coding: CodingScheme,
    /// Acknowledged or unacknowledged mode.
    pub mode: Mode,
    /// Window: the number of blocks that may be sent and not acknowledged. The standard has 64.
    #[schemars(range(min = 1, max = 64))]
    pub window: u16,
    /// Number of blocks from one acknowledgement to the next: sent blocks from poll to poll in the downlink, received
    /// ones in the uplink.
    #[schemars(range(min = 1))]
    pub acknowledge_every: u16,
    /// Time from the end of a polled block to the beginning of the block that is reserved for the answer (RRBP):
    /// 40, 60, 80 or 100 ms.
    pub rrbp: Span,
    /// BS_CV_MAX: an uplink flow that has no more blocks left than this takes no new packets; 0 lets them in until the
    /// last block.
    #[schemars(range(max = 15))]
    pub bs_cv_max: u8,
    /// Time without an acknowledgement after which a flow is given up: T3182 in the uplink, what N3105 polls without
    /// an answer come to in the downlink.
    pub t3182: Span,
    /// Time for which a flow stays when it has nothing more to send (delayed release, extended uplink flow); 0 ends
    /// each flow with its last block.
    pub release_delay: Span,
    /// Share of the mutual information of coded bits that the decoder makes use of; 1 is what theory allows.
    pub efficiency: Probability,
}

impl Default for GprsConfig {
    fn default() -> GprsConfig {
        GprsConfig {
            coding: CodingScheme::Cs2,
            mode: Mode::Acknowledged,
            window: 64,
            acknowledge_every: 20,
            rrbp: Span::from_millis(40),
            bs_cv_max: 15,
            t3182: Span::from_secs(5),
            release_delay: Span::ZERO,
            efficiency: Probability::ONE,
        }
    }
}

/// A scheme of 456 coded bits, with header, data, block check sequence and tail in one code.
const fn scheme(octets: u32, information: u32) -> Scheme {
    Scheme { octets, blocks: 1, code: Code { information, coded: 456 }, header: None, bits: 456, stride: 1 }
}

const TABLE: [Scheme; 4] = [scheme(20, 228), scheme(30, 294), scheme(36, 338), scheme(50, 456)];

/// The coding schemes of GPRS. A block is repeated as it was.
pub static SCHEMES: Schemes = Schemes {
    table: &TABLE,
    control: TABLE[0],
    block_bits: 456,
    repetition: |home, _, _| home,
    single: |scheme| scheme,
};

impl GprsConfig {
    fn sends(&self, end: End) -> SenderOptions {
        SenderOptions {
            schemes: &SCHEMES,
            modulus: MODULUS,
            window: self.window,
            acknowledged: self.mode == Mode::Acknowledged,
            polls: end == End::Server,
            poll_every: self.acknowledge_every,
            countdown: if end == End::Client { self.bs_cv_max.into() } else { 0 },
            release_delay: self.release_delay,
            gives_up: self.t3182,
            resegments: false,
        }
    }

    /// Parameters of the receiving end, where the other end sends as `self` says.
    fn receives(&self, end: End) -> ReceiverOptions {
        ReceiverOptions {
            modulus: MODULUS,
            window: self.window,
            answers_after: (end == End::Client).then_some(self.rrbp),
            acknowledges_every: self.acknowledge_every,
            efficiency: self.efficiency.get(),
            combines: false,
        }
    }
}

impl Configured<EntityBeginning<'_>> for GprsConfig {
    type Model = Rlc;

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if !(1..=64).contains(&self.window) {
            found.push(Problem::new("window", format!("is {}; it is from 1 to 64", self.window)));
        }
        found
            .extend(problems((self.acknowledge_every, self.rrbp, self.bs_cv_max), (self.t3182, self.efficiency.get())));
        found
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> Rlc {
        let theirs = match beginning.receives.kind {
            EntityConfig::Gprs(config) => config,
            _ => self,
        };
        let parameters = Parameters {
            sends: self.sends(beginning.end),
            receives: theirs.receives(beginning.end),
            acknowledges: theirs.mode == Mode::Acknowledged,
            scheme: self.coding as usize,
            repetition: self.coding as usize,
            indicators: Indicators::Gprs,
        };
        Rlc::new(parameters, &beginning)
    }

    fn examples() -> Vec<GprsConfig> {
        let plain = GprsConfig::default();
        vec![
            plain.clone(),
            GprsConfig { coding: CodingScheme::Cs4, mode: Mode::Unacknowledged, ..plain.clone() },
            // A small window, few acknowledgements, and flows that stay.
            GprsConfig {
                coding: CodingScheme::Cs1,
                window: 5,
                acknowledge_every: 3,
                release_delay: Span::from_millis(300),
                t3182: Span::from_millis(700),
                ..plain.clone()
            },
            GprsConfig { coding: CodingScheme::Cs3, bs_cv_max: 0, rrbp: Span::from_millis(100), ..plain },
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
