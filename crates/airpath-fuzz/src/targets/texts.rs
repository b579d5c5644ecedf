// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options and workloads, one a line: `--rate 1 Mbit/s`, `--set radio.link.rate=1 Mbit/s`, or a workload.

use std::path::Path;

use airpath_packet::PacketFilter;
use airpath_scenario::{PlainOptions, Running, Scenario};
use airpath_workload::Workload;

use super::origin;

/// A line of each kind of workload, with keys as they are documented.
const WORKLOADS: &str = include_str!("../../../../docs/workloads.md");

pub fn seeds() -> Vec<(String, Vec<u8>)> {
    // What stands in the examples of the documentation.
    let words = WORKLOADS.split(['`', '\'', '\n']).map(str::trim).filter(|text| Workload::parse(text).is_ok());
    words.map(|text| (format!("workload {text}"), text.as_bytes().to_vec())).collect()
}

pub fn run(input: &[u8], corpus: &Path) {
    let text = String::from_utf8_lossy(input);
    let mut options = PlainOptions::default();
    let mut sets = Vec::new();
    for line in text.lines().take(64) {
        let Some((option, value)) = line.strip_prefix("--").map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
        else {
            workload(line);
            continue;
        };
        let value = value.to_string();
        match option {
            "filter" => _ = PacketFilter::parse(&value),
            "rate" => options.rate = Some(value),
            "delay" => options.delay = Some(value),
            "jitter" => options.jitter = Some(value),
            "loss" => options.loss = Some(value),
            "reorder" => options.reorder = Some(value),
            "duplicate" => options.duplicate = Some(value),
            "queue" => options.queue = Some(value),
            "blackout" => options.blackouts.push(value),
            _ => sets.push(value),
        }
    }
    if options != PlainOptions::default() || !sets.is_empty() {
        link(&options, &sets, corpus);
    }
}

fn workload(line: &str) {
    match Workload::parse(line) {
        Ok(workload) => {
            let printed = workload.to_string();
            let again = Workload::parse(&printed).unwrap_or_else(|error| panic!("`{printed}` is refused: {error}"));
            assert_eq!(again, workload, "`{printed}` is another workload");
            let json = serde_json::to_value(&printed).expect("text as JSON");
            let from_json: Workload = serde_json::from_value(json).expect("a workload as JSON");
            assert_eq!(from_json, workload);
        }
        Err(error) => assert!(!error.to_string().is_empty(), "refused without a reason"),
    }
    // The same as a table, where the line happens to be one.
    if line.starts_with('{') {
        let _ = serde_json::from_str::<Workload>(line);
    }
}

fn link(options: &PlainOptions, sets: &[String], corpus: &Path) {
    let base = "[[hops]]\nname = \"radio\"\n[hops.link]\nrate = \"1 Mbit/s\"\nqueue = { limit = \"20 packets\" }\n";
    let mut scenario = Scenario::from_toml(base, &origin(corpus)).expect("a scenario");
    let outcome = scenario.apply_plain(options).and_then(|()| sets.iter().try_for_each(|set| scenario.set(set)));
    match outcome.and_then(|()| scenario.paths()) {
        Ok(paths) => {
            assert_eq!(paths.len(), 1);
            let printed = scenario.to_toml().expect("a scenario that was accepted can be printed");
            let again = Scenario::from_toml(&printed, &origin(corpus));
            again.unwrap_or_else(|report| panic!("the printed scenario is refused: {report}\n{printed}"));
        }
        Err(report) => assert!(!report.to_string().is_empty(), "refused without a reason"),
    }
    let mut running = Running::new(&Scenario::transparent());
    if let Err(report) = running.set(sets) {
        assert!(!report.to_string().is_empty(), "refused without a reason");
    }
}
