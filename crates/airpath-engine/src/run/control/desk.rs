// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests to a live run, carried out.

use std::io::{self, Read, Write};
use std::sync::mpsc::channel;

use airpath_core::{Command, CommandError, StateInForce, Time};
use airpath_live::clock;
use airpath_live::engine_loop::{Answer, Handle, Order, Word};
use airpath_live::processor_time::ProcessorTime;
use airpath_log::verdict::{CalibrationFacts, Measurements, judge};
use airpath_log::{Places, UserNames};
use airpath_models::MachineConfig;
use airpath_scenario::Running;
use serde_json::{Value, json};

use super::elsewhere::{self, Asked, Elsewhere};
use super::{Client, Line, Watched};
use crate::control::around::Around;
use crate::control::protocol::{LONGEST_LINE_BYTES, Refusal, Request, VERSION};
use crate::run::{machine, measured};

/// Executor of requests.
pub(super) struct Desk {
    pub(super) handle: Handle,
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
    /// The engine of another host, where hops are there.
    pub(super) elsewhere: Option<Elsewhere>,
    /// The request of the near engine that is carried out, at the far host.
    pub(super) asked: Option<Asked>,
}

impl Desk {
    /// Reads what `client` has sent and answers every whole line; an error means that they are gone, or
    /// do not read what they asked for.
    pub(super) fn attend(&mut self, client: &mut Client) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match client.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => client.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(end) = client.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Line = client.buffer.drain(..=end).collect();
                let answer = self.answer(&String::from_utf8_lossy(&line), &mut client.watched);
                client.stream.write_all(format!("{answer}\n").as_bytes())?;
            }
            if client.buffer.len() > LONGEST_LINE_BYTES {
                let message = format!("a request line is limited to {LONGEST_LINE_BYTES} bytes");
                client.stream.write_all(format!("{}\n", Refusal::new("request", message).answer()).as_bytes())?;
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    fn answer(&mut self, line: &str, watched: &mut Option<Watched>) -> Value {
        Request::read(line)
            .and_then(|request| self.carry_out(request, watched))
            .unwrap_or_else(|refusal| refusal.answer())
    }

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
            Request::Get { parameter } if self.elsewhere.as_ref().is_some_and(|there| there.has(&parameter)) => {
                self.ask_elsewhere(&Request::Get { parameter })
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
                let (there, at_ns) = self.begin_elsewhere(&Request::State { name: name.clone() })?;
                let done = self.order(Some((Command::EnterState(name.into()), record)), at_ns)?;
                self.done_on_all(&done, there)
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
                let of_there = self.elsewhere.as_ref().map(|there| there.take(&mut parameters)).unwrap_or_default();
                if parameters.is_empty() {
                    let request = Request::Set { parameter: None, value: None, parameters: of_there };
                    let (there, _) = self.begin_elsewhere(&request)?;
                    let done = self.order(None, None)?;
                    return self.done_on_all(&done, there);
                }
                let assignments = self.running.assignments(&parameters);
                let settings = self.running.set(&assignments);
                let settings = settings.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let (there, at_ns) = match of_there.is_empty() {
                    true => (None, None),
                    false => {
                        let request = Request::Set { parameter: None, value: None, parameters: of_there };
                        self.begin_elsewhere(&request)?
                    }
                };
                let record = json!({ "set": assignments }).to_string();
                let command = Command::Configure(self.machine.settings(settings));
                let done = self.order(Some((command, record)), at_ns)?;
                self.running.took_effect(|user| done.state_of(user));
                self.done_on_all(&done, there)
            }
        }
    }

    /// Measurements of the link until now.
    fn look(&self) -> Result<Measurements, Refusal> {
        let (answer, answered) = channel();
        self.handle.send(Word::Look(0, answer));
        match answered.recv_timeout(elsewhere::patience(None)) {
            Ok(Some(look)) => Ok(measured::of_link(&look)),
            Ok(None) => Err(not_begun()),
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    /// Asks the other host, and returns its answer.
    fn ask_elsewhere(&mut self, request: &Request) -> Result<Value, Refusal> {
        let there = self.elsewhere.as_mut().ok_or_else(not_begun)?;
        let number = there.ask(request, None)?;
        there.answer(number)
    }

    /// Tells the other host, if there is one, to carry `request` out at an instant that both can meet. Returns the
    /// number of the request there, and the instant by CLOCK_MONOTONIC here.
    fn begin_elsewhere(&mut self, request: &Request) -> Result<(Option<u64>, Option<u64>), Refusal> {
        let Some(there) = &mut self.elsewhere else { return Ok((None, None)) };
        let at_ns = there.instant();
        Ok((Some(there.ask(request, Some(at_ns))?), Some(at_ns)))
    }

    /// The answer once the other host has carried its part out, too: `hosts` has the time there.
    fn done_on_all(&mut self, done: &Done, there: Option<u64>) -> Result<Value, Refusal> {
        let mut answer = self.done(done);
        if let (Some(number), Some(elsewhere)) = (there, &mut self.elsewhere) {
            let told = elsewhere.answer(number)?;
            answer["hosts"] = json!({ elsewhere.host(): told["time_ns"] });
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
        let received_ns = at_ns.unwrap_or_else(clock::monotonic_ns);
        let is_look = command.is_none();
        self.handle.send(Word::Order(Order { link: 0, received_ns, command, answer }));
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
