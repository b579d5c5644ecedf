// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Inputs that broke something: told, and kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Of each way to fail so many inputs are kept and told.
const KEPT: usize = 3;

/// Findings of a campaign.
#[derive(Debug, Default)]
pub struct Findings {
    /// Inputs by what they broke.
    ways: BTreeMap<String, usize>,
}

/// An input that broke something.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Number of the input of the seed.
    pub number: u64,
    /// Description in one line.
    pub what: String,
}

impl Findings {
    /// Number of inputs that broke something.
    pub fn count(&self) -> usize {
        self.ways.values().sum()
    }

    /// Keeps the input of `finding` in `folder` and says so, unless there have been enough like it.
    /// `name` is what was tried and with which seed.
    pub fn add(&mut self, finding: &Finding, input: &[u8], name: &str, folder: &Path) {
        let way: String = finding.what.chars().filter(|letter| !letter.is_ascii_digit()).take(120).collect();
        let count = self.ways.entry(way).or_default();
        *count += 1;
        if *count > KEPT {
            return;
        }
        let path = folder.join(format!("{name}-{}", finding.number));
        match keep(&path, input) {
            Ok(()) => println!("  {}: {}", path.display(), finding.what),
            Err(error) => println!("  input {}: {} (not kept: {error})", finding.number, finding.what),
        }
    }

    /// Says how often each thing was broken.
    pub fn tell(&self) {
        for (way, count) in self.ways.iter().filter(|(_, count)| **count > KEPT) {
            println!("  {count} inputs in all: {way}");
        }
    }
}

fn keep(path: &PathBuf, input: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, input)
}
