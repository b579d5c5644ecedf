// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The files of a measurement.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use airpath_log::{folder, place};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::error::{Result, TimingError};
use crate::measure::Measurement;
use crate::report::{FILE, SAMPLES};

/// Takes the folder `path`, which must be empty, before anything is measured.
///
/// # Errors
/// When it holds anything or cannot be made or written.
pub fn take(path: &Path) -> Result<()> {
    folder::create(path).map_err(|error| TimingError::System(error.to_string()))
}

/// Gives the folder back that was taken for nothing; `whole` if it was made for it.
pub fn give_back(path: &Path, whole: bool) {
    // What is left is empty, and the failure before is what matters.
    let _ = folder::take_back(path, whole);
}

/// Writes `measurement` into the folder `path`: the report last, so that where it is, all is.
///
/// # Errors
/// When a file cannot be written; nothing of it is left then.
pub fn write(path: &Path, measurement: &Measurement) -> Result<()> {
    put(path, SAMPLES, |file| write_samples(file, measurement))?;
    let report = put(path, FILE, |mut file| {
        serde_json::to_writer_pretty(&mut file, &measurement.report)?;
        file.write_all(b"\n")?;
        file.flush()
    });
    // Samples alone are no measurement, and would keep the folder from being taken again.
    report.inspect_err(|_| drop(fs::remove_file(path.join(SAMPLES))))
}

fn put(folder: &Path, name: &str, write: impl FnOnce(io::BufWriter<&File>) -> io::Result<()>) -> Result<()> {
    let path = folder.join(name);
    place::replace(&path, |file| write(io::BufWriter::new(file))).map_err(|error| {
        TimingError::System(format!(
            "cannot write {}: {error}; free space there, or name another folder with --out",
            path.display()
        ))
    })
}

fn write_samples(file: io::BufWriter<&File>, measurement: &Measurement) -> io::Result<()> {
    let column = |name: &str, kind: DataType| Field::new(name, kind, false);
    let schema = Arc::new(Schema::new(vec![
        column("series", DataType::UInt32),
        column("request", DataType::UInt32),
        column("requested_ns", DataType::UInt64),
        column("actual_ns", DataType::UInt64),
    ]));
    let as_io = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    };
    let mut writer = FileWriter::try_new(file, &schema).map_err(as_io)?;
    for (series, actual_ns) in measurement.actual_ns.iter().enumerate().filter(|(_, actual_ns)| !actual_ns.is_empty()) {
        let rows = actual_ns.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(vec![series as u32; rows])),
            Arc::new(UInt32Array::from_iter_values(0..rows as u32)),
            Arc::new(UInt64Array::from(measurement.requested_ns[..rows].to_vec())),
            Arc::new(UInt64Array::from(actual_ns.clone())),
        ];
        writer.write(&RecordBatch::try_new(schema.clone(), columns).map_err(as_io)?).map_err(as_io)?;
    }
    writer.finish().map_err(as_io)?;
    writer.get_mut().flush()
}
