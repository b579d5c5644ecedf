// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Delivery in order with a limit on the wait: the receiving end of PDCP.
//!
//! Source: 3GPP TS 38.323, clauses 5.2.2.1 and 5.2.2.2, with its variables RX_NEXT, RX_DELIV and RX_REORD. A packet
//! that is missing holds later ones back for t-Reordering at most; then they are delivered without it, and it is too
//! late when it comes.
//!
//! Idealised: COUNT is known as a whole, so that the length of the sequence number, which only the header has, limits
//! nothing; nothing is ciphered.

use std::collections::BTreeMap;

use airpath_core::{Span, Time};

use super::SduKey;

/// Parameters of the reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderingOptions {
    /// Longest wait for a missing packet: t-Reordering; none for ever.
    pub t_reordering: Option<Span>,
    /// True if each packet is delivered when it comes.
    pub out_of_order: bool,
}

/// The receiving end. Packets are told by the count of their direction.
#[derive(Clone, Debug)]
pub struct Reordering {
    options: ReorderingOptions,
    /// RX_DELIV: the first packet that is neither delivered nor given up.
    deliv: u64,
    /// RX_NEXT: the packet behind the last one that has come.
    next: u64,
    /// RX_REORD: the packet behind the one that started t-Reordering.
    reord: u64,
    /// Time at which t-Reordering expires; `Time::NEVER` if it does not run.
    expires: Time,
    /// Packets that have come from RX_DELIV on; none for one that is gone, or was delivered at once.
    held: BTreeMap<u64, Option<SduKey>>,
}

impl Reordering {
    /// An end at which nothing has come.
    pub fn new(options: ReorderingOptions) -> Reordering {
        Reordering { options, deliv: 0, next: 0, reord: 0, expires: Time::NEVER, held: BTreeMap::new() }
    }

    /// Takes the packet `count` at `at`; what is to be delivered goes to `deliver`. False if it comes too late or for
    /// the second time, and is discarded.
    pub fn take(&mut self, at: Time, count: u64, sdu: SduKey, deliver: &mut Vec<SduKey>) -> bool {
        if count < self.deliv || self.held.contains_key(&count) {
            return false;
        }
        let held = if self.options.out_of_order {
            deliver.push(sdu);
            None
        } else {
            Some(sdu)
        };
        self.note(at, count, held, deliver);
        true
    }

    /// The packet `count` does not come any more, as the receiving end knows at `at`.
    pub fn gone(&mut self, at: Time, count: u64, deliver: &mut Vec<SduKey>) {
        if count >= self.deliv && !self.held.contains_key(&count) {
            self.note(at, count, None, deliver);
        }
    }

    fn note(&mut self, at: Time, count: u64, sdu: Option<SduKey>, deliver: &mut Vec<SduKey>) {
        self.held.insert(count, sdu);
        self.next = self.next.max(count + 1);
        if count == self.deliv {
            self.deliver_consecutive(deliver);
        }
        if self.deliv >= self.reord {
            self.expires = Time::NEVER;
        }
        self.start(at);
    }

    /// Starts t-Reordering if it does not run and a packet is missing.
    fn start(&mut self, at: Time) {
        if self.expires == Time::NEVER
            && self.deliv < self.next
            && let Some(wait) = self.options.t_reordering
        {
            self.reord = self.next;
            self.expires = at + wait;
        }
    }

    /// Delivers from RX_DELIV on what has come without a gap.
    fn deliver_consecutive(&mut self, deliver: &mut Vec<SduKey>) {
        while let Some(sdu) = self.held.remove(&self.deliv) {
            deliver.extend(sdu);
            self.deliv += 1;
        }
    }

    /// Time at which t-Reordering expires; `Time::NEVER` if it does not run.
    pub fn expires(&self) -> Time {
        self.expires
    }

    /// Gives up at `at` what t-Reordering has waited for, if it has expired.
    pub fn expire(&mut self, at: Time, deliver: &mut Vec<SduKey>) {
        if self.expires > at {
            return;
        }
        self.expires = Time::NEVER;
        let later = self.held.split_off(&self.reord);
        deliver.extend(std::mem::replace(&mut self.held, later).into_values().flatten());
        self.deliv = self.reord;
        self.deliver_consecutive(deliver);
        self.start(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Sdus;
    use airpath_core::Pdu;

    const WAIT: Span = Span::from_millis(10);

    struct Bench {
        reordering: Reordering,
        keys: Vec<SduKey>,
    }

    impl Bench {
        fn new(t_reordering: Option<Span>, out_of_order: bool) -> Bench {
            let mut sdus = Sdus::new();
            let keys = (0..20).map(|_| sdus.insert(Pdu::default(), 1)).collect();
            Bench { reordering: Reordering::new(ReorderingOptions { t_reordering, out_of_order }), keys }
        }

        fn numbers(&self, keys: &[SduKey]) -> Vec<usize> {
            keys.iter().map(|key| self.keys.iter().position(|known| known == key).unwrap()).collect()
        }

        /// Takes `count` at a time in ms; what is delivered, none if it was discarded.
        fn take(&mut self, at: u64, count: usize) -> Option<Vec<usize>> {
            let mut deliver = Vec::new();
            let at = Time::from_nanos(at * 1_000_000);
            let taken = self.reordering.take(at, count as u64, self.keys[count], &mut deliver);
            taken.then(|| self.numbers(&deliver))
        }

        fn expire(&mut self, at: u64) -> Vec<usize> {
            let mut deliver = Vec::new();
            self.reordering.expire(Time::from_nanos(at * 1_000_000), &mut deliver);
            self.numbers(&deliver)
        }

        fn expires(&self) -> Option<u64> {
            self.reordering.expires().finite().map(|at| at.nanos() / 1_000_000)
        }
    }

    /// 1 is missing from 1 ms on, 4 from 5 ms on. t-Reordering runs for what was there when it began: RX_REORD is 3.
    #[test]
    fn what_is_missing_is_given_up_after_t_reordering() {
        let mut bench = Bench::new(Some(WAIT), false);
        assert_eq!((bench.take(0, 0), bench.expires()), (Some(vec![0]), None));
        assert_eq!((bench.take(1, 2), bench.expires()), (Some(vec![]), Some(11)));
        assert_eq!(bench.take(3, 3), Some(vec![]));
        assert_eq!((bench.take(5, 5), bench.expires()), (Some(vec![]), Some(11)));
        // 1 is given up: 2 and 3 go. 4 is waited for from now on.
        assert_eq!((bench.expire(11), bench.expires()), (vec![2, 3], Some(21)));
        assert_eq!(bench.take(12, 1), None, "too late");
        assert_eq!(bench.take(12, 5), None, "twice");
        assert_eq!((bench.take(20, 4), bench.expires()), (Some(vec![4, 5]), None));
    }

    /// The timer stops when what started it has been delivered, and starts again for what is still missing.
    #[test]
    fn the_timer_starts_again_for_the_next_gap() {
        let mut bench = Bench::new(Some(WAIT), false);
        assert_eq!(bench.take(0, 1), Some(vec![]));
        assert_eq!((bench.take(4, 3), bench.expires()), (Some(vec![]), Some(10)));
        assert_eq!((bench.take(6, 0), bench.expires()), (Some(vec![0, 1]), Some(16)));
        assert_eq!(bench.expire(15), Vec::<usize>::new());
        assert_eq!((bench.expire(16), bench.expires()), (vec![3], None));
    }

    #[test]
    fn without_a_limit_it_waits_and_out_of_order_it_does_not() {
        let mut bench = Bench::new(None, false);
        assert_eq!((bench.take(0, 1), bench.expires()), (Some(vec![]), None));
        let mut deliver = Vec::new();
        bench.reordering.gone(Time::ZERO, 0, &mut deliver);
        assert_eq!(bench.numbers(&deliver), [1]);
        let mut bench = Bench::new(Some(WAIT), true);
        assert_eq!(bench.take(0, 1), Some(vec![1]));
        assert_eq!(bench.take(1, 1), None, "twice");
        assert_eq!((bench.take(2, 3), bench.expires()), (Some(vec![3]), Some(10)));
        assert_eq!(bench.expire(10), Vec::<usize>::new());
        // RX_REORD was 2: what is behind it is waited for again.
        assert_eq!((bench.take(11, 0), bench.take(11, 2)), (None, Some(vec![2])));
    }
}
