// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Logs of one host brought onto the clock of the other.

pub mod capture;
mod folder;
mod stamps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ClockError;
use super::estimate::Estimate;
use super::segments::HostSide;
pub use stamps::Move;

/// The name of the file in which a correction is recorded, next to the corrected files.
pub const RECORD: &str = "correction.json";
/// The version of the format of that file.
pub const FORMAT_VERSION: u32 = 1;

/// A request for a correction.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The folder of a run, or a capture.
    pub original: &'a Path,
    /// The estimate.
    pub estimate: &'a Estimate,
    /// The host at which it was recorded; none to find out from the run.
    pub recorded_at: Option<HostSide>,
    /// True to also move stamps outside the time of the estimate.
    pub extrapolate: bool,
    /// The folder of the copy.
    pub out: &'a Path,
}

/// Record of a correction: the content of [`RECORD`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Correction {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of Airpath that corrected.
    pub airpath_version: String,
    /// The folder or capture that was corrected.
    pub original: PathBuf,
    /// The host whose clock stamped the original.
    pub recorded_at: HostSide,
    /// The beginning of the run by that clock; none for a capture by itself.
    pub original_start_unix_ns: Option<u64>,
    /// Correction of the first stamp, in ns.
    pub offset_ns: i64,
    /// Drift of the clock of the copy relative to that of the original, in parts per million; positive if
    /// faster.
    pub drift_ppm: f64,
    /// No stamp is farther off than this.
    pub bound_ns: u64,
    /// True if any stamp is outside the time of the estimate.
    pub extrapolated: bool,
    /// The captures.
    pub captures: BTreeMap<String, Stamps>,
    /// The estimate by which it was done.
    pub estimate: Estimate,
}

/// The stamps of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stamps {
    /// Number of stamps.
    pub count: u64,
    /// The first in time, as it was; 0 where there is none.
    pub first_unix_ns: u64,
    /// The last in time, as it was.
    pub last_unix_ns: u64,
    /// The first as it is now.
    pub corrected_first_unix_ns: u64,
    /// The last as it is now.
    pub corrected_last_unix_ns: u64,
}

/// Writes the copy.
///
/// # Errors
/// When there is nothing to correct, stamps lie outside the estimate, or something cannot be read or
/// written. Nothing of the copy is left then.
pub fn correct(request: &Request<'_>) -> Result<Correction, ClockError> {
    let kind = std::fs::metadata(request.original)
        .map_err(|source| ClockError::io(ClockError::READ, request.original, source))?;
    if kind.is_dir() { folder::correct(request) } else { folder::correct_capture(request) }
}
