// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The files that parameters name: found beside what names them, read once, and shared.

use std::any::TypeId;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use airpath_core::bounded::{self, DATA_BYTES};
use airpath_models::file::{AnyData, FileSource, ParseFile};

use crate::document::Source;

/// Contents of files, by absolute name and format, as of their first reading.
type Known = HashMap<(PathBuf, TypeId), AnyData>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Files named in `source`.
pub struct Beside<'a>(pub &'a Source);

impl Beside<'_> {
    fn path(&self, name: &str) -> PathBuf {
        // What an option names lies where the user is.
        let folder = if self.0.is_file { Path::new(&self.0.name).parent() } else { None };
        folder.unwrap_or(Path::new("")).join(name)
    }
}

impl FileSource for Beside<'_> {
    fn load(&mut self, name: &str, format: TypeId, parse: ParseFile<'_>) -> Result<AnyData, String> {
        let path = self.path(name);
        // The same file by another name is the same file, and one that is in use is not read again: it may
        // have changed since, or gone, and a run goes on with what it began with.
        let key = (std::path::absolute(&path).unwrap_or_else(|_| path.clone()), format);
        if let Some(data) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(data.clone());
        }
        let cannot = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
        let metadata = std::fs::metadata(&path).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(format!("`{}` is not a file", path.display()));
        }
        let data = parse(&bounded::read(&path, DATA_BYTES).map_err(cannot)?)?;
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, data.clone());
        Ok(data)
    }

    fn origin(&self, name: &str) -> Option<PathBuf> {
        // Whoever copies it may have gone to another folder.
        std::path::absolute(self.path(name)).ok()
    }
}
