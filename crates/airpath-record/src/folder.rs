// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The folder of a recording. Everything is written as soon as it is known, so that a recording that was killed
//! keeps the phases that had come to their end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airpath_log::place;

use crate::analysis::{Analysis, analyse};
use crate::estimate::trains;
use crate::recording::{FORMAT_VERSION, Kind, Part, Recording, Way};
use crate::records::Packets;
use crate::scenario;

/// Name of the file that describes the recording.
pub const RECORDING: &str = "recording.json";
/// Name of the file with the estimates.
pub const ESTIMATES: &str = "estimates.json";
/// Name of the scenario.
pub const SCENARIO: &str = "scenario.toml";

/// Reason for which a folder cannot take a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFolder {
    /// Files are in it.
    NotEmpty(String),
    /// The system does not let it be written.
    Unwritable(String),
}

fn cannot_make(path: &Path, error: &io::Error) -> NoFolder {
    NoFolder::Unwritable(format!("cannot make {}: {error}; name another folder with --out", path.display()))
}

/// A folder that is written.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder; one that exists must be empty.
    ///
    /// # Errors
    /// A folder that cannot be made or is not empty, and how to mend it.
    pub fn create(path: &Path) -> Result<Folder, NoFolder> {
        place::make_folder(path).map_err(|error| cannot_make(path, &error))?;
        Folder::check(path)?;
        Ok(Folder { path: path.to_owned() })
    }

    /// Looks whether `path` may be made a folder of a recording: it is not there, or is an empty folder.
    ///
    /// # Errors
    /// A folder that is not empty or cannot be read, and how to mend it.
    pub fn check(path: &Path) -> Result<(), NoFolder> {
        match place::is_empty(path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(NoFolder::NotEmpty(format!(
                "{} is not empty; name a new folder with --out, so that no recording is lost",
                path.display()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(cannot_make(path, &error)),
        }
    }

    /// Writes one file in one step.
    ///
    /// # Errors
    /// The file, what the system says, and how to mend it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path.join(name);
        place::replace(&path, |file| file.write_all(text.as_bytes())).map_err(|error| {
            format!(
                "cannot write {}: {error}; free space there, or record into another folder. What was recorded before \
                 is kept",
                path.display()
            )
        })
    }

    /// Writes the packets of one direction of a phase.
    ///
    /// # Errors
    /// See [`Folder::write`].
    pub fn packets(&self, part: &Part, packets: &Packets) -> Result<(), String> {
        self.write(&part.file, &packets.csv())
    }

    /// Writes what is known of the recording.
    ///
    /// # Errors
    /// See [`Folder::write`].
    pub fn recording(&self, recording: &Recording) -> Result<(), String> {
        self.write(RECORDING, &pretty(recording))
    }

    /// Estimates the path, and writes estimates, traces and scenario.
    ///
    /// # Errors
    /// See [`Folder::write`].
    pub fn conclude(&self, recording: &Recording, packets: &[Packets]) -> Result<Analysis, String> {
        let analysis = analyse(recording, packets);
        for way in Way::ALL {
            if let Some(trace) = analysis.of(way).and_then(scenario::trace) {
                self.write(&scenario::trace_file(way), &trace)?;
            }
            if let Some(trains) = analysis.of(way).and_then(|estimates| estimates.trains.as_ref()) {
                self.write(&scenario::light_file(way), &trains::text(trains))?;
            }
        }
        for (part, these) in recording.parts.iter().zip(packets) {
            if part.load == Kind::Light {
                self.write(&format!("{}-losses.txt", part.direction.name()), &these.error_trace())?;
            }
        }
        self.write(ESTIMATES, &pretty(&analysis))?;
        self.write(SCENARIO, &scenario::scenario(recording, &analysis))?;
        Ok(analysis)
    }
}

fn pretty(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("numbers and words make JSON");
    text.push('\n');
    text
}

/// Reads the recording in `path`, and opens the folder for new estimates.
///
/// # Errors
/// The file that cannot be read or is damaged, and where.
pub fn read(path: &Path) -> Result<(Folder, Recording, Vec<Packets>), String> {
    let load = |name: &str| {
        let file = path.join(name);
        place::read(&file).map_err(|error| {
            format!(
                "cannot read {}: {error}; name the folder of a recording that `airpath record` made",
                file.display()
            )
        })
    };
    let damaged = |name: &str, what: String| format!("{}: {what}; record again", path.join(name).display());
    let recording: Recording =
        serde_json::from_slice(&load(RECORDING)?).map_err(|error| damaged(RECORDING, error.to_string()))?;
    if recording.format_version != FORMAT_VERSION {
        let what = format!("format {}, and this Airpath reads format {FORMAT_VERSION}", recording.format_version);
        return Err(damaged(RECORDING, what));
    }
    let mut packets = Vec::new();
    for part in &recording.parts {
        if part.file.contains('/') || part.packet_bytes == 0 {
            return Err(damaged(RECORDING, format!("`{}` is no file of packets", part.file)));
        }
        let text = String::from_utf8(load(&part.file)?).map_err(|_| damaged(&part.file, "is not text".into()))?;
        packets.push(Packets::read_csv(part.packet_bytes, &text).map_err(|what| damaged(&part.file, what))?);
    }
    Ok((Folder { path: path.to_owned() }, recording, packets))
}
