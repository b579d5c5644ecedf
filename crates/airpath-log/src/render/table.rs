// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Events as an aligned table, or one JSON object a line.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::Path;

use airpath_core::{Cause, EventKind, PduId, Stage, background_number};

use super::contents::Contents;
use super::filter::{Filter, check_name};
use super::{RenderError, Rendered, tolerate};
use crate::batch::InputKind;
use crate::files;
use crate::read::{open_events, open_inputs};
use crate::tables::events::{EventBatch, EventRow};
use crate::tables::inputs::InputBatch;

/// Sees to it that what `filter` names is in the log in `folder`.
pub(super) fn check_names(folder: &Path, filter: &Filter) -> Result<(), RenderError> {
    if filter.hop.is_none() && filter.user.is_none() && filter.bearer.is_none() {
        return Ok(());
    }
    // Every batch carries the names of all hops, bearers and users, whether something happened there or not.
    if let Some(batch) = open_events(folder)?.next() {
        let batch = EventBatch::new(&batch?, &folder.join(files::EVENTS))?;
        if let Some(hop) = &filter.hop {
            check_name("hop", hop, &batch.hop_names())?;
        }
        if let Some(bearer) = &filter.bearer {
            check_name("bearer", bearer, &batch.bearer_names())?;
        }
        if let Some(user) = &filter.user {
            check_name("user", user, &batch.user_names())?;
        }
    }
    Ok(())
}

/// Widths of the columns of names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    hop: usize,
    /// 0 in a run of one user without a name.
    user: usize,
    /// 0 in a run without bearers.
    bearer: usize,
}

/// Calls `row` for each event in `folder` that passes `filter`, with the widths of the columns of names.
pub(super) fn for_each_event(
    folder: &Path,
    filter: &Filter,
    mut row: impl FnMut(&EventRow<'_>, Widths) -> Result<(), RenderError>,
) -> Result<Rendered, RenderError> {
    let chosen = chosen(folder, filter)?;
    let wanted =
        |event: &EventRow<'_>| filter.passes(event) && chosen.as_ref().is_none_or(|chosen| chosen.contains(&event.pdu));
    let log = open_events(folder)?;
    let path = folder.join(files::EVENTS);
    let mut rendered = Rendered { lines: 0, torn_bytes: log.torn_bytes() };
    for batch in log {
        let batch = EventBatch::new(&batch?, &path)?;
        let widths = Widths { hop: batch.hop_width(), user: batch.user_width(), bearer: batch.bearer_width() };
        for event in batch.rows().filter(wanted) {
            row(&event, widths)?;
            rendered.lines += 1;
        }
    }
    Ok(rendered)
}

/// The packets that match the filter of packets, if there is one: events have no headers, arrivals do.
fn chosen(folder: &Path, filter: &Filter) -> Result<Option<HashSet<PduId>>, RenderError> {
    if filter.packets.is_none() {
        return Ok(None);
    }
    let path = folder.join(files::INPUT);
    let (mut chosen, mut contents) = (HashSet::new(), Contents::open(folder)?);
    for batch in open_inputs(folder)? {
        let batch = InputBatch::new(&batch?, &path)?;
        for input in batch.rows().filter(|input| input.kind == InputKind::Offer) {
            if filter.packet(&input, contents.of(&input)) {
                chosen.extend(input.pdu);
            }
        }
    }
    Ok(Some(chosen))
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
    let line = |out: &mut BufWriter<&mut dyn Write>, widths: Widths, cells: [&str; 12]| {
        let [time, user, hop, bearer, direction, stage, kind, cause, pdu, bits, queue, state] = cells;
        let hops = widths.hop.max("hop".len());
        write!(out, "{time:>15}  ")?;
        if widths.user > 0 {
            let users = widths.user.max("user".len());
            write!(out, "{user:<users$}  ")?;
        }
        write!(out, "{hop:<hops$}  ")?;
        if widths.bearer > 0 {
            let bearers = widths.bearer.max("bearer".len());
            write!(out, "{bearer:<bearers$}  ")?;
        }
        writeln!(
            out,
            "{direction:<9}  {stage:<stages$}  {kind:<kinds$}  {cause:<causes$}  \
             {pdu:>8}  {bits:>8}  {queue:>12}  {state}"
        )
    };
    let rendered = for_each_event(folder, filter, |event, widths| {
        if !headed {
            headed = true;
            let heads = [
                "time/s",
                "user",
                "hop",
                "bearer",
                "direction",
                "stage",
                "kind",
                "cause",
                "pdu",
                "bits",
                "queue/B",
                "state",
            ];
            line(&mut out, widths, heads)?;
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
        let EventRow { user, hop, bearer, direction, stage, kind, cause, state, .. } = *event;
        let cells = [&time, user, hop, bearer, direction, stage, kind, cause, &pdu, &bits, &queue, state];
        line(&mut out, widths, cells)?;
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
