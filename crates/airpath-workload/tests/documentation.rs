// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The page about workloads says what the declarations say, and its examples are right.

use airpath_workload::{Kind, KindDescription, Workload};

const PAGE: &str = include_str!("../../../docs/workloads.md");

/// The section of a kind as far as it follows from its declaration: its name, what it does, its keys.
fn section(kind: &KindDescription) -> String {
    let sentence = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!(
        "## `{}`\n\n{}\n\n| key | what it is | default |\n|---|---|---|\n",
        kind.name,
        sentence(kind.documentation)
    );
    for key in &kind.keys {
        let default = match (&key.default, key.required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "must be given".into(),
            (None, false) => String::new(),
        };
        text += &format!("| `{}` | {} | {default} |\n", key.name, sentence(key.documentation));
    }
    text
}

#[test]
fn every_kind_and_key_is_described_as_it_is_declared() {
    for kind in Kind::descriptions() {
        let expected = section(&kind);
        assert!(PAGE.contains(&expected), "docs/workloads.md must hold this, word for word:\n\n{expected}");
    }
}

#[test]
fn every_example_is_read_and_every_kind_has_one() {
    let mut kinds = std::collections::BTreeSet::new();
    let mut inside = false;
    for line in PAGE.lines() {
        if line.starts_with("```") {
            inside = line == "```workload";
        } else if inside {
            let workload = Workload::parse(line).unwrap_or_else(|error| panic!("{error}"));
            kinds.insert(workload.kind.name());
        }
    }
    assert_eq!(kinds, Kind::NAMES.iter().copied().collect());
}
