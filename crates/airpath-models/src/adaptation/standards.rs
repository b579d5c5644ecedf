// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tables of modulations and code rates of LTE and NR.
//!
//! Sources: 3GPP TS 36.213, tables 7.2.3-1 (CQI), 7.1.7.1-1 (MCS) and 7.1.7.2.1-1 (transport blocks); 3GPP TS 38.214,
//! tables 5.2.2.1-2 to -4 (CQI) and 5.1.3.1-1 to -3 (MCS), without the reserved indices and CQI 0, "out of range".
//!
//! The MCS table of LTE has no code rates but indices of transport blocks. Rates here are those of 50 pairs of
//! resource blocks (10 MHz) with 144 resource elements each: one symbol for control, reference symbols of two antenna
//! ports. MCS 9 and 10, and 16 and 17, carry as much in two modulations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table of a standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Channel quality indicators 1 to 15 of LTE.
    LteCqi,
    /// Modulation and coding schemes 0 to 28 of LTE.
    LteMcs,
    /// Channel quality indicators 1 to 15 of NR, up to 64-QAM.
    #[serde(rename = "nr_cqi_1")]
    NrCqi1,
    /// Channel quality indicators 1 to 15 of NR, up to 256-QAM.
    #[serde(rename = "nr_cqi_2")]
    NrCqi2,
    /// Channel quality indicators 1 to 15 of NR, up to 64-QAM, of low rates.
    #[serde(rename = "nr_cqi_3")]
    NrCqi3,
    /// Modulation and coding schemes 0 to 28 of NR, up to 64-QAM.
    #[serde(rename = "nr_mcs_1")]
    NrMcs1,
    /// Modulation and coding schemes 0 to 27 of NR, up to 256-QAM.
    #[serde(rename = "nr_mcs_2")]
    NrMcs2,
    /// Modulation and coding schemes 0 to 28 of NR, up to 64-QAM, of low rates.
    #[serde(rename = "nr_mcs_3")]
    NrMcs3,
}

/// Bits of a modulated symbol, and code rates times 1024 of the modes that use it.
type Rates = &'static [(u8, &'static [f64])];

const CQI_UP_TO_64: Rates = &[
    (2, &[78.0, 120.0, 193.0, 308.0, 449.0, 602.0]),
    (4, &[378.0, 490.0, 616.0]),
    (6, &[466.0, 567.0, 666.0, 772.0, 873.0, 948.0]),
];
const CQI_UP_TO_256: Rates = &[
    (2, &[78.0, 193.0, 449.0]),
    (4, &[378.0, 490.0, 616.0]),
    (6, &[466.0, 567.0, 666.0, 772.0, 873.0]),
    (8, &[711.0, 797.0, 885.0, 948.0]),
];
const CQI_OF_LOW_RATES: Rates = &[
    (2, &[30.0, 50.0, 78.0, 120.0, 193.0, 308.0, 449.0, 602.0]),
    (4, &[378.0, 490.0, 616.0]),
    (6, &[466.0, 567.0, 666.0, 772.0]),
];
const MCS_UP_TO_64: Rates = &[
    (2, &[120.0, 157.0, 193.0, 251.0, 308.0, 379.0, 449.0, 526.0, 602.0, 679.0]),
    (4, &[340.0, 378.0, 434.0, 490.0, 553.0, 616.0, 658.0]),
    (6, &[438.0, 466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0, 822.0, 873.0, 910.0, 948.0]),
];
const MCS_UP_TO_256: Rates = &[
    (2, &[120.0, 193.0, 308.0, 449.0, 602.0]),
    (4, &[378.0, 434.0, 490.0, 553.0, 616.0, 658.0]),
    (6, &[466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0, 822.0, 873.0]),
    (8, &[682.5, 711.0, 754.0, 797.0, 841.0, 885.0, 916.5, 948.0]),
];
const MCS_OF_LOW_RATES: Rates = &[
    (2, &[30.0, 40.0, 50.0, 64.0, 78.0, 99.0, 120.0, 157.0, 193.0, 251.0, 308.0, 379.0, 449.0, 526.0, 602.0]),
    (4, &[340.0, 378.0, 434.0, 490.0, 553.0, 616.0]),
    (6, &[438.0, 466.0, 517.0, 567.0, 616.0, 666.0, 719.0, 772.0]),
];

/// Bits of a transport block over 50 pairs of resource blocks, by its index 0 to 26.
const TRANSPORT_BLOCKS: [u32; 27] = [
    1384, 1800, 2216, 2856, 3624, 4392, 5160, 6200, 6968, 7992, 8760, 9912, 11448, 12960, 14112, 15264, 16416, 18336,
    19848, 21384, 22920, 25456, 27376, 28336, 30576, 31704, 36696,
];
const ELEMENTS: f64 = 50.0 * 144.0;

impl Table {
    /// All tables.
    pub const ALL: [Table; 8] = [
        Table::LteCqi,
        Table::LteMcs,
        Table::NrCqi1,
        Table::NrCqi2,
        Table::NrCqi3,
        Table::NrMcs1,
        Table::NrMcs2,
        Table::NrMcs3,
    ];

    /// Word for the modes in their names, and the number of the first.
    pub(super) fn numbering(self) -> (&'static str, usize) {
        match self {
            Table::LteCqi | Table::NrCqi1 | Table::NrCqi2 | Table::NrCqi3 => ("cqi", 1),
            Table::LteMcs | Table::NrMcs1 | Table::NrMcs2 | Table::NrMcs3 => ("mcs", 0),
        }
    }

    /// Bits of a modulated symbol and code rate of each mode.
    pub fn modes(self) -> Vec<(u8, f64)> {
        let rates = match self {
            Table::LteCqi | Table::NrCqi1 => CQI_UP_TO_64,
            Table::NrCqi2 => CQI_UP_TO_256,
            Table::NrCqi3 => CQI_OF_LOW_RATES,
            Table::NrMcs1 => MCS_UP_TO_64,
            Table::NrMcs2 => MCS_UP_TO_256,
            Table::NrMcs3 => MCS_OF_LOW_RATES,
            Table::LteMcs => return (0..29).map(lte_mcs).collect(),
        };
        rates.iter().flat_map(|(order, rates)| rates.iter().map(|rate| (*order, rate / 1024.0))).collect()
    }
}

fn lte_mcs(index: usize) -> (u8, f64) {
    let (order, block) = match index {
        0..=9 => (2, index),
        10..=16 => (4, index - 1),
        _ => (6, index - 2),
    };
    (order, f64::from(TRANSPORT_BLOCKS[block]) / (ELEMENTS * f64::from(order)))
}
