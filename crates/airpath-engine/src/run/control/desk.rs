// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests to a live run, carried out.

use std::io::{self, Read, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use airpath_core::{Command, CommandError, StateInForce, Time};
use airpath_live::clock;
use airpath_live::engine_loop::{Answer, Handle, Order, Word};
use airpath_live::processor_time::ProcessorTime;
use airpath_log::verdict::{CalibrationFacts, Measurements, judge};
use airpath_log::{Places, UserNames};
use airpath_models::MachineConfig;
use airpath_scenario::Running;
use serde_json::{Value, json};

use super::{Client, Line, Watched};
use crate::control::around::Around;
use crate::control::protocol::{LONGEST_LINE_BYTES, Refusal, Request, VERSION};
use crate::run::{machine, measured};

/// Maximum time for an answer of the loop.
const PATIENCE: Duration = Duration::from_secs(5);

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

    fn carry_out(&mut self, request: Request, watched: &mut Option<Watched>) -> Result<Value, Refusal> {
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
                let done = self.order(None)?;
                let mut answer = self.done(&done);
                if let (Value::Object(answer), Value::Object(about)) = (&mut answer, &self.about) {
                    answer.extend(about.clone());
                }
                Ok(answer)
            }
            Request::Get { parameter } => {
                let done = self.order(None)?;
                let value = self.running.get(&parameter, |user| done.state_of(user));
                let value = value.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let mut answer = self.done(&done);
                answer["parameter"] = parameter.into();
                answer["value"] = value;
                Ok(answer)
            }
            Request::State { name } => {
                let record = json!({ "enter_state": name }).to_string();
                let done = self.order(Some((Command::EnterState(name.into()), record)))?;
                Ok(self.done(&done))
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
                let assignments = self.running.assignments(&parameters);
                let settings = self.running.set(&assignments);
                let settings = settings.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let record = json!({ "set": assignments }).to_string();
                let done = self.order(Some((Command::Configure(self.machine.settings(settings)), record)))?;
                self.running.took_effect(|user| done.state_of(user));
                Ok(self.done(&done))
            }
        }
    }

    /// Measurements of the link until now.
    fn look(&self) -> Result<Measurements, Refusal> {
        let (answer, answered) = channel();
        self.handle.send(Word::Look(0, answer));
        match answered.recv_timeout(PATIENCE) {
            Ok(Some(look)) => Ok(measured::of_link(&look)),
            Ok(None) => Err(not_begun()),
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    /// Hands an order to the loop and waits for what became of it.
    fn order(&self, command: Option<(Command, String)>) -> Result<Done, Refusal> {
        let (answer, answered) = channel();
        let received_ns = clock::monotonic_ns();
        self.handle.send(Word::Order(Order { link: 0, received_ns, command, answer }));
        match answered.recv_timeout(PATIENCE) {
            Ok(Answer::Done { received, at, states }) => Ok(Done { received, at, states }),
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
