// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The filters of a path by number, each text once: what a driver asks about every packet.

use std::sync::Arc;

use airpath_core::{Matches, PacketFilters};

use crate::config::{HopConfig, PathConfig};
use crate::filter::{Filter, VisitFilter};

fn visit(hops: &mut [HopConfig], visit: &mut VisitFilter<'_>) {
    for hop in hops {
        hop.uplink.filters(visit);
        hop.downlink.filters(visit);
    }
}

/// The filters of a path by their number.
#[derive(Clone, Debug, Default)]
pub struct FilterList(Vec<Filter>);

impl FilterList {
    /// The filters of `config`, and `config` with their numbers. What is beyond [`Matches::LIMIT`] has no number, and
    /// takes nothing; a scenario with so many is refused.
    pub(crate) fn of(config: &PathConfig) -> (PathConfig, FilterList) {
        let mut config = config.clone();
        let mut filters = FilterList::default();
        let _ = filters.add(&config.hops);
        for state in &config.states {
            let _ = filters.add(&state.hops);
        }
        filters.number(&mut config.hops);
        config.states.iter_mut().for_each(|state| filters.number(&mut state.hops));
        (config, filters)
    }

    /// Adds the filters of `hops` that are not here yet.
    ///
    /// # Errors
    /// When there are too many; the first ones are added.
    pub fn add(&mut self, hops: &[HopConfig]) -> Result<(), String> {
        let mut is_full = false;
        visit(&mut hops.to_vec(), &mut |filter| {
            let is_new = !self.0.contains(filter);
            if is_new && self.0.len() < Matches::LIMIT {
                self.0.push(filter.clone());
            } else if is_new {
                is_full = true;
            }
        });
        let limit = Matches::LIMIT;
        if is_full { Err(format!("has more than {limit} different filters of packets in all states")) } else { Ok(()) }
    }

    /// `hops` with the numbers of their filters.
    pub(crate) fn numbered(&self, hops: &[HopConfig]) -> Vec<HopConfig> {
        let mut hops = hops.to_vec();
        self.number(&mut hops);
        hops
    }

    fn number(&self, hops: &mut [HopConfig]) {
        visit(hops, &mut |filter| {
            let number = self.0.iter().position(|known| known == filter);
            filter.set_number(number.and_then(|number| number.try_into().ok()));
        });
    }

    /// The filters, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.0.iter()
    }

    /// The list for drivers; none if it is empty.
    pub(crate) fn shared(self) -> Option<Arc<FilterList>> {
        (!self.0.is_empty()).then(|| Arc::new(self))
    }
}

impl PacketFilters for FilterList {
    fn matches(&self, packet: &[u8], length: u32) -> Matches {
        let numbered = (0u8..).zip(&self.0);
        let matching = numbered.filter(|(_, filter)| filter.expression().matches(packet, length));
        matching.fold(Matches::NONE, |matches, (number, _)| matches.with(number))
    }
}
