// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run's folder, or a single capture, copied with its stamps moved.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use airpath_log::manifest::Status;
use airpath_log::{Clock, Manifest, files, folder, place};

use super::{Correction, FORMAT_VERSION, Move, RECORD, Request, Stamps, capture};
use crate::error::ClockError;
use crate::estimate::Host;
use crate::segments::HostSide;

/// The key of `settings` in `run.json` under which the correction is recorded.
const SETTING: &str = "clock_correction";

/// Corrects the folder of a run.
pub fn correct(request: &Request<'_>) -> Result<Correction, ClockError> {
    let original = request.original;
    let refuse =
        |what: &str, hint: &str| ClockError::File { path: original.to_owned(), what: what.into(), hint: hint.into() };
    if !original.join(files::MANIFEST).exists() {
        return Err(refuse("holds no run.json, so that it is no run", "name the folder of one run, or a capture"));
    }
    let mut manifest = Manifest::read(original)?;
    if manifest.clock != Clock::Live {
        return Err(refuse(
            &format!("is a run by the clock {}, whose stamps are no host's time", manifest.clock),
            "only live runs have stamps to correct",
        ));
    }
    let Some(results) = manifest.results.as_ref().filter(|_| manifest.status != Status::Running) else {
        return Err(refuse("is a run that goes on or was killed", "let it end, or correct its captures one by one"));
    };
    if manifest.settings.contains_key(SETTING) {
        return Err(refuse("was corrected already", "correct the original"));
    }
    let (start_ns, duration_ns) = (manifest.start_unix_ns, results.duration_ns);
    let recorded_at = side(request, manifest.host.clock.as_ref())?;
    let to_other = Move::new(request.estimate, recorded_at);
    let files = files(original)?;
    let mut work = Work::new(request, to_other, recorded_at);
    work.look(start_ns, original)?;
    work.look(start_ns.saturating_add(duration_ns), original)?;
    for name in files.iter().filter(|name| is_capture(name)) {
        work.look_through(name, &original.join(name))?;
    }
    let out = OutFolder::create(request.out, original)?;
    let moved_ns = to_other.moved(start_ns).ok_or(ClockError::Range)?;
    work.correction.original_start_unix_ns = Some(start_ns);
    work.correction.offset_ns = difference(moved_ns, start_ns)?;
    for name in &files {
        let (from, to) = (original.join(name), out.path.join(name));
        if let Some(parent) = to.parent() {
            place::make_folder(parent).map_err(|source| ClockError::io("create", parent, source))?;
        }
        if is_capture(name) {
            work.write(name, &from, &to)?;
        } else if name != Path::new(files::MANIFEST) {
            place::copy(&from, &to).map_err(|source| ClockError::io("copy", &from, source))?;
        }
    }
    manifest.start_unix_ns = moved_ns;
    let record = serde_json::to_value(&work.correction).map_err(|error| refuse(&error.to_string(), "report this"))?;
    manifest.settings.insert(SETTING.into(), record);
    manifest.write(&out.path)?;
    work.record(&out.path)?;
    out.keep();
    Ok(work.correction)
}

/// Corrects a capture by itself.
pub fn correct_capture(request: &Request<'_>) -> Result<Correction, ClockError> {
    let original = request.original;
    let name = PathBuf::from(original.file_name().unwrap_or_default());
    let recorded_at = side(request, None)?;
    let to_other = Move::new(request.estimate, recorded_at);
    let mut work = Work::new(request, to_other, recorded_at);
    work.look_through(&name, original)?;
    let out = OutFolder::create(request.out, original)?;
    work.write(&name, original, &out.path.join(&name))?;
    let stamps = work.correction.captures.values().next().copied().unwrap_or_default();
    work.correction.offset_ns = difference(stamps.corrected_first_unix_ns, stamps.first_unix_ns)?;
    work.record(&out.path)?;
    out.keep();
    Ok(work.correction)
}

/// The host at which `request` was recorded: as it was said, or as the run's own record of its host's
/// clock has it.
fn side(request: &Request<'_>, clock: Option<&serde_json::Value>) -> Result<HostSide, ClockError> {
    let estimate = request.estimate;
    let identity = clock.and_then(|clock| clock["identity"].as_str()).unwrap_or_default();
    let is = |host: &Host| !identity.is_empty() && host.identity == identity;
    let found = match (is(&estimate.local), is(&estimate.remote)) {
        (true, false) => Some(HostSide::Local),
        (false, true) => Some(HostSide::Remote),
        _ => None,
    };
    let foreign = !identity.is_empty()
        && found.is_none()
        && ![&estimate.local, &estimate.remote]
            .iter()
            .any(|host| host.identity == identity || host.identity.is_empty());
    match (request.recorded_at, found) {
        (Some(said), None) => Ok(said),
        (Some(said), Some(found)) if said == found => Ok(said),
        (Some(_), Some(found)) => Err(ClockError::File {
            path: request.original.to_owned(),
            what: format!("was recorded at the {} host of the estimate, as its run.json says", found.name()),
            hint: "leave --recorded-at out".into(),
        }),
        (None, Some(found)) => Ok(found),
        (None, None) if foreign => Err(ClockError::File {
            path: request.original.to_owned(),
            what: "was recorded at neither host of the estimate, or one has booted since".into(),
            hint: "take the estimate made between these hosts at that time; if this is it, say where the run was \
                   recorded with --recorded-at local or --recorded-at remote"
                .into(),
        }),
        (None, None) => Ok(HostSide::Local),
    }
}

fn difference(moved_ns: u64, unix_ns: u64) -> Result<i64, ClockError> {
    i64::try_from(i128::from(moved_ns) - i128::from(unix_ns)).map_err(|_| ClockError::Range)
}

fn is_capture(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "pcapng" || extension == "pcap")
}

/// Every file of the folder, by its name in it.
fn files(original: &Path) -> Result<Vec<PathBuf>, ClockError> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let path = original.join(&inner);
        let failed = |source| ClockError::io(ClockError::READ, &path, source);
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = inner.join(entry.file_name());
            match entry.file_type().map_err(failed)?.is_dir() {
                true => folders.push(name),
                false => files.push(name),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A correction in progress: its request, and its record.
struct Work<'a> {
    request: &'a Request<'a>,
    to_other: Move<'a>,
    correction: Correction,
}

impl<'a> Work<'a> {
    fn new(request: &'a Request<'a>, to_other: Move<'a>, recorded_at: HostSide) -> Work<'a> {
        let correction = Correction {
            format_version: FORMAT_VERSION,
            airpath_version: env!("CARGO_PKG_VERSION").into(),
            original: request.original.to_owned(),
            recorded_at,
            original_start_unix_ns: None,
            offset_ns: 0,
            drift_ppm: to_other.drift_ppm(),
            bound_ns: 0,
            extrapolated: false,
            captures: BTreeMap::new(),
            estimate: request.estimate.clone(),
        };
        Work { request, to_other, correction }
    }

    /// Takes note of a stamp of `path`; refuses one outside the estimate.
    fn look(&mut self, unix_ns: u64, path: &Path) -> Result<(), ClockError> {
        let outside = |what: String, hint: &str| ClockError::File { path: path.to_owned(), what, hint: hint.into() };
        if self.to_other.moved(unix_ns).is_none() {
            return Err(outside(
                "has stamps that would lie before 1970".into(),
                "check that it belongs to this estimate",
            ));
        }
        if !self.to_other.covers(unix_ns) {
            if !self.request.extrapolate {
                let (from, to) = self.to_other.interval().unwrap_or_default();
                let second = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
                let (before, after) = (from.saturating_sub(unix_ns), unix_ns.saturating_sub(to));
                return Err(outside(
                    format!(
                        "has a stamp at {} s since 1970, and the estimate holds from {} to {}: it is {} s too {}",
                        second(unix_ns),
                        second(from),
                        second(to),
                        second(before.max(after)),
                        if before > 0 { "early" } else { "late" }
                    ),
                    "measure while it is recorded, or say --extrapolate (the bound then supposes that the drift stays)",
                ));
            }
            self.correction.extrapolated = true;
        }
        self.correction.bound_ns = self.correction.bound_ns.max(self.to_other.bound_ns(unix_ns));
        Ok(())
    }

    /// Takes note of all stamps of a capture.
    fn look_through(&mut self, name: &Path, path: &Path) -> Result<(), ClockError> {
        let (mut count, mut first, mut last) = (0, u64::MAX, 0);
        let mut change = |unix_ns: u64| {
            (count, first, last) = (count + 1, unix_ns.min(first), unix_ns.max(last));
            Ok(unix_ns)
        };
        let read = |source: io::Error| unreadable(path, source);
        let file = File::open(path).map_err(|source| ClockError::io(ClockError::READ, path, source))?;
        capture::copy(&mut BufReader::with_capacity(1 << 16, file), &mut io::sink(), &mut change).map_err(read)?;
        let mut stamps = Stamps { count, ..Stamps::default() };
        if count > 0 {
            self.look(first, path)?;
            self.look(last, path)?;
            let moved = |unix_ns| self.to_other.moved(unix_ns).unwrap_or(0);
            stamps.first_unix_ns = first;
            stamps.last_unix_ns = last;
            stamps.corrected_first_unix_ns = moved(first);
            stamps.corrected_last_unix_ns = moved(last);
        }
        self.correction.captures.insert(name.to_string_lossy().into_owned(), stamps);
        Ok(())
    }

    fn write(&self, name: &Path, from: &Path, to: &Path) -> Result<(), ClockError> {
        let file = place::open_regular(from).map_err(|source| ClockError::io(ClockError::READ, from, source))?;
        let new = place::create_new(to).map_err(|source| ClockError::io("write", to, source))?;
        let mut out = BufWriter::with_capacity(1 << 16, new);
        let mut left = self.correction.captures.get(&*name.to_string_lossy()).map_or(0, |stamps| stamps.count);
        let mut change = |unix_ns: u64| {
            left = left.checked_sub(1).ok_or_else(|| io::Error::other("it grew while it was read"))?;
            self.to_other.moved(unix_ns).ok_or_else(|| io::Error::other("a stamp lies before 1970"))
        };
        capture::copy(&mut BufReader::with_capacity(1 << 16, file), &mut out, &mut change)
            .and_then(|()| out.flush())
            .map_err(|source| ClockError::io("write", to, source))
    }

    fn record(&self, out: &Path) -> Result<(), ClockError> {
        let path = out.join(RECORD);
        let mut text = serde_json::to_vec_pretty(&self.correction).expect("numbers and words make JSON");
        text.push(b'\n');
        place::create_new(&path)
            .and_then(|mut file| file.write_all(&text))
            .map_err(|source| ClockError::io("write", &path, source))
    }
}

/// A capture whose content is at fault rather than the disk.
fn unreadable(path: &Path, source: io::Error) -> ClockError {
    if source.kind() != io::ErrorKind::InvalidData {
        return ClockError::io(ClockError::READ, path, source);
    }
    let hint = "name a run or a capture that was written to its end".into();
    ClockError::File { path: path.to_owned(), what: format!("cannot be corrected: {source}"), hint }
}

/// The folder of the copy, which goes again unless it is kept.
struct OutFolder {
    path: PathBuf,
    existed: bool,
    keep: bool,
}

impl OutFolder {
    fn create(path: &Path, original: &Path) -> Result<OutFolder, ClockError> {
        let existed = path.exists();
        folder::create(path)?;
        let out = OutFolder { path: path.to_owned(), existed, keep: false };
        let resolved =
            |path: &Path| fs::canonicalize(path).map_err(|source| ClockError::io(ClockError::READ, path, source));
        if resolved(path)?.starts_with(resolved(original)?) {
            return Err(ClockError::File {
                path: path.to_owned(),
                what: "lies in the original, which is never changed".into(),
                hint: "name another folder with --out".into(),
            });
        }
        Ok(out)
    }

    fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // It was empty before, so that everything in it is this copy's.
        let _ = fs::remove_dir_all(&self.path);
        if self.existed {
            let _ = fs::create_dir(&self.path);
        }
    }
}
