// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets whose path began at another host: when they entered it.

use std::collections::HashMap;

use airpath_core::{Pdu, PduId, Span, Time};

use crate::ports::Journey;

/// Number of packets from which those that must have been lost are forgotten.
const MANY: usize = 1 << 16;
/// Time after which a packet must have been lost.
const LONGEST: Span = Span::from_secs(600);

/// Times at which packets of other hosts entered the path. A machine counts from their arrival at its own first hop.
#[derive(Debug, Default)]
pub(super) struct Journeys {
    entered: HashMap<PduId, Time>,
    look_at: usize,
}

impl Journeys {
    /// A packet that came over `journey` is offered at `at`.
    pub(super) fn note(&mut self, journey: &Journey, at: Time) {
        if self.entered.len() >= self.look_at.max(MANY) {
            self.entered.retain(|_, entered| at.since(*entered) < LONGEST);
            self.look_at = 2 * self.entered.len();
        }
        self.entered.insert(journey.id, journey.entered);
    }

    /// Time at which `pdu`, which leaves, entered the path.
    pub(super) fn entered(&self, pdu: &Pdu) -> Time {
        if self.entered.is_empty() { pdu.arrived } else { self.entered.get(&pdu.id).copied().unwrap_or(pdu.arrived) }
    }

    /// The journey of `pdu` as the next host is to know it.
    pub(super) fn onwards(&self, pdu: &Pdu) -> Journey {
        Journey { id: pdu.id, entered: self.entered(pdu), copied: pdu.copied, damage: pdu.damage.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_journey_is_kept_until_the_packet_must_have_been_lost() {
        let mut journeys = Journeys::default();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let pdu = Pdu { id: 5, arrived: at(3), ..Pdu::default() };
        assert_eq!(journeys.entered(&pdu), at(3));
        journeys.note(&Journey { id: 5, entered: at(1), ..Journey::default() }, at(2));
        assert_eq!((journeys.entered(&pdu), journeys.onwards(&pdu).entered), (at(1), at(1)));
        for id in 0..=MANY as u64 {
            journeys.note(&Journey { id: 10 + id, entered: at(700), ..Journey::default() }, at(700));
        }
        assert_eq!(journeys.entered(&pdu), at(3));
        assert_eq!(journeys.entered(&Pdu { id: 10, ..pdu }), at(700));
    }
}
