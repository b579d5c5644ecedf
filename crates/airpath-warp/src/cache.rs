// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cache of kernels, and the choice among them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Result, WarpError};
use crate::kernel::Kernel;
use crate::recipe;

/// Names a kernel to take instead of the cache's.
pub const KERNEL_VARIABLE: &str = "AIRPATH_WARP_KERNEL";

/// The folder of Airpath's cache: `$XDG_CACHE_HOME/airpath`, or `~/.cache/airpath`.
///
/// # Errors
/// When the environment names no home either.
pub fn folder() -> Result<PathBuf> {
    folder_from(env::var_os("XDG_CACHE_HOME").as_deref(), env::var_os("HOME").as_deref()).ok_or_else(|| {
        WarpError::Missing(format!(
            "no directory for the kernel: set HOME or XDG_CACHE_HOME to an absolute path, or set {KERNEL_VARIABLE} \
             to a kernel"
        ))
    })
}

fn folder_from(cache: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |path: Option<&OsStr>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    // A relative XDG_CACHE_HOME is to be ignored, says its specification.
    let base = absolute(cache).or_else(|| absolute(home).map(|home| home.join(".cache")))?;
    Some(base.join("airpath"))
}

/// The kernel to boot: the one that the environment names, else the newest in the cache that was made
/// after this recipe.
///
/// # Errors
/// When there is none, with what to do.
pub fn find() -> Result<Kernel> {
    if let Some(path) = env::var_os(KERNEL_VARIABLE).filter(|path| !path.is_empty()) {
        return Kernel::open(Path::new(&path));
    }
    let folder = folder()?;
    match newest(&folder) {
        Some(path) => Kernel::open(&path),
        None => Err(WarpError::Missing(format!(
            "no kernel for virtual time in {} yet: `airpath warp setup` builds one in some minutes; or set \
             {KERNEL_VARIABLE} to an existing one",
            folder.display()
        ))),
    }
}

fn newest(folder: &Path) -> Option<PathBuf> {
    let prefix = recipe::file_prefix();
    let made = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
        .max_by_key(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_follows_the_environment() {
        let folder = |cache: Option<&str>, home: Option<&str>| folder_from(cache.map(OsStr::new), home.map(OsStr::new));
        assert_eq!(folder(Some("/c"), Some("/h")), Some("/c/airpath".into()));
        assert_eq!(folder(Some("relative"), Some("/h")), Some("/h/.cache/airpath".into()));
        assert_eq!(folder(None, Some("/h")), Some("/h/.cache/airpath".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn only_kernels_of_this_recipe_are_taken_and_the_newest_first() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("warp-kernel-0000000000000000-6.12.1"), "").unwrap();
        assert_eq!(newest(base.path()), None);
        for (version, age) in [("6.12.9", 100), ("6.12.1", 10)] {
            let path = base.path().join(recipe::file_name(version));
            let file = fs::File::create(path).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        assert_eq!(newest(base.path()), Some(base.path().join(recipe::file_name("6.12.1"))));
        assert_eq!(newest(&base.path().join("nowhere")), None);
    }
}
