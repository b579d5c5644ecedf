// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath check`: is a scenario file right?

use airpath_models::load::too_much;
use airpath_scenario::{NamedPath, Scenario};

use crate::cli::CheckArgs;
use crate::error::Result;
use crate::link::read;
use crate::terminal::{say, show};

/// Checks every file; the exit status is 1 if one is wrong.
///
/// # Errors
/// When a file cannot be read.
pub fn run(args: &CheckArgs) -> Result<i32> {
    let mut status = 0;
    for file in &args.files {
        let name = file.display().to_string();
        let checked = Scenario::from_toml(&read(file)?, &name)
            .and_then(|scenario| Ok((scenario.paths()?, scenario.advice(None)?)));
        match checked {
            Ok((paths, advice)) if args.json => {
                let warnings: Vec<_> = warnings(&paths).collect();
                let paths = paths.len();
                let told = serde_json::json!({"file": name, "valid": true, "paths": paths, "advice": advice, "warnings": warnings});
                show!(
                    "{told}
"
                );
            }
            Ok((paths, advice)) => {
                let hops: usize = paths.iter().map(|path| path.config.hops.len()).sum();
                let states: usize = paths.iter().map(|path| path.config.states.len()).sum();
                show!(
                    "{name}: ok ({}, {}, {})\n",
                    count(paths.len(), "path"),
                    count(hops, "hop"),
                    count(states, "state")
                );
                advice.iter().for_each(|advice| show!("{name}: advice: {advice}\n"));
                for warning in warnings(&paths) {
                    say!("{name}: warning: {warning}");
                }
            }
            Err(report) => {
                status = 1;
                if args.json {
                    let problems = report.problems();
                    show!("{}\n", serde_json::json!({"file": name, "valid": false, "problems": problems}));
                } else {
                    say!("{report}");
                }
            }
        }
    }
    Ok(status)
}

/// Warnings about valid settings that nobody can want.
fn warnings(paths: &[NamedPath]) -> impl Iterator<Item = String> + '_ {
    paths.iter().filter_map(|path| too_much(&path.config.background))
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
