// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The log of another host while it grows: sent over a connection of its own, so that packets never wait for it, and
//! by processes of their own, so that no engine does. A file that is finished gets another form; it is fetched then.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use airpath_log::{files, place};

use super::transfer;
use super::wire::{self, CHUNK_BYTES, Word};
use crate::error::{Failure, Result};

/// Most bytes of one file that are sent at one look.
const LOOK_BYTES: u64 = 4 << 20;

/// The identity of a file under a name.
#[derive(Clone, Copy, PartialEq)]
struct Identity {
    number: u64,
    /// Time of its last change in ns, of a file that never grows: the number may be that of one removed before.
    changed_ns: i128,
}

impl Identity {
    fn of(about: &fs::Metadata, grows: bool) -> Identity {
        let changed_ns = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        Identity { number: about.ino(), changed_ns: if grows { 0 } else { changed_ns } }
    }
}

/// Files of a run as far as they have been sent.
#[derive(Default)]
pub struct Growing {
    /// By name: which file it was, and how much of it went.
    sent: HashMap<PathBuf, (Identity, u64)>,
}

impl Growing {
    /// Says what came to the files of `folder` since the last look.
    ///
    /// # Errors
    /// When the folder cannot be read, or nobody hears.
    pub fn look(&mut self, folder: &Path, say: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for name in transfer::list(folder)? {
            let is_temporary = name.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            // Files come and go while they are looked at.
            let Ok(mut file) = File::open(folder.join(&name)) else { continue };
            let about = file.metadata()?;
            let is_manifest = name == Path::new(files::MANIFEST);
            let identity = Identity::of(&about, !is_manifest);
            let (known, mut from) = self.sent.get(&name).copied().unwrap_or((identity, 0));
            if is_temporary || (known != identity && !is_manifest) {
                continue;
            }
            if known != identity {
                from = 0;
            }
            let bytes = about.len().saturating_sub(from).min(LOOK_BYTES);
            if bytes == 0 {
                continue;
            }
            file.seek(SeekFrom::Start(from))?;
            let mut content = Vec::with_capacity(bytes as usize);
            file.take(bytes).read_to_end(&mut content)?;
            let grown = Word::Grown { name: name.display().to_string(), from_byte: from, bytes: content.len() as u64 };
            say(&grown.to_frame())?;
            for chunk in content.chunks(CHUNK_BYTES) {
                say(&wire::chunk(chunk))?;
            }
            self.sent.insert(name, (identity, from + content.len() as u64));
        }
        Ok(())
    }
}

/// A copy of a growing folder.
pub struct Copied {
    folder: PathBuf,
    /// The file that is being taken, what it is called until it is whole, and how much of it is to come.
    taking: Option<(File, Option<[PathBuf; 2]>, u64)>,
}

impl Copied {
    /// A copy in `folder`, which is made once something comes, if the folder around it is there.
    pub fn new(folder: PathBuf) -> Copied {
        Copied { folder, taking: None }
    }

    /// Part of a file comes.
    ///
    /// # Errors
    /// When it fits nothing that came, or the disk refuses.
    pub fn begin(&mut self, name: &str, from_byte: u64, bytes: u64) -> Result<()> {
        let refused = |why: &str| Failure::new(format!("the file {name:?} from byte {from_byte} on is refused: {why}"));
        let path = transfer::inside(&self.folder, name, bytes)?;
        let failed = |error: io::Error| refused(&error.to_string());
        if self.taking.is_some() {
            return Err(refused("the one before is not whole"));
        }
        if !self.folder.exists() {
            fs::create_dir(&self.folder).map_err(failed)?;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let taking = if from_byte == 0 {
            let new = place::temporary(&path);
            let _ = fs::remove_file(&new);
            (place::create_new(&new).map_err(failed)?, Some([new, path]), bytes)
        } else {
            let mut file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
            if file.seek(SeekFrom::End(0)).map_err(failed)? != from_byte {
                return Err(refused("it does not go on there"));
            }
            (file, None, bytes)
        };
        self.taking = Some(taking);
        self.end_of_file()
    }

    /// Bytes of it come.
    ///
    /// # Errors
    /// When there are too many, or the disk refuses.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let Some((file, _, left)) = &mut self.taking else { return Err(Failure::new("a file came out of turn")) };
        *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| Failure::new("a file is too long"))?;
        file.write_all(bytes).map_err(|error| Failure::new(format!("cannot copy the log: {error}")))?;
        self.end_of_file()
    }

    fn end_of_file(&mut self) -> Result<()> {
        if !matches!(&self.taking, Some((_, _, 0))) {
            return Ok(());
        }
        match self.taking.take() {
            Some((_, Some([new, path]), _)) => fs::rename(&new, &path)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display()))),
            _ => Ok(()),
        }
    }

    /// Removes what is not whole.
    pub fn finish(mut self) {
        if let Some((_, Some([new, _]), _)) = self.taking.take() {
            let _ = fs::remove_file(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Frame, parse};
    use super::*;

    #[test]
    fn a_copy_grows_with_the_folder_and_leaves_finished_files_alone() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut growing, mut copied) = (Growing::default(), Copied::new(to.path().join("copy")));
        let mut look = || {
            let mut frames = 0;
            let mut say = |frame: &[u8]| {
                frames += 1;
                match parse(frame).unwrap() {
                    Frame::Word(word) => match *word {
                        Word::Grown { name, from_byte, bytes } => copied.begin(&name, from_byte, bytes).unwrap(),
                        word => panic!("{word:?}"),
                    },
                    Frame::Chunk(bytes) => copied.take(bytes).unwrap(),
                    frame => panic!("{frame:?}"),
                }
                Ok(())
            };
            growing.look(from.path(), &mut say).unwrap();
            frames
        };
        let write = |name: &str, bytes: &[u8]| fs::write(from.path().join(name), bytes).unwrap();
        let append = |name: &str, bytes: &[u8]| {
            OpenOptions::new().append(true).open(from.path().join(name)).unwrap().write_all(bytes).unwrap();
        };
        let here = |name: &str| fs::read(to.path().join("copy").join(name)).unwrap();
        write("events.arrow", &[1; 100_000]);
        write(".events.arrow.new", b"half");
        write(files::MANIFEST, b"{}");
        look();
        append("events.arrow", b"more");
        look();
        assert_eq!(here("events.arrow"), [&[1; 100_000][..], b"more"].concat());
        assert_eq!(look(), 0);
        // Files in place of others: of the log nothing is lost here, and the manifest is the last one.
        for (name, bytes) in [("events.arrow", &b"file"[..]), (files::MANIFEST, b"{1}")] {
            write("new", bytes);
            fs::rename(from.path().join("new"), from.path().join(name)).unwrap();
        }
        look();
        assert_eq!((here("events.arrow").len(), here(files::MANIFEST)), (100_004, b"{1}".to_vec()));
        // A manifest replaced twice between two looks may have the number of the first one, and is a whole one.
        let number = |name: &str| fs::metadata(from.path().join(name)).unwrap().ino();
        let before = number(files::MANIFEST);
        // The file itself with other contents: what reuse of its number looks like.
        write(files::MANIFEST, b"{333}");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        File::options().write(true).open(from.path().join(files::MANIFEST)).unwrap().set_modified(later).unwrap();
        assert_eq!(number(files::MANIFEST), before);
        look();
        assert_eq!(here(files::MANIFEST), b"{333}");
        assert!(!to.path().join("copy/.events.arrow.new").exists());
    }

    #[test]
    fn a_copy_takes_nothing_that_does_not_fit() {
        let to = tempfile::tempdir().unwrap();
        let mut copied = Copied::new(to.path().join("copy"));
        assert!(copied.begin("../x", 0, 1).is_err());
        assert!(copied.take(b"x").is_err());
        assert!(copied.begin("x", 5, 1).is_err());
        copied.begin("x", 0, 2).unwrap();
        assert!(copied.begin("y", 0, 1).is_err());
        assert!(copied.take(b"long").is_err());
        copied.finish();
        assert_eq!(fs::read_dir(to.path().join("copy")).unwrap().count(), 0);
    }
}
