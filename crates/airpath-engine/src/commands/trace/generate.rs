// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath trace generate`: a trace of errors, drawn from an error process of scenarios.
//!
//! The draws are those of a run with the same seed whose hop has the same name, so that a scenario with the
//! process and one with the trace have the same errors per packet or frame.

use std::io::{self, BufWriter, Write};

use airpath_core::nearest::nearest;
use airpath_log::place;
use airpath_models::channel::environment::Environment;
use airpath_models::channel::trace_file::Record;
use airpath_models::channel::{ErrorProcess, ErrorProcessModel};

use super::records::Records;
use crate::cli::trace::GenerateArgs;
use crate::commands::error_process::{of_toml, process_key};
use crate::error::{Failure, Result};
use crate::seed::fresh_seed;
use crate::terminal::say;

/// Units in a line of the file.
const LINE: u64 = 100;

/// Generates.
///
/// # Errors
/// When the process is wrong, or the file cannot be written.
pub fn run(args: &GenerateArgs) -> Result<i32> {
    let config = match serde_json::from_value::<Environment>(args.errors.as_str().into()) {
        Ok(_) => of_toml(&format!("{{ type = \"environment\", environment = \"{}\" }}", args.errors))?,
        Err(error) if args.errors.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) => {
            return Err(no_environment(&args.errors, &error.to_string()));
        }
        Err(_) => of_toml(&args.errors)?,
    };
    let has_outcomes = config.has_outcomes();
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let process = ErrorProcessModel::new(&config, process_key(seed, &args.hop, args.direction));
    let head = format!(
        "# airpath trace generate '{}' --units {} --seed {seed} --hop {} --direction {}\n{}",
        args.errors.replace(['\n', '\r'], " "),
        args.units,
        args.hop,
        args.direction.name(),
        if has_outcomes { "" } else { "# 0: ok, 1: hit\n" },
    );
    let write = |file: &mut dyn Write| match has_outcomes {
        true => write_records(file, &head, process, args.units),
        false => write_digits(file, &head, process, args.units),
    };
    let counted = match args.output.as_os_str() == "-" {
        true => write(&mut BufWriter::new(io::stdout().lock())),
        false => place::output(&args.output).and_then(|file| write(&mut BufWriter::new(file))),
    };
    let counted =
        counted.map_err(|error| Failure::unwritable(format!("cannot write {}: {error}", args.output.display())))?;
    if !args.quiet {
        say!("airpath: {}; seed {seed}", counted.text(args.units));
    }
    Ok(0)
}

/// The failure of a word that names no environment; serde's `message` quotes those that there are.
fn no_environment(word: &str, message: &str) -> Failure {
    let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    let near =
        nearest(word, known.iter().copied()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Failure::usage(format!(
        "`{word}` is no environment of a wireless LAN{near}\n     valid: {}, or a table such as '{{ type = \"bernoulli\", \
         probability = 0.01 }}'",
        known.join(", ")
    ))
}

/// Numbers of what was drawn.
#[derive(Default)]
struct Counted {
    hit: u64,
    bursts: u64,
    longest: u64,
    burst: u64,
}

impl Counted {
    fn count(&mut self, hit: bool) {
        self.burst = if hit { self.burst + 1 } else { 0 };
        self.hit += u64::from(hit);
        self.bursts += u64::from(self.burst == 1);
        self.longest = self.longest.max(self.burst);
    }

    fn text(&self, units: u64) -> String {
        let share = self.hit as f64 / units as f64 * 100.0;
        let bursts = match self.bursts {
            0 => String::new(),
            1 => format!(", in one burst of {}", self.longest),
            bursts => {
                let mean = self.hit as f64 / bursts as f64;
                format!(", in {bursts} bursts of {mean:.2} on average, the longest of {}", self.longest)
            }
        };
        format!("{} of {units} units are hit ({share:.4} %){bursts}", self.hit)
    }
}

fn write_digits(file: &mut dyn Write, head: &str, mut process: ErrorProcessModel, units: u64) -> io::Result<Counted> {
    file.write_all(head.as_bytes())?;
    let mut counted = Counted::default();
    for step in 0..units {
        let hit = process.hits(step);
        counted.count(hit);
        file.write_all(if hit { b"1" } else { b"0" })?;
        if step % LINE == LINE - 1 || step + 1 == units {
            file.write_all(b"\n")?;
        }
    }
    file.flush()?;
    Ok(counted)
}

fn write_records(file: &mut dyn Write, head: &str, mut process: ErrorProcessModel, units: u64) -> io::Result<Counted> {
    file.write_all(head.as_bytes())?;
    let mut counted = Counted::default();
    let mut records = Records::default();
    for step in 0..units {
        let record = process.record(step);
        counted.count(record != Record::Ok);
        file.write_all(records.add(record, 1).as_bytes())?;
    }
    file.write_all(records.end().as_bytes())?;
    file.flush()?;
    Ok(counted)
}
