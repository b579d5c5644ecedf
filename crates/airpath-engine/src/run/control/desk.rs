// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests to a live run, carried out.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use airpath_core::{Command, CommandError, StateInForce, Time};
use airpath_live::clock;
use airpath_live::engine_loop::{Answer, Order, Word};
use airpath_live::processor_time::ProcessorTime;
use airpath_log::verdict::{CalibrationFacts, Measurements, judge};
use airpath_log::{Places, UserNames};
use airpath_models::MachineConfig;
use airpath_scenario::Running;
use serde_json::{Value, json};

use super::Watched;
use super::elsewhere::{self, Asked, Elsewhere};
use crate::control::around::Around;
use crate::control::protocol::{Refusal, Request, VERSION};
use crate::run::loops::Reach;
use crate::run::{machine, measured};

/// Executor of requests to one link.
pub(super) struct Desk {
    pub(super) reach: Reach,
    /// Time of receipt of the present request, by CLOCK_MONOTONIC in ns, where it goes to several links.
    pub(super) received_ns: Option<u64>,
    /// Instant at which the present request takes effect, by CLOCK_MONOTONIC in ns, where it goes to several links of
    /// which one is on other hosts, too. Such a request has been checked.
    pub(super) at_ns: Option<u64>,
    pub(super) running: Running,
    pub(super) machine: MachineConfig,
    pub(super) places: Places,
    pub(super) about: Value,
    /// True if there is a run around this one.
    pub(super) nested: bool,
    /// State of the processors when the run began.
    pub(super) begun: ProcessorTime,
    /// Quality of the run's calibration.
    pub(super) calibration: Option<CalibrationFacts>,
    /// The engines of other hosts on which hops are.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// The request of the near engine that is carried out, at the far host.
    pub(super) asked: Option<Asked>,
}

impl Desk {
    pub(super) fn carry_out(&mut self, request: Request, watched: &mut Option<Watched>) -> Result<Value, Refusal> {
        match request {
            Request::Watch {} => {
                // Whoever is further out is asked first: this takes longer than the own link.
                let around = self.nested.then(Around::watch);
                let start = self.look()?;
                let answer = json!({ "version": VERSION, "ok": true, "time_ns": start.duration_ns });
                *watched = Some(Watched { start, processors: ProcessorTime::now(), around });
                Ok(answer)
            }
            Request::Verdict {} => {
                let now = self.look()?;
                let time_ns = now.duration_ns;
                let Watched { start, processors, around } = watched.take().unwrap_or_else(|| Watched {
                    start: Measurements::default(),
                    processors: self.begun,
                    around: self.nested.then(Around::watch),
                });
                let mut measured = now.since(&start);
                measured.machine = machine::seen_from_beside(ProcessorTime::now().since(&processors), self.calibration);
                measured.ends.around = around.map(Around::judge);
                Ok(json!({
                    "version": VERSION,
                    "ok": true,
                    "time_ns": time_ns,
                    "since_ns": start.duration_ns,
                    "verdict": judge(&measured),
                }))
            }
            Request::Describe {} => {
                let done = self.order(None, None)?;
                let mut answer = self.done(&done);
                if let (Value::Object(answer), Value::Object(about)) = (&mut answer, &self.about) {
                    answer.extend(about.clone());
                }
                Ok(answer)
            }
            Request::Get { parameter } if self.elsewhere.iter().any(|there| there.has(&parameter)) => {
                let there = self.elsewhere.iter_mut().find(|there| there.has(&parameter)).ok_or_else(not_begun)?;
                let number = there.tell(&Request::Get { parameter }, None);
                there.accepted(number)?;
                there.answer(number)
            }
            Request::Get { parameter } => {
                let done = self.order(None, None)?;
                let value = self.running.get(&parameter, |user| done.state_of(user));
                let value = value.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let mut answer = self.done(&done);
                answer["parameter"] = parameter.into();
                answer["value"] = value;
                Ok(answer)
            }
            Request::State { name } => {
                let record = json!({ "enter_state": name }).to_string();
                // A state that is not known here the loop refuses, and nobody else is asked.
                let is_known = self.places.users().iter().any(|user| user.states.contains(&name));
                let request = || is_known.then(|| Request::State { name: name.clone() });
                let of_all = self.elsewhere.iter().map(|_| request()).collect();
                let (there, at_ns) = self.begin_elsewhere(of_all)?;
                let done = self.order(Some((Command::EnterState(name.into()), record)), at_ns)?;
                self.done_on_all(&done, &there)
            }
            Request::Set { parameter, value, mut parameters } => {
                match (parameter, value) {
                    (Some(parameter), Some(value)) => drop(parameters.insert(parameter, value)),
                    (None, None) => {}
                    _ => return Err(Refusal::new("request", "`parameter` and `value` go together")),
                }
                if parameters.is_empty() {
                    let message = "name a `parameter` and its `value`, or several as `parameters`";
                    return Err(Refusal::new("request", message));
                }
                let of_there = |there: &Elsewhere| {
                    let parameters = there.take(&mut parameters);
                    let set = |parameters| Request::Set { parameter: None, value: None, parameters };
                    (!parameters.is_empty()).then(|| set(parameters))
                };
                let of_all: Vec<Option<Request>> = self.elsewhere.iter().map(of_there).collect();
                // Nobody sets anything before all are known to be able to.
                if self.at_ns.is_none() && of_all.iter().flatten().count() > 1 {
                    for (there, request) in self.elsewhere.iter_mut().zip(&of_all) {
                        request.as_ref().map_or(Ok(()), |request| there.check(request))?;
                    }
                }
                if parameters.is_empty() {
                    let (there, _) = self.begin_elsewhere(of_all)?;
                    let done = self.order(None, None)?;
                    return self.done_on_all(&done, &there);
                }
                let assignments = self.running.assignments(&parameters);
                let settings = self.running.set(&assignments);
                let settings = settings.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                if self.asked.as_ref().is_some_and(|asked| asked.checks) {
                    return Ok(json!({ "version": VERSION, "ok": true }));
                }
                let (there, at_ns) = self.begin_elsewhere(of_all)?;
                let record = json!({ "set": assignments }).to_string();
                let command = Command::Configure(self.machine.settings(settings));
                let done = self.order(Some((command, record)), at_ns)?;
                self.running.took_effect(|user| done.state_of(user));
                self.done_on_all(&done, &there)
            }
        }
    }

    /// Checks parameters as [`Request::Set`] has them, and sets none.
    ///
    /// # Errors
    /// As that request.
    pub(super) fn check(&mut self, parameters: &BTreeMap<String, Value>) -> Result<(), Refusal> {
        let mut parameters = parameters.clone();
        for there in &mut self.elsewhere {
            let parameters = there.take(&mut parameters);
            if !parameters.is_empty() {
                there.check(&Request::Set { parameter: None, value: None, parameters })?;
            }
        }
        if parameters.is_empty() {
            return Ok(());
        }
        let mut running = self.running.clone();
        let checked = running.set(&running.assignments(&parameters));
        checked.map(drop).map_err(|report| Refusal::new("parameter", report.to_string()))
    }

    /// Measurements of the link until now.
    fn look(&self) -> Result<Measurements, Refusal> {
        let (answer, answered) = channel();
        self.reach.handle.send(Word::Look(self.reach.index, answer));
        match answered.recv_timeout(elsewhere::patience(None)) {
            Ok(Some(look)) => Ok(measured::of_link(&look)),
            Ok(None) => Err(not_begun()),
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    /// Tells each of the other hosts that has one among `requests` to carry it out at an instant that all can meet.
    /// Returns the numbers of the requests there, and the instant by CLOCK_MONOTONIC here; none where nobody is told.
    fn begin_elsewhere(&mut self, requests: Vec<Option<Request>>) -> Result<(Vec<Option<u64>>, Option<u64>), Refusal> {
        let is_any = requests.iter().any(Option::is_some);
        let at_ns = self.at_ns.or_else(|| is_any.then(|| Elsewhere::instant(self.elsewhere.iter())));
        // All are told before one is waited for: the instant leaves no time for a round trip to each.
        let told = self.elsewhere.iter_mut().zip(requests);
        let told: Vec<Option<u64>> =
            told.map(|(there, request)| request.map(|request| there.tell(&request, at_ns))).collect();
        for (there, number) in self.elsewhere.iter_mut().zip(&told) {
            number.map_or(Ok(()), |number| there.accepted(number))?;
        }
        Ok((told, at_ns))
    }

    /// The answer once the other hosts have carried their part out, too: `hosts` has the times there.
    fn done_on_all(&mut self, done: &Done, there: &[Option<u64>]) -> Result<Value, Refusal> {
        let mut answer = self.done(done);
        for (number, elsewhere) in there.iter().zip(&mut self.elsewhere) {
            let Some(number) = number else { continue };
            let told = elsewhere.answer(*number)?;
            answer["hosts"][elsewhere.host()] = told["time_ns"].clone();
            if done.is_look {
                answer["time_ns"] = told["time_ns"].clone();
            }
        }
        Ok(answer)
    }

    /// Hands an order to the loop, which carries it out at `at_ns`, and waits for what became of it.
    fn order(&self, command: Option<(Command, String)>, at_ns: Option<u64>) -> Result<Done, Refusal> {
        let (answer, answered) = channel();
        let at_ns = at_ns.or(self.asked.as_ref().and_then(|asked| asked.at_ns));
        let received_ns = at_ns.or(self.received_ns).unwrap_or_else(clock::monotonic_ns);
        let is_look = command.is_none();
        self.reach.handle.send(Word::Order(Order { link: self.reach.index, received_ns, command, answer }));
        if let Some(asked) = &self.asked {
            asked.accept();
        }
        match answered.recv_timeout(elsewhere::patience(at_ns)) {
            Ok(Answer::Done { received, at, states }) => Ok(Done { received, at, states, is_look }),
            Ok(Answer::NotBegun) => Err(not_begun()),
            Ok(Answer::Behind(by)) => {
                let message = format!("the link is {by} behind its clock: the engine cannot keep up with its load");
                Err(Refusal::new("behind", message))
            }
            Ok(Answer::Refused(error)) => {
                let kind = match error {
                    CommandError::UnknownState { .. } | CommandError::UnknownUser { .. } => "state",
                    CommandError::Mismatch(_) => "parameter",
                };
                Err(Refusal::new(kind, error.to_string()))
            }
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    /// An answer with the states in force.
    fn done(&self, done: &Done) -> Value {
        let mut answer = json!({
            "version": VERSION,
            "ok": true,
            "time_ns": done.at.nanos(),
            "received_ns": done.received.nanos(),
        });
        states_into(&mut answer, &self.places, &done.states);
        answer
    }
}

fn not_begun() -> Refusal {
    Refusal::new("not_begun", "the run has not started; try again in a moment")
}

/// Outcome of an order.
struct Done {
    received: Time,
    at: Time,
    /// State in force of each user.
    states: Vec<StateInForce>,
    /// It only looked.
    is_look: bool,
}

impl Done {
    fn state_of(&self, user: u16) -> StateInForce {
        self.states.get(usize::from(user)).copied().unwrap_or_default()
    }
}

/// Puts the states in force into an answer: `state` is that of all users, null where theirs differ; `user_states` has
/// that of each user by name.
fn states_into(answer: &mut Value, places: &Places, states: &[StateInForce]) {
    let of_user = |(user, state): (&UserNames, &StateInForce)| user.states.get(usize::from(state.number)).cloned();
    let names: Vec<Option<String>> = places.users().iter().zip(states).map(of_user).collect();
    let common = names.first().filter(|first| names.iter().all(|name| name == *first)).cloned().flatten();
    answer["state"] = common.into();
    if !places.named_users().is_empty() {
        let of_users = places.users().iter().zip(names);
        answer["user_states"] = of_users.map(|(user, state)| (user.name.clone(), Value::from(state))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, states: &[&str]) -> UserNames {
        UserNames {
            name: name.into(),
            hops: Vec::new(),
            bearers: Vec::new(),
            states: states.iter().map(|name| (*name).into()).collect(),
        }
    }

    fn answer(users: Vec<UserNames>, states: &[u16]) -> Value {
        let states: Vec<_> = states.iter().map(|number| StateInForce { number: *number, entries: 0 }).collect();
        let mut answer = json!({});
        states_into(&mut answer, &Places::of_users(users), &states);
        answer
    }

    #[test]
    fn states_are_told_by_user() {
        assert_eq!(answer(vec![user("", &["initial", "far"])], &[1]), json!({ "state": "far" }));
        let users = || vec![user("alice", &["initial", "dark", "far"]), user("bob", &["initial", "far"])];
        let far = json!({ "state": "far", "user_states": { "alice": "far", "bob": "far" } });
        assert_eq!(answer(users(), &[2, 1]), far);
        let differ = json!({ "state": null, "user_states": { "alice": "dark", "bob": "far" } });
        assert_eq!(answer(users(), &[1, 1]), differ);
    }
}
