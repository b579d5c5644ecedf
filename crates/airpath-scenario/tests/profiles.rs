// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Built-in profiles: complete, explained, and as fast as computed by hand.

use airpath_core::{Cx, Item, Machine, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::Path;
use airpath_scenario::{PlainOptions, Scenario, profile_text, profiles};

/// Sends `packets` of 1500 bytes at once into an idle path and returns the times of arrival.
fn arrivals(scenario: &Scenario, from: PortId, packets: u64) -> Vec<u64> {
    let config = &scenario.paths().unwrap()[0].config;
    let mut path = Path::new(config, Seed(1));
    let mut outputs = Outputs::default();
    for id in 0..packets {
        let pdu = Pdu { id, len: 1500, header_len: 40, ..Pdu::default() };
        path.offer(Time::ZERO, from, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
    }
    let hour = Time::from_nanos(3_600_000_000_000);
    while let Some(due) = path.next_deadline().filter(|due| *due <= hour) {
        path.advance(due, &mut Cx::new(&mut outputs));
    }
    outputs.emissions.iter().map(|emission| emission.at.nanos()).collect()
}

fn without_loss() -> PlainOptions {
    PlainOptions { loss: Some("0".into()), ..PlainOptions::default() }
}

#[test]
fn every_profile_is_complete_and_carries_packets() {
    for profile in profiles() {
        let mut scenario = Scenario::profile(profile.name).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(scenario.name.as_deref(), Some(profile.name));
        for text in [&scenario.description, &scenario.source] {
            assert!(text.as_ref().is_some_and(|text| text.len() > 20), "{} says too little", profile.name);
        }
        let description = scenario.description.clone().unwrap();
        assert!(!description.contains('\n') && description.len() < 100, "{}: not one line", profile.name);
        let queue_is_limited =
            format!("{:?}", scenario.paths().unwrap()).contains("limit: QueueLimit { packets: None, bytes: None");
        assert!(!queue_is_limited, "{} has an unlimited queue", profile.name);
        profile.summary().unwrap();
        scenario.apply_plain(&without_loss()).unwrap();
        for from in [PortId::CLIENT, PortId::SERVER] {
            assert_eq!(arrivals(&scenario, from, 1).len(), 1, "{} does not carry a packet", profile.name);
        }
    }
}

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(profile_text(name, "--profile").unwrap(), std::fs::read_to_string(&path).unwrap());
    }
}

/// A profile's direction as computed by hand for packets of 1500 bytes (12,000 bits).
struct Hand {
    profile: &'static str,
    from: PortId,
    /// Bits on the air for a packet: frames times bits of a frame.
    bits: u64,
    /// The rate in bit/s.
    rate: u64,
    /// Allocation and propagation in milliseconds.
    delay_ms: u64,
}

const UP: PortId = PortId::CLIENT;
const DOWN: PortId = PortId::SERVER;

const BY_HAND: [Hand; 11] = [
    Hand { profile: "seawind-case", from: DOWN, bits: 12_000, rate: 9_600, delay_ms: 200 },
    // 12,000 + 56 bits of PPP in frames of 192: 63.
    Hand { profile: "gsm-data-9.6k", from: UP, bits: 63 * 240, rate: 12_000, delay_ms: 200 },
    // 12,056 bits in frames of 528: 23.
    Hand { profile: "hscsd-3+1-14.4k", from: DOWN, bits: 23 * 576, rate: 3 * 14_400, delay_ms: 200 },
    // 12,000 + 80 bits of LLC and SNDCP in blocks of 240: 51; of 400: 31.
    Hand { profile: "gprs-cs2-3+1", from: DOWN, bits: 51 * 268, rate: 3 * 13_400, delay_ms: 100 + 250 },
    Hand { profile: "gprs-cs2-3+1", from: UP, bits: 51 * 268, rate: 13_400, delay_ms: 200 + 250 },
    Hand { profile: "gprs-cs4-4+2", from: DOWN, bits: 31 * 428, rate: 4 * 21_400, delay_ms: 100 + 250 },
    // 12,080 bits in blocks of 592: 21.
    Hand { profile: "edge", from: DOWN, bits: 21 * 592, rate: 4 * 29_600, delay_ms: 80 + 150 },
    // 12,000 bits in PDUs of 320: 38.
    Hand { profile: "umts-384", from: DOWN, bits: 38 * 336, rate: 403_200, delay_ms: 60 },
    Hand { profile: "geo-satellite", from: UP, bits: 12_000, rate: 3_000_000, delay_ms: 560 + 280 },
    Hand { profile: "slow-4g", from: DOWN, bits: 12_000, rate: 1_600_000, delay_ms: 75 },
    Hand { profile: "atc-2g-developing-rural", from: UP, bits: 12_000, rate: 18_000, delay_ms: 650 },
];

#[test]
fn one_packet_and_saturation_are_as_computed_by_hand() {
    // The last one leaves the slowest link before its state changes at 40 s.
    const PACKETS: u64 = 30;
    for hand in BY_HAND {
        let mut scenario = Scenario::profile(hand.profile).unwrap();
        scenario.apply_plain(&without_loss()).unwrap();
        scenario.set("radio.link.queue.limit=unlimited").unwrap();
        let times = arrivals(&scenario, hand.from, PACKETS);
        assert_eq!(times.len() as u64, PACKETS);
        for (index, time) in times.iter().enumerate() {
            let bits = u128::from(hand.bits) * (index as u128 + 1);
            let expected = (bits * 1_000_000_000 / u128::from(hand.rate)) as u64 + hand.delay_ms * 1_000_000;
            assert_eq!(*time, expected, "{} packet {index}", hand.profile);
        }
    }
}

#[test]
fn a_gprs_block_takes_twenty_milliseconds() {
    let scenario = Scenario::profile("gprs-cs2-1+1").unwrap();
    // 51 blocks of 20 ms, after 100 ms of set-up, and 250 ms of delay.
    assert_eq!(arrivals(&scenario, DOWN, 1), [(51 * 20 + 100 + 250) * 1_000_000]);
}

#[test]
fn the_seawind_case_is_table_1() {
    let paths = Scenario::profile("seawind-case").unwrap().paths().unwrap();
    let config = &paths[0].config;
    for link in [&config.hops[0].uplink, &config.hops[0].downlink] {
        assert_eq!(link.rate.to_string(), "9.6 kbit/s");
        assert_eq!(link.propagation.least().to_string(), "200 ms");
        assert_eq!(
            (link.send_buffer.to_string(), link.receive_buffer.to_string()),
            ("4 packets".into(), "4 packets".into())
        );
    }
    let state = &config.states[0];
    assert_eq!((state.name.as_str(), state.at), ("poor", Some(Time::from_nanos(40_000_000_000))));
    let errors = toml::Table::try_from(&config.hops[0].downlink.errors).unwrap();
    assert_eq!(errors["probability"].as_float(), Some(0.01));
    let errors = toml::Table::try_from(&state.hops[0].downlink.errors).unwrap();
    assert_eq!(errors["probability"].as_float(), Some(0.1));
}

#[test]
fn summaries_name_the_rate_of_packets() {
    let of = |name: &str| profiles().iter().find(|profile| profile.name == name).unwrap().summary().unwrap();
    assert_eq!(of("gsm-data-9.6k").downlink_rate, "9.6 kbit/s");
    assert_eq!(
        (of("umts-384").uplink_rate.as_str(), of("umts-384").downlink_rate.as_str()),
        ("64 kbit/s", "384 kbit/s")
    );
    assert_eq!(of("gprs-cs2-3+1").downlink_rate, "36 kbit/s");
}

#[test]
fn an_unknown_profile_names_the_nearest() {
    let report = Scenario::profile("lte-god").unwrap_err().to_string();
    assert!(report.contains("there is no profile `lte-god`; did you mean `lte-good`?"), "{report}");
    let report = Scenario::profile("umts").unwrap_err().to_string();
    assert!(report.contains("valid: umts-384"), "{report}");
}
