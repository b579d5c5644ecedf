// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Storage of calibrations: one file for each machine and right, in the user's data folder.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airpath_log::place;

use super::{CalibratedHost, Calibration, FORMAT_VERSION, Rights};

/// Defect of a stored calibration, and its remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable(pub String);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// The advice that gets another calibration.
pub const MEND: &str = "run `airpath timing calibrate`";

/// The folder of calibrations: `$XDG_DATA_HOME/airpath/calibration`, or that under `~/.local/share`.
///
/// # Errors
/// When the environment names no home.
pub fn folder() -> Result<PathBuf, Unusable> {
    folder_from(std::env::var_os("XDG_DATA_HOME").as_deref(), std::env::var_os("HOME").as_deref()).ok_or_else(|| {
        Unusable("there is no place for a calibration: set HOME or XDG_DATA_HOME to an absolute path".into())
    })
}

fn folder_from(data: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |path: Option<&OsStr>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    // A relative XDG_DATA_HOME is to be ignored, says its specification.
    let base = absolute(data).or_else(|| absolute(home).map(|home| home.join(".local/share")))?;
    Some(base.join("airpath").join("calibration"))
}

/// The file for `host` and `rights` in `folder`. A home that several machines share holds several.
pub fn file(folder: &Path, host: &CalibratedHost, rights: Rights) -> PathBuf {
    folder.join(format!("{}-{}.json", host.machine, rights.name()))
}

/// Reads a calibration.
///
/// # Errors
/// When the file cannot be read or is none.
pub fn read(file: &Path) -> Result<Calibration, Unusable> {
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| Unusable(format!("the calibration {name} cannot be read: {error}; {MEND} to make one")))?;
    let damaged = |what: String| {
        Unusable(format!("the calibration {name} is damaged ({what}); delete it, or {MEND} to replace it"))
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    match value["format_version"].as_u64() {
        Some(version) if version == u64::from(FORMAT_VERSION) => {}
        Some(version) => {
            return Err(Unusable(format!(
                "the calibration {name} is of format {version}, and this version reads {FORMAT_VERSION}; {MEND} to replace it"
            )));
        }
        None => return Err(damaged("it has no format_version".into())),
    }
    let calibration: Calibration = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
    calibration.check().map_err(damaged)?;
    Ok(calibration)
}

/// The calibration stored in `folder` for `host` and `rights`, and its file; none if there is none.
///
/// # Errors
/// When there is one that cannot be used: damaged, or of the machine as it was.
pub fn find(folder: &Path, host: &CalibratedHost, rights: Rights) -> Result<Option<(PathBuf, Calibration)>, Unusable> {
    let file = file(folder, host, rights);
    // A folder that may not be entered, such as another user's home, holds nothing for this one.
    if fs::symlink_metadata(&file).is_err() {
        return Ok(None);
    }
    let calibration = read(&file)?;
    match calibration.host.differs_from(host) {
        Some(difference) => Err(Unusable(format!(
            "the calibration {} is of this machine as it was ({difference}); {MEND} to measure anew",
            file.display()
        ))),
        None => Ok(Some((file, calibration))),
    }
}

/// Forgets what is stored in `folder` for `host` and `rights`, and returns the file that held it; none if there was
/// none.
///
/// # Errors
/// When the file cannot be removed.
pub fn forget(folder: &Path, host: &CalibratedHost, rights: Rights) -> Result<Option<PathBuf>, Unusable> {
    let file = file(folder, host, rights);
    match fs::remove_file(&file) {
        Ok(()) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Unusable(format!("the calibration {} cannot be removed: {error}", file.display()))),
    }
}

/// Stores `calibration` in `folder` in one step, and returns its file.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write(folder: &Path, calibration: &Calibration) -> Result<PathBuf, Unusable> {
    let file = file(folder, &calibration.host, calibration.rights);
    let refused = |error: io::Error| {
        Unusable(format!(
            "the calibration cannot be stored as {}: {error}; runs go on without it. Name another place with \
             XDG_DATA_HOME",
            file.display()
        ))
    };
    place::make_folder(folder).map_err(refused)?;
    let text = serde_json::to_string_pretty(calibration).map_err(|error| refused(error.into()))?;
    place::replace(&file, |file| file.write_all((text + "\n").as_bytes())).map_err(refused)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::tests::calibration;
    use super::*;

    #[test]
    fn the_folder_follows_the_environment() {
        let folder = |data: Option<&str>, home: Option<&str>| folder_from(data.map(OsStr::new), home.map(OsStr::new));
        assert_eq!(folder(Some("/d"), Some("/h")), Some("/d/airpath/calibration".into()));
        assert_eq!(folder(Some("d"), Some("/h")), Some("/h/.local/share/airpath/calibration".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn what_is_stored_is_found_by_its_machine_and_rights_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let stored = calibration();
        assert_eq!(find(&folder, &stored.host, stored.rights), Ok(None));
        let file = write(&folder, &stored).unwrap();
        assert_eq!(find(&folder, &stored.host, stored.rights), Ok(Some((file, stored.clone()))));
        let other = if stored.rights == Rights::Root { Rights::User } else { Rights::Root };
        assert_eq!(find(&folder, &stored.host, other), Ok(None));
        let elsewhere = CalibratedHost { machine: "0".into(), ..stored.host.clone() };
        assert_eq!(find(&folder, &elsewhere, stored.rights), Ok(None));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing lies beside it");
    }

    #[test]
    fn what_is_forgotten_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let stored = calibration();
        let forget = |rights| forget(place.path(), &stored.host, rights);
        assert_eq!(forget(stored.rights), Ok(None));
        let file = write(place.path(), &stored).unwrap();
        assert_eq!(forget(Rights::User), Ok(None), "that of another");
        assert_eq!(forget(stored.rights), Ok(Some(file)));
        assert_eq!(find(place.path(), &stored.host, stored.rights), Ok(None));
    }

    #[test]
    fn a_changed_machine_makes_it_stale() {
        let place = tempfile::tempdir().unwrap();
        let stored = calibration();
        write(place.path(), &stored).unwrap();
        let updated = CalibratedHost { kernel: "99.0".into(), ..stored.host.clone() };
        let error = find(place.path(), &updated, stored.rights).unwrap_err().to_string();
        assert!(error.contains("now 99.0") && error.contains(MEND), "{error}");
    }

    #[test]
    fn what_is_damaged_is_named_with_how_to_mend_it() {
        let place = tempfile::tempdir().unwrap();
        let stored = calibration();
        let file = write(place.path(), &stored).unwrap();
        let whole = fs::read_to_string(&file).unwrap();
        for (text, told) in [
            (whole[..whole.len() / 2].to_owned(), "is damaged (EOF"),
            ("{}".into(), "no format_version"),
            (whole.replace("\"format_version\": 1", "\"format_version\": 7"), "of format 7"),
            (whole.replace("\"fifo:10\"", "\"soon\""), "soon"),
            (whole.replace("\"fifo:10\"", "\"fifo:100\""), "fifo:100"),
        ] {
            fs::write(&file, text).unwrap();
            let error = find(place.path(), &stored.host, stored.rights).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains(&file.display().to_string()), "{error}");
            assert!(error.contains(MEND), "{error}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(find(place.path(), &stored.host, stored.rights).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("file");
        fs::write(&taken, "").unwrap();
        let error = write(&taken.join("airpath"), &calibration()).unwrap_err().to_string();
        assert!(error.contains("cannot be stored") && error.contains("XDG_DATA_HOME"), "{error}");
        // A reader finds nothing there, and continues.
        let host = calibration().host;
        assert_eq!(find(&taken.join("airpath"), &host, Rights::Root), Ok(None));
    }
}
