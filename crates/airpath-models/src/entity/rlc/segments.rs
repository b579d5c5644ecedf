// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Upper-layer PDUs in RLC data blocks: how many octets of each go into a block, and the length indicators that tell
//! them apart.
//!
//! Source: 3GPP TS 44.060, clauses 9.1.11, 10.4.13 and 10.4.14 (GPRS: length of 6 bits, M and E) and 10.4.14a
//! (EGPRS: length of 7 bits and E), with the examples of annex B.

use smallvec::SmallVec;

/// Format of length indicators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Indicators {
    /// A PDU that would fill the block to its last octet leaves one octet to the next block, and says so by a length
    /// of 0.
    Gprs,
    /// A PDU that fills the block to its last octet has no indicator; the next block begins with a length of 0.
    Egprs,
}

/// Contents of one RLC data block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Octets of each PDU, the oldest first.
    pub takes: SmallVec<[u32; 4]>,
    /// Length indicators as octets.
    pub indicators: SmallVec<[u8; 8]>,
    /// True if the next block has to begin with a length of 0.
    pub owes: bool,
}

impl Indicators {
    /// Contents of a block with room for `room` octets. `rests` are the octets that each PDU still has, `owes` is that
    /// of the block before, and `ends` says that the temporary block flow ends with the last PDU.
    pub fn plan(self, room: u32, rests: impl Iterator<Item = u32>, owes: bool, ends: bool) -> Plan {
        let mut rests = rests.peekable();
        let mut plan = Plan::default();
        let mut left = room;
        if owes && rests.peek().is_some() {
            plan.indicators.push(0);
            left -= 1;
        }
        // What ends the indicators of GPRS with a length of 0: nothing follows in the block.
        let mut is_cut_short = false;
        while left > 0
            && let Some(rest) = rests.next()
        {
            let is_last = rests.peek().is_none();
            if rest < left {
                plan.takes.push(rest);
                plan.indicators.push(self.indicator(rest));
                left -= rest + 1;
                continue;
            }
            match self {
                Indicators::Gprs if rest == left && !(ends && is_last) => {
                    // An octet that is left behind a PDU holds no indicator and an octet of the next one.
                    if left > 1 {
                        is_cut_short = true;
                        plan.takes.push(left - 1);
                        plan.indicators.push(self.indicator(0));
                    }
                }
                Indicators::Gprs => plan.takes.push(left),
                Indicators::Egprs => {
                    plan.takes.push(left);
                    plan.owes = rest == left && !(ends && is_last);
                }
            }
            left = 0;
        }
        if self == Indicators::Egprs && left > 0 {
            plan.indicators.push(self.indicator(127));
        }
        self.mark(&mut plan, is_cut_short);
        plan
    }

    fn indicator(self, length: u32) -> u8 {
        match self {
            Indicators::Gprs => (length << 2) as u8,
            Indicators::Egprs => (length << 1) as u8,
        }
    }

    /// Sets M and E.
    fn mark(self, plan: &mut Plan, is_cut_short: bool) {
        let takes = plan.takes.len();
        if self == Indicators::Gprs {
            for (place, indicator) in plan.indicators.iter_mut().enumerate() {
                *indicator |= u8::from(place + 1 < takes) << 1;
            }
            if is_cut_short && let Some(last) = plan.indicators.last_mut() {
                *last = 0;
            }
        }
        if let Some(last) = plan.indicators.last_mut() {
            *last |= 1;
        }
    }

    /// Number of blocks that the PDUs of `rests` take, none if it is above `most`.
    pub fn count(self, room: u32, rests: impl Iterator<Item = u32>, owes: bool, ends: bool, most: u32) -> Option<u32> {
        let mut waiting: SmallVec<[u32; 16]> = SmallVec::new();
        let mut octets = 0;
        for rest in rests {
            octets += rest;
            if octets > most * room {
                return None;
            }
            waiting.push(rest);
        }
        let (mut first, mut owes, mut blocks) = (0, owes, 0);
        while first < waiting.len() {
            blocks += 1;
            if blocks > most {
                return None;
            }
            let plan = self.plan(room, waiting[first..].iter().copied(), owes, ends);
            owes = plan.owes;
            for take in plan.takes {
                waiting[first] -= take;
                first += usize::from(waiting[first] == 0);
            }
        }
        Some(blocks)
    }
}
