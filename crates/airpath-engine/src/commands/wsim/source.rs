// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The source of errors: a trace, or an error process.

use std::path::Path;
use std::sync::Arc;

use airpath_core::{Direction, DrawKey, DrawScope, Seed, bounded};
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::channel::{ErrorProcessConfig, ErrorProcessModel, Per};
use airpath_models::file::FileFormat;

use crate::cli::wsim::WsimArgs;
use crate::commands::error_process::{of_link, of_toml, process_key};
use crate::error::{Failure, Result};
use crate::terminal::say;
use crate::wsim::{Elements, TraceUnit};

/// The hop whose draws an error process makes that belongs to no scenario, as of `airpath trace generate`.
const HOP: &str = "radio";

/// Source of errors.
pub struct Source {
    /// Its elements.
    pub elements: Elements,
    /// Their number, if it is a trace.
    pub units: Option<u64>,
}

/// The source that the options name.
///
/// # Errors
/// When the trace cannot be read or used, or the process is wrong.
pub fn of(args: &WsimArgs, seed: u64) -> Result<Source> {
    match (&args.trace, &args.errors) {
        (Some(path), _) => {
            let trace = Arc::new(read(path)?);
            of_trace(&trace, args, args.offset, args.repeat)
        }
        (None, Some(text)) if text.trim_start().starts_with('{') => {
            of_process(&of_toml(text)?, process_key(seed, HOP, Direction::Uplink), args.trace_unit)
        }
        (None, Some(text)) => {
            let errors = of_link(text)?;
            if !matches!(errors.per, Per::Block | Per::Frame) && !args.quiet {
                let unit = serde_json::to_string(&errors.per).unwrap_or_default();
                say!(
                    "airpath: these errors are per {} in the scenario; here each draw is for one block",
                    unit.trim_matches('"')
                );
            }
            match &errors.process {
                ErrorProcessConfig::Trace(config) => of_trace(config.file.data(), args, 0, config.repeat),
                process => of_process(process, process_key(seed, &errors.hop, errors.direction), args.trace_unit),
            }
        }
        (None, None) => Err(Failure::usage("write --trace FILE or --errors TOML")),
    }
}

/// The key of damage: the same for every protocol, so that runs with one seed can be compared.
pub fn damage_key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: HOP, direction: Direction::Uplink, role: "damage", instance: 0 })
}

fn of_process(config: &ErrorProcessConfig, key: DrawKey, unit: TraceUnit) -> Result<Source> {
    if unit == TraceUnit::Byte && config.has_outcomes() {
        return Err(Failure::usage(
            "an environment loses, truncates and flips, which is done to blocks; write --trace-unit block, or another \
             type of errors",
        ));
    }
    Ok(Source { elements: Elements::of_process(ErrorProcessModel::new(config, key)), units: None })
}

fn of_trace(trace: &Arc<ErrorTrace>, args: &WsimArgs, offset: u64, repeat: bool) -> Result<Source> {
    let units = trace.units();
    if args.trace_unit == TraceUnit::Byte && trace.has_outcomes() {
        return Err(Failure::usage(
            "the trace loses, truncates or flips, which is done to blocks; with --trace-unit byte it says ok and hit only",
        ));
    }
    if offset >= units && !repeat {
        return Err(Failure::usage(format!(
            "--offset {offset} is behind the end of the trace, which has {units} elements; the first is 0"
        )));
    }
    Ok(Source { elements: Elements::of_trace(trace.clone(), offset, repeat), units: Some(units) })
}

fn read(path: &Path) -> Result<ErrorTrace> {
    let bytes = bounded::read(path, bounded::DATA_BYTES)
        .map_err(|error| Failure::usage(format!("cannot read the trace {}: {error}", path.display())))?;
    ErrorTrace::parse(&bytes)
        .map_err(|problem| Failure::usage(format!("{} is no error trace: {problem}", path.display())))
}
