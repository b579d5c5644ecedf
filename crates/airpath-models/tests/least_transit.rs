// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The least time that a packet of given length takes, by which a driver judges its own lateness. That no
//! packet of any registered model is faster is a law (`common::Runner`); here it is computed by hand, and
//! met by what finds the link idle.

use airpath_core::{Machine, PortId, Seed, Span, Time};
use airpath_models::medium::rate::mahimahi::MahimahiTrace;
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::medium::rate::steps::StepsConfig;
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::random::Random;
use airpath_models::{Fragmentation, HopConfig, LastFrame, LinkConfig, Path, PathConfig};

use crate::common::*;

fn path(config: &PathConfig) -> Path {
    Path::new(config, Seed(1))
}

/// Of a packet from the client that comes at `at_ns`, in ns.
fn least_at(link: &LinkConfig, at_ns: u64, bytes: u32) -> u64 {
    let config = one_hop("radio", link.clone(), LinkConfig::default());
    path(&config).least_transit_of(Time::from_nanos(at_ns), PortId::CLIENT, bytes).nanos()
}

fn least(link: &LinkConfig, bytes: u32) -> u64 {
    least_at(link, 0, bytes)
}

#[test]
fn a_rate_and_a_delay_add_up_to_the_nanosecond() {
    let link = LinkConfig { rate: read("9600 bit/s"), propagation: read("200 ms"), ..LinkConfig::default() };
    // 2368 bit at 9600 bit/s are 246.666… ms.
    assert_eq!(least(&link, 296), 446_666_666);
    assert_eq!(least(&link, 0), 200_000_000);
    // Nothing to wait for.
    assert_eq!(least(&LinkConfig::default(), 1500), 0);
    let wire = LinkConfig { rate: read("1 Gbit/s"), ..LinkConfig::default() };
    assert_eq!(least(&wire, 1500), 12_000);
}

#[test]
fn overhead_compression_and_frames_count() {
    let link = LinkConfig {
        rate: read("1 Mbit/s"),
        overhead: read("8 bit"),
        compression: read("0.5"),
        ..LinkConfig::default()
    };
    // 100 bytes are 400 bit and 8 more.
    assert_eq!(least(&link, 100), 408_000);
    let framed = |last_frame| {
        let (frame_payload, frame_header) = (read("250 bit"), read("10 bit"));
        LinkConfig { fragmentation: Some(Fragmentation { frame_payload, frame_header, last_frame }), ..link.clone() }
    };
    // Two frames, of 250 and 158 bit, with a header each.
    assert_eq!(least(&framed(LastFrame::Short), 100), 428_000);
    assert_eq!(least(&framed(LastFrame::Padded), 100), 520_000);
}

#[test]
fn hops_add_up_in_either_direction() {
    let link =
        |rate, propagation| LinkConfig { rate: read(rate), propagation: read(propagation), ..LinkConfig::default() };
    let hop = |name: &str, uplink, downlink| HopConfig { name: name.into(), uplink, downlink };
    let config = PathConfig {
        hops: vec![
            hop("radio", link("1 Mbit/s", "10 ms"), link("8 Mbit/s", "20 ms")),
            hop("core", link("unlimited", "3 ms"), link("2 Mbit/s", "4 ms")),
        ],
        ..PathConfig::default()
    };
    let path = path(&config);
    let of = |port, bytes| path.least_transit_of(Time::ZERO, port, bytes).nanos();
    assert_eq!(of(PortId::CLIENT, 125), 14_000_000);
    assert_eq!(of(PortId::SERVER, 125), 24_625_000);
}

#[test]
fn what_only_some_packets_wait_for_is_left_out() {
    let drawn = Random::examples(Span::from_millis(12)).into_iter().find(|random| random.least() > Span::ZERO);
    let drawn = drawn.expect("some distribution has a least value above 0");
    let link = LinkConfig {
        propagation: drawn.clone(),
        // A packet that follows others does not wait for it.
        allocation_delay: read("560 ms"),
        ..LinkConfig::default()
    };
    assert_eq!(least(&link, 100), drawn.least().nanos());
}

#[test]
fn a_rate_that_varies_counts_from_the_arrival() {
    let steps = r#"{ "steps": ["0 s: 1 Mbit/s", "10 ms: 4 Mbit/s"] }"#;
    let steps: StepsConfig = serde_json::from_str(steps).unwrap();
    let link = LinkConfig { rate: RateConfig::Varying(VaryingConfig::Steps(steps)), ..LinkConfig::default() };
    // 8000 bit: at 1 Mbit/s; half of them at each; at 4 Mbit/s.
    assert_eq!(least_at(&link, 0, 1_000), 8_000_000);
    assert_eq!(least_at(&link, 6_000_000, 1_000), 5_000_000);
    assert_eq!(least_at(&link, 10_000_000, 1_000), 2_000_000);

    let slots =
        SlottedConfig { slot: read("1 ms"), bits: read("1000 bit"), period: Some(read("10 ms")), offset: read("2 ms") };
    let link = LinkConfig { rate: RateConfig::Varying(VaryingConfig::Slotted(slots)), ..LinkConfig::default() };
    // Slots from 2, 12, 22 ms; what comes as one begins waits for the next.
    assert_eq!(least_at(&link, 0, 125), 3_000_000);
    assert_eq!(least_at(&link, 2_000_000, 125), 11_000_000);
    assert_eq!(least_at(&link, 0, 126), 13_000_000);
}

#[test]
fn opportunities_are_counted_off() {
    let trace = MahimahiTrace::new(vec![(1, 1), (4, 2), (10, 1)]).unwrap();
    let config = airpath_models::medium::rate::mahimahi::MahimahiConfig {
        file: airpath_models::file::FileRef::with_data("example.trace", trace),
        repeat: true,
        accounting: airpath_models::medium::rate::mahimahi::Accounting::Ip,
    };
    let link = LinkConfig {
        rate: RateConfig::Varying(VaryingConfig::Mahimahi(config)),
        propagation: read("5 ms"),
        ..LinkConfig::default()
    };
    assert_eq!(least_at(&link, 0, 1_500), 6_000_000);
    // Three full packets take the opportunity at 1 ms and both at 4 ms.
    assert_eq!(least_at(&link, 0, 4_500), 9_000_000);
    // What comes with an opportunity waits for the next; the trace begins anew at 10 ms.
    assert_eq!(least_at(&link, 4_000_000, 1_500), 11_000_000);
    assert_eq!(least_at(&link, 10_000_000, 1_500), 6_000_000);
}

/// A packet alone takes just as long, and the allocation delay, over every registered link without
/// chance: the bound is no lower than it could be.
#[test]
fn what_finds_the_link_idle_takes_no_longer() {
    let mut seen = 0;
    for link in LinkConfig::examples() {
        let (Some(_), Some(allocation)) = (constant(&link.propagation), constant(&link.allocation_delay)) else {
            continue;
        };
        // The train of a cellular link has the base delay of its time, of which the bound takes the least.
        let is_train = matches!(link.rate, RateConfig::Varying(VaryingConfig::Cellreplay(_)));
        if is_train || link.blackout != LinkConfig::default().blackout {
            continue;
        }
        let link = LinkConfig { errors: LinkConfig::default().errors, reorder: None, duplicate: None, ..link };
        for (at, bytes) in [(0, 40), (3_141_592, 576), (17_000_000, 1_500)] {
            let config = one_hop("radio", link.clone(), LinkConfig::default());
            let trace = run(path(&config), &vec![offer(Time::from_nanos(at), PortId::CLIENT, bytes)]);
            // An allocation moves the beginning, by which a rate that varies goes.
            let began = Time::from_nanos(at) + allocation;
            let [departure] = &trace.departures[..] else { continue };
            let least = path(&config).least_transit_of(began, PortId::CLIENT, bytes);
            assert_eq!(departure.at, began + least, "{bytes} bytes at {at} ns over {link:#?}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

fn constant(random: &Random<Span>) -> Option<Span> {
    match random {
        Random::Constant(value) => Some(*value),
        Random::Drawn(_) => None,
    }
}
