// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors at given positions.
//!
//! Source: the patterns of KauNet (Garcia, Conchon, Pérennou and Brunstrom 2007; Garcia, Hurtig and
//! Brunstrom 2008), which place packet losses and bit errors by hand, driven by data (packets, bits) or
//! by time (milliseconds). Positions count from where the process begins, the first being 0; a change of
//! its parameters does not restart the count.

use airpath_core::{DrawKey, Time};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use super::position_list::PositionList;
use crate::file::{FileRef, VisitFile};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Positions of what is hit, per packet, frame, bit or millisecond; given here or in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionsConfig {
    /// The positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<PositionList>,
    /// A file with the positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileRef<PositionList>>,
    /// Period after which the list repeats; without it nothing is hit after the last position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
}

impl PositionsConfig {
    fn list(&self) -> Option<Arc<PositionList>> {
        let loaded = self.file.as_ref().and_then(|file| file.loaded().cloned());
        loaded.or_else(|| self.positions.clone().map(Arc::new))
    }
}

impl Configured for PositionsConfig {
    type Model = Positions;

    fn problems(&self) -> Vec<Problem> {
        match (&self.positions, &self.file) {
            (None, None) => {
                let message = "are missing: write for example positions = \"3, 7, 10-19\", or name a file with them";
                return vec![Problem::new("positions", message)];
            }
            (Some(_), Some(_)) => {
                return vec![Problem::new("file", "stands beside positions; write one of them")];
            }
            _ => {}
        }
        let last = self.list().and_then(|list| list.last());
        match (self.repeat, last) {
            (Some(repeat), Some(last)) if repeat <= last => {
                let message =
                    format!("is {repeat}, so that position {last} would never come; write at least {}", last + 1);
                vec![Problem::new("repeat", message)]
            }
            _ => Vec::new(),
        }
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let Some(file) = &mut self.file {
            visit("file", file);
        }
    }

    fn build(&self, _key: DrawKey) -> Positions {
        Positions::new(self)
    }

    fn examples() -> Vec<PositionsConfig> {
        let list: PositionList = "0, 3, 5-8, 200-203, 5000-5100".parse().expect("an example is valid");
        let (inline, file) = (Some(list.clone()), Some(FileRef::with_data("positions.txt", list)));
        vec![
            PositionsConfig { positions: inline, file: None, repeat: None },
            PositionsConfig { positions: None, file, repeat: Some(5_110) },
            PositionsConfig { positions: "2".parse().ok(), file: None, repeat: Some(5) },
        ]
    }
}

impl Reconfigured for PositionsConfig {
    fn configure(&self, model: &mut Positions, _at: Time) {
        model.configure(self);
    }
}

/// The process of errors at given positions.
#[derive(Clone, Debug)]
pub struct Positions {
    list: Arc<PositionList>,
    repeat: Option<u64>,
    /// The position of what comes next.
    position: u64,
    /// The first run that does not lie before it.
    next: usize,
}

impl Positions {
    pub(super) fn new(config: &PositionsConfig) -> Positions {
        let list = config.list().unwrap_or_default();
        Positions { list, repeat: config.repeat, position: 0, next: 0 }
    }

    pub(super) fn configure(&mut self, config: &PositionsConfig) {
        let list = config.list().unwrap_or_default();
        if self.repeat == config.repeat && self.list == list {
            return;
        }
        (self.list, self.repeat) = (list, config.repeat);
        self.go_to(self.position);
        let position = self.position;
        self.next = self.list.runs().partition_point(|(_, last)| *last < position);
    }

    /// Makes `position` the next one, at the end of a round the first.
    fn go_to(&mut self, position: u64) {
        self.position = position;
        if let Some(repeat) = self.repeat.filter(|repeat| position >= *repeat) {
            self.position = position % repeat;
            self.next = 0;
        }
    }

    /// The run in which the next position lies, or the first after it.
    fn run(&mut self) -> Option<(u64, u64)> {
        let runs = self.list.runs();
        while self.next < runs.len() && runs[self.next].1 < self.position {
            self.next += 1;
        }
        runs.get(self.next).copied()
    }
}

impl ErrorProcess for Positions {
    fn hits(&mut self, _: u64) -> bool {
        let hit = self.run().is_some_and(|(first, _)| first <= self.position);
        self.go_to(self.position + 1);
        hit
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut done = false;
        while passed < bits {
            let round = self.repeat.map_or(u64::MAX, |repeat| repeat - self.position);
            let here = round.min(bits - passed);
            let (begin, end) = (self.position, self.position + here);
            while !done
                && let Some((first, last)) = self.run()
                && first < end
            {
                let from = first.max(begin);
                let to = if only_first { from + 1 } else { end.min(last + 1) };
                positions.extend((from..to).map(|position| (position - begin + passed) as u32));
                done = only_first;
                if last >= end {
                    break;
                }
                self.next += 1;
            }
            passed += here;
            self.go_to(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::as_units::assert_bits_are_as_units;

    fn config(positions: &str, repeat: Option<u64>) -> PositionsConfig {
        PositionsConfig { positions: Some(positions.parse().unwrap()), file: None, repeat }
    }

    fn units(process: &mut Positions, count: u64) -> Vec<u64> {
        (0..count).filter(|step| process.hits(*step)).collect()
    }

    #[test]
    fn what_is_listed_is_hit() {
        let mut process = Positions::new(&config("0, 3, 5-7", None));
        assert_eq!(units(&mut process, 30), [0, 3, 5, 6, 7]);
        let mut process = Positions::new(&config("1, 3-4", Some(5)));
        assert_eq!(units(&mut process, 12), [1, 3, 4, 6, 8, 9, 11]);
    }

    /// Bits are as units, however they are cut into transmissions.
    #[test]
    fn bits_are_as_units() {
        for (list, repeat) in
            [("0, 3, 5-8, 200-203", None), ("0-4", Some(5)), ("2", Some(5)), ("1, 4-6, 90-99", Some(101))]
        {
            let process = || Positions::new(&config(list, repeat));
            assert_bits_are_as_units(process, &[1, 2, 3, 10, 64, 1_000], &format!("{list} every {repeat:?}"));
        }
    }

    #[test]
    fn a_change_of_the_list_goes_on_counting() {
        let mut process = Positions::new(&config("0-9", None));
        assert_eq!(units(&mut process, 4), [0, 1, 2, 3]);
        process.configure(&config("5, 30", None));
        // The fifth is position 4.
        assert_eq!(units(&mut process, 4), [1]);
        process.configure(&config("0, 2", Some(6)));
        // Position 8 is the third of its round.
        assert_eq!(units(&mut process, 6), [0, 4]);
    }

    #[test]
    fn a_list_is_given_once_and_fits_its_round() {
        let told = |config: PositionsConfig| config.problems().pop().unwrap();
        assert_eq!(told(PositionsConfig { positions: None, file: None, repeat: None }).key, "positions");
        let both = PositionsConfig { file: Some(FileRef::new("x")), ..config("1", None) };
        assert_eq!(told(both).key, "file");
        assert_eq!(
            told(config("1, 9", Some(9))).message,
            "is 9, so that position 9 would never come; write at least 10"
        );
    }
}
