// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath wsim`: the offline simulator of Singh 2000.

mod files;
mod settings;
mod source;
mod summary;
mod write;

use std::io::{BufWriter, Write};

use crate::cli::wsim::WsimArgs;
use crate::error::{Failure, Result};
use crate::seed::fresh_seed;
use crate::wsim::{Adus, Damager, Positions, Radio, SimulationError, simulate};

use files::Progress;
use write::{WriteError, write};

/// Bytes that are written at once.
const WRITTEN_BYTES: usize = 256 * 1024;

/// Simulates.
///
/// # Errors
/// When options, input or trace are wrong, or a file cannot be read or written.
pub fn run(args: &WsimArgs) -> Result<i32> {
    let receiver = settings::receiver(args)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let source = source::of(args, seed)?;
    let (input, input_bytes) = files::input(&args.input)?;
    let outputs = files::outputs(args)?;
    files::remove_on_interrupt(&outputs)?;
    let elements = source.elements;
    let damager = Damager::new(args.errors_within, args.block_data, source::damage_key(seed));
    let mut radio = Radio::new(args.trace_unit, args.block_data, elements, damager);
    let mut adus = Adus::new(input, args.units, args.adu_size as usize);
    let mut progress = Progress::new(input_bytes);
    let mut send = |out: &mut dyn Write, list: Option<&mut dyn Write>| {
        let mut out = BufWriter::with_capacity(WRITTEN_BYTES, out);
        let positions = Positions::new(list).map_err(SimulationError::Positions)?;
        simulate(&mut adus, &mut radio, &receiver, args.dropped, &mut out, positions, &mut |read| progress.tell(read))
    };
    let statistics = write(&outputs, &mut send).map_err(|error| match error {
        WriteError::Simulation(error) => failure(error, args, source.units),
        WriteError::Out(error) => files::cannot_write(&outputs.out, &error),
        WriteError::Positions(error) => files::cannot_write(outputs.positions.as_ref().unwrap_or(&outputs.out), &error),
    })?;
    if !args.quiet {
        summary::print(args, &receiver, seed, &statistics);
    }
    Ok(0)
}

fn failure(error: SimulationError, args: &WsimArgs, units: Option<u64>) -> Failure {
    let input = files::shown(&args.input);
    match error {
        SimulationError::Read(error) => Failure::usage(format!("cannot read {input}: {error}")),
        SimulationError::Malformed(what) => Failure::usage(format!(
            "{input} has no such units as --units {}: {what}; --units fixed takes any file",
            settings::name(args.units)
        )),
        SimulationError::Write(error) => Failure::unwritable(files::cannot_write_text(&args.out, &error)),
        SimulationError::Positions(error) => {
            Failure::unwritable(files::cannot_write_text(args.positions.as_ref().unwrap_or(&args.out), &error))
        }
        SimulationError::TraceEnded { needed } => Failure::usage(settings::too_short(args, needed, units.unwrap_or(0))),
    }
}
