// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A short campaign of every target, with a fixed seed: every seed of the corpus, and some changed ones.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The targets, and how many inputs each gets: as many as take about a second where nothing is optimised.
const TARGETS: [(&str, u64); 18] = [
    ("packets", 3_000),
    ("scenario", 120),
    ("texts", 600),
    ("traces", 600),
    ("runs", 60),
    ("control", 12),
    ("load", 4_000),
    ("ppp", 1_000),
    ("dns", 2_000),
    ("http", 2_000),
    ("quic", 2_000),
    ("rtcp", 2_000),
    ("rtp", 2_000),
    ("tls", 2_000),
    ("ppp-frames", 2_000),
    ("ppp-tunnels", 2_000),
    ("hosts", 2_000),
    ("tunnel", 2_000),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// Runs the fuzzer with `words`: its success, and what it said. Its temporary files are gone afterwards.
fn fuzz(words: &[&str]) -> (bool, String) {
    let (findings, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_airpath-fuzz"));
    command.args(["--seed", "1", "--corpus"]).arg(corpus()).arg("--findings").arg(findings.path());
    command.env("TMPDIR", temporary.path());
    if !words.contains(&"--limit") {
        // Nothing is optimised here, and the machine may be busy.
        command.args(["--limit", "60"]);
    }
    let output = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let left: Vec<_> = temporary.path().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}\n{said}");
    (output.status.success(), said)
}

#[test]
fn no_target_breaks() {
    for (target, inputs) in TARGETS {
        let (fine, said) = fuzz(&["--target", target, "--inputs", &inputs.to_string()]);
        assert!(fine && said.contains(&format!("tried {inputs}, failures 0")), "{said}");
    }
}

#[test]
fn what_breaks_is_told_with_its_input_and_the_rest_is_tried() {
    let (fine, said) = fuzz(&["--target", "broken", "--inputs", "6", "--limit", "2", "--jobs", "1"]);
    assert!(!fine && said.contains("failures 4"), "{said}");
    for (number, what) in [(1, "on purpose"), (2, "SIGABRT"), (3, "SIGABRT"), (4, "took longer than 2 s")] {
        let told = said.lines().any(|line| line.contains(&format!("broken-1-{number}: ")) && line.contains(what));
        assert!(told, "{number}: {said}");
    }
}

#[test]
fn commands_of_the_engine_bear_the_same_inputs() {
    let beside = Path::new(env!("CARGO_BIN_EXE_airpath-fuzz")).with_file_name("airpath-engine");
    if !beside.exists() {
        eprintln!("not tried: there is no engine beside the fuzzer; `cargo build -p airpath-engine` makes one");
        return;
    }
    let (fine, said) = fuzz(&["--through", beside.to_str().unwrap(), "--inputs", "12"]);
    assert!(fine && said.contains("tried 84, failures 0"), "{said}");
}

#[test]
fn an_input_is_the_same_by_its_numbers_and_by_its_file() {
    let good = corpus().join("packets/tcp4");
    let (fine, said) = fuzz(&["--target", "packets", "--input", good.to_str().unwrap()]);
    assert!(fine && said.contains("nothing is wrong"), "{said}");
}
