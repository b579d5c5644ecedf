// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A scenario: read, printed and read again, built, and driven.

use std::path::Path;

use airpath_core::Command;
use airpath_scenario::{Scenario, profile_text, profiles};

use super::drive::Drive;
use super::{hash, origin};

/// Of so many paths at most is a link built.
const PATHS: usize = 2;

pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let text = |name: &str| profile_text(name, "fuzz").expect("a profile has a text").as_bytes().to_vec();
    profiles().iter().map(|profile| (format!("profile {}", profile.name), text(profile.name))).collect()
}

pub fn run(input: &[u8], corpus: &Path) {
    let text = String::from_utf8_lossy(input);
    let origin = origin(corpus);
    let scenario = match Scenario::from_toml(&text, &origin) {
        Ok(scenario) => scenario,
        Err(report) => {
            assert!(!report.problems().is_empty() && !report.to_string().is_empty(), "refused without a reason");
            return;
        }
    };
    let paths = scenario.paths().expect("a scenario that was accepted has paths");
    let printed = scenario.to_toml().expect("a scenario that was accepted can be printed");
    let again = Scenario::from_toml(&printed, &origin);
    let again = again.unwrap_or_else(|report| panic!("the printed scenario is refused: {report}\n{printed}"));
    assert_eq!(again.paths().expect("paths").len(), paths.len());
    for path in paths.iter().take(PATHS) {
        let mut drive = Drive::new(&path.config, hash(input));
        drive.exercise(hash(input), 12);
        for state in path.config.states.iter().take(3) {
            drive.command(Command::EnterState(state.name.as_str().into())).expect("a state of the scenario");
            drive.exercise(hash(state.name.as_bytes()), 6);
        }
    }
}
