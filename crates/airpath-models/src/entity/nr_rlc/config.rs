// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of RLC with HARQ below and PDCP above it.

use airpath_core::{Bits, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::am_sending::AmOptions;
use super::format::{Format, Mode};
use super::{NrRlc, Parameters};
use crate::entity::arq::repeats::RepeatOptions;
use crate::entity::arq::{Combining, Repeat};
use crate::entity::reordering::ReorderingOptions;
use crate::entity::{EntityBeginning, EntityConfig, OwnFrames, forever};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// RLC of NR: `{ type = "nr_rlc", mode = "am" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NrRlcConfig {
    /// Unacknowledged or acknowledged mode.
    pub mode: Mode,
    /// Length of sequence numbers in bits: 6 or 12 with `"um"`, 12 or 18 with `"am"`.
    pub sn_bits: u8,
    /// Wait of the receiving end for missing segments: t-Reassembly. Then it gives them up (`"um"`), or reports them
    /// (`"am"`).
    pub t_reassembly: Span,
    /// Least time from one STATUS PDU to the next: t-StatusProhibit.
    pub t_status_prohibit: Span,
    /// Time after which a poll is repeated that nobody has answered: t-PollRetransmit.
    pub t_poll_retransmit: Span,
    /// Number of new PDUs from poll to poll: pollPDU; 0 for none.
    pub poll_pdu: u32,
    /// New octets from poll to poll: pollByte; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_byte: Option<Bits>,
    /// Number of repetitions of a packet at which the flow begins anew: maxRetxThreshold.
    #[schemars(range(min = 1))]
    pub max_retx_threshold: u16,
    /// HARQ below it.
    pub harq: HarqConfig,
    /// PDCP above it.
    pub pdcp: PdcpConfig,
}

/// HARQ below RLC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HarqConfig {
    /// Number of times that a transport block is repeated at most.
    #[schemars(range(max = 1000))]
    pub retransmissions: u16,
    /// Time from the arrival of a block to that of the answer at the sending end.
    pub feedback_delay: Span,
    /// Treatment of a block that is to be repeated where fewer bits fit than it carries: `"own_modulation"` or
    /// `"hold"`.
    pub repeat: Repeat,
    /// Use of the copies of a block that had errors.
    pub combining: Combining,
}

/// PDCP above RLC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PdcpConfig {
    /// Length of sequence numbers in bits: 12 or 18, which take a header of 2 or 3 octets.
    pub sn_bits: u8,
    /// Longest wait of packets for a missing one: t-Reordering; `"never"` lets them wait for ever.
    #[serde(with = "forever")]
    #[schemars(with = "String")]
    pub t_reordering: Option<Span>,
    /// True if each packet is delivered when it is complete (outOfOrderDelivery).
    pub out_of_order: bool,
}

impl Default for NrRlcConfig {
    fn default() -> NrRlcConfig {
        // Timers and the threshold are those of signalling bearers (TS 38.331, clause 9.2.1); pollPDU is a choice for
        // bearers of data.
        NrRlcConfig {
            mode: Mode::Am,
            sn_bits: 12,
            t_reassembly: Span::from_millis(35),
            t_status_prohibit: Span::ZERO,
            t_poll_retransmit: Span::from_millis(45),
            poll_pdu: 32,
            poll_byte: None,
            max_retx_threshold: 8,
            harq: HarqConfig::default(),
            pdcp: PdcpConfig::default(),
        }
    }
}

impl Default for HarqConfig {
    fn default() -> HarqConfig {
        HarqConfig {
            retransmissions: 3,
            feedback_delay: Span::from_millis(2),
            repeat: Repeat::OwnModulation,
            combining: Combining::None,
        }
    }
}

impl HarqConfig {
    pub(super) fn repeats(&self) -> RepeatOptions {
        RepeatOptions { retransmissions: self.retransmissions, repeat: self.repeat }
    }
}

impl Default for PdcpConfig {
    fn default() -> PdcpConfig {
        PdcpConfig { sn_bits: 12, t_reordering: Some(Span::from_millis(100)), out_of_order: false }
    }
}

impl PdcpConfig {
    /// Octets of the header.
    pub(super) fn header_octets(&self) -> u64 {
        if self.sn_bits == 12 { 2 } else { 3 }
    }

    pub(super) fn reordering(&self) -> ReorderingOptions {
        ReorderingOptions { t_reordering: self.t_reordering, out_of_order: self.out_of_order }
    }
}

impl NrRlcConfig {
    pub(super) fn format(&self) -> Format {
        Format { mode: self.mode, sn_bits: self.sn_bits }
    }

    pub(super) fn acknowledged(&self) -> AmOptions {
        AmOptions {
            format: self.format(),
            t_poll_retransmit: self.t_poll_retransmit,
            poll_pdu: Some(self.poll_pdu).filter(|limit| *limit > 0),
            poll_byte: self.poll_byte.map(|length| length.get().div_ceil(8)),
            max_retx_threshold: self.max_retx_threshold,
        }
    }
}

/// The parameters, if they are those of this kind of entity.
pub(super) fn config_of(kind: &EntityConfig) -> Option<&NrRlcConfig> {
    match kind {
        EntityConfig::NrRlc(config) => Some(config),
        _ => None,
    }
}

impl Configured<EntityBeginning<'_>> for NrRlcConfig {
    type Model = NrRlc;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
        let (mode, lengths) = match self.mode {
            Mode::Um => ("um", [6, 12]),
            Mode::Am => ("am", [12, 18]),
        };
        if !lengths.contains(&self.sn_bits) {
            let [short, long] = lengths;
            problem("sn_bits", format!("is {}; with mode = \"{mode}\" it is {short} or {long}", self.sn_bits));
        }
        if ![12, 18].contains(&self.pdcp.sn_bits) {
            problem("pdcp.sn_bits", format!("is {}; it is 12 or 18", self.pdcp.sn_bits));
        }
        if self.t_poll_retransmit == Span::ZERO {
            problem("t_poll_retransmit", "is 0 s; write for example \"45 ms\"".into());
        }
        if self.max_retx_threshold == 0 {
            problem("max_retx_threshold", "is 0; write for example 8".into());
        }
        if self.harq.retransmissions > 1000 {
            problem("harq.retransmissions", format!("is {}; it may be 1000 at most", self.harq.retransmissions));
        }
        if self.harq.repeat == Repeat::Resegment {
            let message = "is \"resegment\", but HARQ repeats a block as it was; write \"own_modulation\" or \"hold\"";
            problem("harq.repeat", message.into());
        }
        if self.harq.combining != Combining::None && self.harq.repeat != Repeat::OwnModulation {
            let message = "needs copies of one length; write repeat = \"own_modulation\"";
            problem("harq.combining", message.into());
        }
        problems
    }

    fn build(&self, beginning: EntityBeginning<'_>) -> NrRlc {
        let theirs = config_of(beginning.receives.kind).unwrap_or(self);
        NrRlc::new(Parameters { sends: self, receives: theirs }, &beginning)
    }

    fn examples() -> Vec<NrRlcConfig> {
        let am = NrRlcConfig::default();
        let um = NrRlcConfig { mode: Mode::Um, ..am.clone() };
        let harq = HarqConfig::default();
        vec![
            am.clone(),
            um.clone(),
            // Few numbers, blocks that are lost at once, and no wait.
            NrRlcConfig {
                sn_bits: 6,
                t_reassembly: Span::ZERO,
                harq: HarqConfig { retransmissions: 0, ..harq.clone() },
                pdcp: PdcpConfig { t_reordering: Some(Span::ZERO), ..PdcpConfig::default() },
                ..um.clone()
            },
            NrRlcConfig {
                sn_bits: 18,
                t_status_prohibit: Span::from_millis(10),
                t_poll_retransmit: Span::from_millis(20),
                poll_pdu: 2,
                max_retx_threshold: 2,
                harq: HarqConfig { retransmissions: 0, ..harq.clone() },
                pdcp: PdcpConfig { sn_bits: 18, t_reordering: None, out_of_order: false },
                ..am.clone()
            },
            NrRlcConfig {
                t_reassembly: Span::from_millis(5),
                poll_pdu: 0,
                poll_byte: Some("300 bytes".parse().expect("an example is valid")),
                harq: HarqConfig { retransmissions: 1, combining: Combining::Incremental, ..harq.clone() },
                pdcp: PdcpConfig { out_of_order: true, ..PdcpConfig::default() },
                ..am
            },
            NrRlcConfig { harq: HarqConfig { repeat: Repeat::Hold, ..harq }, ..um },
        ]
    }
}

impl Reconfigured<EntityBeginning<'_>> for NrRlcConfig {
    // Both directions concern an end: `LinkEntity::configure` knows both.
    fn configure(&self, _entity: &mut NrRlc, _at: Time) {}
}

impl OwnFrames for NrRlcConfig {
    const OWN_FRAMES: bool = true;
    const FITS_GRANTS: bool = true;

    const CHANGES: &[&str] = &["harq"];
}
