// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The log of mm-link (Mahimahi), of one direction of one hop.
//!
//! A line is a time in whole milliseconds since the run began, what happened, and bytes: `+` a packet
//! arrives, `#` there is an opportunity to send so much, `-` a packet has been sent after so many
//! milliseconds in queue and transmission, `d` so many packets of so many bytes are dropped from the
//! queue. Propagation and what the channel does are behind mm-link, and not in its log.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::Path;

use airpath_core::{Direction, EventKind, Stage};

use super::filter::Filter;
use super::table::{check_names, for_each_event};
use super::{RenderError, Rendered, tolerate};
use crate::error::LogError;
use crate::files::EVENTS;

const MILLISECOND_NS: u64 = 1_000_000;
/// Length of the stretches of time in which opportunities are asked for, in ns.
const STRETCH_NS: u64 = 1_000_000_000;

/// The subject of a log: one direction of one hop.
pub struct MahimahiLog<'a> {
    /// The hop's name.
    pub hop: &'a str,
    /// The direction.
    pub direction: Direction,
    /// Lines of the head, without the leading `# `: link, command line, queue.
    pub head: &'a [String],
    /// Beginning of the run, in milliseconds since 1970.
    pub init_timestamp_ms: u64,
    /// Bytes that a packet counts beyond its own.
    pub extra_bytes: u64,
    /// End of the run, in nanoseconds; none where it is not known. Nothing can happen after it.
    pub end_ns: Option<u64>,
    /// True if drops are written; mm-throughput-graph of some versions stops at them.
    pub drops: bool,
}

/// The opportunities of a stretch of time (the first excluded, the second included, in nanoseconds) in
/// which the state of that name is in force: when, and how many bytes. None where the link does not
/// limit the rate: there every packet brings its own.
pub type Opportunities<'a> = dyn FnMut(u64, u64, &str) -> Option<Vec<(u64, u64)>> + 'a;

/// Writes the log of the run in `folder`.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn mahimahi(
    folder: &Path,
    what: &MahimahiLog<'_>,
    opportunities: &mut Opportunities<'_>,
    out: &mut dyn Write,
) -> Result<Rendered, RenderError> {
    let filter = Filter { hop: Some(what.hop.to_string()), direction: Some(what.direction), ..Filter::default() };
    check_names(folder, &filter)?;
    tolerate(write(folder, &filter, what, opportunities, out))
}

/// A packet that has been seen.
struct Packet {
    arrived_ms: u64,
    bytes: u64,
}

fn write(
    folder: &Path,
    filter: &Filter,
    what: &MahimahiLog<'_>,
    opportunities: &mut Opportunities<'_>,
    out: &mut dyn Write,
) -> Result<Rendered, RenderError> {
    let path = folder.join(EVENTS);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    for line in what.head {
        writeln!(out, "# {line}")?;
    }
    writeln!(out, "# init timestamp: {}", what.init_timestamp_ms)?;
    writeln!(out, "# base timestamp: 0")?;
    // A packet has been sent with its last frame: how many of each there are shows only at the end.
    let mut frames: HashMap<u64, u64> = HashMap::new();
    let sent = Filter { kind: Some(EventKind::FrameSent), ..filter.clone() };
    for_each_event(folder, &sent, |event, _| {
        *frames.entry(event.pdu).or_default() += 1;
        Ok(())
    })?;
    let mut waiting: HashMap<u64, Packet> = HashMap::new();
    let mut begun: HashSet<u64> = HashSet::new();
    let (mut state, mut reached, mut lines, mut is_first) = (String::new(), 0, 0, true);
    let everything = Filter::default();
    let rendered = for_each_event(folder, &everything, |event, _| {
        if is_first {
            state = event.state.to_string();
            is_first = false;
        }
        let at = event.time_ns;
        if let Some(end_ns) = what.end_ns.filter(|end_ns| at > *end_ns) {
            let what = format!("an event is of {at} ns, and the run ended at {end_ns} ns");
            return Err(LogError::content(&path, what, "the file is damaged").into());
        }
        // In stretches: how long it is until the next event is for the file to say.
        while at > reached {
            let to = at.min(reached.saturating_add(STRETCH_NS));
            let Some(found) = opportunities(reached, to, &state) else {
                reached = at;
                break;
            };
            for (at, bytes) in found {
                writeln!(out, "{} # {bytes}", at / MILLISECOND_NS)?;
                lines += 1;
            }
            reached = to;
        }
        if event.kind == EventKind::StateChanged.name() {
            state = event.state.to_string();
        }
        if event.hop != what.hop || event.direction != what.direction.name() || event.pdu == 0 {
            return Ok(());
        }
        let ms = at / MILLISECOND_NS;
        let bytes = event.bits / 8 + what.extra_bytes;
        let mut arrive = |out: &mut BufWriter<&mut dyn Write>, waiting: &mut HashMap<u64, Packet>| {
            lines += 1;
            waiting.insert(event.pdu, Packet { arrived_ms: ms, bytes });
            writeln!(out, "{ms} + {bytes}")
        };
        if event.kind == EventKind::Enqueued.name() {
            arrive(&mut out, &mut waiting)?;
            begun.insert(event.pdu);
        } else if event.kind == EventKind::Dropped.name() && event.stage == Stage::Queue.name() {
            if begun.insert(event.pdu) {
                arrive(&mut out, &mut waiting)?;
            }
            waiting.remove(&event.pdu);
            if what.drops {
                lines += 1;
                writeln!(out, "{ms} d 1 {bytes}")?;
            }
        } else if event.kind == EventKind::FrameSent.name()
            && let Some(left) = frames.get_mut(&event.pdu)
        {
            *left = left.saturating_sub(1);
            if *left == 0
                && let Some(packet) = waiting.remove(&event.pdu)
            {
                if opportunities(at, at, &state).is_none() {
                    lines += 1;
                    writeln!(out, "{ms} # {}", packet.bytes)?;
                }
                lines += 1;
                writeln!(out, "{ms} - {} {}", packet.bytes, ms.saturating_sub(packet.arrived_ms))?;
            }
        }
        Ok(())
    })?;
    out.flush()?;
    Ok(Rendered { lines, ..rendered })
}
