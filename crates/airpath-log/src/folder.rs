//! The folder of a run: one run, one folder, never overwritten.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::LogError;
use crate::place;

/// The manifest's file name.
pub const MANIFEST: &str = "run.json";
/// The event log's file name.
pub const EVENTS: &str = "events.arrow";
/// The input log's file name.
pub const INPUT: &str = "input.arrow";
/// The file name of the log of TCP state.
pub const TCP_STATE: &str = "tcp.arrow";

/// The folder of copies of the files that the scenario names.
pub const FILES: &str = "files";

/// The file name of the capture at the port called `name`.
pub fn capture_name(name: &str) -> String {
    format!("{name}.pcapng")
}

/// Makes the folder of a new run, with its parents. An existing folder is taken only while it is
/// empty: what somebody recorded is never overwritten, and files of two runs never mix.
///
/// # Errors
/// When the folder holds anything, is no folder, or cannot be made or written.
pub fn create(path: &Path) -> Result<(), LogError> {
    place::make_folder(path).map_err(|source| LogError::io("record in", path, source))?;
    if !place::is_empty(path).map_err(|source| LogError::io("read", path, source))? {
        return Err(LogError::NotEmpty { path: path.to_owned(), what: what_it_holds(path) });
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
        if text == EVENTS || text == INPUT || text == TCP_STATE || text.ends_with(".pcapng") {
            fs::remove_file(path.join(&name)).map_err(failed)?;
        } else if text == FILES {
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
