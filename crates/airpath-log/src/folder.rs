// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The folder of a run: one run, one folder, never overwritten.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::LogError;
use crate::files::{EVENTS, FILES, HOSTS, INPUT, LINK, MANIFEST, TCP_STATE};
use crate::place;
use crate::read::arrow::ArrowLog;
use crate::read::capture::CaptureLog;

/// Makes the folder of a new run, with its parents. An existing folder is taken only while it is
/// empty: what somebody recorded is never overwritten, and files of two runs never mix. What a run left
/// that was killed before it began (logs without a record) counts as nothing, and goes.
///
/// # Errors
/// When the folder holds anything, is no folder, or cannot be made or written.
pub fn create(path: &Path) -> Result<(), LogError> {
    let made = place::make_folder(path).map_err(|source| LogError::io("record in", path, source))?;
    if made == place::Made::New {
        // Nothing is in it. Whoever has just made a folder can write there, but for a umask that forbids it, which the
        // first file tells.
        return Ok(());
    }
    if !place::is_empty(path).map_err(|source| LogError::io("open", path, source))? {
        if !began_nothing(path) {
            return Err(LogError::NotEmpty { path: path.to_owned(), what: what_it_holds(path) });
        }
        take_back(path, false)?;
    }
    // Making a file is the only sure test of whether one can be made.
    let probe = place::temporary(&path.join(MANIFEST));
    place::create_new(&probe).map_err(|source| LogError::io("write in", path, source))?;
    fs::remove_file(&probe).map_err(|source| LogError::io("write in", path, source))
}

/// Takes back the folder of a run that never began, so that its name can be used again: removes the
/// files of a log and of the scenario, and with `whole` the folder, if nothing else is in it. A folder with a manifest
/// holds a run that began, and stays as it is.
///
/// # Errors
/// When something that should go cannot be removed.
pub fn take_back(path: &Path, whole: bool) -> Result<(), LogError> {
    if path.join(MANIFEST).exists() {
        return Ok(());
    }
    let failed = |source| LogError::io("remove", path, source);
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let text = name.to_string_lossy();
        if is_log(&text) || half_of(&text).is_some() {
            fs::remove_file(path.join(&name)).map_err(failed)?;
        } else if text == FILES || text == HOSTS && no_part_began(&path.join(&name)) {
            fs::remove_dir_all(path.join(&name)).map_err(failed)?;
        }
    }
    if !whole {
        return Ok(());
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(failed(error)),
        _ => Ok(()),
    }
}

fn is_log(name: &str) -> bool {
    [EVENTS, INPUT, LINK, TCP_STATE].contains(&name) || name.ends_with(".pcapng")
}

/// The file of a run of which `name` is a part that was still being written when its writer was killed.
fn half_of(name: &str) -> Option<&str> {
    let whole = name.strip_prefix('.')?.strip_suffix(".new")?;
    (is_log(whole) || whole == MANIFEST).then_some(whole)
}

/// True if `path` holds only the remains of a run that was killed before its first record.
fn began_nothing(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    entries.into_iter().all(|entry| {
        let Ok((name, kind)) = entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) else {
            return false;
        };
        let name = name.to_string_lossy();
        match kind {
            kind if kind.is_dir() => name == FILES || name == HOSTS && no_part_began(&path.join(HOSTS)),
            kind if kind.is_file() && is_log(&name) => has_no_record(&path.join(&*name)),
            // Its whole is here as well, or was never there.
            kind => kind.is_file() && half_of(&name).is_some(),
        }
    })
}

/// True if `hosts` holds only folders of parts of a run that was killed before its first record.
fn no_part_began(hosts: &Path) -> bool {
    let Ok(entries) = fs::read_dir(hosts) else { return false };
    entries.into_iter().all(|entry| entry.is_ok_and(|entry| entry.path().is_dir() && began_nothing(&entry.path())))
}

/// True if nobody writes the log at `path`, and nobody has.
fn has_no_record(path: &Path) -> bool {
    let Ok(file) = place::open_regular(path) else { return false };
    // Its writer holds a lock for as long as it lives.
    if file.try_lock_shared().is_err() {
        return false;
    }
    if file.metadata().is_ok_and(|about| about.len() == 0) {
        return true;
    }
    if path.extension().is_some_and(|extension| extension == "pcapng") {
        return CaptureLog::open(path).is_ok_and(|mut log| log.next().is_none() && log.torn_bytes() == 0);
    }
    ArrowLog::open(path)
        .is_ok_and(|mut log| log.torn_bytes() == 0 && log.all(|batch| batch.is_ok_and(|batch| batch.num_rows() == 0)))
}

/// Parts of copies in the folder of a run that a kill left while its files got their final form: the files
/// themselves are whole. Nothing while somebody writes them still.
pub fn leftovers(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut left: Vec<String> = names
        .filter(|name| {
            half_of(name).is_some_and(|whole| {
                // A file that is not there, or is no file, is nobody's to write.
                place::open_regular(&path.join(whole)).is_ok_and(|file| file.try_lock_shared().is_ok())
            })
        })
        .collect();
    left.sort_unstable();
    left
}

fn what_it_holds(path: &Path) -> String {
    #[derive(serde::Deserialize)]
    struct Head {
        airpath_version: String,
        status: String,
    }
    let text = place::read(&path.join(MANIFEST)).unwrap_or_default();
    match serde_json::from_slice::<Head>(&text) {
        Ok(head) => format!(": it holds a run of Airpath {} ({})", head.airpath_version, head.status),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("a/b");
        create(&deep).unwrap();
        create(&deep).unwrap();
        fs::write(deep.join("notes.txt"), "mine").unwrap();
        let error = create(&deep).unwrap_err().to_string();
        assert!(error.contains("is not empty;") && error.contains("--out"), "{error}");
        fs::write(deep.join(MANIFEST), r#"{"airpath_version":"0.1.0","status":"finished","seed":1}"#).unwrap();
        let error = create(&deep).unwrap_err().to_string();
        assert!(error.contains("it holds a run of Airpath 0.1.0 (finished)"), "{error}");
        let error = create(&deep.join("notes.txt")).unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
    }

    /// The folder of a run that writes still, with `packets` recorded.
    fn begun(folder: &Path, packets: u64) -> (crate::Recorder, crate::Writer) {
        let names = (vec!["radio".to_string()], vec!["initial".to_string()]);
        let options = crate::WriterOptions::of_path(folder, crate::Level::Packets, names.0, names.1);
        let (mut recorder, writer) = crate::Writer::start(&options).unwrap();
        for id in 1..=packets {
            let at = airpath_core::Time::from_nanos(id * 1_000_000);
            let pdu = airpath_core::Pdu { id, len: 64, header_len: 28, arrived: at, ..Default::default() };
            let packet = crate::Packet::whole(&[0x45; 64], 28);
            let port = airpath_core::PortId::CLIENT;
            recorder.offered(&crate::Offered { at, port, pdu: &pdu, packet, read_at: None, kernel_at: None });
        }
        (recorder, writer)
    }

    /// Copies the folder as it was when its writer was killed.
    fn killed(folder: &Path, (recorder, writer): (crate::Recorder, crate::Writer), copy: &Path) {
        fs::create_dir(copy).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        drop(recorder);
        writer.finish();
    }

    #[test]
    fn logs_without_a_record_count_as_nothing_and_others_are_kept() {
        let base = tempfile::tempdir().unwrap();
        let (run, left) = (base.path().join("run"), base.path().join("left"));
        create(&run).unwrap();
        let writing = begun(&run, 0);
        let error = create(&run).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "a run is about to begin there: {error}");
        killed(&run, writing, &left);
        fs::write(left.join(".events.arrow.new"), "half").unwrap();
        fs::write(left.join(".run.json.new"), "{").unwrap();
        fs::create_dir(left.join(FILES)).unwrap();
        fs::write(left.join(FILES).join("trace.csv"), "0,1").unwrap();
        assert!(fs::read_dir(&left).unwrap().count() > 4);
        create(&left).unwrap();
        assert_eq!(fs::read_dir(&left).unwrap().count(), 0);

        for keep in ["notes.txt", MANIFEST, ".notes.new"] {
            fs::write(left.join(keep), "{}").unwrap();
            fs::write(left.join(".events.arrow.new"), "half").unwrap();
            create(&left).unwrap_err();
            assert_eq!(fs::read_dir(&left).unwrap().count(), 2, "{keep}");
            fs::remove_file(left.join(keep)).unwrap();
        }

        let (run, left) = (base.path().join("other"), base.path().join("other-left"));
        create(&run).unwrap();
        let writing = begun(&run, 3);
        writing.0.finish(airpath_core::Time::from_nanos(10_000_000));
        writing.1.finish();
        fs::rename(&run, &left).unwrap();
        let count = fs::read_dir(&left).unwrap().count();
        create(&left).unwrap_err();
        assert_eq!(fs::read_dir(&left).unwrap().count(), count);
    }

    #[test]
    fn parts_of_copies_are_told_once_nobody_writes_them() {
        let base = tempfile::tempdir().unwrap();
        let writing = begun(base.path(), 1);
        fs::write(base.path().join(".client.pcapng.new"), "half").unwrap();
        fs::write(base.path().join(".notes.new"), "mine").unwrap();
        assert!(leftovers(base.path()).is_empty());
        drop(writing.0);
        writing.1.finish();
        fs::write(base.path().join(".client.pcapng.new"), "half").unwrap();
        assert_eq!(leftovers(base.path()), [".client.pcapng.new"]);
    }

    #[test]
    fn only_what_never_began_is_taken_back() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("run");
        let fill = |names: &[&str]| {
            create(&folder).unwrap();
            names.iter().for_each(|name| fs::write(folder.join(name), "x").unwrap());
        };
        fill(&[EVENTS, INPUT, TCP_STATE, "client.pcapng"]);
        take_back(&folder, true).unwrap();
        assert!(!folder.exists());
        fill(&[EVENTS]);
        take_back(&folder, false).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fill(&[EVENTS, "notes.txt"]);
        take_back(&folder, true).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_file(folder.join("notes.txt")).unwrap();
        fill(&[EVENTS, MANIFEST]);
        take_back(&folder, true).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }
}
