// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Duration of a command that does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Options;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["command", "runs", "median s", "max s"];
    let mut table = Table::new("start-up", "`exec -- true`, the whole command, log level counters", &columns);
    let engine = std::env::current_exe()?.with_file_name("airpath-engine");
    let runs = if options.quick { 5 } else { 20 };
    for (name, program) in [("airpath-engine", engine), ("airpath", PathBuf::from(".venv/bin/airpath"))] {
        if !program.exists() {
            table.notes.push(format!("{name} is not there ({}): not measured", program.display()));
            continue;
        }
        let mut times = Vec::new();
        for _ in 0..runs {
            times.push(run(&program)?);
        }
        let samples = Samples::new(times);
        let cells = [samples.quantile(0.5), samples.max()].map(short);
        table.row([name.to_owned(), runs.to_string()].into_iter().chain(cells));
        let target = Some(Target::AtMost(0.5));
        table.figure(format!("{name} exec -- true"), "median", samples.quantile(0.5), "s", target);
    }
    Ok(table)
}

fn run(program: &Path) -> Result<f64, Failure> {
    let began = Instant::now();
    let output = Command::new(program).args(["exec", "--", "true"]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(began.elapsed().as_secs_f64())
}
