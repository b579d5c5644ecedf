// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath check`: is a scenario file right?

use airpath_core::Direction;
use airpath_models::HopConfig;
use airpath_models::cell::MediumOfCell;
use airpath_models::load::too_much;
use airpath_scenario::{NamedPath, Scenario};
use serde_json::{Value, json};

use crate::cli::CheckArgs;
use crate::error::Result;
use crate::link::read;
use crate::status::UNDONE;
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
            .and_then(|scenario| Ok((scenario.paths()?, scenario.media()?, scenario.advice(None)?)));
        match checked {
            Ok((paths, media, advice)) if args.json => {
                let warnings: Vec<_> = warnings(&paths).collect();
                let mut told = json!({
                    "file": name, "valid": true, "paths": paths.len(), "advice": advice, "warnings": warnings,
                });
                if !media.is_empty() {
                    told["media"] = media.iter().map(|medium| shared(medium, &paths)).collect();
                }
                show!(
                    "{told}
"
                );
            }
            Ok((paths, media, advice)) => {
                let hops: usize = paths.iter().map(|path| path.config.hops.len()).sum();
                let states: usize = paths.iter().map(|path| path.config.states.len()).sum();
                show!(
                    "{name}: ok ({}{}, {}, {})\n",
                    if media.is_empty() { String::new() } else { format!("{}, ", media_count(media.len())) },
                    count(paths.len(), if media.is_empty() { "path" } else { "user" }),
                    count(hops, "hop"),
                    count(states, "state")
                );
                for medium in &media {
                    let told = shared(medium, &paths);
                    let of = |way: &str| names(&told[way]);
                    show!(
                        "{name}: medium {}: uplink of {}; downlink of {}\n",
                        medium.name,
                        of("uplink"),
                        of("downlink")
                    );
                }
                advice.iter().for_each(|advice| show!("{name}: advice: {advice}\n"));
                for warning in warnings(&paths) {
                    say!("{name}: warning: {warning}");
                }
            }
            Err(report) => {
                status = UNDONE;
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

/// A medium, and the hops on it or their bearers, by direction.
fn shared(medium: &MediumOfCell, paths: &[NamedPath]) -> Value {
    let several = paths.len() > 1;
    let on = |direction: Direction| -> Vec<String> {
        let hops = paths.iter().flat_map(|path| path.config.hops.iter().map(move |hop| (path, hop)));
        let on = hops.filter(|(_, hop)| hop.link(direction).medium.name() == Some(&medium.name));
        let names = |(path, hop): (&NamedPath, &HopConfig)| {
            let name = if several { format!("{}.{}", path.name, hop.name) } else { hop.name.clone() };
            let bearers: Vec<String> = hop.bearer_names().map(|bearer| format!("{name}.{bearer}")).collect();
            if bearers.is_empty() { vec![name] } else { bearers }
        };
        on.flat_map(names).collect()
    };
    json!({ "name": medium.name, "uplink": on(Direction::Uplink), "downlink": on(Direction::Downlink) })
}

/// The names in a list of JSON, or the word for an empty one.
fn names(list: &Value) -> String {
    let names: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "nobody".into() } else { names.join(", ") }
}

fn media_count(number: usize) -> String {
    if number == 1 { "1 medium".into() } else { format!("{number} media") }
}

/// Warnings about valid settings that nobody can want.
fn warnings(paths: &[NamedPath]) -> impl Iterator<Item = String> {
    paths.iter().filter_map(|path| too_much(&path.config.background))
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
