// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Exchange of identification: what two ends propose, and what they agree on.
//!
//! Source: 3GPP TS 24.022, clause 5.2.2.6: version and windows are negotiated downwards, timers and attempts
//! upwards.

/// Identification of an end: its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Xid {
    /// Version of RLP.
    pub version: u8,
    /// Window of the fixed end, which sends to the mobile.
    pub window_to_mobile: u16,
    /// Window of the mobile end.
    pub window_from_mobile: u16,
    /// Acknowledgement timer T1, in units of 10 ms.
    pub t1: u8,
    /// Attempts N2.
    pub n2: u8,
    /// Reply delay T2, in units of 10 ms.
    pub t2: u8,
}

impl Xid {
    /// The parameters that both ends can live with.
    pub fn agreed(self, other: Xid) -> Xid {
        Xid {
            version: self.version.min(other.version),
            window_to_mobile: self.window_to_mobile.min(other.window_to_mobile),
            window_from_mobile: self.window_from_mobile.min(other.window_from_mobile),
            t1: self.t1.max(other.t1),
            n2: self.n2.max(other.n2),
            t2: self.t2.max(other.t2),
        }
    }

    /// All parameters in one word.
    pub fn to_word(self) -> u64 {
        u64::from(self.version)
            | u64::from(self.window_to_mobile) << 8
            | u64::from(self.window_from_mobile) << 24
            | u64::from(self.t1) << 40
            | u64::from(self.n2) << 48
            | u64::from(self.t2) << 56
    }

    /// The parameters in a word of [`Xid::to_word`].
    pub fn from_word(word: u64) -> Xid {
        Xid {
            version: word as u8,
            window_to_mobile: (word >> 8) as u16,
            window_from_mobile: (word >> 24) as u16,
            t1: (word >> 40) as u8,
            n2: (word >> 48) as u8,
            t2: (word >> 56) as u8,
        }
    }
}
