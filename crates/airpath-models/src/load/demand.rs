// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Demand of background loads, known before anything runs.

use airpath_core::{DrawKey, DrawScope, Seed, Span};

use super::{BackgroundConfig, Generator, Load};

/// More virtual packets a second than this keep a processor busy with nothing else.
pub const MOST_PACKETS_PER_SECOND: u64 = 1_000_000;

const SECOND: Span = Span::from_secs(1);

impl BackgroundConfig {
    /// Number of packets in its first second, as far as `most`, with draws like those of a run.
    pub fn packets_in_first_second(&self, most: u64) -> u64 {
        let scope = DrawScope { hop: &self.name, direction: self.direction, role: "background", instance: 0 };
        let mut load = Load::new(&self.load, DrawKey::new(Seed(1), &scope));
        let Some(first) = load.next_packet() else { return 0 };
        let mut count = 1;
        while count < most && load.next_packet().is_some_and(|packet| packet.after < first.after + SECOND) {
            count += 1;
        }
        count
    }
}

/// Loads that together send more packets than a run in real time can carry, in words; none if they do not.
pub fn too_much(loads: &[BackgroundConfig]) -> Option<String> {
    let demands = loads.iter().map(|load| load.packets_in_first_second(MOST_PACKETS_PER_SECOND + 1));
    let demands: Vec<u64> = demands.collect();
    if demands.iter().sum::<u64>() <= MOST_PACKETS_PER_SECOND {
        return None;
    }
    let alone: Vec<_> = loads.iter().zip(&demands).filter(|(_, count)| **count > MOST_PACKETS_PER_SECOND).collect();
    let blamed: Vec<_> =
        if alone.is_empty() { loads.iter().collect() } else { alone.iter().map(|pair| pair.0).collect() };
    let names: Vec<_> = blamed.iter().map(|load| format!("`{}`", load.name)).collect();
    let (noun, verb) = if names.len() == 1 { ("load", "sends") } else { ("loads", "send") };
    Some(format!(
        "the background {noun} {} {verb} more than a million packets a second, which a live run cannot carry; lower the \
         rate, send larger packets, or run in virtual time (airpath sim)",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use airpath_core::Direction;

    use super::super::LoadConfig;
    use super::*;

    fn load(name: &str, rate: &str, packet_size: &str) -> BackgroundConfig {
        let json = serde_json::json!({ "type": "cbr", "rate": rate, "packet_size": packet_size });
        let config: LoadConfig = serde_json::from_value(json).unwrap();
        BackgroundConfig::new(name, "radio", Direction::Uplink, config)
    }

    #[test]
    fn a_second_holds_as_many_packets_as_the_rate_says() {
        // 1,000 bits every 10 ms.
        let counted = load("calm", "100 kbit/s", "125 bytes").packets_in_first_second(1_000);
        assert_eq!(counted, 100);
        assert_eq!(load("calm", "100 kbit/s", "125 bytes").packets_in_first_second(7), 7);
    }

    #[test]
    fn only_what_is_too_much_is_named() {
        let (calm, heavy) = (load("calm", "10 Mbit/s", "1500 bytes"), load("heavy", "8 Gbit/s", "125 bytes"));
        assert_eq!(too_much(&[]), None);
        assert_eq!(too_much(std::slice::from_ref(&calm)), None);
        let told = too_much(&[calm, heavy]).unwrap();
        assert!(told.starts_with("the background load `heavy` sends more than a million"), "{told}");
        let halves = [load("one", "600 Mbit/s", "125 bytes"), load("two", "600 Mbit/s", "125 bytes")];
        let told = too_much(&halves).unwrap();
        assert!(told.starts_with("the background loads `one`, `two` send more"), "{told}");
    }
}
