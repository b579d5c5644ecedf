// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets of one direction of a phase: when each was sent, and when it arrived.

use std::fmt::Write as _;

use crate::wire::message::Arrival;

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of sending in ns since 1970, by the sender's clock.
    pub sent_ns: u64,
    /// Time of its first arrival in ns since 1970, by the receiver's clock; none for a lost one.
    pub arrived_ns: Option<u64>,
    /// Number of arrivals.
    pub arrivals: u32,
}

/// All packets of one direction of a phase, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Length of each in bytes, IP and UDP headers included.
    pub length_bytes: u32,
    /// The packets.
    pub all: Vec<Packet>,
}

impl Packets {
    /// Puts together what both ends know. Arrivals of numbers that were never sent are left out.
    pub fn of(length_bytes: u32, sent_ns: &[u64], arrivals: &[Arrival]) -> Packets {
        let mut all: Vec<Packet> =
            sent_ns.iter().map(|sent_ns| Packet { sent_ns: *sent_ns, arrived_ns: None, arrivals: 0 }).collect();
        for arrival in arrivals {
            if let Some(packet) = all.get_mut(arrival.number as usize) {
                packet.arrivals += 1;
                packet.arrived_ns.get_or_insert(arrival.arrived_ns);
            }
        }
        Packets { length_bytes, all }
    }

    /// Length of a packet in bits.
    pub fn bits(&self) -> f64 {
        f64::from(self.length_bytes) * 8.0
    }

    /// Numbers and packets that arrived, in the order of their arrivals.
    pub fn arrived(&self) -> Vec<(usize, u64, u64)> {
        let mut arrived: Vec<(usize, u64, u64)> = self
            .all
            .iter()
            .enumerate()
            .filter_map(|(number, packet)| packet.arrived_ns.map(|at| (number, packet.sent_ns, at)))
            .collect();
        // Numbers decide between equal stamps, so that these are no reordering.
        arrived.sort_by_key(|(number, _, at)| (*at, *number));
        arrived
    }

    /// Losses as a trace of errors: runs of arrivals and of losses, in the order of sending.
    pub fn error_trace(&self) -> String {
        let runs = self.all.chunk_by(|one, next| one.arrived_ns.is_some() == next.arrived_ns.is_some());
        runs.fold(String::new(), |mut text, run| {
            let word = if run[0].arrived_ns.is_some() { "ok" } else { "lost" };
            let _ = writeln!(text, "{word} {}", run.len());
            text
        })
    }

    /// The packets as CSV: times in ns since 1970, by the clock of the end at which each was taken.
    pub fn csv(&self) -> String {
        let mut text = String::from("number,sent_unix_ns,arrived_unix_ns,arrivals\n");
        for (number, packet) in self.all.iter().enumerate() {
            let arrived = packet.arrived_ns.map_or_else(String::new, |at| at.to_string());
            let _ = writeln!(text, "{number},{},{arrived},{}", packet.sent_ns, packet.arrivals);
        }
        text
    }

    /// Reads what [`Packets::csv`] wrote.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn read_csv(length_bytes: u32, text: &str) -> Result<Packets, String> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some("number,sent_unix_ns,arrived_unix_ns,arrivals") {
            return Err("line 1: the heading is not that of `airpath record`".into());
        }
        let mut all = Vec::new();
        for (index, line) in lines {
            let wrong = || format!("line {}: `{}` is no packet", index + 1, line.chars().take(60).collect::<String>());
            let cells: Vec<&str> = line.split(',').collect();
            let [number, sent, arrived, arrivals] = cells[..] else { return Err(wrong()) };
            if number.parse() != Ok(all.len()) {
                return Err(format!("line {}: packet {number} follows {} packets", index + 1, all.len()));
            }
            let arrived_ns = if arrived.is_empty() { None } else { Some(arrived.parse().map_err(|_| wrong())?) };
            let arrivals = arrivals.parse().map_err(|_| wrong())?;
            if arrived_ns.is_some() != (arrivals > 0) {
                return Err(wrong());
            }
            all.push(Packet { sent_ns: sent.parse().map_err(|_| wrong())?, arrived_ns, arrivals });
        }
        Ok(Packets { length_bytes, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_put_together_and_survive_a_file() {
        let arrival = |number, arrived_ns| Arrival { number, arrived_ns };
        let arrivals = [arrival(0, 110), arrival(2, 125), arrival(1, 130), arrival(1, 140), arrival(9, 150)];
        let packets = Packets::of(1_500, &[100, 101, 102, 103], &arrivals);
        let seen: Vec<_> = packets.all.iter().map(|packet| (packet.arrived_ns, packet.arrivals)).collect();
        assert_eq!(seen, [(Some(110), 1), (Some(130), 2), (Some(125), 1), (None, 0)]);
        assert_eq!(packets.arrived(), [(0, 100, 110), (2, 102, 125), (1, 101, 130)]);
        assert_eq!(packets.error_trace(), "ok 3\nlost 1\n");
        assert_eq!(Packets::read_csv(1_500, &packets.csv()), Ok(packets));
    }

    #[test]
    fn a_damaged_file_is_refused_by_line() {
        let head = "number,sent_unix_ns,arrived_unix_ns,arrivals\n";
        for (text, line) in
            [("", "line 1"), ("0,1,2\n", "line 2"), ("1,5,,0\n", "line 2"), ("0,5,,0\n1,x,,0", "line 3")]
        {
            let text = if text.is_empty() { String::new() } else { format!("{head}{text}") };
            assert!(Packets::read_csv(1_500, &text).unwrap_err().starts_with(line), "{text}");
        }
        assert!(Packets::read_csv(1_500, &format!("{head}0,5,,1\n")).is_err());
        assert!(Packets::read_csv(1_500, &format!("{head}0,5,9,0\n")).is_err());
    }
}
