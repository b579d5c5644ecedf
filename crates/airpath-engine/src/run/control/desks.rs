// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests to a run of one link or of several: handed to the links that they concern, and their answers put together.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use airpath_live::clock;
use airpath_log::Verdict;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::elsewhere::Elsewhere;
use super::{Client, Line, Watched};
use crate::control::protocol::{LONGEST_LINE_BYTES, Refusal, Request, VERSION};
use crate::run::link_place::LinkPlace;

/// The links of a run, by number.
pub(super) struct Desks {
    pub(super) desks: Vec<Desk>,
    /// Place of each; none where there is one link.
    pub(super) places: Vec<LinkPlace>,
    /// Unchanging part of the run's description.
    pub(super) about: Value,
}

impl Desks {
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

    fn answer(&mut self, line: &str, watched: &mut Vec<Option<Watched>>) -> Value {
        Request::read(line)
            .and_then(|request| self.carry_out(request, watched))
            .unwrap_or_else(|refusal| refusal.answer())
    }

    /// Carries out `request`; `watched` are the baselines of the client's watch, by link.
    pub(super) fn carry_out(&mut self, request: Request, watched: &mut Vec<Option<Watched>>) -> Result<Value, Refusal> {
        watched.resize_with(self.desks.len(), || None);
        if let [desk] = self.desks.as_mut_slice() {
            return desk.carry_out(request, &mut watched[0]);
        }
        let received_ns = clock::monotonic_ns();
        self.desks.iter_mut().for_each(|desk| (desk.received_ns, desk.at_ns) = (Some(received_ns), None));
        match request {
            Request::Watch {} => {
                let mut answers =
                    self.ask_all(|link, desk| Some(desk.carry_out(Request::Watch {}, &mut watched[link])))?;
                Ok(answers.pop_last().map(|(_, latest)| latest).unwrap_or_default())
            }
            Request::Verdict {} => {
                let answers =
                    self.ask_all(|link, desk| Some(desk.carry_out(Request::Verdict {}, &mut watched[link])))?;
                let mut worst: Option<(Verdict, Value)> = None;
                for answer in answers.into_values() {
                    let verdict: Verdict = serde_json::from_value(answer["verdict"].clone()).unwrap_or_default();
                    if worst.as_ref().is_none_or(|(known, _)| known.grade < verdict.grade) {
                        worst = Some((verdict, answer));
                    }
                }
                Ok(worst.map(|(_, answer)| answer).unwrap_or_default())
            }
            Request::Describe {} => {
                let answers = self.ask_all(|_, desk| Some(desk.carry_out(Request::Describe {}, &mut None)))?;
                let mut answer = self.together(&answers);
                if let (Value::Object(answer), Value::Object(about)) = (&mut answer, &self.about) {
                    answer.extend(about.clone());
                }
                Ok(answer)
            }
            Request::Get { ref parameter } => {
                let answers = self.ask_each(&request)?;
                let mut answer = self.together(&answers);
                answer["parameter"] = parameter.clone().into();
                let first = &answers.values().next().unwrap_or(&Value::Null)["value"];
                answer["value"] = if answers.values().all(|one| one["value"] == *first) {
                    first.clone()
                } else {
                    let of_link = |(link, one): (&usize, &Value)| self.by_user(*link, &one["value"]);
                    Value::Object(answers.iter().flat_map(of_link).collect())
                };
                Ok(answer)
            }
            Request::State { .. } | Request::Set { .. } => {
                let answers = self.ask_each(&request)?;
                Ok(self.together(&answers))
            }
        }
    }

    /// Answers of the links that `request` concerns, each to its own part of it. Parameters are checked for each before
    /// they are in force for any.
    fn ask_each(&mut self, request: &Request) -> Result<BTreeMap<usize, Value>, Refusal> {
        let requests = self.of_links(request)?;
        for (link, request) in &requests {
            let Request::Set { parameters, .. } = request else { continue };
            match self.desks[*link].check(parameters) {
                // One that is lost is asked below like the others, and answers that it has ended.
                Err(refusal) if refusal.kind != "ended" => return Err(refusal),
                _ => {}
            }
        }
        let mut outcomes = self.carry_out_at_once(requests);
        let mut refused = None;
        let answers = self.ask_all(|link, _| {
            match outcomes.remove(&link)? {
                // Whom a state does not fit it does not concern.
                Err(refusal) if refusal.kind == "state" => {
                    refused.get_or_insert(refusal);
                    None
                }
                answer => Some(answer),
            }
        });
        match (answers, refused) {
            (Ok(answers), _) if !answers.is_empty() => Ok(answers),
            (_, Some(refusal)) => Err(refusal),
            (answers, None) => answers,
        }
    }

    /// The parts of `request` by link, of those that it concerns, with names as the link has them.
    fn of_links(&self, request: &Request) -> Result<BTreeMap<usize, Request>, Refusal> {
        match request {
            Request::Get { parameter } => {
                let targets = self.targets(parameter)?.into_iter();
                Ok(targets.map(|(link, parameter)| (link, Request::Get { parameter })).collect())
            }
            Request::State { name } => {
                let all = || (0..self.desks.len()).map(|link| (link, name.clone())).collect();
                let names = self.user_before(name).map_or_else(all, |one| vec![one]);
                Ok(names.into_iter().map(|(link, name)| (link, Request::State { name })).collect())
            }
            Request::Set { parameter, value, parameters } => {
                let mut parameters = parameters.clone();
                match (parameter, value) {
                    (Some(parameter), Some(value)) => drop(parameters.insert(parameter.clone(), value.clone())),
                    (None, None) => {}
                    _ => return Err(Refusal::new("request", "`parameter` and `value` go together")),
                }
                let mut of_links: BTreeMap<usize, BTreeMap<String, Value>> = BTreeMap::new();
                for (parameter, value) in &parameters {
                    for (link, name) in self.targets(parameter)? {
                        of_links.entry(link).or_default().insert(name, value.clone());
                    }
                }
                if of_links.is_empty() {
                    let message = "name a `parameter` and its `value`, or several as `parameters`";
                    return Err(Refusal::new("request", message));
                }
                let set = |parameters| Request::Set { parameter: None, value: None, parameters };
                Ok(of_links.into_iter().map(|(link, parameters)| (link, set(parameters))).collect())
            }
            Request::Watch {} | Request::Verdict {} | Request::Describe {} => Ok(BTreeMap::new()),
        }
    }

    /// Carries out `requests`, by link, which have been checked. Where links are on other hosts, too, each is asked by a
    /// thread of its own: all of them wait for the same instant.
    fn carry_out_at_once(&mut self, mut requests: BTreeMap<usize, Request>) -> BTreeMap<usize, Result<Value, Refusal>> {
        let desks = self.desks.iter_mut().enumerate();
        let mut asked: Vec<_> = desks.filter_map(|(link, desk)| Some((link, desk, requests.remove(&link)?))).collect();
        let mut elsewhere = asked.iter().flat_map(|(_, desk, _)| &desk.elsewhere).peekable();
        // Only now: checks take round trips to hosts.
        let at_ns = elsewhere.peek().is_some().then(|| Elsewhere::instant(elsewhere));
        asked.iter_mut().for_each(|(_, desk, _)| desk.at_ns = at_ns);
        if at_ns.is_none() {
            let mut outcomes = BTreeMap::new();
            for (link, desk, request) in asked {
                outcomes.insert(link, desk.carry_out(request, &mut None));
            }
            return outcomes;
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(asked.len());
            for (link, desk, request) in asked {
                threads.push((link, scope.spawn(move || desk.carry_out(request, &mut None))));
            }
            let failed = |_| Err(Refusal::new("host", "a thread of the engine failed"));
            threads.into_iter().map(|(link, thread)| (link, thread.join().unwrap_or_else(failed))).collect()
        })
    }

    /// Answers of the links that `ask` asks, by number. A lost link gives none: the others go on without it.
    ///
    /// # Errors
    /// The first refusal, or that all who were asked have ended.
    fn ask_all(
        &mut self,
        mut ask: impl FnMut(usize, &mut Desk) -> Option<Result<Value, Refusal>>,
    ) -> Result<BTreeMap<usize, Value>, Refusal> {
        let mut answers = BTreeMap::new();
        let mut ended = Vec::new();
        for (link, desk) in self.desks.iter_mut().enumerate() {
            match ask(link, desk) {
                Some(Err(refusal)) if refusal.kind == "ended" => ended.push((link, refusal)),
                Some(answer) => drop(answers.insert(link, answer?)),
                None => {}
            }
        }
        let is_all = ended.len() == self.desks.len();
        match ended.into_iter().next() {
            Some((_, refusal)) if is_all => Err(refusal),
            Some((link, refusal)) if answers.is_empty() => {
                let name = &self.places[link].name;
                Err(Refusal::new(refusal.kind, format!("the link {name} has ended")))
            }
            _ => Ok(answers),
        }
    }

    /// The link of the user whose name `text` begins with, and what the rest means there.
    fn user_before(&self, text: &str) -> Option<(usize, String)> {
        let (first, rest) = text.split_once('.')?;
        let link = self.places.iter().position(|place| place.users.iter().any(|user| user == first.trim()))?;
        // A path alone knows no users.
        let is_alone = self.places[link].users.len() == 1 && !self.desks[link].running.scenario().is_cell();
        Some((link, if is_alone { rest.to_owned() } else { text.to_owned() }))
    }

    /// The links that a parameter concerns, with its name there: that of the user before it, or all that have the hop.
    fn targets(&self, parameter: &str) -> Result<BTreeMap<usize, String>, Refusal> {
        if let Some(one) = self.user_before(parameter) {
            return Ok(BTreeMap::from([one]));
        }
        let first = parameter.split('.').next().unwrap_or_default().trim();
        let has_hop = |desk: &Desk| {
            desk.places.users().iter().any(|user| user.hops.iter().any(|hop| hop == first))
                || desk.elsewhere.iter().any(|there| there.has(first))
        };
        let all = self.desks.iter().enumerate().filter(|(_, desk)| has_hop(desk));
        let all: BTreeMap<usize, String> = all.map(|(link, _)| (link, parameter.to_owned())).collect();
        if all.is_empty() {
            let users: Vec<&str> = self.places.iter().flat_map(|place| &place.users).map(String::as_str).collect();
            let more = users.len().saturating_sub(SHOWN_USERS);
            let shown = users[..users.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(Refusal::new(
                "parameter",
                format!(
                    "{parameter}: there is no user or hop `{first}`; a parameter is named HOP.link.KEY for all users who \
                     have the hop, or USER.HOP.link.KEY for one; users are {shown}{more}"
                ),
            ));
        }
        Ok(all)
    }

    /// `value`, which is that of a link, for each of its users.
    fn by_user(&self, link: usize, value: &Value) -> Vec<(String, Value)> {
        let users = &self.places[link].users;
        users.iter().map(|user| (user.clone(), value.get(user).unwrap_or(value).clone())).collect()
    }

    /// One answer of those of several links.
    fn together(&self, answers: &BTreeMap<usize, Value>) -> Value {
        let time = |key: &str| answers.values().filter_map(|answer| answer[key].as_u64()).max();
        let mut states = Map::new();
        for (link, answer) in answers {
            let of_users = answer.get("user_states").unwrap_or(&answer["state"]);
            states.extend(self.by_user(*link, of_users));
        }
        let (mut hosts, mut user_hosts) = (Map::new(), Map::new());
        for (link, answer) in answers {
            let Some(Value::Object(times)) = answer.get("hosts") else { continue };
            for (host, at_ns) in times {
                let latest = hosts.entry(host.clone()).or_insert(Value::Null);
                if at_ns.as_u64() > latest.as_u64() {
                    *latest = at_ns.clone();
                }
            }
            let user = self.places.get(*link).and_then(|place| place.users.first()).cloned().unwrap_or_default();
            user_hosts.insert(user, times.clone().into());
        }
        let common = states.values().next().filter(|first| states.values().all(|state| state == *first)).cloned();
        let mut told = json!({
            "version": VERSION,
            "ok": true,
            "time_ns": time("time_ns"),
            "received_ns": time("received_ns"),
            "state": common,
            "user_states": states,
        });
        if !hosts.is_empty() {
            told["hosts"] = hosts.into();
            told["user_hosts"] = user_hosts.into();
        }
        told
    }
}

/// Number of users that an error names.
const SHOWN_USERS: usize = 20;
