// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The files of a simulation: none is read while it is written, and none is left half written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airpath_log::{place, show};

use crate::cli::wsim::WsimArgs;
use crate::error::{Failure, Result};
use crate::signals;
use crate::status::of_signal;
use crate::terminal::{finish, say};

/// Time between two words of progress.
const SILENT: Duration = Duration::from_secs(2);

/// A place that output goes to.
pub enum Output {
    /// Standard output.
    Standard,
    /// A device or a pipe.
    Direct(PathBuf),
    /// A file, which is replaced in one step.
    File(PathBuf),
}

/// The outputs of a simulation.
pub struct Outputs {
    /// The delivered ADUs.
    pub out: Output,
    /// The list of positions.
    pub positions: Option<Output>,
}

impl Output {
    fn at(path: &Path) -> Result<Output> {
        if is_standard(path) {
            return Ok(Output::Standard);
        }
        match place::file_behind(path) {
            Ok(Some(file)) => Ok(Output::File(file)),
            Ok(None) => Ok(Output::Direct(path.to_owned())),
            Err(error) => Err(Failure::unwritable(cannot_write_text(path, &error))),
        }
    }

    /// Calls `work` with what can be written to.
    ///
    /// # Errors
    /// Those of the system and of `work`; a file is then as it was.
    pub fn write(&self, work: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self {
            Output::Standard => work(&mut io::stdout().lock()),
            Output::Direct(path) => work(&mut place::output(path)?),
            Output::File(path) => place::replace_unnamed(path, |file| work(file)),
        }
    }

    fn temporary(&self) -> Option<PathBuf> {
        match self {
            Output::File(path) => Some(place::temporary(path)),
            Output::Standard | Output::Direct(_) => None,
        }
    }
}

/// The input, and its length if it is a file.
///
/// # Errors
/// When it cannot be opened.
pub fn input(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    if is_standard(path) {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let cannot = |error: io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if about.is_dir() {
        return Err(Failure::usage(format!("cannot read {}: it is a folder; name a file", path.display())));
    }
    Ok((Box::new(file), about.is_file().then_some(about.len())))
}

/// The outputs that the options name.
///
/// # Errors
/// When one cannot be written, or is a file that is read, or that the other output is.
pub fn outputs(args: &WsimArgs) -> Result<Outputs> {
    let named = [("--out", Some(&args.out)), ("--positions", args.positions.as_ref())];
    let read = [("--input", Some(&args.input)), ("--trace", args.trace.as_ref())];
    for (index, (option, path)) in named.iter().enumerate() {
        let Some(path) = path else { continue };
        for (other, its_path) in read.iter().chain(&named[..index]) {
            if its_path.is_some_and(|its_path| is_same(path, its_path)) {
                return Err(Failure::usage(format!(
                    "{option} {} is the file of {other}; name another file",
                    path.display()
                )));
            }
        }
    }
    if is_standard(&args.out) && args.positions.as_deref().is_some_and(is_standard) {
        return Err(Failure::usage("--out - and --positions - are both standard output; name a file for one of them"));
    }
    let positions = args.positions.as_deref().map(Output::at).transpose()?;
    Ok(Outputs { out: Output::at(&args.out)?, positions })
}

/// Removes what is half written when a signal asks this process to end.
///
/// # Errors
/// When signals cannot be waited for.
pub fn remove_on_interrupt(outputs: &Outputs) -> Result<()> {
    let all = [Some(&outputs.out), outputs.positions.as_ref()];
    let files: Vec<PathBuf> = all.into_iter().flatten().filter_map(Output::temporary).collect();
    signals::on_each(move |signal| {
        for file in &files {
            let _ = fs::remove_file(file);
        }
        say!("airpath: interrupted by {signal}; no output file was changed");
        std::process::exit(finish(of_signal(signal as i32)));
    })
}

/// The failure of writing to `output`.
pub fn cannot_write(output: &Output, error: &io::Error) -> Failure {
    Failure::unwritable(match output {
        Output::Standard => cannot_write_text(Path::new("-"), error),
        Output::Direct(path) | Output::File(path) => cannot_write_text(path, error),
    })
}

/// The message about a file that cannot be written.
pub fn cannot_write_text(path: &Path, error: &io::Error) -> String {
    let path = if is_standard(path) { "standard output".into() } else { path.display().to_string() };
    match error.kind() {
        io::ErrorKind::StorageFull => format!("cannot write {path}: {error}; free space there, or name another file"),
        _ => format!("cannot write {path}: {error}"),
    }
}

/// The input as messages call it.
pub fn shown(path: &Path) -> String {
    if is_standard(path) { "standard input".into() } else { path.display().to_string() }
}

/// True for the name of standard input and output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// True if both paths lead to one regular file, or would.
fn is_same(one: &Path, other: &Path) -> bool {
    if is_standard(one) || is_standard(other) {
        return false;
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => {
            let folder = |path: &Path| match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => fs::canonicalize(folder).ok(),
                _ => fs::canonicalize(".").ok(),
            };
            one.file_name() == other.file_name() && folder(one).is_some() && folder(one) == folder(other)
        }
        _ => false,
    }
}

/// Words about progress on standard error.
pub struct Progress {
    input_bytes: Option<u64>,
    next: Instant,
}

impl Progress {
    /// Progress through an input of this length, if it is known.
    pub fn new(input_bytes: Option<u64>) -> Progress {
        Progress { input_bytes, next: Instant::now() + SILENT }
    }

    /// Tells that so many bytes have been read, unless it told lately.
    pub fn tell(&mut self, read: u64) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + SILENT;
        match self.input_bytes {
            Some(whole) => say!("airpath: {} of {} sent", show::bytes(read), show::bytes(whole)),
            None => say!("airpath: {} sent", show::bytes(read)),
        }
    }
}
