// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From the options that describe a link to a scenario.

use std::path::Path;

use airpath_core::{Direction, bounded};
use airpath_models::channel::{Effect, ErrorProcessConfig, ErrorsConfig};
use airpath_models::{MachineConfig, PathConfig};
use airpath_scenario::{ONLY_HOP, PlainOptions, Report, Scenario};

use crate::cli::LinkArgs;
use crate::error::{Failure, Result};
use crate::terminal::{say, show};

/// The scenario that `args` mean: a profile or a file or a link that changes nothing, then the plain
/// options, then what is set by name.
///
/// # Errors
/// Everything that is wrong with it.
fn scenario(args: &LinkArgs) -> Result<Scenario> {
    let mut scenario = base(args)?;
    if let Some(users) = args.users {
        scenario = scenario.with_users(users.into()).map_err(|why| Failure::usage(format!("--users: {why}")))?;
    }
    let plain = PlainOptions {
        rate: args.rate.clone(),
        delay: args.delay.clone(),
        jitter: args.jitter.clone(),
        loss: args.loss.clone(),
        reorder: args.reorder.clone(),
        duplicate: args.duplicate.clone(),
        queue: args.queue.clone(),
        blackouts: args.blackout.clone(),
    };
    scenario.apply_plain(&plain).map_err(usage)?;
    for assignment in &args.set {
        scenario.set(assignment).map_err(usage)?;
    }
    scenario.paths().map_err(usage)?;
    Ok(scenario)
}

/// The scenario that options change: a profile, a file, or a link that changes nothing.
fn base(args: &LinkArgs) -> Result<Scenario> {
    match (&args.profile, &args.scenario) {
        (Some(name), _) => Scenario::profile(name).map_err(usage),
        (None, Some(file)) => Scenario::from_toml(&read(file)?, &file.display().to_string()).map_err(usage),
        (None, None) => Ok(Scenario::transparent()),
    }
}

/// Sentences about `--loss` where it probably does not do what the user wants.
fn advice_on_loss(args: &LinkArgs) -> Result<Vec<String>> {
    let Some(loss) = &args.loss else { return Ok(Vec::new()) };
    let mut advice = Vec::new();
    let parts: Vec<&str> = loss.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.trim_start_matches('+') == "1") {
        advice.push(
            "--loss 1 is a probability of 100 %: no packet arrives; for one packet in a hundred, write 1%".into(),
        );
    }
    if parts.iter().all(|part| part.starts_with('+')) {
        return Ok(advice);
    }
    let replaced = errors_of(&base(args)?)?;
    if !replaced.is_empty() {
        let whose = args.profile.as_deref().unwrap_or("the scenario");
        let repeats = replaced.iter().any(|errors| errors.effect.effect == Effect::Delay);
        let meaning = if repeats { ", which stand for packets that the radio repeats and delivers later" } else { "" };
        let written: Vec<String> = replaced.iter().map(in_toml).collect();
        advice.push(format!(
            "--loss replaces the errors of {whose}{meaning}: {}; for losses beside them write --loss '{}'",
            written.join(" and "),
            parts.iter().map(|part| format!("+{}", part.trim_start_matches('+'))).collect::<Vec<_>>().join(",")
        ));
    }
    Ok(advice)
}

/// The errors of the hop that plain options change, each once; links without errors have none.
fn errors_of(scenario: &Scenario) -> Result<Vec<ErrorsConfig>> {
    let paths = scenario.paths().map_err(usage)?;
    let mut found: Vec<ErrorsConfig> = Vec::new();
    for path in &paths {
        let hops = &path.config.hops;
        let changed = hops.iter().filter(|hop| hops.len() == 1 || hop.name == ONLY_HOP);
        for link in changed.flat_map(|hop| Direction::ALL.map(|direction| hop.link(direction))) {
            if !matches!(link.errors.process, ErrorProcessConfig::None(_)) && !found.contains(&link.errors) {
                found.push(link.errors.clone());
            }
        }
    }
    Ok(found)
}

/// Errors as a scenario writes them.
fn in_toml(errors: &ErrorsConfig) -> String {
    toml::Value::try_from(errors).map_or_else(|_| format!("{:?}", errors.process), |value| value.to_string())
}

/// The scenario that a command with the options `args` runs. With `--print-scenario` the scenario is printed, with the
/// advice on standard error, and there is nothing to run: none.
///
/// # Errors
/// Everything that is wrong with the scenario.
pub fn scenario_to_run(
    args: &LinkArgs,
    print_scenario: bool,
    mtu_bytes: Option<u32>,
    quiet: bool,
) -> Result<Option<Scenario>> {
    let scenario = scenario(args)?;
    if !print_scenario {
        return Ok(Some(scenario));
    }
    advise(args, &scenario, mtu_bytes, quiet)?;
    show!("{}", scenario.to_toml().map_err(usage)?);
    Ok(None)
}

/// Says what to think of before `scenario`, made from `args`, runs with packets of `mtu_bytes`, if that was asked for.
pub fn advise(args: &LinkArgs, scenario: &Scenario, mtu_bytes: Option<u32>, quiet: bool) -> Result<()> {
    if !quiet {
        advice_on_loss(args)?.iter().for_each(|advice| say!("airpath: {advice}"));
        scenario.advice(mtu_bytes).map_err(usage)?.iter().for_each(|advice| say!("airpath: {advice}"));
    }
    Ok(())
}

/// The only path of `scenario`.
///
/// # Errors
/// When it has several, or shares media, which one path cannot.
pub fn only_path(scenario: &Scenario) -> Result<PathConfig> {
    if scenario.is_cell() {
        return Err(Failure::usage(
            "the scenario has [[media]] that users share, but this needs one path by itself; give its hops a rate or a \
             medium of their own",
        ));
    }
    let mut paths = scenario.paths().map_err(usage)?;
    match (paths.pop(), paths.len()) {
        (Some(path), 0) => Ok(path.config),
        (_, others) => Err(Failure::usage(apart(others + 1))),
    }
}

/// Problem of so many links that share no medium.
fn apart(links: usize) -> String {
    format!(
        "the scenario has {links} links that share nothing, and this is over one path, or over the paths of the users of \
         a cell: `airpath exec` and `shell` run such links side by side (docs/scenario/links.md); otherwise let them \
         share a hop by [[media]] (docs/scenario/cells.md), or keep one [[paths]]"
    )
}

/// The machine that `scenario` describes.
///
/// # Errors
/// When it has several paths that share no media, which one command cannot use.
pub fn machine(scenario: &Scenario) -> Result<MachineConfig> {
    if scenario.is_cell() {
        let links = scenario.independent().map_err(usage)?.len();
        if links > 1 {
            return Err(Failure::usage(apart(links)));
        }
        return scenario.machine().map_err(usage);
    }
    only_path(scenario).map(MachineConfig::Path)
}

/// A scenario's problems as a failure.
pub fn usage(report: Report) -> Failure {
    Failure::usage(report.to_string())
}

/// The text of a scenario file.
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn read(file: &Path) -> Result<String> {
    bounded::read_text(file, bounded::SCENARIO_BYTES).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "; `airpath profiles` lists the links that need no file",
            std::io::ErrorKind::InvalidData => "; a scenario is TOML in UTF-8",
            _ => "",
        };
        Failure::usage(format!("cannot read the scenario {}: {error}{hint}", file.display()))
    })
}
