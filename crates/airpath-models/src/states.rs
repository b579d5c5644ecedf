// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! States: when each comes into force, how long it stays, and which one follows it.
//!
//! Source: Kojo et al. 2001, section 5.1 (state changes), with durations and transitions of a
//! semi-Markov chain: a state that is entered draws how long it stays, and when that is over, which
//! state follows.
//!
//! What brings a state at a given time, or by a command, ends the stay of the state before, whose
//! duration is not heard of any more. At one instant a state with a time of its own comes instead of
//! the end of a stay; commands come behind both. No stay is shorter than a nanosecond.
//!
//! The duration of a state's n-th stay and what follows it are draws number n of streams that bear
//! the state's name: other states, commands and wake-ups redraw nothing.

use std::collections::VecDeque;

use airpath_core::{Direction, DrawKey, DrawScope, Event, Probability, Seed, Span, Time};

use crate::problem::Problem;
use crate::random::{Random, Sampler};

/// Duration and successor of a state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stay {
    /// Duration; without it, until something else brings another state.
    pub duration: Option<Random<Span>>,
    /// Successors by their numbers (0 for the initial state, n + 1 for place n in the path's list), with
    /// probabilities whose sum is 1. Empty: that of the beginning follows.
    pub next: Vec<(u16, Probability)>,
}

/// Tolerance of the sum of probabilities: thirds and sevenths can be written.
const SUM_TOLERANCE: f64 = 1e-9;
/// Number of draws that, all of them 0, make a duration that is no duration.
const DRAWS_TRIED: u64 = 64;

impl Stay {
    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(duration) = &self.duration {
            problems.extend(duration.problems().into_iter().map(|problem| problem.under("duration")));
            if problems.is_empty() && is_always_zero(duration) {
                let message = "is always 0 s, so that states would follow one another without end at one instant; \
                               write for example \"3 s\"";
                problems.push(Problem::new("duration", message));
            }
        }
        if self.next.is_empty() {
            return problems;
        }
        if self.duration.is_none() {
            let message = "says what follows, but the state has no `duration` after which it would; add one, such as \
                           duration = \"3 s\"";
            problems.push(Problem::new("next", message));
        }
        let sum: f64 = self.next.iter().map(|(_, probability)| probability.get()).sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            problems.push(Problem::new("next", format!("has probabilities whose sum is {sum}; it must be 1")));
        }
        problems
    }
}

fn is_always_zero(duration: &Random<Span>) -> bool {
    let scope = DrawScope { hop: "", direction: Direction::Uplink, role: "trial", instance: 0 };
    let mut sampler = Sampler::new(duration, DrawKey::new(Seed(0), &scope));
    (0..DRAWS_TRIED).all(|step| sampler.draw(step) == Span::ZERO)
}

/// A state with a duration.
struct Timed {
    duration: Sampler<Span>,
    next: Vec<(u16, Probability)>,
    key: DrawKey,
    /// Number of times that the state has been entered.
    stays: u64,
}

impl Timed {
    fn new(name: &str, stay: &Stay, seed: Seed) -> Option<Timed> {
        let duration = stay.duration.as_ref()?;
        // No hop has a name with a space.
        let scope = format!("state {name}");
        let key =
            |role| DrawKey::new(seed, &DrawScope { hop: &scope, direction: Direction::Uplink, role, instance: 0 });
        let duration = Sampler::new(duration, key("duration"));
        Some(Timed { duration, next: stay.next.clone(), key: key("next"), stays: 0 })
    }

    /// End of the stay that begins at `at`.
    fn stay(&mut self, at: Time) -> Time {
        let duration = self.duration.draw(self.stays).max(Span::from_nanos(1));
        self.stays += 1;
        at + duration
    }

    /// Successor of the present stay.
    fn follows(&self) -> u16 {
        let [before @ .., (last, _)] = self.next.as_slice() else { return 0 };
        let draw = u128::from(self.key.bits(self.stays - 1, 0));
        let mut below = 0;
        for (state, probability) in before {
            below += probability.threshold();
            if draw < below {
                return *state;
            }
        }
        *last
    }
}

/// Schedule of states: the state in force, and its successor.
pub(crate) struct Schedule {
    /// States that come by themselves at given times, the next one first.
    agenda: VecDeque<(Time, u16)>,
    /// By the number of the state.
    timed: Vec<Option<Timed>>,
    state: u16,
    /// End of the stay.
    ends: Time,
    /// Time of the next state by itself; `Time::NEVER` if there is none.
    due: Time,
    entries: u64,
}

impl Schedule {
    /// The schedule at the beginning of a run with `seed`: how long the state of the beginning stays, and
    /// of each further state its name, the time at which it comes, and how long it stays.
    pub(crate) fn new<'a>(
        initial: &'a Stay,
        states: impl Iterator<Item = (&'a str, Option<Time>, &'a Stay)> + Clone,
        seed: Seed,
    ) -> Schedule {
        let at = |(index, (_, at, _)): (usize, (&str, Option<Time>, &Stay))| Some((at?, index as u16 + 1));
        let mut agenda: Vec<(Time, u16)> = states.clone().enumerate().filter_map(at).collect();
        agenda.sort_by_key(|(at, _)| *at);
        let stays = std::iter::once((Event::INITIAL_STATE, initial)).chain(states.map(|(name, _, stay)| (name, stay)));
        let mut schedule = Schedule {
            agenda: agenda.into(),
            timed: stays.map(|(name, stay)| Timed::new(name, stay, seed)).collect(),
            state: 0,
            ends: Time::NEVER,
            due: Time::NEVER,
            entries: 0,
        };
        schedule.enter(Time::ZERO, 0);
        schedule.entries = 0;
        schedule
    }

    /// Time of the next state by itself.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The number of the state in force.
    #[inline]
    pub(crate) fn state(&self) -> u16 {
        self.state
    }

    /// Number of states entered since the run began.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The state that comes of itself at [`Schedule::due`]; the caller enters it.
    pub(crate) fn take(&mut self) -> u16 {
        match self.agenda.front() {
            Some((at, state)) if *at <= self.ends => {
                let state = *state;
                self.agenda.pop_front();
                state
            }
            _ => self.timed[usize::from(self.state)].as_ref().map_or(0, Timed::follows),
        }
    }

    /// Puts state number `state` in force at `at`: its stay begins, whatever was to come of the one before.
    pub(crate) fn enter(&mut self, at: Time, state: u16) {
        self.entries += 1;
        self.state = state;
        self.ends = self.timed[usize::from(state)].as_mut().map_or(Time::NEVER, |timed| timed.stay(at));
        self.due = self.agenda.front().map_or(self.ends, |(at, _)| self.ends.min(*at));
    }
}
