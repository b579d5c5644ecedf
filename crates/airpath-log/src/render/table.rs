// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Events as an aligned table, or one JSON object a line.

use std::io::{BufWriter, Write};
use std::path::Path;

use airpath_core::{Cause, EventKind, Stage, background_number};

use super::filter::{Filter, check_hop};
use super::{RenderError, Rendered, tolerate};
use crate::files;
use crate::read::open_events;
use crate::tables::events::{EventBatch, EventRow};

/// Sees to it that what `filter` names is in the log in `folder`.
pub(super) fn check_names(folder: &Path, filter: &Filter) -> Result<(), RenderError> {
    let Some(hop) = &filter.hop else { return Ok(()) };
    // Every batch carries the names of all hops, whether something happened there or not.
    if let Some(batch) = open_events(folder)?.next() {
        check_hop(hop, &EventBatch::new(&batch?, &folder.join(files::EVENTS))?.hop_names())?;
    }
    Ok(())
}

/// Calls `row` for each event in `folder` that passes `filter`, with the width of the hop column.
pub(super) fn for_each_event(
    folder: &Path,
    filter: &Filter,
    mut row: impl FnMut(&EventRow<'_>, usize) -> Result<(), RenderError>,
) -> Result<Rendered, RenderError> {
    let log = open_events(folder)?;
    let path = folder.join(files::EVENTS);
    let mut rendered = Rendered { lines: 0, torn_bytes: log.torn_bytes() };
    for batch in log {
        let batch = EventBatch::new(&batch?, &path)?;
        let width = batch.hop_width();
        for event in batch.rows().filter(|event| filter.passes(event)) {
            row(&event, width)?;
            rendered.lines += 1;
        }
    }
    Ok(rendered)
}

fn width(words: impl Iterator<Item = &'static str>, heading: &str) -> usize {
    words.map(str::len).max().unwrap_or(0).max(heading.len())
}

/// Writes the events of the run in `folder` that pass `filter` as a table, times in seconds since the
/// run began.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn events_table(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    check_names(folder, filter)?;
    tolerate(write_table(folder, filter, out))
}

fn write_table(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let stages = width(Stage::ALL.iter().map(|stage| stage.name()), "stage");
    let kinds = width(EventKind::ALL.iter().map(|kind| kind.name()), "kind");
    let causes = width(Cause::ALL.iter().map(|cause| cause.name()), "cause");
    let mut headed = false;
    let line = |out: &mut BufWriter<&mut dyn Write>, hops: usize, cells: [&str; 10]| {
        let [time, hop, direction, stage, kind, cause, pdu, bits, queue, state] = cells;
        let hops = hops.max("hop".len());
        writeln!(
            out,
            "{time:>15}  {hop:<hops$}  {direction:<9}  {stage:<stages$}  {kind:<kinds$}  {cause:<causes$}  \
             {pdu:>8}  {bits:>8}  {queue:>12}  {state}"
        )
    };
    let rendered = for_each_event(folder, filter, |event, hops| {
        if !headed {
            headed = true;
            let heads = ["time/s", "hop", "direction", "stage", "kind", "cause", "pdu", "bits", "queue/B", "state"];
            line(&mut out, hops, heads)?;
        }
        let queue = match (event.queue_packets, event.queue_bytes) {
            (0, 0) => String::new(),
            (packets, bytes) => format!("{packets}/{bytes}"),
        };
        let time = seconds(event.time_ns);
        let pdu = match (event.pdu, background_number(event.pdu)) {
            (0, _) => String::new(),
            // The number of the load in the scenario, and of the packet, both from 0.
            (_, Some((load, number))) => format!("b{load}.{number}"),
            (pdu, None) => pdu.to_string(),
        };
        let bits = event.bits.to_string();
        let cells =
            [&time, event.hop, event.direction, event.stage, event.kind, event.cause, &pdu, &bits, &queue, event.state];
        line(&mut out, hops, cells)?;
        Ok(())
    })?;
    out.flush()?;
    Ok(rendered)
}

/// Writes the events of the run in `folder` that pass `filter`, one JSON object a line, with the
/// names of the columns of `events.arrow`.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn events_json(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    check_names(folder, filter)?;
    tolerate(write_json(folder, filter, out))
}

fn write_json(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let rendered = for_each_event(folder, filter, |event, _| {
        serde_json::to_writer(&mut out, event).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(rendered)
}

/// Nanoseconds as seconds with nine decimals.
pub(super) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}
