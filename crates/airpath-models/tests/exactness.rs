// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates are exact over any run length: every delivery is at the exact time of all bits so far,
//! rounded down once.

use airpath_core::{LogLevel, Machine, Pdu, PortId, Seed, Time};
use airpath_models::{Fragmentation, LastFrame, LinkConfig, Path};
use airpath_virtual::{DriveUntil, TimedInput, VirtualDriver};

use crate::common::*;

/// Keeps the link saturated with `count` packets of 1500 bytes; the times at which they leave.
fn saturate(link: LinkConfig, count: u64) -> Vec<u64> {
    let link = LinkConfig { queue: unlimited(), ..link };
    let path = Path::new(&one_hop("radio", LinkConfig::default(), link), Seed(1));
    let mut driver = VirtualDriver::new(path, LogLevel::Counters);
    let packet = |id| TimedInput::packet(Time::ZERO, PortId::SERVER, Pdu { id, len: 1500, ..Pdu::default() });
    let mut times = Vec::new();
    let sink =
        |outputs: &mut airpath_core::Outputs| times.extend(outputs.emissions.drain(..).map(|left| left.at.nanos()));
    driver.run((1..=count).map(packet), DriveUntil::Idle, sink).unwrap();
    assert_eq!(driver.machine().held(), 0);
    times
}

fn unlimited() -> airpath_models::queueing::QueueConfig {
    use airpath_models::queueing::{QueueConfig, tail_drop::TailDropConfig};
    QueueConfig::TailDrop(TailDropConfig { limit: read("unlimited") })
}

/// The fixed rates of Alfredsson et al. 2006, Table II: 1500 frames of 108 · k bit a second, the
/// last frame of a packet padded. A packet takes ceil(12000 / 108 k) frames, so that the goodput of
/// TCP segments of 1460 bytes is 1460 · 8 · 1500 / ceil(12000 / 108 k) bit/s.
#[test]
fn goodput_of_the_eight_fixed_modulations() {
    let frames_of_a_packet = [112u64, 56, 38, 28, 23, 19, 16, 14];
    for (k, frames) in (1..=8u64).zip(frames_of_a_packet) {
        assert_eq!(frames, 12_000u64.div_ceil(108 * k));
        let link = LinkConfig {
            rate: read(&format!("{} bit/s", 162_000 * k)),
            fragmentation: Some(Fragmentation {
                frame_payload: read(&format!("{} bit", 108 * k)),
                frame_header: read("0 bit"),
                last_frame: LastFrame::Padded,
            }),
            send_buffer: read("4 packets"),
            ..LinkConfig::default()
        };
        let times = saturate(link, 3_000);
        // A frame lasts 1/1500 s; the n-th packet leaves after n · frames of them.
        for (index, time) in times.iter().enumerate() {
            let exact = (index as u128 + 1) * u128::from(frames) * 1_000_000_000 / 1_500;
            assert_eq!(u128::from(*time), exact, "k = {k}, packet {index}");
        }
        // Whole seconds are reached exactly: goodput, without rounding.
        let seconds = times[2_999] as f64 / 1e9;
        let goodput = 3_000.0 * 1_460.0 * 8.0 / seconds;
        let formula = 1_460.0 * 8.0 * 1_500.0 / frames as f64;
        assert!((goodput / formula - 1.0).abs() < 1e-12, "k = {k}: {goodput} {formula}");
    }
}

#[test]
fn goodput_of_usual_rates_is_the_rate() {
    for (rate, packets) in
        [("9600 bit/s", 5_000u64), ("1 Mbit/s", 20_000), ("12 Mbit/s", 40_000), ("100 Mbit/s", 100_000)]
    {
        let link = LinkConfig { rate: read(rate), propagation: read("20 ms"), ..LinkConfig::default() };
        let Some(airpath_core::LinkRate::Fixed(bits_per_second)) = link.rate.constant() else { panic!("{rate}") };
        for (index, time) in saturate(link.clone(), packets).into_iter().enumerate() {
            let bits = (index as u128 + 1) * 12_000;
            let exact = bits * 1_000_000_000 / u128::from(bits_per_second.bits_per_second());
            assert_eq!(u128::from(time), exact + 20_000_000, "{rate}, packet {index}");
        }
    }
}
