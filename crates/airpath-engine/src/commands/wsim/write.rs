// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The outputs of a simulation, written while it runs and put in place together when it has succeeded.

use std::io::{self, BufWriter, Write};

use super::files::{Output, Outputs};
use crate::wsim::{SimulationError, Statistics};

/// A reason for which outputs are not in place.
pub enum WriteError {
    /// The simulation ended early.
    Simulation(SimulationError),
    /// The output cannot be opened or put in place.
    Out(io::Error),
    /// The same for the list of positions.
    Positions(io::Error),
}

/// A simulation that writes to the output, and to the list of positions if there is one.
type Simulation<'a> = dyn FnMut(&mut dyn Write, Option<&mut dyn Write>) -> Result<Statistics, SimulationError> + 'a;

/// Runs `simulation` with the outputs, which appear at its end.
///
/// # Errors
/// See [`WriteError`]; files are then as they were.
pub fn write(outputs: &Outputs, simulation: &mut Simulation<'_>) -> Result<Statistics, WriteError> {
    let Some(positions) = &outputs.positions else {
        return into(&outputs.out, WriteError::Out, |out| simulation(out, None).map_err(WriteError::Simulation));
    };
    into(&outputs.out, WriteError::Out, |out| {
        into(positions, WriteError::Positions, |list| {
            simulation(out, Some(&mut BufWriter::new(list))).map_err(WriteError::Simulation)
        })
    })
}

/// Calls `work` with the file of `output`, and puts the file in place when that succeeds. Errors of `work` are kept
/// apart from those of the file itself, which `failed` wraps.
fn into<T>(
    output: &Output,
    failed: fn(io::Error) -> WriteError,
    work: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let mut done = None;
    let written = output.write(|file| {
        let result = work(file);
        let stop = result.is_err();
        done = Some(result);
        if stop { Err(io::Error::other("the simulation ended early")) } else { Ok(()) }
    });
    match (done, written) {
        (Some(Ok(_)), Err(error)) | (None, Err(error)) => Err(failed(error)),
        (Some(result), _) => result,
        (None, Ok(())) => Err(failed(io::Error::other("it was not written to"))),
    }
}
