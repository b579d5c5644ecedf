// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Links worth testing: between them every parameter of a link takes the values at which something
//! may go wrong. The laws are tested with these and with mixtures of them, under every queue and
//! every kind of errors.

use airpath_core::Span;

use crate::config::LinkConfig;
use crate::entity::{EntityConfig, Fragmentation, LastFrame};
use crate::impairment::{DuplicateConfig, ReorderConfig};
use crate::medium::rate::slotted::SlottedConfig;
use crate::medium::{MediumConfig, RateConfig, VaryingConfig};
use crate::random::{Distribution, Random, Uniform};

fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("an example is valid")
}

fn drawn(from: &str, to: &str) -> Random<Span> {
    Random::Drawn(Distribution::Uniform(Uniform { from: read(from), to: read(to), ..Uniform::default() }))
}

fn fragments(payload: &str, header: &str, last_frame: LastFrame) -> Option<Fragmentation> {
    Some(Fragmentation { frame_payload: read(payload), frame_header: read(header), last_frame })
}

impl LinkConfig {
    /// Links without regard to queue and errors, of which [`crate::queueing::QueueConfig::examples`]
    /// and [`crate::channel::ErrorsConfig::examples`] have their own.
    pub fn examples() -> Vec<LinkConfig> {
        let plain = LinkConfig::default();
        let millis = Span::from_millis;
        // Rates that vary, alone and together with frames.
        let varying = VaryingConfig::examples().into_iter().enumerate().map(|(number, rate)| LinkConfig {
            send_buffer: match rate {
                VaryingConfig::Cellreplay(_) => read("unlimited"),
                _ => read(["1 packet", "3 packets"][number % 2]),
            },
            rate: rate.into(),
            propagation: millis(5).into(),
            fragmentation: fragments("2000 bit", "40 bit", LastFrame::Short).filter(|_| number % 3 == 2),
            ..plain.clone()
        });
        let constant = vec![
            plain.clone(),
            // Times in whole milliseconds, so that things coincide.
            LinkConfig { rate: read("1 Mbit/s"), send_buffer: read("2 packets"), ..plain.clone() },
            LinkConfig {
                rate: read("8 kbit/s"),
                propagation: millis(10).into(),
                send_buffer: read("4 packets"),
                receive_buffer: read("4 packets"),
                ..plain.clone()
            },
            LinkConfig {
                rate: read("1 Mbit/s"),
                propagation: millis(35).into(),
                fragmentation: fragments("250 bit", "0 bit", LastFrame::Short),
                send_buffer: read("3 frames"),
                receive_buffer: read("5 frames"),
                allocation_delay: millis(5).into(),
                ..plain.clone()
            },
            LinkConfig {
                rate: read("9600 bit/s"),
                propagation: millis(200).into(),
                fragmentation: fragments("432 bit", "8 bit", LastFrame::Padded),
                overhead: read("5 bytes"),
                send_buffer: read("2 kB"),
                receive_buffer: read("1600 bytes"),
                allocation_delay: millis(50).into(),
                ..plain.clone()
            },
            // Fractions of bits and of nanoseconds.
            LinkConfig {
                rate: read("7_777_777 bit/s"),
                propagation: Span::from_nanos(1).into(),
                fragmentation: fragments("101 bit", "3 bit", LastFrame::Short),
                compression: read("0.37"),
                overhead: read("13 bit"),
                send_buffer: read("unlimited"),
                receive_buffer: read("1 packet"),
                ..plain.clone()
            },
            // Delays that differ from packet to packet.
            LinkConfig {
                rate: read("2 Mbit/s"),
                propagation: drawn("5 ms", "40 ms"),
                fragmentation: fragments("300 bit", "0 bit", LastFrame::Short),
                send_buffer: read("2 packets"),
                ..plain.clone()
            },
            // Packets that go ahead of others, and packets that come twice.
            LinkConfig {
                rate: read("5 Mbit/s"),
                propagation: millis(10).into(),
                allocation_delay: drawn("0 ms", "20 ms"),
                reorder: Some(ReorderConfig {
                    probability: read("0.3"),
                    delay: Some(drawn("0 ms", "30 ms")),
                    distance: Some(3),
                    gap: 2,
                    correlation: read("0.3"),
                }),
                ..plain.clone()
            },
            LinkConfig {
                rate: read("1 Mbit/s"),
                propagation: millis(5).into(),
                reorder: Some(ReorderConfig {
                    probability: read("0.5"),
                    delay: Some(millis(10).into()),
                    distance: None,
                    gap: 1,
                    correlation: read("0"),
                }),
                duplicate: Some(DuplicateConfig {
                    probability: read("0.3"),
                    delay: drawn("0 ms", "10 ms"),
                    copies: 2,
                    correlation: read("0.5"),
                }),
                ..plain.clone()
            },
            // An expanding link, faster than a nanosecond for a bit.
            LinkConfig {
                rate: read("3 Gbit/s"),
                propagation: millis(1).into(),
                fragmentation: fragments("1000 bit", "1000 bit", LastFrame::Padded),
                compression: read("1.3"),
                send_buffer: read("1000 bytes"),
                receive_buffer: read("100 bytes"),
                ..plain.clone()
            },
        ];
        // Those with frames of their own do not go with everything: `own_frames_examples`.
        let entities = EntityConfig::examples().into_iter().filter(|entity| !entity.has_own_frames());
        let entities = entities.map(|entity| LinkConfig {
            rate: read("1 Mbit/s"),
            propagation: millis(5).into(),
            send_buffer: read("2 packets"),
            entity,
            ..plain.clone()
        });
        let media = MediumConfig::examples().into_iter().map(|medium| LinkConfig {
            rate: read("1 Mbit/s"),
            propagation: millis(5).into(),
            send_buffer: read("2 packets"),
            medium: medium.into(),
            ..plain.clone()
        });
        constant.into_iter().chain(varying).chain(entities).chain(media).collect()
    }

    /// Links of every entity that makes frames of its own, at every kind of rate.
    pub fn own_frames_examples() -> Vec<LinkConfig> {
        let slots = |slot: &str, bits: &str| {
            RateConfig::from(VaryingConfig::Slotted(SlottedConfig {
                slot: read(slot),
                bits: read(bits),
                period: None,
                offset: Span::ZERO,
            }))
        };
        let mut rates = vec![
            slots("20 ms", "240 bit"),
            slots("40 ms", "576 bit"),
            RateConfig::Constant(read("9600 bit/s")),
            slots("20 ms", "456 bit"),
            slots("20 ms", "1368 bit"),
            slots("20 ms", "1392 bit"),
        ];
        rates.extend(VaryingConfig::examples().into_iter().map(RateConfig::from));
        let entities = EntityConfig::examples().into_iter().filter(EntityConfig::has_own_frames);
        let links = entities.flat_map(|entity| {
            rates.iter().enumerate().map(move |(number, rate)| LinkConfig {
                rate: rate.clone(),
                propagation: [Span::from_millis(90), Span::from_millis(5), Span::ZERO][number % 3].into(),
                send_buffer: read(["unlimited", "3 packets", "2 kB"][number % 3]),
                overhead: read(["0 bit", "13 bit"][number % 2]),
                compression: read(["1", "0.37", "1.3"][number % 3]),
                allocation_delay: Span::from_millis(if entity.allocates() { 50 } else { 0 }).into(),
                entity: entity.clone(),
                ..LinkConfig::default()
            })
        });
        links.filter(|link| link.problems().is_empty()).collect()
    }
}
