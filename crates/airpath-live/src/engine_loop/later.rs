// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Orders that take effect at an instant to come, so that links on several hosts carry them out at one instant.

use super::Order;

/// Orders that wait for their time, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Later(Vec<Order>);

impl Later {
    /// Keeps `order` until its time; of two at one instant the first comes first.
    pub(super) fn push(&mut self, order: Order) {
        let place = self.0.partition_point(|other| other.received_ns <= order.received_ns);
        self.0.insert(place, order);
    }

    /// Time of the next order by CLOCK_MONOTONIC in ns.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.first().map(|order| order.received_ns)
    }

    /// The next order whose time has come.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Order> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        Some(self.0.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn orders_come_at_their_time_and_in_their_order() {
        let mut later = Later::default();
        for (link, received_ns) in [(0, 20), (1, 10), (2, 20)] {
            later.push(Order { link, received_ns, command: None, answer: channel().0 });
        }
        assert_eq!((later.next_ns(), later.pop_due(9).map(|order| order.link)), (Some(10), None));
        let mut links = Vec::new();
        while let Some(order) = later.pop_due(20) {
            links.push(order.link);
        }
        assert_eq!((links, later.next_ns()), (vec![1, 0, 2], None));
    }
}
