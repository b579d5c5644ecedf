// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A file of a run's folder beside the others as they were recorded: the manifest, a log (as each of
//! the three), or a capture (as each of the two).

use std::fs;
use std::io::sink;
use std::path::Path;

use airpath_core::Direction;
use airpath_log::read::capture::CaptureLog;
use airpath_log::render::{
    Filter, MahimahiLog, TimeRange, events_json, events_table, mahimahi, tcp_state_json, tcp_state_table, tcpdump,
};
use airpath_log::{Manifest, files};

use super::Context;

/// The folder of the whole run, in that of the seeds.
const RUN: &str = "run";
/// Latest end of that run: damaged events may claim any time.
const END_NS: u64 = 3_600_000_000_000;

pub fn run(input: &[u8], context: &Context) {
    let names: &[&str] = match input {
        [b'A', ..] | [0xff, 0xff, 0xff, 0xff, ..] => &[files::EVENTS, files::INPUT, files::TCP_STATE],
        [0x0a, 0x0d, ..] => &["client.pcapng", "server.pcapng"],
        // A manifest, if it is anything.
        _ => &[files::MANIFEST],
    };
    let whole = context.corpus.join(RUN);
    for name in names {
        let run = context.scratch.join("run");
        if !run.exists() {
            copy(&whole, &run);
        }
        fs::write(run.join(name), input).expect("the scratch folder can be written");
        read(&run, name);
        fs::copy(whole.join(name), run.join(name)).expect("the corpus can be read");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the scratch folder can be written");
    for entry in fs::read_dir(from).expect("the corpus can be read").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("the corpus can be read");
    }
}

/// Reads `run`, of which the file `changed` is damaged, as the commands do that look at it.
fn read(run: &Path, changed: &str) {
    let filter = Filter::default();
    if changed == files::MANIFEST
        && let Ok(manifest) = Manifest::read(run)
    {
        serde_json::to_string(&manifest).expect("a manifest can be written");
    }
    if changed != files::TCP_STATE {
        let _ = tcpdump(run, &filter, &mut sink());
    }
    if [files::MANIFEST, files::EVENTS].contains(&changed) {
        let _ = events_table(run, &filter, &mut sink());
        let _ = events_json(run, &filter, &mut sink());
        let log = MahimahiLog {
            hop: "radio",
            direction: Direction::Downlink,
            head: &[],
            init_timestamp_ms: 0,
            extra_bytes: 0,
            end_ns: Some(END_NS),
            drops: true,
        };
        let _ = mahimahi(run, &log, &mut |_, _, _| None, &mut sink());
    }
    if [files::MANIFEST, files::TCP_STATE].contains(&changed) {
        let range = TimeRange { from_ns: None, to_ns: None };
        let _ = tcp_state_table(run, range, &mut sink());
        let _ = tcp_state_json(run, range, &mut sink());
    }
    if changed.ends_with(".pcapng") {
        let _ = CaptureLog::check(&run.join(changed));
    } else if changed != files::TCP_STATE
        && let Err(message) = airpath_engine::inside::replay(run)
    {
        assert!(!message.is_empty(), "refused without a reason");
    }
}
