// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The binary by itself, as `airpath timing` starts it.

use std::process::{Command, Output};

use airpath_sleep_study::method::METHODS;

fn study(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airpath-sleep-study")).args(words).output().unwrap()
}

#[test]
fn every_method_is_listed() {
    let output = study(&["methods"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for method in METHODS {
        assert!(text.lines().any(|line| line.starts_with(method.name)), "{}: {text}", method.name);
    }
}

#[test]
fn its_usage_is_that_of_airpath_timing() {
    let output = study(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: airpath timing [OPTIONS]"), "{text}");
    let wrong = study(&["--lod", "cpu"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--load"));
}
