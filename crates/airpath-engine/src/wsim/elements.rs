// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The elements of an error trace, one after the other: from a trace, or drawn from an error process.

use std::sync::Arc;

use airpath_models::channel::trace_file::{ErrorTrace, Record};
use airpath_models::channel::{ErrorProcess, ErrorProcessModel};

/// Source of elements.
#[derive(Debug)]
pub struct Elements(Source);

#[derive(Debug)]
enum Source {
    Trace { trace: Arc<ErrorTrace>, repeat: bool, position: u64, run: usize },
    Process { process: ErrorProcessModel, step: u64 },
}

impl Elements {
    /// The elements of `trace` from number `offset` on, which repeat from its beginning if `repeat`.
    pub fn of_trace(trace: Arc<ErrorTrace>, offset: u64, repeat: bool) -> Elements {
        let position = if repeat { offset % trace.units().max(1) } else { offset };
        let run = trace.run_at(position);
        Elements(Source::Trace { trace, repeat, position, run })
    }

    /// The elements that `process` draws, without an end.
    pub fn of_process(process: ErrorProcessModel) -> Elements {
        Elements(Source::Process { process, step: 0 })
    }

    /// Passes elements without an error, at most `most`, and returns their number. There may be more.
    pub fn pass(&mut self, most: u64) -> u64 {
        let Source::Trace { trace, repeat, position, run } = &mut self.0 else { return 0 };
        renew(trace, *repeat, position, run);
        let Some(end) = trace.end(*run) else { return 0 };
        if trace.record(*run) != Record::Ok {
            return 0;
        }
        let passed = most.min(end - *position);
        *position += passed;
        passed
    }

    /// The next element; none behind the last.
    pub fn next(&mut self) -> Option<Record<'_>> {
        match &mut self.0 {
            Source::Trace { trace, repeat, position, run } => {
                renew(trace, *repeat, position, run);
                trace.end(*run)?;
                *position += 1;
                Some(trace.record(*run))
            }
            Source::Process { process, step } => {
                *step += 1;
                Some(process.record(*step - 1))
            }
        }
    }
}

/// Moves `run` to the run of `position`, from the end to the beginning where the trace repeats.
fn renew(trace: &ErrorTrace, repeat: bool, position: &mut u64, run: &mut usize) {
    if repeat && *position >= trace.units() {
        (*position, *run) = (0, 0);
    }
    while trace.end(*run).is_some_and(|end| end <= *position) {
        *run += 1;
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawKey, DrawScope, Seed};
    use airpath_models::channel::{ErrorProcessConfig, PositionList, positions::PositionsConfig};
    use airpath_models::file::FileFormat;

    use super::*;

    fn told(elements: &mut Elements, most: usize) -> String {
        let next = |_| elements.next().map(|record| if record == Record::Ok { '0' } else { '1' });
        (0..most).map_while(next).collect()
    }

    fn of(text: &str, offset: u64, repeat: bool) -> Elements {
        Elements::of_trace(Arc::new(ErrorTrace::parse(text.as_bytes()).unwrap()), offset, repeat)
    }

    #[test]
    fn a_trace_ends_or_repeats_from_where_it_began() {
        assert_eq!(told(&mut of("00101", 0, false), 9), "00101");
        assert_eq!(told(&mut of("00101", 3, false), 9), "01");
        assert_eq!(told(&mut of("00101", 5, false), 9), "");
        assert_eq!(told(&mut of("00101", 3, true), 9), "010010100");
        assert_eq!(told(&mut of("00101", 13, true), 4), "0100");
    }

    #[test]
    fn passing_stops_before_an_error_and_at_the_end() {
        let mut elements = of("0001 00", 0, false);
        assert_eq!((elements.pass(2), elements.pass(9), elements.pass(9)), (2, 1, 0));
        assert_eq!(told(&mut elements, 1), "1");
        assert_eq!((elements.pass(9), elements.pass(9)), (2, 0));
        assert_eq!(elements.next(), None);
        let mut elements = of("000", 0, true);
        assert_eq!((elements.pass(9), elements.pass(1), elements.pass(9)), (3, 1, 2));
    }

    #[test]
    fn a_process_draws_its_steps() {
        let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "channel", instance: 0 };
        let positions: PositionList = "1, 4-5".parse().unwrap();
        let config = PositionsConfig { positions: Some(positions), file: None, repeat: None };
        let process = ErrorProcessModel::new(&ErrorProcessConfig::Positions(config), DrawKey::new(Seed(1), &scope));
        let mut elements = Elements::of_process(process);
        assert_eq!(elements.pass(5), 0);
        assert_eq!(told(&mut elements, 8), "01001100");
    }
}
