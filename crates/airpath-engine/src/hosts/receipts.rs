// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiver's account of packets that travel as datagrams: each of them came, or is lost for good.
//!
//! A [window](airpath_models::flow_control) needs such an account: a packet that is lost between the hosts leaves no
//! queue, and would count in the window for ever.

use std::collections::BTreeMap;

use airpath_core::{Span, Time};

/// Time for a packet that is known to have been sent. What comes later is discarded, as its loss has been told.
pub(super) const PATIENCE: Span = Span::from_millis(100);

/// Number of packets and their total length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Sum {
    /// This and one packet more.
    pub(super) fn and(self, bytes: u64) -> Sum {
        Sum { packets: self.packets.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }

    /// This and `other`.
    pub(super) fn plus(self, other: Sum) -> Sum {
        Sum { packets: self.packets.saturating_add(other.packets), bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// This without `other`.
    fn less(self, other: Sum) -> Sum {
        Sum { packets: self.packets.saturating_sub(other.packets), bytes: self.bytes.saturating_sub(other.bytes) }
    }

    /// The one with more packets.
    fn later(self, other: Sum) -> Sum {
        if other.packets > self.packets { other } else { self }
    }
}

/// The account. Times are those of any clock that does not go back.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// The packets from the first on whose fate is known.
    settled: Sum,
    /// Lengths of packets behind these that came, by the number of packets before them.
    early: BTreeMap<u64, u64>,
    /// Packets that came and were taken.
    came: Sum,
    /// Packets that are lost for good.
    lost: Sum,
    /// Packets that are known to have been sent.
    sent: Sum,
    /// Number of packets up to the last one that came or is lost.
    reached: u64,
    /// The packets sent by an earlier time, and the time at which those of them that have not come are lost.
    limit: Option<(Time, Sum)>,
}

impl Receipts {
    /// A packet of `bytes` came at `now`, before which those of `before` were sent. False for one that came already or
    /// whose loss has been told.
    pub(super) fn take(&mut self, now: Time, before: Sum, bytes: u64) -> bool {
        let number = before.packets;
        if number < self.settled.packets || self.early.contains_key(&number) {
            return false;
        }
        self.came = self.came.and(bytes);
        self.early.insert(number, bytes);
        while let Some(bytes) = self.early.remove(&self.settled.packets) {
            self.settled = self.settled.and(bytes);
        }
        let sent = before.and(bytes);
        self.reached = self.reached.max(sent.packets);
        self.told(now, sent);
        true
    }

    /// The sender is known at `now` to have sent `sent`.
    pub(super) fn told(&mut self, now: Time, sent: Sum) {
        self.sent = self.sent.later(sent);
        if self.limit.is_some_and(|(_, limit)| limit.packets <= self.settled.packets) {
            self.limit = None;
        }
        if self.limit.is_none() && self.sent.packets > self.settled.packets {
            self.limit = Some((now + PATIENCE, self.sent));
        }
    }

    /// The time at which something may be lost.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.limit.map(|(at, _)| at)
    }

    /// Counts what has not come in time by `now`, where everything that has come is taken. The sum of all that is lost,
    /// if it is greater than before.
    pub(super) fn give_up(&mut self, now: Time) -> Option<Sum> {
        let (_, limit) = self.limit.filter(|(at, _)| *at <= now)?;
        self.limit = None;
        let before = self.lost;
        if limit.packets > self.settled.packets {
            let behind = self.early.split_off(&limit.packets);
            let came = std::mem::replace(&mut self.early, behind);
            let came = came.into_values().fold(Sum::default(), Sum::and);
            self.lost = self.lost.plus(limit.less(self.settled).less(came));
            self.settled = limit;
            self.reached = self.reached.max(limit.packets);
            while let Some(bytes) = self.early.remove(&self.settled.packets) {
                self.settled = self.settled.and(bytes);
            }
        }
        self.told(now, self.sent);
        (self.lost != before).then_some(self.lost)
    }

    /// Number of packets that are lost, or have been overtaken.
    pub(super) fn missing_packets(&self) -> u64 {
        self.reached.saturating_sub(self.came.packets)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use airpath_core::Credit;
    use proptest::prelude::*;

    use super::*;
    use crate::hosts::tallies::CreditAccount;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(1_000_000 * ms)
    }

    fn sum(packets: u64, bytes: u64) -> Sum {
        Sum { packets, bytes }
    }

    #[test]
    fn a_gap_is_lost_when_its_time_is_over() {
        let mut receipts = Receipts::default();
        // Packets 0 to 4 of 100, 200, 300, 400 and 500 bytes; 1 and 2 are missing when 3 comes.
        assert!(receipts.take(ms(0), sum(0, 0), 100));
        assert_eq!(receipts.deadline(), None);
        assert!(receipts.take(ms(10), sum(3, 600), 400));
        assert!(!receipts.take(ms(11), sum(3, 600), 400), "a copy");
        assert_eq!((receipts.missing_packets(), receipts.deadline()), (2, Some(ms(110))));
        // 2 comes late, but in time.
        assert!(receipts.take(ms(109), sum(2, 300), 300));
        assert_eq!(receipts.give_up(ms(109)), None);
        assert_eq!(receipts.give_up(ms(110)), Some(sum(1, 200)));
        assert!(!receipts.take(ms(111), sum(1, 100), 200), "its loss is told");
        // 4 was the last: only the sender can tell.
        receipts.told(ms(120), sum(5, 1500));
        assert_eq!(receipts.deadline(), Some(ms(220)));
        assert_eq!(receipts.give_up(ms(220)), Some(sum(2, 700)));
        assert_eq!((receipts.missing_packets(), receipts.deadline()), (2, None));
        receipts.told(ms(230), sum(5, 1500));
        assert_eq!(receipts.deadline(), None);
    }

    #[test]
    fn what_was_sent_after_a_limit_has_a_time_of_its_own() {
        let mut receipts = Receipts::default();
        receipts.told(ms(0), sum(1, 10));
        receipts.told(ms(60), sum(2, 30));
        assert_eq!(receipts.give_up(ms(100)), Some(sum(1, 10)));
        assert_eq!(receipts.deadline(), Some(ms(200)));
        assert!(receipts.take(ms(150), sum(1, 10), 20));
        assert_eq!(receipts.give_up(ms(200)), None);
        assert_eq!(receipts.missing_packets(), 1);
    }

    /// Fates of datagrams in the network: how often each comes, and how late.
    fn fates() -> impl Strategy<Value = Vec<(u8, u64)>> {
        let fate = prop_oneof![2 => Just(0_u8), 6 => Just(1), 1 => Just(2)];
        let delay_ms = prop_oneof![8 => 0_u64..20, 1 => 0_u64..300];
        proptest::collection::vec((fate, delay_ms), 1..120)
    }

    proptest! {
        /// A hop at one host and a queue at the other, of which the first knows by credits alone, as machines do.
        #[test]
        fn whatever_is_lost_the_window_holds_and_all_of_it_comes_back(
            fates in fates(),
            window_packets in 1_u32..6,
            window_bytes in 100_u64..4000,
            lengths in proptest::collection::vec(1_u64..1500, 120),
            service_ms in 1_u64..30,
            reliable_ms in 0_u64..40,
        ) {
            let first = Credit { window_packets, window_bytes, ..Credit::UNLIMITED };
            let mut account = CreditAccount::new(first);
            let (mut credit, mut sent, mut announced) = (first, Sum::default(), Sum::default());
            let mut receipts = Receipts::default();
            // Datagrams by arrival; sums told, and credits and losses, over the reliable connection.
            let mut network: Vec<(u64, Sum, u64)> = Vec::new();
            let mut tallies: VecDeque<(u64, Sum)> = VecDeque::new();
            let mut back: VecDeque<(u64, Option<Credit>, Option<Sum>)> = VecDeque::new();
            let mut queue: VecDeque<u64> = VecDeque::new();
            let (mut taken, mut accepted, mut last_service) = (Sum::default(), Sum::default(), 0);
            let mut waiting: VecDeque<((u8, u64), u64)> = fates.into_iter().zip(lengths).collect();
            for now_ms in 0..40_000_u64 {
                let now = ms(now_ms);
                while let Some((_, word, loss)) = back.pop_front_if(|(at, ..)| *at <= now_ms) {
                    if let Some(word) = word {
                        credit = account.heard(word);
                    }
                    if let Some(loss) = loss.and_then(|loss| account.lost(loss)) {
                        credit = loss;
                    }
                }
                // The hop: what it has sent and not been told of, as `Windows` counts it.
                while let Some(&((copies, delay_ms), bytes)) = waiting.front() {
                    let (packets, on_way) = (sent.packets - credit.taken_packets, sent.bytes - credit.taken_bytes);
                    let fits = packets < u64::from(window_packets) && on_way + bytes <= window_bytes;
                    if !fits && packets > 0 {
                        break;
                    }
                    waiting.pop_front();
                    for copy in 0..u64::from(copies) {
                        network.push((now_ms + delay_ms + 7 * copy, sent, bytes));
                    }
                    sent = sent.and(bytes);
                }
                if now_ms % 20 == 0 && announced != sent {
                    announced = sent;
                    tallies.push_back((now_ms + reliable_ms, sent));
                }
                let arrived: Vec<_> = network.extract_if(.., |(at, ..)| *at <= now_ms).collect();
                for (_, before, bytes) in arrived {
                    if receipts.take(now, before, bytes) {
                        accepted = accepted.and(bytes);
                        queue.push_back(bytes);
                    }
                }
                while let Some((_, sum)) = tallies.pop_front_if(|(at, _)| *at <= now_ms) {
                    receipts.told(now, sum);
                }
                if let Some(lost) = receipts.give_up(now) {
                    back.push_back((now_ms + reliable_ms, None, Some(lost)));
                }
                let queued: u64 = queue.iter().sum();
                prop_assert!(queue.len() <= window_packets as usize, "the queue holds {}", queue.len());
                prop_assert!(queue.len() <= 1 || queued <= window_bytes, "the queue holds {queued} bytes");
                if now_ms >= last_service + service_ms && let Some(bytes) = queue.pop_front() {
                    last_service = now_ms;
                    taken = taken.and(bytes);
                    let word = Credit { taken_packets: taken.packets, taken_bytes: taken.bytes, ..first };
                    back.push_back((now_ms + reliable_ms, Some(word), None));
                }
                let returned = sum(credit.taken_packets, credit.taken_bytes);
                prop_assert!(returned.packets <= sent.packets && returned.bytes <= sent.bytes);
                if waiting.is_empty() && returned == sent {
                    break;
                }
            }
            prop_assert!(waiting.is_empty(), "it is stuck with {} packets to go", waiting.len());
            prop_assert_eq!(sum(credit.taken_packets, credit.taken_bytes), sent);
            prop_assert_eq!(accepted.plus(receipts.lost), sent);
            prop_assert_eq!(receipts.missing_packets(), receipts.lost.packets);
        }
    }
}
