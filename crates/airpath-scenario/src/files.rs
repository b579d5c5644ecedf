//! The files that parameters name: found beside what names them, read once, and shared.

use std::any::TypeId;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use airpath_models::file::{AnyData, FileSource, ParseFile};

use crate::document::Source;

/// The largest file that is read: enough for days of a trace in milliseconds, not for a mistake.
const LARGEST_BYTES: u64 = 256_000_000;

/// A file in one format, as it was when it was last changed.
type Known = HashMap<(PathBuf, TypeId), (Option<SystemTime>, u64, AnyData)>;

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
        let cannot = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
        let metadata = std::fs::metadata(&path).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(format!("`{}` is not a file", path.display()));
        }
        if metadata.len() > LARGEST_BYTES {
            return Err(format!("`{}` is larger than {LARGEST_BYTES} bytes", path.display()));
        }
        let (changed, length) = (metadata.modified().ok(), metadata.len());
        let key = (path.clone(), format);
        if let Some((then, bytes, data)) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && (*then, *bytes) == (changed, length)
        {
            return Ok(data.clone());
        }
        let data = parse(&std::fs::read(&path).map_err(cannot)?)?;
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (changed, length, data.clone()));
        Ok(data)
    }

    fn origin(&self, name: &str) -> Option<PathBuf> {
        // Whoever copies it may have gone to another folder.
        std::path::absolute(self.path(name)).ok()
    }
}
