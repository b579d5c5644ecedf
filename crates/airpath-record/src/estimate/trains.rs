// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Trains of packets on an idle path: how long the first one takes, and when those behind it come. A cellular link gives
//! a short train other opportunities than a saturating load (Sentosa et al. 2025, CellReplay), which a scenario replays
//! by its rate `cellreplay`.

use std::fmt::Write as _;

use crate::records::{Packet, Packets};

/// Bits of an opportunity: a packet of 1500 bytes.
const OPPORTUNITY_BITS: f64 = 12_000.0;
/// Least number of trains of a trace, whose third line is its end.
const LEAST_TRAINS: usize = 2;

/// A train that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// Time of sending of its first packet, in ms since the first train.
    pub at_ms: u64,
    /// Transit time of its first packet, in ms.
    pub base_delay_ms: u64,
    /// Opportunities to send 1500 bytes, in ms since the arrival of its first packet, which has the first one.
    pub opportunities_ms: Vec<u64>,
}

/// The first packets of trains of `train` packets: they find the path idle.
pub fn firsts(packets: &Packets, train: u32) -> Packets {
    let all = packets.all.iter().step_by(train.max(1) as usize).copied().collect();
    Packets { all, ..packets.clone() }
}

/// Trains of `train` packets each; `offset_ns` is the receiver's clock less the sender's, at a time of the sender. A
/// train whose first packet was lost tells nothing, nor does one that the end of the phase cut short. None with fewer than two trains.
pub fn trains(packets: &Packets, train: u32, offset_ns: impl Fn(u64) -> i128) -> Option<Vec<Train>> {
    let began_ns = packets.all.first()?.sent_ns;
    let seen = |these: &[Packet]| {
        let first = these.first()?;
        let arrived_ns = first.arrived_ns?;
        let delay_ns = i128::from(arrived_ns) - i128::from(first.sent_ns) - offset_ns(first.sent_ns);
        let mut after_ns: Vec<u64> =
            these[1..].iter().filter_map(|packet| Some(packet.arrived_ns?.saturating_sub(arrived_ns))).collect();
        after_ns.sort_unstable();
        let (mut opportunities_ms, mut credit) = (Vec::new(), 0.0);
        // A packet has an opportunity of its own where the one before has too little left.
        for after_ns in std::iter::once(0).chain(after_ns) {
            credit += packets.bits();
            while credit > 0.0 {
                credit -= OPPORTUNITY_BITS;
                opportunities_ms.push(in_ms(after_ns));
            }
        }
        Some(Train {
            at_ms: in_ms(first.sent_ns.saturating_sub(began_ns)),
            base_delay_ms: in_ms(u64::try_from(delay_ns).unwrap_or(0)),
            opportunities_ms,
        })
    };
    let found: Vec<Train> = packets.all.chunks_exact(train.max(1) as usize).filter_map(seen).collect();
    (found.len() >= LEAST_TRAINS).then_some(found)
}

fn in_ms(ns: u64) -> u64 {
    (ns + 500_000) / 1_000_000
}

/// The trains as a trace of CellReplay. Its last line is where it begins anew, a train's distance behind the last one.
pub fn text(trains: &[Train]) -> String {
    let mut text = String::new();
    let mut line = |at_ms: u64, train: &Train| {
        let _ = write!(text, "{at_ms} {}", train.base_delay_ms);
        train.opportunities_ms.iter().for_each(|ms| text.push_str(&format!(" {ms}")));
        text.push('\n');
    };
    trains.iter().for_each(|train| line(train.at_ms, train));
    if let [.., before, last] = trains {
        line(last.at_ms + (last.at_ms - before.at_ms).max(1), last);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::Arrival;

    /// Trains of three packets every 100 ms, over a link of 5 Mbit/s and 20 ms: 2.4 ms a packet of 1500 bytes.
    fn driven(length_bytes: u32, lost: &[u32]) -> Packets {
        let sent: Vec<u64> = (0..9).map(|number| 7_000_000_000 + number / 3 * 100_000_000).collect();
        let arrivals: Vec<Arrival> = (0..9u32)
            .filter(|number| !lost.contains(number))
            .map(|number| Arrival {
                number,
                arrived_ns: sent[number as usize] + 20_000_000 + u64::from(number % 3 + 1) * 2_400_000,
            })
            .collect();
        Packets::of(length_bytes, &sent, &arrivals)
    }

    #[test]
    fn a_train_has_the_delay_of_its_first_packet_and_the_opportunities_of_all() {
        let found = trains(&driven(1_500, &[]), 3, |_| 0).unwrap();
        // 22.4 ms; 2.4 and 4.8 ms behind it.
        assert_eq!(text(&found), "0 22 0 2 5\n100 22 0 2 5\n200 22 0 2 5\n300 22 0 2 5\n");
        assert_eq!(trains(&driven(1_500, &[]), 3, |_| 4_000_000).unwrap()[1].base_delay_ms, 18);
        assert_eq!(firsts(&driven(1_500, &[]), 3).all.len(), 3);
        assert_eq!(trains(&driven(1_500, &[]), 4, |_| 0).unwrap().len(), 2);
    }

    #[test]
    fn lost_packets_have_no_opportunity_and_half_a_packet_needs_half_of_one() {
        let found = trains(&driven(1_500, &[3, 7]), 3, |_| 0).unwrap();
        assert_eq!(text(&found), "0 22 0 2 5\n200 22 0 5\n400 22 0 5\n");
        assert!(trains(&driven(1_500, &[0, 3]), 3, |_| 0).is_none());
        // Three packets of 750 bytes: the first two share an opportunity, the third has half of the next one.
        assert_eq!(trains(&driven(750, &[]), 3, |_| 0).unwrap()[0].opportunities_ms, [0, 5]);
        // Packets of 3000 bytes take two each.
        assert_eq!(trains(&driven(3_000, &[]), 3, |_| 0).unwrap()[0].opportunities_ms, [0, 0, 2, 2, 5, 5]);
    }
}
