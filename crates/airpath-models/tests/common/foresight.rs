// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A promise of a machine: what it foretold is what leaves it, and nothing else does.

use std::collections::VecDeque;

use airpath_core::{Emission, Item, Machine, Pdu, PortId, Span, Time};

/// Time for which a machine is asked beyond the present.
const HORIZON: Span = Span::from_millis(40);

/// Packets that were foretold at one instant, held against those that leave.
#[derive(Debug, Default)]
pub struct Foresight {
    foretold: VecDeque<(Time, PortId, Pdu)>,
    asked: Time,
    /// Before this instant nothing else leaves.
    limit: Time,
    /// Number of packets that left as foretold.
    pub came_true: u64,
}

impl Foresight {
    /// Asks `machine` anew at `now`, unless an earlier promise still holds.
    pub fn ask(&mut self, machine: &impl Machine, now: Time) {
        if now < self.limit {
            return;
        }
        self.asked = now;
        let until = now + HORIZON;
        let foretold = &mut self.foretold;
        foretold.clear();
        let nothing_else_before =
            machine.foresee(until, &mut |at, port, pdu| foretold.push_back((at, port, pdu.clone())));
        assert!(foretold.iter().all(|(at, ..)| *at >= now), "foretold for the past of {now:?}: {foretold:?}");
        assert!(foretold.iter().is_sorted_by_key(|(at, ..)| *at), "foretold out of order: {foretold:?}");
        // What is offered from now on may leave after that.
        self.limit = nothing_else_before.min(until).min(now + machine.least_transit());
    }

    /// A command at `at` may change everything from then on.
    pub fn commanded(&mut self, at: Time) {
        self.limit = self.limit.min(at);
    }

    /// Holds the promise against what left up to `reached`.
    pub fn check(&mut self, emissions: &[Emission], reached: Time) {
        for emission in emissions.iter().filter(|emission| emission.at < self.limit) {
            let Item::Pdu(pdu) = &emission.item else { panic!("a path emits packets only") };
            let Some((at, port, told)) = self.foretold.pop_front() else {
                panic!(
                    "at {:?} the machine promised for {:?}, and did not foretell {emission:?}",
                    self.asked, self.limit
                );
            };
            assert_eq!((at, port), (emission.at, emission.port), "foretold was {told:?}, and {pdu:?} left");
            let key = |pdu: &Pdu| (pdu.id, pdu.len, pdu.ecn, pdu.arrived, pdu.damage.clone());
            assert_eq!(key(&told), key(pdu), "left otherwise than foretold");
            self.came_true += 1;
        }
        let missed = self.foretold.front().filter(|(at, ..)| *at < self.limit && *at <= reached);
        assert!(missed.is_none(), "foretold, and did not leave by {reached:?}: {missed:?}");
    }
}
