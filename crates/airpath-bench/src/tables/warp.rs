// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of a packet in virtual time with real programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use airpath_live::ports::PortKind;
use airpath_log::{Level, Manifest};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::{Options, ports_and_levels};
use crate::report::{Table, short};
use crate::statistics::Samples;
use crate::testbed::{Failure, port_name};

const RATES: [&str; 2] = ["10 Mbit/s", "100 Mbit/s"];
/// Size of the transfer by `airpath send`.
const BYTES: u64 = 5_000_000;

/// Times of one run.
struct WarpRun {
    wall: Duration,
    processor: Duration,
    virtual_time: Duration,
    /// Packets that were offered to the link, both ways.
    packets: u64,
}

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!("`exec --clock warp` with a TCP transfer of {} MB; the medians", BYTES / 1_000_000);
    let columns = ["rate", "port", "log", "packets", "virtual s", "wall s", "processor s", "processor µs a packet"];
    let mut table = Table::new("warp", title, &columns);
    let engine = std::env::current_exe()?.with_file_name("airpath-engine");
    let check = Command::new(&engine).args(["warp", "setup", "--check"]).stdin(Stdio::null()).output()?;
    if !check.status.success() {
        table.notes.push(format!("not measured: {}", String::from_utf8_lossy(&check.stderr).trim()));
        return Ok(table);
    }
    let kernel = PathBuf::from(String::from_utf8_lossy(&check.stdout).trim());
    table.notes.push(format!("kernel {}", kernel.file_name().unwrap_or_default().to_string_lossy()));
    table.notes.push("boot and start-up, the same for a run of nothing, are taken off the last column".into());
    let repeats = if options.quick { 1 } else { 5 };
    let median = |runs: &[WarpRun], value: fn(&WarpRun) -> f64| Samples::new(runs.iter().map(value)).quantile(0.5);
    let idle = repeat(repeats, || run(&engine, None))?;
    let idle_s = median(&idle, |run| run.processor.as_secs_f64());
    for rate in RATES {
        for (port, level) in ports_and_levels() {
            let runs = repeat(repeats, || run(&engine, Some((rate, port, level))))?;
            let packets = median(&runs, |run| run.packets as f64);
            let processor_s = median(&runs, |run| run.processor.as_secs_f64());
            let each_us = (processor_s - idle_s) * 1e6 / packets;
            let times = [
                median(&runs, |run| run.virtual_time.as_secs_f64()),
                median(&runs, |run| run.wall.as_secs_f64()),
                processor_s,
                each_us,
            ];
            let name = [rate.to_owned(), port_name(port).to_owned(), level.to_string(), packets.to_string()];
            table.row(name.into_iter().chain(times.map(short)));
            let setting = format!("{rate}, {}, {level}", port_name(port));
            table.figure("processor time of a packet in warp", setting, each_us, "µs", None);
        }
    }
    table.notes.push(format!("a run of nothing takes {} s of processor time", short(idle_s)));
    Ok(table)
}

fn repeat(times: usize, mut once: impl FnMut() -> Result<WarpRun, Failure>) -> Result<Vec<WarpRun>, Failure> {
    (0..times).map(|_| once()).collect()
}

/// One run: a transfer over such a link, or nothing.
fn run(engine: &Path, link: Option<(&str, PortKind, Level)>) -> Result<WarpRun, Failure> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("run");
    let mut command = Command::new(engine);
    command.args(["exec", "--clock", "warp", "--quiet", "--seed", "1", "--out"]).arg(&out);
    match link {
        Some((rate, port, level)) => {
            command.args(["--rate", rate, "--delay", "10 ms", "--queue", "200 packets", "--port", port_name(port)]);
            command.args(["--log", &level.to_string(), "--server", "airpath-engine recv --once", "--"]);
            command.args(["airpath-engine", "send", "server", "--bytes", &BYTES.to_string()]);
        }
        None => {
            command.args(["--log", "counters", "--", "true"]);
        }
    }
    let before = children_processor()?;
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let wall = began.elapsed();
    if !output.status.success() {
        return Err(format!("{}: {}", engine.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let processor = children_processor()?.saturating_sub(before);
    let results = Manifest::read(&out)?.results.ok_or("the run has no results")?;
    let path = results.counters.iter().filter(|site| site.hop == "path");
    let packets = path.filter_map(|site| site.kinds.get("offered")).map(|offered| offered.count).sum();
    Ok(WarpRun { wall, processor, virtual_time: Duration::from_nanos(results.duration_ns), packets })
}

/// Processor time of the processes that have ended, the kernel and the programs in it among them.
fn children_processor() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let duration =
        |time: TimeVal| Duration::from_secs(time.tv_sec() as u64) + Duration::from_micros(time.tv_usec() as u64);
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}
