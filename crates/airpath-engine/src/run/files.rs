// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The files that a scenario names, copied into the folder of a run, so that a replay and a later
//! reader need nothing else.

use std::path::{Path, PathBuf};

use airpath_log::files::FILES;
use airpath_log::place;
use airpath_scenario::Scenario;

use crate::error::{Failure, Result};
use crate::link::usage;

/// Names of kept files, relative to the run's folder.
#[derive(Clone, Debug, Default)]
pub struct KeptFiles(Vec<(PathBuf, String)>);

impl KeptFiles {
    /// Copies the files that `scenario` names into `folder`, which exists; without a folder nothing is
    /// kept.
    ///
    /// # Errors
    /// When a file cannot be copied.
    pub fn keep(scenario: &Scenario, folder: Option<&Path>) -> Result<KeptFiles> {
        let mut kept = KeptFiles::default();
        let Some(folder) = folder else { return Ok(kept) };
        let files = scenario.files().map_err(usage)?;
        if !files.is_empty() {
            let all = folder.join(FILES);
            place::make_folder(&all)
                .map_err(|error| Failure::unwritable(format!("cannot create {}: {error}", all.display())))?;
        }
        for file in files {
            let name = kept.unused_name(&file);
            let copy = folder.join(&name);
            place::copy(&file, &copy).map_err(|error| {
                Failure::unwritable(format!("cannot copy {} to {}: {error}", file.display(), copy.display()))
            })?;
            kept.0.push((file, name));
        }
        Ok(kept)
    }

    /// The file's own name, or with a number where another file has that already.
    fn unused_name(&self, file: &Path) -> String {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, extension) = (text(file.file_stem()), file.extension().map(|part| text(Some(part))));
        let numbered = |number: u32| {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            let end = extension.as_ref().map_or_else(String::new, |extension| format!(".{extension}"));
            format!("{FILES}/{stem}{number}{end}")
        };
        let unused = |name: &String| !self.0.iter().any(|(_, other)| other == name);
        (1..).map(numbered).find(unused).unwrap_or_default()
    }

    /// `scenario` as text that names the copies.
    pub fn scenario_toml(&self, scenario: &Scenario) -> String {
        let name = |file: &Path| self.0.iter().find(|(known, _)| known == file).map(|(_, name)| name.clone());
        // What was read is printed again, so that it cannot fail; an empty text would say that it did.
        scenario.to_toml_with_files(&name).unwrap_or_default()
    }
}
