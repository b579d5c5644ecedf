// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The logs of the parts of a path in one order, batch by batch: memory does not grow with the run.

use std::path::Path;
use std::sync::Arc;

use airpath_core::{Cause, Direction, End, Event, EventKind, Origin, Stage, Time};
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, cast::AsArray};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;

use super::{PartHops, Place};
use crate::error::LogError;
use crate::files;
use crate::places::Places;
use crate::read::arrow::ArrowLog;
use crate::tables::events::{EventBatch, EventColumns, EventRow, Left, WHOLE_PATH};
use crate::writer::sink::Sink;
use crate::writer::table::Table;

/// The column of times by which rows are ordered.
const TIME: &str = "time_ns";
/// Columns of an input that are times of the run.
const INPUT_TIMES: [&str; 3] = [TIME, "read_ns", "kernel_ns"];

/// Change of a batch of rows, which the file at the path holds.
type Change<'a> = Box<dyn FnMut(&RecordBatch, &Path) -> Result<RecordBatch, LogError> + 'a>;

/// A table of one part, its rows as the whole has them.
struct Source<'a> {
    path: std::path::PathBuf,
    log: ArrowLog,
    /// The columns of its rows as the whole has them.
    schema: SchemaRef,
    change: Change<'a>,
    batch: Option<RecordBatch>,
    row: usize,
}

impl Source<'_> {
    /// Time of the next row; none after the last.
    fn next_ns(&mut self) -> Result<Option<u64>, LogError> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            let Some(batch) = self.log.next() else { return Ok(None) };
            self.batch = Some((self.change)(&batch?, &self.path)?);
            self.row = 0;
        }
        Ok(self.batch.as_ref().map(|batch| times(batch)[self.row]))
    }
}

/// The times of the rows of `batch`.
fn times(batch: &RecordBatch) -> &[u64] {
    let column = batch.column_by_name(TIME).and_then(|column| column.as_primitive_opt::<UInt64Type>());
    column.map(|column| column.values().as_ref()).unwrap_or_default()
}

/// Writes the rows of all sources into `path`, each in its own order and all by their times; of those at one time
/// that of the first source comes first. Returns the number of rows.
fn merge(mut sources: Vec<Source<'_>>, path: &Path) -> Result<u64, LogError> {
    let failed = |error: ArrowError| LogError::content(path, error.to_string(), "report this with the two parts");
    let Some(schema) = sources.first().map(|source| Arc::clone(&source.schema)) else { return Ok(0) };
    // Where nothing was recorded the file is there all the same.
    let mut table = Table::of_any_words(Sink::create(path.to_owned())?, &schema);
    loop {
        let mut rows: Vec<(usize, usize)> = Vec::new();
        // Those that have rows left, each with its batch.
        let mut active: Vec<usize> = Vec::new();
        for (number, source) in sources.iter_mut().enumerate() {
            if source.next_ns()?.is_some() {
                active.push(number);
            }
        }
        if active.is_empty() {
            break;
        }
        let batches: Vec<RecordBatch> = active.iter().filter_map(|number| sources[*number].batch.clone()).collect();
        let times: Vec<&[u64]> = batches.iter().map(times).collect();
        let mut at: Vec<usize> = active.iter().map(|number| sources[*number].row).collect();
        // Until one of the batches is at its end.
        while at.iter().zip(&times).all(|(row, times)| *row < times.len()) {
            let first = (0..at.len()).min_by_key(|source| times[*source][at[*source]]).unwrap_or(0);
            rows.push((first, at[first]));
            at[first] += 1;
        }
        for (number, row) in active.iter().zip(at) {
            sources[*number].row = row;
        }
        let columns = (0..schema.fields().len()).map(|column| {
            let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            interleave(&arrays, &rows)
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>().map_err(failed)?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(failed)?;
        table.write(&batch);
    }
    let rows = table.rows();
    match table.finish() {
        (Some(failure), _) => Err(LogError::content(path, failure, "free space, and keep the parts")),
        (None, _) => Ok(rows),
    }
}

fn word<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, word: &str) -> Option<T> {
    all.iter().copied().find(|value| name(*value) == word)
}

/// The event of `row` in the whole path; none where the whole path has no such event.
fn event(row: &EventRow<'_>, place: Place<'_>, places: &Places, at: Time) -> Option<Event> {
    let direction = word(&Direction::ALL, Direction::name, row.direction)?;
    let mut kind = word(EventKind::ALL, EventKind::name, row.kind)?;
    let mut hop = row.hop;
    if hop == WHOLE_PATH {
        match kind {
            EventKind::Offered if place.comes_from_other(direction) => return None,
            EventKind::Delivered if place.goes_to_other(direction) => {
                kind = EventKind::Passed;
                hop = place.last_hop(direction);
            }
            // All parts are in one state.
            EventKind::StateChanged | EventKind::ParameterSet if !place.is_first => return None,
            _ => {}
        }
    }
    let hops = places.hops();
    let hop = if hop == WHOLE_PATH { Event::WHOLE_PATH } else { hops.iter().position(|name| name == hop)? as u16 };
    Some(Event {
        at,
        pdu: row.pdu,
        bits: row.bits,
        queue_bytes: row.queue_bytes,
        queue_packets: row.queue_packets,
        flow: row.flow,
        hop,
        state: places.states().iter().position(|name| name == row.state).unwrap_or(0) as u16,
        direction,
        stage: word(Stage::ALL, Stage::name, row.stage)?,
        kind,
        cause: word(Cause::ALL, Cause::name, row.cause)?,
        origin: word(&Origin::ALL, Origin::name, row.origin)?,
    })
}

/// A time of the part of this number, on the clock of the first part.
pub type Moved<'a> = &'a dyn Fn(usize, u64) -> u64;

/// Merges the event logs in `folders`, those of the `parts` from the client on, into `out`. Returns the number of
/// events.
///
/// # Errors
/// When a log cannot be read or written.
pub fn merge_events(
    folders: &[&Path],
    out: &Path,
    parts: &[PartHops],
    states: &[String],
    moved: Moved<'_>,
) -> Result<u64, LogError> {
    let places = Places::of_path(parts.iter().flat_map(|part| part.hops.clone()).collect(), states.to_vec());
    let mut sources = Vec::new();
    for (number, (folder, place)) in folders.iter().zip(Place::all(parts)).enumerate() {
        let path = folder.join(files::EVENTS);
        let log = ArrowLog::open(&path)?;
        let (mut columns, places) = (EventColumns::new(&places), &places);
        let schema = Arc::clone(columns.schema());
        let time = move |ns: u64| if number == 0 { ns } else { moved(number, ns) };
        let change = move |batch: &RecordBatch, path: &Path| {
            for row in EventBatch::new(batch, path)?.rows() {
                let Some(event) = event(&row, place, places, Time::from_nanos(time(row.time_ns))) else {
                    continue;
                };
                let left = row.emitted_ns.filter(|_| event.kind == EventKind::Delivered).map(|at_ns| Left {
                    at_ns: time(at_ns),
                    flips: row.flipped_bits.unwrap_or_default(),
                    kept_bytes: row.kept_bytes,
                });
                columns.push(&event, left, places);
            }
            Ok(columns.take())
        };
        sources.push(Source { path, log, schema, change: Box::new(change), batch: None, row: 0 });
    }
    merge(sources, &out.join(files::EVENTS))
}

/// Merges the input logs likewise: what came in at the ends of the path, and the commands.
///
/// # Errors
/// When a log cannot be read or written.
pub fn merge_inputs(folders: &[&Path], out: &Path, parts: &[PartHops], moved: Moved<'_>) -> Result<u64, LogError> {
    let mut sources = Vec::new();
    for (number, (folder, place)) in folders.iter().zip(Place::all(parts)).enumerate() {
        let path = folder.join(files::INPUT);
        let log = ArrowLog::open(&path)?;
        // What comes from another part came in there.
        let is_own = move |port: u16| {
            let end = [End::Client, End::Server].into_iter().find(|end| end.port().0 == port);
            end.is_none_or(|end| !place.comes_from_other(end.sends()))
        };
        let change = move |batch: &RecordBatch, path: &Path| {
            let failed = |error: ArrowError| LogError::content(path, error.to_string(), "report this with the file");
            let ports = batch.column_by_name("port").and_then(|ports| ports.as_primitive_opt::<UInt16Type>());
            let keep: BooleanArray = (0..batch.num_rows())
                .map(|row| {
                    let port = ports.filter(|ports| ports.is_valid(row)).map(|ports| ports.value(row));
                    Some(port.map_or(place.is_first, is_own))
                })
                .collect();
            let batch = filter_record_batch(batch, &keep).map_err(failed)?;
            if place.is_first {
                return Ok(batch);
            }
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
                match column.as_primitive_opt::<UInt64Type>() {
                    Some(column) if INPUT_TIMES.contains(&field.name().as_str()) => {
                        Arc::new(column.unary::<_, UInt64Type>(|ns| moved(number, ns))) as ArrayRef
                    }
                    _ => column.clone(),
                }
            });
            RecordBatch::try_new(schema.clone(), columns.collect()).map_err(failed)
        };
        let schema = log.schema();
        sources.push(Source { path, log, schema, change: Box::new(change), batch: None, row: 0 });
    }
    merge(sources, &out.join(files::INPUT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Pdu;

    fn write(folder: &Path, hops: &[&str], rows: &[(u64, Direction, EventKind, u64, u16)]) {
        let places = Places::of_path(hops.iter().map(|hop| (*hop).into()).collect(), vec!["initial".into()]);
        let mut columns = EventColumns::new(&places);
        let path = folder.join(files::EVENTS);
        let mut table = Table::new(Sink::create(path).unwrap(), columns.schema());
        for (at, direction, kind, id, hop) in rows {
            let pdu = Pdu { id: *id, len: 100, ..Pdu::default() };
            let event = Event::of_path(Time::from_nanos(*at), *direction, *kind, Cause::None, &pdu, 0);
            let left = (*kind == EventKind::Delivered).then_some(Left { at_ns: at + 1, flips: &[], kept_bytes: None });
            columns.push(&Event { hop: *hop, ..event }, left, &places);
            // Batches of one row each.
            table.write(&columns.take());
        }
        assert_eq!(table.finish(), (None, None));
    }

    #[test]
    fn parts_without_an_event_leave_a_table_without_rows() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [near, far, out] = folders.each_ref().map(|folder| folder.path());
        write(near, &["radio"], &[]);
        write(far, &["core"], &[]);
        let parts = super::super::parts(&["radio", "core"]);
        let rows = merge_events(&[near, far], out, &parts, &["initial".into()], &|_, ns| ns).unwrap();
        assert_eq!((rows, ArrowLog::open(&out.join(files::EVENTS)).unwrap().count()), (0, 0));
    }

    #[test]
    fn the_events_of_all_parts_are_those_of_one_path() {
        use Direction::{Downlink, Uplink};
        use EventKind::{Delivered, Enqueued, Offered, StateChanged};
        const PATH: u16 = Event::WHOLE_PATH;
        let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
        let [near, middle, far, out] = folders.each_ref().map(|folder| folder.path());
        write(
            near,
            &["radio"],
            &[
                (10, Uplink, Offered, 1, PATH),
                (10, Uplink, Enqueued, 1, 0),
                (20, Uplink, StateChanged, 0, PATH),
                (30, Uplink, Delivered, 1, PATH),
                (90, Downlink, Offered, 500, PATH),
                (95, Downlink, Delivered, 500, PATH),
            ],
        );
        write(
            middle,
            &["wire"],
            &[
                (20, Uplink, StateChanged, 0, PATH),
                (32, Uplink, Offered, 1, PATH),
                (34, Uplink, Delivered, 1, PATH),
                (82, Downlink, Offered, 500, PATH),
                (84, Downlink, Delivered, 500, PATH),
            ],
        );
        // The far clock is 1000 ahead.
        write(
            far,
            &["core"],
            &[
                (1_020, Uplink, StateChanged, 0, PATH),
                (1_040, Uplink, Offered, 1, PATH),
                (1_040, Uplink, Enqueued, 1, 0),
                (1_060, Uplink, Delivered, 1, PATH),
                (1_070, Downlink, Offered, 500, PATH),
                (1_080, Downlink, Delivered, 500, PATH),
            ],
        );
        let parts = super::super::parts(&["radio", "wire", "core"]);
        let moved = |part: usize, ns: u64| if part == 2 { ns - 1_000 } else { ns };
        let rows = merge_events(&[near, middle, far], out, &parts, &["initial".into()], &moved).unwrap();
        let mut told = Vec::new();
        for batch in ArrowLog::open(&out.join(files::EVENTS)).unwrap() {
            let batch = EventBatch::new(&batch.unwrap(), out).unwrap();
            told.extend(batch.rows().map(|row| (row.time_ns, row.hop.to_owned(), row.kind.to_owned(), row.emitted_ns)));
        }
        let expected = [
            (10, "path", "offered", None),
            (10, "radio", "enqueued", None),
            (20, "path", "state_changed", None),
            (30, "radio", "passed", None),
            (34, "wire", "passed", None),
            (40, "core", "enqueued", None),
            (60, "path", "delivered", Some(61)),
            (70, "path", "offered", None),
            (80, "core", "passed", None),
            (84, "wire", "passed", None),
            (95, "path", "delivered", Some(96)),
        ];
        let expected = expected.map(|(at, hop, kind, emitted)| (at, hop.to_owned(), kind.to_owned(), emitted));
        assert_eq!(told, expected);
        assert_eq!(rows, expected.len() as u64);
    }
}
