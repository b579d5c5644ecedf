// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reordering as RFC 4737 defines it: a packet is reordered if one with a higher number arrived before.

use serde::Serialize;

use super::quantiles::median;
use super::share::{Share, share};
use crate::records::Packets;

/// An arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Number of the packet.
    pub number: usize,
    /// Time of sending, by the sender's clock.
    pub sent_ns: u64,
    /// Time of arrival, by the receiver's clock.
    pub at_ns: u64,
}

impl Arrived {
    /// Arrival less sending, in ns; the two clocks may differ.
    pub fn transit_ns(&self) -> i128 {
        i128::from(self.at_ns) - i128::from(self.sent_ns)
    }
}

/// Arrivals in order, and those behind a higher number with the number of arrivals that overtook each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Arrivals with rising numbers.
    pub straight: Vec<Arrived>,
    /// Reordered arrivals, and how many places behind its own each came.
    pub reordered: Vec<(Arrived, usize)>,
}

impl Order {
    /// The order of `packets`.
    pub fn of(packets: &Packets) -> Order {
        let mut order = Order::default();
        let arrived = packets.arrived();
        // Numbers with rising maxima, and their places among all arrivals.
        let mut places: Vec<usize> = Vec::new();
        for (place, (number, sent_ns, at_ns)) in arrived.into_iter().enumerate() {
            let this = Arrived { number, sent_ns, at_ns };
            if order.straight.last().is_none_or(|last| number > last.number) {
                order.straight.push(this);
                places.push(place);
            } else {
                let first = order.straight.partition_point(|known| known.number < number);
                order.reordered.push((this, place - places[first]));
            }
        }
        order
    }

    /// Number of arrivals.
    pub fn arrivals(&self) -> usize {
        self.straight.len() + self.reordered.len()
    }
}

/// Reordering of a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reordering {
    /// Share of reordered packets among those that arrived.
    #[serde(flatten)]
    pub share: Share,
    /// Median number of packets that overtook a reordered one; none without any.
    pub median_displacement: Option<usize>,
    /// The greatest such number.
    pub greatest_displacement: usize,
    /// Median time by which a reordered packet took longer than its neighbours, in ns.
    pub held_ns: Option<u64>,
}

/// Measures reordering; none if nothing arrived.
pub fn reordering(order: &Order) -> Option<Reordering> {
    let share = share(order.reordered.len() as u64, order.arrivals() as u64, 0.0)?;
    let mut places: Vec<f64> = order.reordered.iter().map(|(_, places)| *places as f64).collect();
    let greatest_displacement = order.reordered.iter().map(|(_, places)| *places).max().unwrap_or(0);
    let mut held: Vec<f64> = order
        .reordered
        .iter()
        .filter_map(|(late, _)| {
            let next = order.straight.partition_point(|known| known.number < late.number);
            let neighbours = [next.checked_sub(1), Some(next)].into_iter().flatten();
            let transits: Vec<i128> =
                neighbours.filter_map(|place| order.straight.get(place)).map(Arrived::transit_ns).collect();
            let usual = transits.iter().sum::<i128>() / transits.len().max(1) as i128;
            (!transits.is_empty()).then(|| (late.transit_ns() - usual) as f64)
        })
        .collect();
    Some(Reordering {
        share,
        median_displacement: median(&mut places).map(|places| places.round() as usize),
        greatest_displacement,
        held_ns: median(&mut held).map(|held| held.max(0.0).round() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::Arrival;

    #[test]
    fn a_held_back_packet_is_found_with_its_places_and_its_time() {
        // Sent every 10, 5 on the way; number 2 is held back for 23: it comes at 48, behind 3 (35) and 4 (45).
        let sent: Vec<u64> = (0..6).map(|number| 100 + 10 * number).collect();
        let at = |number: u32, arrived_ns| Arrival { number, arrived_ns };
        let arrivals = [at(0, 105), at(1, 115), at(3, 135), at(4, 145), at(2, 148), at(5, 155)];
        let order = Order::of(&Packets::of(1_500, &sent, &arrivals));
        assert_eq!(order.straight.iter().map(|one| one.number).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
        assert_eq!(order.reordered.iter().map(|(one, places)| (one.number, *places)).collect::<Vec<_>>(), [(2, 2)]);
        let found = reordering(&order).unwrap();
        assert_eq!((found.share.hits, found.share.of), (1, 6));
        assert_eq!((found.median_displacement, found.greatest_displacement, found.held_ns), (Some(2), 2, Some(23)));
    }

    #[test]
    fn equal_stamps_are_no_reordering_and_losses_are_none() {
        let at = |number: u32, arrived_ns| Arrival { number, arrived_ns };
        let packets = Packets::of(1_500, &[1, 2, 3, 4], &[at(1, 9), at(0, 9), at(3, 10)]);
        let found = reordering(&Order::of(&packets)).unwrap();
        assert_eq!((found.share.hits, found.share.of, found.held_ns), (0, 3, None));
        assert!(reordering(&Order::of(&Packets::of(1_500, &[1], &[]))).is_none());
    }
}
