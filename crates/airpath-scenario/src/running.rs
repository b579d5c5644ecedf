// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The parameters of a run that goes on, as they are set from outside.
//!
//! What is set holds at once, whatever state is in force. Beyond that it is as if it had been set at the
//! beginning: it changes the beginning and every state that does not set the parameter itself.

use airpath_core::StateInForce;
use airpath_models::{HopConfig, LinkConfig, Setting};
use serde_json::json;

use crate::build::configs;
use crate::parameter::Side;
use crate::report::{Diagnostic, Report};
use crate::scenario::{Assignment, Scenario};
use crate::tree::HopTree;

/// The scenario of a run of one path, with what has been set since the run began.
#[derive(Clone, Debug)]
pub struct Running {
    scenario: Scenario,
    /// Assignments made in a state, and the number of that entry of a state.
    since: Option<(StateInForce, Vec<Assignment>)>,
    /// Pending result of the last [`Running::set`].
    prepared: Option<(Scenario, Vec<Assignment>)>,
}

impl Running {
    /// At the beginning of a run over the only path of `scenario`.
    pub fn new(scenario: &Scenario) -> Running {
        Running { scenario: scenario.clone(), since: None, prepared: None }
    }

    /// The scenario with everything that was set.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Parameters with their values (as JSON has them) as [`Running::set`] takes them, in the order in
    /// which a state sets them: what concerns both directions before what concerns one, whole tables
    /// before keys in them.
    pub fn assignments<'a>(values: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>) -> Vec<String> {
        let is_one = |name: &str| name.split('.').any(|part| Side::of(part).is_some_and(|side| side != Side::Link));
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(name, _)| (is_one(name), name.as_str()));
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            value => toml::Value::try_from(value).map(|value| crate::toml_text::inline(&value)).unwrap_or_default(),
        };
        values.into_iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
    }

    /// Settings for the machine that make `assignments` (as [`Scenario::set`] reads them) take effect together.
    /// Nothing is noted until [`Running::took_effect`] says that they did.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn set(&mut self, assignments: &[String]) -> Result<Setting, Report> {
        let mut scenario = self.scenario.clone();
        let running = scenario.paths()?.swap_remove(0).config.hops;
        let mut read = Vec::with_capacity(assignments.len());
        for text in assignments {
            let assignment = Assignment::read(text, &format!("set {text}"))?.of_running(&self.scenario)?;
            assignment.apply(&mut scenario)?;
            read.push(assignment);
        }
        let config = scenario.paths()?.swap_remove(0).config;
        let path = &scenario.paths[0];
        checked(&path.hops, Some(&running))?;
        // The state's own settings first, then what is set over them.
        let over = |number: usize, assignments: &[&Assignment]| -> Result<Vec<HopConfig>, Report> {
            let mut hops = match number {
                0 => path.hops.clone(),
                _ => path.hops_in(&path.states[number - 1], "", &mut Vec::new()),
            };
            for assignment in assignments {
                assignment.apply_to(&mut hops)?;
            }
            checked(&hops, Some(&running))
        };
        let new: Vec<&Assignment> = read.iter().collect();
        let in_force = (0..=path.states.len()).map(|number| over(number, &new).map_err(|report| report.to_string()));
        let in_force = in_force.collect();
        let since = match &self.since {
            Some((state, earlier)) => {
                let all: Vec<&Assignment> = earlier.iter().chain(&read).collect();
                Some((state.entries, over(usize::from(state.number), &all)?))
            }
            None => None,
        };
        self.prepared = Some((scenario, read));
        let states = config.states.into_iter().map(|state| state.hops).collect();
        Ok(Setting { beginning: config.hops, states, in_force, since })
    }

    /// The value of `parameter` while `state` is in force, as JSON; both directions of a link, where they
    /// differ, as an object of `uplink` and `downlink`.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn get(&self, parameter: &str, state: StateInForce) -> Result<serde_json::Value, Report> {
        let path = &self.scenario.paths[0];
        let mut hops = match usize::from(state.number).checked_sub(1).and_then(|index| path.states.get(index)) {
            Some(own) => path.hops_in(own, "", &mut Vec::new()),
            None => path.hops.clone(),
        };
        if let Some((since, assignments)) = &self.since
            && *since == state
        {
            assignments.iter().try_for_each(|assignment| assignment.apply_to(&mut hops))?;
        }
        let unknown = |message: &str| Report::from(Diagnostic::of_option("get", parameter, message));
        let parts: Vec<&str> = self.scenario.in_path(parameter).split('.').map(str::trim).collect();
        let [hop, side, keys @ ..] = parts.as_slice() else {
            return Err(unknown("a parameter is named HOP.link.KEY, as in `radio.link.rate`"));
        };
        let configs = checked(&hops, None)?;
        let Some(config) = configs.iter().find(|config| config.name == *hop) else {
            let names = configs.iter().map(|config| config.name.as_str());
            return Err(Diagnostic::of_option("get", parameter, "there is no such hop").nearest_of(hop, names).into());
        };
        let value = |link: &LinkConfig| {
            let mut value = serde_json::to_value(link).unwrap_or_default();
            for key in keys {
                let valid: Vec<String> = value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
                // A list of tables is entered by the name of one.
                let place = value.as_array().and_then(|list| list.iter().position(|one| one["name"] == **key));
                let inner = match place {
                    Some(place) => value.get_mut(place),
                    None => value.get_mut(*key),
                };
                value = inner.map(serde_json::Value::take).ok_or_else(|| {
                    let problem = Diagnostic::of_option("get", parameter, format!("there is currently no `{key}`"));
                    Report::from(problem.nearest_of(key, valid.iter().map(String::as_str)))
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

    /// Commits the last prepared setting, which took effect in `state`.
    pub fn took_effect(&mut self, state: StateInForce) {
        let Some((scenario, new)) = self.prepared.take() else { return };
        self.scenario = scenario;
        match &mut self.since {
            Some((since, all)) if *since == state => all.extend(new),
            since => *since = Some((state, new)),
        }
    }
}

fn checked(hops: &[HopTree], beginning: Option<&[HopConfig]>) -> Result<Vec<HopConfig>, Report> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let configs = configs(hops, beginning, "", &mut problems);
    if problems.is_empty() { Ok(configs) } else { Err(Report::new(problems)) }
}
