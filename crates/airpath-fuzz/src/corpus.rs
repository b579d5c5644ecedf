// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The seeds: files under `fuzz/corpus/TARGET/`, read in the order of their names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::kind::Kind;
use crate::random::Random;

/// Seeds that are longer teach nothing that shorter ones do not, and cost time.
const LONGEST_SEED_BYTES: usize = 128 << 10;

/// The seeds of a target.
#[derive(Debug)]
pub struct Corpus {
    names: Vec<String>,
    seeds: Vec<Vec<u8>>,
    /// The words of all seeds that are text.
    words: Vec<Vec<u8>>,
}

impl Corpus {
    /// Reads the files in `folder` and in the folders in it, and takes `built_in` as seeds, too.
    ///
    /// # Errors
    /// When the folder cannot be read, or there is no seed.
    pub fn read(folder: &Path, built_in: Vec<(String, Vec<u8>)>) -> Result<Corpus, String> {
        let mut files = BTreeSet::new();
        if folder.exists() || built_in.is_empty() {
            find(folder, &mut files)
                .map_err(|error| format!("cannot read the corpus {}: {error}", folder.display()))?;
        }
        let mut all = built_in;
        for path in files {
            let seed = std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            if seed.len() <= LONGEST_SEED_BYTES {
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                all.push((name, seed));
            }
        }
        if all.is_empty() {
            return Err(format!("the corpus {} holds no seed; name another folder with --corpus", folder.display()));
        }
        let text = all.iter().map(|(_, seed)| seed).filter(|seed| Kind::of(seed) == Kind::Text);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let words: BTreeSet<Vec<u8>> = text
            .flat_map(|seed| seed.split(|byte| !is_part(byte)))
            .filter(|word| !word.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        let (names, seeds) = all.into_iter().unzip();
        Ok(Corpus { names, seeds, words: words.into_iter().collect() })
    }

    /// Number of seeds.
    pub fn len(&self) -> usize {
        self.seeds.len()
    }

    /// Seed `index`.
    pub fn seed(&self, index: usize) -> &[u8] {
        &self.seeds[index]
    }

    /// The name of a seed.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// A word of the seeds.
    pub fn word(&self, random: &mut Random) -> &[u8] {
        self.words.get(random.below(self.words.len())).map_or(b"", Vec::as_slice)
    }
}

fn find(folder: &Path, files: &mut BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}
