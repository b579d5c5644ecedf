// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parts of the engine that tests and the fuzzer reach without starting a process. No program should build on
//! it.

use std::path::Path;

use clap::ValueEnum;

use crate::wsim::{Adus, Units};

pub use crate::control::protocol::{Refusal, Request};
pub use crate::hosts::wire::{Frame, Word, parse as parse_frame, read_frame, skip_to_greeting};
pub use crate::hosts::{Counts, Tally};

/// Replays the run in `folder`, as `airpath replay` does, and tells whether its trace is the same.
///
/// # Errors
/// The message with which the command would end.
pub fn replay(folder: &Path) -> Result<bool, String> {
    let outcome = crate::run::replay::replay(folder, None).map_err(|failure| failure.to_string())?;
    Ok(outcome.difference.is_none())
}

/// Splits `input` into the ADUs of every kind of units that `airpath wsim` knows, of at most `most` bytes; together
/// they must be the input.
///
/// # Errors
/// The units and the ADUs that are not the input.
pub fn split(input: &[u8], most: usize) -> Result<(), String> {
    for units in Units::value_variants() {
        let (mut adus, mut joined) = (Adus::new(input, *units, most), Vec::new());
        let whole = loop {
            match adus.next() {
                Ok(Some(adu)) if adu.is_empty() || adu.len() > most => {
                    return Err(format!("{units:?}: an ADU of {}", adu.len()));
                }
                Ok(Some(adu)) => joined.extend_from_slice(adu),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if !input.starts_with(&joined) || whole && joined.len() < input.len() {
            return Err(format!("{units:?}: {} of {} bytes", joined.len(), input.len()));
        }
    }
    Ok(())
}
