// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A burst of so many out of every so many, always the same.
//!
//! Source: Eckhardt and Steenkiste 2002, section 3: one burst of one to eight packets out of every
//! hundred; bursts of five out of 6 to 100; 100 dropped after every 400 that pass.
//!
//! Packets, frames, bits or milliseconds are counted from where the process begins, the first being 0;
//! a change of its parameters does not restart the count.

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Parameters of a regular pattern, per packet, frame, bit or millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternConfig {
    /// Number of consecutive hits.
    pub burst: u64,
    /// Period from the beginning of one burst to the next.
    pub every: u64,
    /// Number of units before the first burst.
    #[serde(default)]
    pub offset: u64,
}

impl Configured for PatternConfig {
    type Model = Pattern;

    fn problems(&self) -> Vec<Problem> {
        let PatternConfig { burst, every, .. } = *self;
        if every == 0 {
            return vec![Problem::new("every", "is 0; it counts from one burst to the next, so write at least 1")];
        }
        if burst == 0 || burst > every {
            let message = format!("is {burst}; of every {every} at least 1 is hit and at most {every} are");
            return vec![Problem::new("burst", message)];
        }
        Vec::new()
    }

    fn build(&self, _key: DrawKey) -> Pattern {
        Pattern::new(self)
    }

    fn examples() -> Vec<PatternConfig> {
        vec![PatternConfig { burst: 2, every: 7, offset: 3 }, PatternConfig { burst: 1, every: 1, offset: 40 }]
    }
}

impl Reconfigured for PatternConfig {
    fn configure(&self, model: &mut Pattern, _at: Time) {
        model.configure(self);
    }
}

/// The process of a regular pattern.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    config: PatternConfig,
    /// Number of units so far.
    position: u64,
}

impl Pattern {
    pub(super) fn new(config: &PatternConfig) -> Pattern {
        Pattern { config: *config, position: 0 }
    }

    pub(super) fn configure(&mut self, config: &PatternConfig) {
        self.config = *config;
    }

    /// The place within the pattern of what is at `position`; none before the first burst.
    fn place(&self, position: u64) -> Option<u64> {
        Some(position.checked_sub(self.config.offset)? % self.config.every)
    }
}

impl ErrorProcess for Pattern {
    fn hits(&mut self, _: u64) -> bool {
        let place = self.place(self.position);
        self.position += 1;
        place.is_some_and(|place| place < self.config.burst)
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let (from, to) = (self.position, self.position + bits);
        self.position = to;
        let mut next = from;
        while next < to {
            // The bits of the burst that is under way at `next`, or comes then.
            let (begins, left) = match self.place(next) {
                None => (self.config.offset, self.config.burst),
                Some(place) if place < self.config.burst => (next, self.config.burst - place),
                Some(place) => (next.saturating_add(self.config.every - place), self.config.burst),
            };
            let ends = begins.saturating_add(left).min(to);
            if begins < ends {
                let ends = if only_first { begins + 1 } else { ends };
                positions.extend((begins - from..ends - from).map(|position| position as u32));
                if only_first {
                    return;
                }
            }
            next = begins.saturating_add(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::as_units::assert_bits_are_as_units;

    fn process(burst: u64, every: u64, offset: u64) -> Pattern {
        Pattern::new(&PatternConfig { burst, every, offset })
    }

    #[test]
    fn bursts_are_where_they_are_said_to_be() {
        let mut pattern = process(2, 5, 4);
        let hits: Vec<u64> = (0..18).filter(|_| pattern.hits(0)).collect();
        let mut again = process(2, 5, 4);
        let hit: Vec<u64> = (0..18).filter(|step| again.hits(*step)).collect();
        assert_eq!(hits, hit);
        assert_eq!(hit, [4, 5, 9, 10, 14, 15]);
        // 100 dropped after every 400 that pass.
        let mut pattern = process(100, 500, 400);
        let hit: Vec<u64> = (0..1_400).filter(|step| pattern.hits(*step)).collect();
        assert_eq!(hit, (400..500).chain(900..1_000).collect::<Vec<_>>());
    }

    /// Bits are as units, however they are cut into transmissions.
    #[test]
    fn bits_are_as_units() {
        for (burst, every, offset) in
            [(1, 1, 0), (1, 1, 9), (3, 7, 0), (3, 7, 5), (7, 7, 2), (1, 100, 99), (60, 64, 1_000)]
        {
            let what = format!("{burst} of {every} from {offset}");
            assert_bits_are_as_units(|| process(burst, every, offset), &[1, 2, 3, 10, 64, 400, 2_000], &what);
        }
    }

    #[test]
    fn patterns_without_sense_are_refused() {
        let told = |burst, every| PatternConfig { burst, every, offset: 0 }.problems().pop().unwrap();
        assert_eq!(told(0, 5).key, "burst");
        assert_eq!(told(6, 5).message, "is 6; of every 5 at least 1 is hit and at most 5 are");
        assert_eq!(told(1, 0).key, "every");
    }
}
