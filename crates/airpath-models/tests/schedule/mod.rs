// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Schedulers of a cell.

mod by_hand;
mod laws;
mod naive;
mod round_robin;
mod theory;

use std::collections::BTreeMap;

use airpath_core::{Direction, DrawKey, DrawScope, Seed, Time};
use airpath_models::schedule::{Beginning, Contender, EXAMPLE_BEARERS, NOBODY, SchedulerConfig, SchedulerModel, Slot};

pub const SLOTS_PER_SECOND: u32 = 1500;

pub fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "cell", direction: Direction::Downlink, role: "test", instance: 0 })
}

/// The scheduler of a cell of `bearers`, the first of which have the names of the examples.
pub fn scheduler(config: &SchedulerConfig, bearers: usize, resources: usize) -> SchedulerModel {
    let names: Vec<String> = (0..bearers)
        .map(|bearer| EXAMPLE_BEARERS.get(bearer).map_or_else(|| format!("user{bearer}"), |name| name.to_string()))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let beginning = Beginning { bearers: &names, resources, slots_per_second: SLOTS_PER_SECOND, key: key(1) };
    SchedulerModel::new(config, beginning)
}

/// A scheduler as TOML, with or without braces.
pub fn parse(toml: &str) -> SchedulerConfig {
    let inline = |text: &str| {
        let table: BTreeMap<String, SchedulerConfig> = toml::from_str(&format!("scheduler = {text}"))?;
        Ok(table.into_values().next().expect("there is one"))
    };
    let config = if toml.starts_with('{') { inline(toml) } else { toml::from_str(toml) };
    config.unwrap_or_else(|error: toml::de::Error| panic!("{toml}: {error}"))
}

/// The same without problems.
pub fn config(toml: &str) -> SchedulerConfig {
    let config = parse(toml);
    assert_eq!(config.problems(), [], "{toml}");
    config
}

/// A slot that owns what it holds.
#[derive(Clone, Debug)]
pub struct Case {
    pub number: u64,
    pub resources: usize,
    pub contenders: Vec<Contender>,
    pub bits: Vec<u32>,
}

pub fn slot_start(number: u64) -> Time {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(SLOTS_PER_SECOND);
    Time::from_nanos(nanos as u64)
}

impl Case {
    /// A slot in which everybody always has something to send, since the beginning.
    pub fn saturated(number: u64, bearers: usize, resources: usize, bits: impl Fn(usize, usize) -> u32) -> Case {
        let contender = |bearer| Contender { bearer, backlog_bits: u64::MAX, since: Time::ZERO };
        let pairs = (0..bearers).flat_map(|bearer| (0..resources).map(move |resource| (bearer, resource)));
        let contenders = (0..bearers as u16).map(contender).collect();
        Case { number, resources, contenders, bits: pairs.map(|(bearer, resource)| bits(bearer, resource)).collect() }
    }

    /// A slot with bearers that have nothing, little or much to send, and resources of few or many bits.
    pub fn random(key: DrawKey, number: u64, bearers: usize, resources: usize) -> Case {
        let mut case = Case::saturated(number, bearers, resources, |bearer, resource| {
            let pair = (bearer * resources + resource) as u64;
            // A few modulations, as in a real cell, or any number.
            let bits = match key.child("kind", 0).below(number, pair, 4) {
                0 => 0,
                1 | 2 => 108 * (1 + key.child("modulation", 0).below(number, pair, 8)),
                _ => 1 + key.child("bits", 0).below(number, pair, 1000),
            };
            bits as u32
        });
        for contender in &mut case.contenders {
            let bearer = u64::from(contender.bearer);
            contender.backlog_bits = match key.child("amount", 0).below(number, bearer, 3) {
                0 => 0,
                1 => 1 + key.child("backlog", 0).below(number, bearer, 2000),
                _ => 1 << 40,
            };
            let latest = slot_start(number).nanos() + 1;
            contender.since = Time::from_nanos(key.child("since", 0).below(number, bearer, latest));
        }
        case
    }

    pub fn slot(&self) -> Slot<'_> {
        let Case { number, resources, contenders, bits } = self;
        Slot { number: *number, start: slot_start(*number), resources: *resources, contenders, bits }
    }

    /// The bearer to which `scheduler` gives each resource.
    pub fn assign(&self, scheduler: &mut SchedulerModel) -> Vec<Option<usize>> {
        let mut to = vec![0; self.resources];
        airpath_models::schedule::Scheduler::assign(scheduler, &self.slot(), &mut to);
        to.into_iter()
            .map(|place| (place != NOBODY).then(|| usize::from(self.contenders[usize::from(place)].bearer)))
            .collect()
    }

    /// The same slot without the contenders that have nothing to send.
    pub fn without_idle(&self) -> Case {
        let busy = |place: &usize| self.contenders[*place].backlog_bits > 0;
        let places: Vec<usize> = (0..self.contenders.len()).filter(busy).collect();
        let row = |place: &usize| self.bits[place * self.resources..(place + 1) * self.resources].to_vec();
        Case {
            contenders: places.iter().map(|place| self.contenders[*place]).collect(),
            bits: places.iter().flat_map(row).collect(),
            ..*self
        }
    }

    /// The same slot with nobody having anything to send.
    pub fn emptied(&self, number: u64) -> Case {
        let idle = |contender: &Contender| Contender { backlog_bits: 0, ..*contender };
        Case { number, contenders: self.contenders.iter().map(idle).collect(), bits: self.bits.clone(), ..*self }
    }
}
