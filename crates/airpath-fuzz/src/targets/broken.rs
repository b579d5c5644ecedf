// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Breaks on purpose, each input in its way, so that a test sees whether the fuzzer would.

use std::time::Duration;

const WAYS: [&str; 5] = ["fine", "panic", "abort", "memory", "stand still"];

pub fn seeds() -> Vec<(String, Vec<u8>)> {
    WAYS.map(|way| (way.to_string(), way.as_bytes().to_vec())).into()
}

pub fn run(input: &[u8]) {
    match input {
        b"panic" => panic!("on purpose"),
        b"abort" => std::process::abort(),
        // More than any worker may have.
        b"memory" => drop(std::hint::black_box(vec![1u8; 64 << 30])),
        b"stand still" => std::thread::sleep(Duration::from_secs(600)),
        _ => {}
    }
}
