// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The laws over every registered entity with frames of its own, at every rate, under errors, blackouts and
//! changes of everything that may change.

use airpath_core::{Bits, EventKind, PortId, Seed, Span};
use airpath_models::blackout::BlackoutConfig;
use airpath_models::channel::ErrorsConfig;
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::random::Random;
use airpath_models::states::Stay;
use airpath_models::{LinkConfig, Path, PathConfig, StateConfig};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::*;

/// Short packets, so that they are through before the end.
fn offers() -> impl Strategy<Value = Script> {
    let len = select(vec![0u32, 1, 5, 16, 24, 40, 125, 296]);
    let port = select(vec![PortId::CLIENT, PortId::SERVER]);
    let offer = (port, len).prop_map(|(port, len)| Action::Offer { port, len, header_len: 20 });
    script_of(offer)
}

/// The link with what else may be different from state to state.
fn with_others(link: LinkConfig, errors: ErrorsConfig, queue: QueueConfig, delay: Random<Span>) -> LinkConfig {
    let changed = LinkConfig { errors, queue, propagation: delay, ..link.clone() };
    if changed.problems().is_empty() { changed } else { link }
}

#[test]
fn every_entity_with_frames_of_its_own_keeps_the_laws() {
    let mut runner = TestRunner::new(cases(1));
    let links = LinkConfig::own_frames_examples();
    let mut errors = ErrorsConfig::examples();
    // Those that hit packets do not go with frames of several packets.
    errors.retain(|errors| LinkConfig { errors: errors.clone(), ..links[0].clone() }.problems().is_empty());
    assert!(links.len() > 20 && errors.len() > 20, "{} {}", links.len(), errors.len());
    let delays = Random::examples(Span::from_millis(12));
    let (mut delivered, mut dropped, mut repeated, mut resets) = (0, 0, 0, 0);
    for (number, link) in links.iter().enumerate() {
        // Fast links send thousands of frames a second, with or without packets.
        let is_slow = match &link.rate {
            RateConfig::Varying(VaryingConfig::Slotted(slots)) => slots.bits < Bits::new(10_000),
            rate => rate.constant().is_some(),
        };
        let (rounds, end) = if is_slow { (4, ms(4_000)) } else { (1, ms(500)) };
        for round in 0..rounds {
            let seed = (number * 4 + round) as u64;
            let mix = (
                select(errors.clone()),
                select(errors.clone()),
                select(QueueConfig::examples()),
                select(delays.clone()),
                select(BlackoutConfig::examples()),
                offers(),
            );
            let (first, second, queue, delay, dark, script) = mix.new_tree(&mut runner).unwrap().current();
            let beginning = with_others(link.clone(), first, queue.clone(), delay);
            let later = with_others(link.clone(), second, queue, link.propagation.clone());
            let hop = crate::entities::hop(&beginning);
            let mut state = crate::entities::hop(&later);
            assert_eq!(state.kind_problems(&hop), []);
            state.uplink.blackout = dark;
            let lasts = Stay { duration: Some(Span::from_millis(90).into()), next: Vec::new() };
            let state = StateConfig { name: "dark".into(), at: Some(ms(100)), hops: vec![state], stay: lasts };
            let config = PathConfig { hops: vec![hop], states: vec![state], ..PathConfig::default() };
            let result =
                std::panic::catch_unwind(|| check_laws_to(|| Path::new(&config, Seed(seed)), &script, seed, end));
            let trace = result.unwrap_or_else(|_| panic!("broken by {config:#?}\nwith {script:?}"));
            for port in [PortId::CLIENT, PortId::SERVER] {
                let ids = trace.ids(port);
                assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?} in {config:#?}");
            }
            delivered += trace.departures.len();
            dropped += trace.of_kind(EventKind::Dropped).len();
            repeated += trace.of_kind(EventKind::FrameRepeated).len();
            resets += trace.of_kind(EventKind::LinkReset).len();
        }
    }
    // The examples must not be so harsh or so mild that they test little.
    println!("{delivered} delivered, {dropped} dropped, {repeated} repeated, {resets} resets");
    assert!(
        delivered > 500 && dropped > 500 && repeated > 200 && resets > 20,
        "{delivered} {dropped} {repeated} {resets}"
    );
}
