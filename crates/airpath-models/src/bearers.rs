// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The bearers of a path at work: which of them takes a packet.
//!
//! A hop with bearers is several hops of one bearer each, side by side. A path counts them from the first hop's first
//! bearer to the last hop's last, and a hop without bearers as one.

use std::ops::Range;

use airpath_core::{Direction, Pdu};

use crate::config::HopConfig;
use crate::queueing::classes::Classifier;

/// The bearers of a path.
#[derive(Debug)]
pub(crate) struct Bearers {
    /// Number of the hop of each bearer.
    hop_of: Vec<usize>,
    hops: Vec<OfHop>,
}

/// The bearers of a hop.
#[derive(Debug)]
struct OfHop {
    first: usize,
    /// Conditions of all bearers but the last, which takes what is left, by direction.
    classifiers: Vec<[Classifier; 2]>,
}

impl OfHop {
    fn new(first: usize, config: &HopConfig) -> OfHop {
        let pairs = config.uplink.bearers.iter().zip(&config.downlink.bearers);
        let classifiers = pairs.map(|(uplink, downlink)| [uplink, downlink].map(|of| Classifier::new(&of.matching)));
        let others = config.bearer_count() - 1;
        OfHop { first, classifiers: classifiers.take(others).collect() }
    }
}

impl Bearers {
    /// Those of a path of `hops`; none where no hop has several.
    pub fn new(hops: &[HopConfig]) -> Option<Box<Bearers>> {
        if hops.iter().all(|hop| hop.bearer_count() == 1) {
            return None;
        }
        let mut bearers = Bearers { hop_of: Vec::new(), hops: Vec::new() };
        for (number, hop) in hops.iter().enumerate() {
            bearers.hops.push(OfHop::new(bearers.hop_of.len(), hop));
            bearers.hop_of.extend(std::iter::repeat_n(number, hop.bearer_count()));
        }
        Some(Box::new(bearers))
    }

    /// Puts the conditions of `hops` in force for packets that come from now on.
    pub fn configure(&mut self, hops: &[HopConfig]) {
        for (of_hop, config) in self.hops.iter_mut().zip(hops) {
            *of_hop = OfHop::new(of_hop.first, config);
        }
    }

    /// Number of hops.
    pub fn hops(&self) -> usize {
        self.hops.len()
    }

    /// Number of the hop of a bearer.
    #[inline]
    pub fn hop(&self, bearer: usize) -> usize {
        self.hop_of[bearer]
    }

    /// Numbers of the bearers of a hop.
    #[inline]
    pub fn of_hop(&self, hop: usize) -> Range<usize> {
        let OfHop { first, classifiers } = &self.hops[hop];
        *first..*first + classifiers.len() + 1
    }

    /// Number of the bearer of `hop` that takes `pdu`, which travels in `direction`: the first that matches.
    #[inline]
    pub fn taking(&self, hop: usize, direction: Direction, pdu: &Pdu) -> usize {
        let OfHop { first, classifiers } = &self.hops[hop];
        let mut classifiers = classifiers.iter();
        let index = classifiers.position(|pair| pair[direction as usize].takes(pdu, direction));
        first + index.unwrap_or(self.hops[hop].classifiers.len())
    }
}
