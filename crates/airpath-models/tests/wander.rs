// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A delay that wanders, against its moments and its correlation in closed form, at any rate of packets.
//!
//! Seeds are fixed, so nothing here can flake; tolerances are five standard errors of a right process.

use std::f64::consts::PI;

use airpath_core::{Bits, Cx, Direction, DrawKey, DrawScope, Item, Machine, Outputs, Pdu, PortId, Seed, Span, Time};
use airpath_models::random::{Distribution, Normal, Random, Sampler, Wander};
use airpath_models::{LinkConfig, Path};

use crate::common::{one_hop, span};

const MEAN_MS: f64 = 20.0;
const DEVIATION_MS: f64 = 1.0;
/// Ten deviations.
const TIME_MS: f64 = 10.0;

fn wander() -> Wander<Span> {
    Wander { mean: span("20 ms"), deviation: span("1 ms"), time: span("10 ms") }
}

fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Uplink, role: "test", instance: 0 })
}

/// The one-way delays in ms of packets `apart` over a link with `propagation` and no rate, for `lasts`.
fn delays(propagation: Random<Span>, apart: Span, lasts: Span) -> Vec<f64> {
    let config = one_hop("radio", LinkConfig { propagation, ..LinkConfig::default() }, LinkConfig::default());
    let mut path = Path::new(&config, Seed(3));
    let mut outputs = Outputs::default();
    let mut delays = Vec::new();
    let mut collect = |outputs: &mut Outputs| {
        for emission in outputs.emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { continue };
            let sent = (pdu.id - 1) * apart.nanos();
            delays.push((emission.at.nanos() - sent) as f64 / 1e6);
        }
        outputs.events.clear();
    };
    for number in 0..lasts.nanos() / apart.nanos() {
        let at = Time::from_nanos(number * apart.nanos());
        let pdu = Pdu { id: number + 1, len: 100, ..Pdu::default() };
        path.offer(at, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
        collect(&mut outputs);
    }
    path.advance(Time::from_nanos(lasts.nanos()) + span("1 s"), &mut Cx::new(&mut outputs));
    collect(&mut outputs);
    delays
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The correlation of values `lag` apart, in times of the process: integrated by hand over the place of the
/// first between two knots.
fn correlation(lag: f64) -> f64 {
    if lag >= 2.0 { 0.0 } else { (1.0 - lag / 2.0) * (PI * lag / 2.0).cos() + (PI * lag / 2.0).sin() / PI }
}

/// Spacings of truth: a busy flow, one of a packet a millisecond, a quiet one. The time average of `lasts`
/// has the variance 2 (8 / pi^2) time / lasts of the process' own, and that of squares no more than twice it.
#[test]
fn any_rate_of_packets_sees_the_same_mean_deviation_and_correlation() {
    for (apart, lasts) in [("120 us", 60.0), ("1 ms", 120.0), ("10 ms", 600.0)] {
        let apart = span(apart);
        let wander = Random::Drawn(Distribution::Wander(wander()));
        let delays = delays(wander, apart, Span::from_nanos((lasts * 1e9) as u64));
        assert!(delays.len() as u64 >= (lasts * 1e9) as u64 / apart.nanos() - 2);
        let share = (2.0 * 8.0 / PI.powi(2) * TIME_MS / 1e3 / lasts).sqrt();
        let found = mean(&delays);
        assert!((found - MEAN_MS).abs() < 5.0 * share * DEVIATION_MS, "{apart}: mean {found}");
        let found = deviation(&delays);
        assert!((found - DEVIATION_MS).abs() < 5.0 * share * DEVIATION_MS, "{apart}: deviation {found}");
        let apart_ms = apart.nanos() as f64 / 1e6;
        for lag_ms in [1.0, 2.4, 5.0, 10.0, 15.0, 20.0, 40.0] {
            let steps = (lag_ms / apart_ms).round();
            let expected = correlation(steps * apart_ms / TIME_MS);
            let steps = steps as usize;
            let products: f64 = delays.iter().zip(&delays[steps..]).map(|(a, b)| (a - MEAN_MS) * (b - MEAN_MS)).sum();
            let found = products / (delays.len() - steps) as f64 / DEVIATION_MS.powi(2);
            assert!(
                (found - expected).abs() < 5.0 * 2f64.sqrt() * share,
                "{apart}, {lag_ms} ms: {found}, not {expected}"
            );
        }
    }
}

/// Draws for each packet give a busy flow a running maximum, which is what `wander` is there to fix.
#[test]
fn independent_draws_give_a_busy_flow_more_delay_and_less_jitter() {
    let normal = || Normal { mean: span("20 ms"), deviation: span("5 ms"), ..Normal::default() };
    let slow = || Wander { mean: span("20 ms"), deviation: span("5 ms"), time: span("50 ms") };
    let busy = |random| delays(Random::Drawn(random), span("120 us"), span("60 s"));
    let (each, wandering) = (busy(Distribution::Normal(normal())), busy(Distribution::Wander(slow())));
    assert!(mean(&each) > 28.0 && deviation(&each) < 2.5, "{} {}", mean(&each), deviation(&each));
    assert!((mean(&wandering) - 20.0).abs() < 1.0, "{}", mean(&wandering));
    assert!((deviation(&wandering) - 5.0).abs() < 1.0, "{}", deviation(&wandering));
}

/// At ten deviations no packet waits for another: delays are the process itself, to the nanosecond. At one
/// deviation they do wait, as the slope says.
#[test]
fn order_costs_nothing_where_the_delay_falls_slower_than_time_passes() {
    let waits = |wander: Wander<Span>| {
        let delays = delays(Random::Drawn(Distribution::Wander(wander)), span("100 us"), span("20 s"));
        let arrivals: Vec<f64> = delays.iter().enumerate().map(|(index, delay)| index as f64 * 0.1 + delay).collect();
        arrivals.windows(2).filter(|pair| pair[1] - pair[0] < 1e-9).count() as f64 / arrivals.len() as f64
    };
    assert_eq!(waits(wander()), 0.0);
    let steep = waits(Wander { time: span("1 ms"), ..wander() });
    assert!((0.2..0.6).contains(&steep), "{steep}");
}

/// The value is a function of the key and the instant: whoever asks at other instants besides, or never
/// before, hears the same; and no value is negative or below the least.
#[test]
fn a_value_belongs_to_its_instant_alone() {
    for wander in [wander(), Wander { mean: span("1 ms"), deviation: span("3 ms"), time: span("700 us") }] {
        let random = Random::Drawn(Distribution::Wander(wander));
        let mut often = Sampler::new(&random, key(9));
        let course: Vec<Span> = (0..50_000).map(|step| often.draw_at(step, Time::from_nanos(step * 11_113))).collect();
        for (step, expected) in (0u64..).zip(&course).skip(3).step_by(4_999) {
            let mut once = Sampler::new(&random, key(9));
            assert_eq!(once.draw_at(0, Time::from_nanos(step * 11_113)), *expected);
        }
        assert!(course.iter().all(|value| *value >= random.least()));
        // It is continuous: no step is larger than the steepest slope allows.
        let most = wander.deviation.nanos() as f64 * PI / 2.0 * 11_113.0 / wander.time.nanos() as f64 * 12.0;
        assert!(course.windows(2).all(|pair| (pair[1].nanos() as f64 - pair[0].nanos() as f64).abs() < most));
        assert_ne!(Sampler::new(&random, key(10)).draw_at(0, Time::ZERO), course[0]);
    }
    let far = Random::Drawn(Distribution::Wander(Wander { mean: span("250 ms"), ..wander() }));
    assert_eq!(far.least(), span("238 ms"));
}

/// Values without an instant are drawn independently, with the same moments.
#[test]
fn without_an_instant_draws_are_independent() {
    let size = Wander { mean: Bits::new(8_000), deviation: Bits::new(800), time: span("1 s") };
    let mut sampler = Sampler::new(&Random::Drawn(Distribution::Wander(size)), key(4));
    let draws: Vec<f64> = (0..100_000).map(|step| sampler.draw(step).get() as f64).collect();
    assert!((mean(&draws) - 8_000.0).abs() < 5.0 * 800.0 / 316.0, "{}", mean(&draws));
    assert!((deviation(&draws) - 800.0).abs() < 5.0 * 800.0 / 447.0, "{}", deviation(&draws));
    let products: f64 = draws.windows(2).map(|pair| (pair[0] - 8_000.0) * (pair[1] - 8_000.0)).sum();
    assert!((products / 99_999.0 / 800f64.powi(2)).abs() < 5.0 / 316.0);
}
