//! The parameters of a run that goes on, as they are set from outside.
//!
//! What is set holds at once, whatever state is in force. Beyond that it is as if it had been set at the
//! beginning: it changes the beginning and every state that does not set the parameter itself.

use airpath_core::StateInForce;
use airpath_models::{HopConfig, Setting};

use crate::build::{HopTree, configs};
use crate::report::{Diagnostic, Report};
use crate::scenario::{Assignment, Scenario};

/// The scenario of a run of one path, with what has been set since the run began.
#[derive(Clone, Debug)]
pub struct Running {
    scenario: Scenario,
    /// What was set in the state that was entered as the so-manieth, and the number of that state.
    since: Option<(StateInForce, Vec<Assignment>)>,
    /// What [`Running::set`] has last prepared.
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

    /// What the machine has to be told so that `assignments` (as [`Scenario::set`] reads them) take
    /// effect together. Nothing is noted until [`Running::took_effect`] says that they did.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn set(&mut self, assignments: &[String]) -> Result<Setting, Report> {
        let mut scenario = self.scenario.clone();
        let mut read = Vec::with_capacity(assignments.len());
        for text in assignments {
            let assignment = Assignment::read(text, &format!("set {text}"))?;
            assignment.apply(&mut scenario)?;
            read.push(assignment);
        }
        let config = scenario.paths()?.swap_remove(0).config;
        let path = &scenario.paths[0];
        // The state's own settings first, then what is set over them.
        let over = |number: usize, assignments: &[&Assignment]| -> Result<Vec<HopConfig>, Report> {
            let mut hops = match number {
                0 => path.hops.clone(),
                _ => path.hops_in(&path.states[number - 1], "", &mut Vec::new()),
            };
            for assignment in assignments {
                assignment.apply_to(&mut hops)?;
            }
            checked(&hops)
        };
        let new: Vec<&Assignment> = read.iter().collect();
        let in_force = (0..=path.states.len()).map(|number| over(number, &new).map_err(|report| report.to_string()));
        let in_force = in_force.collect();
        let since = match &self.since {
            Some((state, earlier)) => {
                let all: Vec<&Assignment> = earlier.iter().chain(&read).collect();
                over(usize::from(state.number), &all).ok().map(|hops| (state.entries, hops))
            }
            None => None,
        };
        self.prepared = Some((scenario, read));
        let states = config.states.into_iter().map(|state| state.hops).collect();
        Ok(Setting { beginning: config.hops, states, in_force, since })
    }

    /// What was last prepared has taken effect in `state`.
    pub fn took_effect(&mut self, state: StateInForce) {
        let Some((scenario, new)) = self.prepared.take() else { return };
        self.scenario = scenario;
        match &mut self.since {
            Some((since, all)) if *since == state => all.extend(new),
            since => *since = Some((state, new)),
        }
    }
}

fn checked(hops: &[HopTree]) -> Result<Vec<HopConfig>, Report> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let configs = configs(hops, "", &mut problems);
    if problems.is_empty() { Ok(configs) } else { Err(Report::new(problems)) }
}
