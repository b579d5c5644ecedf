// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Names of keys in other emulators.

/// Names in other emulators for our keys.
const SYNONYMS: &[(&str, &str)] = &[
    ("bandwidth", "rate"),
    ("bitrate", "rate"),
    ("buffer", "queue"),
    ("bw", "rate"),
    ("corrupt", "errors"),
    ("delay", "propagation"),
    ("dup", "duplicate"),
    ("duplication", "duplicate"),
    ("for", "duration"),
    ("latency", "propagation"),
    ("limit", "queue"),
    ("loss", "errors"),
    ("packet_loss", "errors"),
    ("plr", "errors"),
    ("reordering", "reorder"),
    ("size", "packet_size"),
    ("start", "at"),
    ("time", "at"),
];

/// Our key for a name of another emulator.
pub fn of(name: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(word, _)| *word == name).map(|(_, ours)| *ours)
}
