// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files that one engine sends to the other: those that a scenario names, and the folder of a run.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use airpath_log::place;

use super::wire::{self, CHUNK_BYTES, Word};
use crate::error::{Failure, Result};

/// Most files of a folder, and most bytes of one: far above what a run leaves.
const MOST_FILES: u32 = 100_000;
const MOST_BYTES: u64 = 1 << 44;

/// Every file below `folder`, by its path in it.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let (name, kind) = (inner.join(entry.file_name()), entry.file_type()?);
            match (kind.is_dir(), kind.is_file()) {
                (true, _) => folders.push(name),
                (_, true) => files.push(name),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Sends the file at `path` under the name `name`, frame by frame. A file that shrinks meanwhile is filled up.
///
/// # Errors
/// When it cannot be read; before anything is sent.
pub fn send(path: &Path, name: &str, say: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut left = file.metadata()?.len();
    say(&Word::File { name: name.to_owned(), bytes: left }.to_frame());
    let mut buffer = vec![0; CHUNK_BYTES];
    while left > 0 {
        let most = left.min(CHUNK_BYTES as u64) as usize;
        let count = file.read(&mut buffer[..most]).unwrap_or(0);
        if count == 0 {
            buffer[..most].fill(0);
        }
        let count = if count == 0 { most } else { count };
        say(&wire::chunk(&buffer[..count]));
        left -= count as u64;
    }
    Ok(())
}

/// The path of the file `name` of `bytes` bytes in `folder`.
///
/// # Errors
/// When it would be elsewhere, or is longer than any file of a run.
pub fn inside(folder: &Path, name: &str, bytes: u64) -> Result<PathBuf> {
    let inner = Path::new(name);
    let plain = !name.is_empty() && inner.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || bytes > MOST_BYTES {
        return Err(Failure::new(format!(
            "the other engine sent the file {name:?} of {bytes} bytes, which is refused"
        )));
    }
    Ok(folder.join(inner))
}

/// Takes `count` files, which become `folder`: what is there already stays until all have come.
///
/// # Errors
/// As [`take`].
pub fn replace(folder: &Path, count: u32, hear: &mut dyn FnMut() -> Result<Piece>) -> Result<()> {
    let failed = |error: io::Error| Failure::new(format!("cannot write {}: {error}", folder.display()));
    let new = place::temporary(folder);
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new).map_err(failed)?;
    let taken = take(&new, count, hear).and_then(|()| {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(failed)?;
        }
        fs::rename(&new, folder).map_err(failed)
    });
    if taken.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    taken
}

/// Word or part of a file from the other engine.
pub enum Piece {
    /// A word.
    Word(Word),
    /// Part of a file.
    Chunk(Vec<u8>),
}

/// Takes `count` files into `folder`.
///
/// # Errors
/// When the other engine says something else, or the disk refuses.
pub fn take(folder: &Path, count: u32, hear: &mut dyn FnMut() -> Result<Piece>) -> Result<()> {
    if count > MOST_FILES {
        return Err(Failure::new(format!("the other engine wants to send {count} files")));
    }
    for _ in 0..count {
        let Piece::Word(Word::File { name, bytes }) = hear()? else {
            return Err(Failure::new("the other engine sent no file where one was due"));
        };
        let path = inside(folder, &name, bytes)?;
        let failed = |error: io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = place::create_new(&path).map_err(failed)?;
        let mut left = bytes;
        while left > 0 {
            let Piece::Chunk(chunk) = hear()? else {
                return Err(Failure::new(format!("the other engine broke off in the file {name}")));
            };
            left = left
                .checked_sub(chunk.len() as u64)
                .ok_or_else(|| Failure::new(format!("the file {name} is too long")))?;
            file.write_all(&chunk).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Frame, parse};
    use super::*;

    fn pieces(frames: Vec<Vec<u8>>) -> impl FnMut() -> Result<Piece> {
        let mut frames = frames.into_iter();
        move || {
            let frame = frames.next().ok_or_else(|| Failure::new("nothing more"))?;
            match parse(&frame) {
                Ok(Frame::Word(word)) => Ok(Piece::Word(*word)),
                Ok(Frame::Chunk(bytes)) => Ok(Piece::Chunk(bytes.to_vec())),
                other => Err(Failure::new(format!("{other:?}"))),
            }
        }
    }

    #[test]
    fn a_folder_comes_whole() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("files")).unwrap();
        let long: Vec<u8> = (0..3 * CHUNK_BYTES).map(|byte| byte as u8).collect();
        fs::write(from.path().join("files/long"), &long).unwrap();
        fs::write(from.path().join("empty"), b"").unwrap();
        let files = list(from.path()).unwrap();
        assert_eq!(files, [PathBuf::from("empty"), PathBuf::from("files/long")]);
        let mut frames = Vec::new();
        for file in &files {
            send(&from.path().join(file), &file.display().to_string(), &mut |frame| frames.push(frame.to_vec()))
                .unwrap();
        }
        let copy = to.path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::write(copy.join("before"), b"x").unwrap();
        assert!(replace(&copy, 2, &mut pieces(frames[..2].to_vec())).is_err());
        assert!(copy.join("before").exists());
        replace(&copy, 2, &mut pieces(frames.clone())).unwrap();
        assert_eq!(list(to.path()).unwrap(), ["copy/empty", "copy/files/long"].map(PathBuf::from));
        take(to.path(), 2, &mut pieces(frames)).unwrap();
        assert_eq!(fs::read(to.path().join("files/long")).unwrap(), long);
        assert!(fs::read(to.path().join("empty")).unwrap().is_empty());
    }

    #[test]
    fn no_file_leaves_the_folder() {
        let to = tempfile::tempdir().unwrap();
        for name in ["../x", "/tmp/x", "", "a/../../x"] {
            let frames = vec![Word::File { name: name.into(), bytes: 0 }.to_frame()];
            assert!(take(to.path(), 1, &mut pieces(frames)).is_err(), "{name}");
        }
        let longer = vec![Word::File { name: "x".into(), bytes: 1 }.to_frame(), wire::chunk(b"ab")];
        assert!(take(to.path(), 1, &mut pieces(longer)).is_err());
        assert!(take(to.path(), u32::MAX, &mut pieces(Vec::new())).is_err());
    }
}
