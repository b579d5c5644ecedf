// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Queue of the bottleneck: how many packets were ahead of each when it came, and where packets were dropped.

use serde::Serialize;

use super::order::{Arrived, Order};
use super::quantiles::median;
use crate::records::Packets;

/// A packet counts as before a full queue from this share of the greatest number ahead on, and as before an
/// emptier one below half.
const FULL: f64 = 0.8;
const HALF: f64 = 0.5;
/// Least number of drops that show a limit.
const LEAST_DROPS: usize = 5;
/// A queue overflows where losses before a full queue are so many times as frequent as before an emptier one.
const MORE_OFTEN: f64 = 3.0;

/// Queue of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Number of packets that a full queue holds, beside the one under transmission; none where the queue did not
    /// overflow.
    pub limit_packets: Option<u64>,
    /// Greatest number of packets that was seen ahead of one.
    pub most_ahead_packets: u64,
    /// Longest delay in the queue, in ns.
    pub longest_delay_ns: u64,
}

/// State of the queue when each packet came.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// Number of packets ahead of the packet; of a lost one that of the last before it which arrived.
    ahead: Vec<f64>,
    lost: Vec<bool>,
    most: f64,
}

impl Backlog {
    /// The backlog before each of `packets`; a packet leaves the bottleneck `propagation_ns` before it arrives,
    /// and `lost_share` of the packets are lost behind it.
    pub fn of(packets: &Packets, order: &Order, propagation_ns: i128, lost_share: f64) -> Backlog {
        let mut backlog = Backlog::default();
        let straight = &order.straight;
        // Packets that are lost behind the bottleneck are not among the arrivals.
        let seen = 1.0 - lost_share.clamp(0.0, 0.9);
        let departures = Departures::of(packets, order);
        let (mut last, mut next) = (0.0, 0);
        for (number, packet) in packets.all.iter().enumerate() {
            let present = straight.get(next).filter(|arrived| arrived.number == number);
            if present.is_some() {
                let entered = i128::from(packet.sent_ns) + propagation_ns;
                last = departures.ahead(number, entered) as f64 / seen;
                next += 1;
            }
            backlog.most = backlog.most.max(last);
            backlog.ahead.push(last);
            backlog.lost.push(packet.arrived_ns.is_none());
        }
        backlog
    }

    /// Losses of the packets before which the queue was less than half full.
    pub fn losses_below_half(&self) -> Vec<bool> {
        let below = |ahead: &f64| *ahead < self.most * HALF;
        self.ahead.iter().zip(&self.lost).filter(|(ahead, _)| below(ahead)).map(|(_, lost)| *lost).collect()
    }

    /// Describes the queue; `lost_share` is the share of losses that have other causes.
    pub fn queue(&self, order: &Order, lost_share: f64) -> Option<Queue> {
        let least = order.straight.iter().map(super::order::Arrived::transit_ns).min()?;
        let most = order.straight.iter().map(super::order::Arrived::transit_ns).max()?;
        let full = |ahead: f64| ahead >= self.most * FULL;
        let share = |wanted: bool| {
            let of = self.ahead.iter().filter(|ahead| full(**ahead) == wanted).count();
            let hits =
                self.ahead.iter().zip(&self.lost).filter(|(ahead, lost)| full(**ahead) == wanted && **lost).count();
            (hits, hits as f64 / of.max(1) as f64)
        };
        let ((drops, when_full), (_, otherwise)) = (share(true), share(false));
        let overflows = drops >= LEAST_DROPS && when_full > MORE_OFTEN * otherwise.max(lost_share);
        // What comes in right behind a drop takes the place that has just become free.
        let mut behind_drops: Vec<f64> = (1..self.ahead.len())
            .filter(|number| self.lost[number - 1] && !self.lost[*number] && full(self.ahead[*number]))
            .map(|number| self.ahead[number])
            .collect();
        let limit = median(&mut behind_drops).filter(|_| overflows);
        Some(Queue {
            limit_packets: limit.map(|limit| limit.round() as u64),
            most_ahead_packets: self.most.round() as u64,
            longest_delay_ns: u64::try_from(most - least).unwrap_or(0),
        })
    }
}

/// Departures of packets from the bottleneck, which keeps their order: one that was held back behind it left between
/// its neighbours.
struct Departures<'a> {
    straight: &'a [Arrived],
    /// Number of arrivals with a lower number than each packet's.
    arrived_before: Vec<usize>,
}

impl Departures<'_> {
    fn of<'a>(packets: &Packets, order: &'a Order) -> Departures<'a> {
        let mut count = 0;
        let before = packets.all.iter().map(|packet| {
            let before = count;
            count += usize::from(packet.arrived_ns.is_some());
            before
        });
        Departures { arrived_before: before.collect(), straight: &order.straight }
    }

    /// Number of packets before packet `number` whose departures, seen as arrivals in order, are behind `at_ns`.
    fn ahead(&self, number: usize, at_ns: i128) -> usize {
        let place = self.straight.partition_point(|arrived| i128::from(arrived.at_ns) <= at_ns);
        let Some(first) = self.straight.get(place).filter(|first| first.number < number) else { return 0 };
        let waiting = self.arrived_before[number] - self.arrived_before[first.number];
        let Some(gone) = place.checked_sub(1).map(|before| self.straight[before]) else { return waiting };
        // Those between the two left at equal intervals.
        let between = self.arrived_before[first.number] - self.arrived_before[gone.number] - 1;
        let (gap, passed) = (i128::from(first.at_ns - gone.at_ns), at_ns - i128::from(gone.at_ns));
        let left = (passed * (between as i128 + 1) / gap.max(1)) as usize;
        waiting + between.saturating_sub(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::Arrival;

    const MS: u64 = 1_000_000;

    /// A link that takes 10 ms for a packet, 20 ms of propagation, and a queue of `limit` packets, offered a packet
    /// every 8 ms; every packet of `lost` is lost behind it.
    fn driven(count: u64, limit: usize, lost: impl Fn(u64) -> bool) -> Packets {
        let (mut leaving, mut arrivals, mut free) = (std::collections::VecDeque::new(), Vec::new(), 0u64);
        let sent: Vec<u64> = (0..count).map(|number| 1_000 * MS + number * 8 * MS).collect();
        for (number, at) in sent.iter().enumerate() {
            while leaving.front().is_some_and(|end| end <= at) {
                leaving.pop_front();
            }
            // One is under transmission.
            if leaving.len() > limit {
                continue;
            }
            free = free.max(*at) + 10 * MS;
            leaving.push_back(free);
            if !lost(number as u64) {
                arrivals.push(Arrival { number: number as u32, arrived_ns: free + 20 * MS });
            }
        }
        Packets::of(1_500, &sent, &arrivals)
    }

    #[test]
    fn the_limit_of_a_queue_that_overflows_is_found() {
        for limit in [1, 7, 50] {
            let packets = driven(2_000, limit, |_| false);
            let order = Order::of(&packets);
            let queue = Backlog::of(&packets, &order, 20 * i128::from(MS), 0.0).queue(&order, 0.0).unwrap();
            assert_eq!(queue.limit_packets, Some(limit as u64), "{queue:?}");
        }
    }

    /// Every tenth packet is held back behind the bottleneck, for longer than ten others take.
    #[test]
    fn packets_that_come_late_wait_in_the_queue_as_others_do() {
        for limit in [7, 50, 300] {
            let mut packets = driven(6_000, limit, |_| false);
            for packet in packets.all.iter_mut().step_by(10) {
                packet.arrived_ns = packet.arrived_ns.map(|at| at + 123 * MS);
            }
            let order = Order::of(&packets);
            assert!(order.reordered.len() > 300, "{}", order.reordered.len());
            let queue = Backlog::of(&packets, &order, 20 * i128::from(MS), 0.0).queue(&order, 0.0).unwrap();
            assert_eq!(queue.limit_packets, Some(limit as u64), "{queue:?}");
        }
    }

    #[test]
    fn other_losses_are_no_overflow_and_those_at_low_backlog_are_told() {
        let packets = driven(400, 10_000, |number| number % 20 == 7);
        let order = Order::of(&packets);
        let backlog = Backlog::of(&packets, &order, 20 * i128::from(MS), 0.05);
        let queue = backlog.queue(&order, 0.05).unwrap();
        // After 400 packets a fifth of 3200 ms waits: about 80 packets.
        assert_eq!(queue.limit_packets, None);
        assert!((75..=85).contains(&queue.most_ahead_packets), "{queue:?}");
        let below = backlog.losses_below_half();
        let share = below.iter().filter(|lost| **lost).count() as f64 / below.len() as f64;
        assert!((0.04..0.06).contains(&share), "{share} of {}", below.len());
    }
}
