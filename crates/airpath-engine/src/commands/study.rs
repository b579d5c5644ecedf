// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The study of sleep methods: a program of its own, which the engine does not carry.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Failure;

/// File name of the study's binary, and name of its package.
const PROGRAM: &str = "airpath-sleep-study";
/// Environment variable that names the binary.
const VARIABLE: &str = "AIRPATH_SLEEP_STUDY";
/// A file of the study in the source tree.
const SOURCE: &str = "studies/gurtov-1999/Cargo.toml";

/// Replaces this process by the study; the failure if that cannot be.
pub fn become_it<S: AsRef<OsStr>>(options: impl IntoIterator<Item = S>) -> Failure {
    let engine = env::current_exe().unwrap_or_default();
    let program = match find(env::var_os(VARIABLE).as_deref(), &engine) {
        Ok(program) => program,
        Err(failure) => return failure,
    };
    let error = Command::new(&program).args(options).exec();
    Failure::lacking(format!("cannot run {}: {error}; build it anew: {BUILD}", program.display()))
}

const BUILD: &str = "`cargo build --release -p airpath-sleep-study` in the source tree of Airpath";

/// The binary: the one that is `named`, or that beside the `engine`, or that which cargo built in the
/// source tree around the engine.
fn find(named: Option<&OsStr>, engine: &Path) -> Result<PathBuf, Failure> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(Failure::usage(format!(
                "{VARIABLE} names {}, which is no file; correct it, or build the study of sleep methods with {BUILD}",
                named.display()
            )))
        };
    }
    // The source tree is told by the study itself: another folder called `target` is not searched.
    let trees = engine.ancestors().filter(|folder| folder.join(SOURCE).is_file());
    let built = trees.flat_map(|tree| ["release", "debug"].map(|profile| tree.join("target").join(profile)));
    let folders = engine.parent().map(Path::to_owned).into_iter().chain(built);
    folders.map(|folder| folder.join(PROGRAM)).find(|program| program.is_file()).ok_or_else(|| {
        Failure::lacking(format!(
            "the study of sleep methods is a program of its own, which is not built here: {BUILD}, or name the program \
             with {VARIABLE}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_the_engine_comes_before_that_of_the_source_tree() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path();
        let put = |name: &str| {
            let path = tree.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let engine = put(".venv/bin/airpath-engine");
        let found = |named: Option<&str>| find(named.map(OsStr::new), &engine).map_err(|failure| failure.to_string());
        let debug = put("target/debug/airpath-sleep-study");
        assert!(found(None).unwrap_err().contains(BUILD), "a folder that is no source tree of Airpath");
        put(SOURCE);
        assert_eq!(found(None), Ok(debug));
        let release = put("target/release/airpath-sleep-study");
        assert_eq!(found(None), Ok(release.clone()));
        let beside = put(".venv/bin/airpath-sleep-study");
        assert_eq!(found(None), Ok(beside.clone()));
        assert_eq!(found(Some("")), Ok(beside));
        assert_eq!(found(Some(release.to_str().unwrap())), Ok(release));
        let missing = tree.join("nowhere");
        let told = found(Some(missing.to_str().unwrap())).unwrap_err();
        assert!(told.contains("AIRPATH_SLEEP_STUDY names") && told.contains(BUILD), "{told}");
    }
}
