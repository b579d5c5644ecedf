// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The parameters of a run that goes on, as they are set from outside.
//!
//! What is set holds at once, whatever state is in force. Beyond that it is as if it had been set at the
//! beginning: it changes the beginning and every state that does not set the parameter itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::StateInForce;
use airpath_models::{HopConfig, LinkConfig, PathConfig, Setting};
use serde_json::json;

use crate::build::configs;
use crate::check::join;
use crate::document::{Place, Source};
use crate::parameter::Side;
use crate::report::{Diagnostic, Report};
use crate::scenario::{Assignment, Concerned, Scenario};
use crate::tree::HopTree;

/// Assignments made in an entry of a state.
type Since = Option<(StateInForce, Vec<Assignment>)>;

/// The scenario of a run, with what has been set since it began. Users are the paths, by number.
#[derive(Clone, Debug)]
pub struct Running {
    scenario: Scenario,
    /// Assignments in the present entry of each user's state.
    since: Vec<Since>,
    /// Pending result of the last [`Running::set`].
    prepared: Option<(Scenario, BTreeMap<usize, Vec<Assignment>>)>,
}

impl Running {
    /// At the beginning of a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Running {
        Running { scenario: scenario.clone(), since: vec![None; scenario.paths.len()], prepared: None }
    }

    /// The scenario with everything that was set.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Parameters with their values (as JSON has them) as [`Running::set`] takes them, in the order in
    /// which a state sets them: what concerns all users before what concerns one, both directions before one, whole
    /// tables before keys in them.
    pub fn assignments<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>,
    ) -> Vec<String> {
        let is_one = |name: &str| name.split('.').any(|part| Side::of(part).is_some_and(|side| side != Side::Link));
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(name, _)| {
            let Concerned { parameter, named, .. } = self.scenario.concerned(name);
            (named.is_some(), is_one(parameter), name.as_str())
        });
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            value => toml::Value::try_from(value).map(|value| crate::toml_text::inline(&value)).unwrap_or_default(),
        };
        values.into_iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
    }

    /// Settings of users, with their numbers, that make `assignments` (as [`Scenario::set`] reads them) take effect
    /// together. Nothing is noted until [`Running::took_effect`] says that they did.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn set(&mut self, assignments: &[String]) -> Result<Vec<(u16, Setting)>, Report> {
        let mut scenario = self.scenario.clone();
        let running = scenario.paths()?;
        let mut of_users: BTreeMap<usize, Vec<Assignment>> = BTreeMap::new();
        for text in assignments {
            let (users, assignment) = Assignment::read(text, &format!("set {text}"))?.of_running(&self.scenario)?;
            for user in users {
                assignment.apply_to(&mut scenario.paths[user].hops)?;
                of_users.entry(user).or_default().push(assignment.clone());
            }
        }
        // Of many users with the same mistake, the first is told.
        for user in of_users.keys() {
            checked(&scenario.paths[*user].hops, Some(&running[*user].config.hops), self.prefix(*user))?;
        }
        let mut config = scenario.paths()?;
        let mut settings = Vec::with_capacity(of_users.len());
        for (user, new) in &of_users {
            let running = &running[*user].config.hops;
            let PathConfig { hops: beginning, states, .. } = std::mem::take(&mut config[*user].config);
            let states = states.into_iter().map(|state| state.hops).collect();
            let (in_force, since) = self.in_force(&scenario, *user, new, running)?;
            settings.push((*user as u16, Setting { beginning, states, in_force, since }));
        }
        self.prepared = Some((scenario, of_users));
        Ok(settings)
    }

    /// Parameters of `user` that `new` puts in force, by state; and those for the entry of a state in which something
    /// was set before.
    #[expect(clippy::type_complexity, reason = "the two parts of a setting")]
    fn in_force(
        &self,
        scenario: &Scenario,
        user: usize,
        new: &[Assignment],
        running: &[HopConfig],
    ) -> Result<(Vec<Result<Vec<HopConfig>, String>>, Option<(u64, Vec<HopConfig>)>), Report> {
        let path = &scenario.paths[user];
        // The state's own settings first, then what is set over them.
        let over = |number: usize, assignments: &[&Assignment]| -> Result<Vec<HopConfig>, Report> {
            let mut hops = match number {
                0 => path.hops.clone(),
                _ => path.hops_in(&path.states[number - 1], "", &mut Vec::new()),
            };
            for assignment in assignments {
                assignment.apply_to(&mut hops)?;
            }
            checked(&hops, Some(running), self.prefix(user))
        };
        let new: Vec<&Assignment> = new.iter().collect();
        let in_force = (0..=path.states.len()).map(|number| over(number, &new).map_err(|report| report.to_string()));
        let in_force = in_force.collect();
        let since = match &self.since[user] {
            Some((state, earlier)) => {
                let all: Vec<&Assignment> = earlier.iter().chain(new).collect();
                Some((state.entries, over(usize::from(state.number), &all)?))
            }
            None => None,
        };
        Ok((in_force, since))
    }

    /// Name of a user before a parameter, where there are several.
    fn prefix(&self, user: usize) -> &str {
        if self.scenario.paths.len() > 1 { &self.scenario.paths[user].name } else { "" }
    }

    /// The value of `parameter` while users are in the states that `state` tells, as JSON; both directions of a link,
    /// where they differ, as an object of `uplink` and `downlink`; all users who have it, where their values differ,
    /// as an object by user.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn get(&self, parameter: &str, state: impl Fn(u16) -> StateInForce) -> Result<serde_json::Value, Report> {
        let Concerned { paths: users, parameter: name, .. } = self.scenario.concerned(parameter);
        let Some(first) = users.first() else {
            let place = Place::whole(&Arc::new(Source { name: "get".into(), text: String::new(), is_file: false }));
            return Err(self.scenario.unknown_hop(parameter, &place).into());
        };
        let of_user = |user: usize| self.value(user, name, state(user as u16)).map(|value| (user, value));
        let values: Vec<_> = users.iter().filter_map(|user| of_user(*user).ok()).collect();
        match values.split_first() {
            None => of_user(*first).map(|(_, value)| value),
            Some(((_, value), others)) if others.iter().all(|(_, other)| other == value) => Ok(value.clone()),
            Some(_) => {
                Ok(values.into_iter().map(|(user, value)| (self.scenario.paths[user].name.clone(), value)).collect())
            }
        }
    }

    /// The value of a parameter of `user` in `state`.
    fn value(&self, user: usize, parameter: &str, state: StateInForce) -> Result<serde_json::Value, Report> {
        let path = &self.scenario.paths[user];
        let mut hops = match usize::from(state.number).checked_sub(1).and_then(|index| path.states.get(index)) {
            Some(own) => path.hops_in(own, "", &mut Vec::new()),
            None => path.hops.clone(),
        };
        if let Some((since, assignments)) = &self.since[user]
            && *since == state
        {
            assignments.iter().try_for_each(|assignment| assignment.apply_to(&mut hops))?;
        }
        let key = join(self.prefix(user), parameter);
        let unknown = |message: &str| Report::from(Diagnostic::of_option("get", &key, message));
        let parts: Vec<&str> = parameter.split('.').map(str::trim).collect();
        let [hop, side, keys @ ..] = parts.as_slice() else {
            return Err(unknown("a parameter is named HOP.link.KEY, as in `radio.link.rate`"));
        };
        let configs = checked(&hops, None, self.prefix(user))?;
        let Some(config) = configs.iter().find(|config| config.name == *hop) else {
            let names = configs.iter().map(|config| config.name.as_str());
            return Err(Diagnostic::of_option("get", &key, "there is no such hop").nearest_of(hop, names).into());
        };
        let value = |link: &LinkConfig| {
            let mut value = serde_json::to_value(link).unwrap_or_default();
            for part in keys {
                let valid: Vec<String> = value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
                // A list of tables is entered by the name of one.
                let place = value.as_array().and_then(|list| list.iter().position(|one| one["name"] == **part));
                let inner = match place {
                    Some(place) => value.get_mut(place),
                    None => value.get_mut(*part),
                };
                value = inner.map(serde_json::Value::take).ok_or_else(|| {
                    let problem = Diagnostic::of_option("get", &key, format!("there is currently no `{part}`"));
                    Report::from(problem.nearest_of(part, valid.iter().map(String::as_str)))
                })?;
            }
            Ok(value)
        };
        match Side::of(side) {
            Some(Side::Uplink) => value(&config.uplink),
            Some(Side::Downlink) => value(&config.downlink),
            Some(Side::Link) => {
                let (uplink, downlink) = (value(&config.uplink)?, value(&config.downlink)?);
                Ok(if uplink == downlink { uplink } else { json!({ "uplink": uplink, "downlink": downlink }) })
            }
            None => Err(unknown("after the hop comes `link` (both directions), `uplink` or `downlink`")),
        }
    }

    /// Commits the last prepared setting, which took effect while users were in the states that `state` tells.
    pub fn took_effect(&mut self, state: impl Fn(u16) -> StateInForce) {
        let Some((scenario, of_users)) = self.prepared.take() else { return };
        self.scenario = scenario;
        for (user, new) in of_users {
            let state = state(user as u16);
            match &mut self.since[user] {
                Some((since, all)) if *since == state => all.extend(new),
                since => *since = Some((state, new)),
            }
        }
    }
}

fn checked(hops: &[HopTree], beginning: Option<&[HopConfig]>, prefix: &str) -> Result<Vec<HopConfig>, Report> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let configs = configs(hops, beginning, prefix, &mut problems);
    if problems.is_empty() { Ok(configs) } else { Err(Report::new(problems)) }
}
