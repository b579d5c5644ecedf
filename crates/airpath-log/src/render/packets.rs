// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets as tcpdump shows them, with what became of each.

use std::io::{BufWriter, Write};
use std::path::Path;

use airpath_core::{Direction, PortId};
use airpath_packet::protocols::{Sequences, describe};

use super::contents::Contents;
use super::fate::Fates;
use super::filter::Filter;
use super::table::{check_names, seconds};
use super::{RenderError, Rendered, tolerate};
use crate::batch::InputKind;
use crate::files;
use crate::read::open_inputs;
use crate::tables::inputs::{InputBatch, InputRow};

/// Writes a line for each packet that came to the link in the run in `folder`, at the time it came
/// (seconds since the run began), with its fate in brackets. Times, direction and PDU of `filter`
/// choose packets as they came; hop and kind choose those to which such an event happened.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn tcpdump(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    check_names(folder, filter)?;
    tolerate(write_packets(folder, filter, out))
}

fn write_packets(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    let (fates, events) = Fates::read(folder, filter)?;
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let log = open_inputs(folder)?;
    let path = folder.join(files::INPUT);
    let mut rendered = Rendered { lines: 0, torn_bytes: events.torn_bytes + log.torn_bytes() };
    let (mut sequences, mut contents) = (Sequences::default(), Contents::open(folder)?);
    for batch in log {
        let batch = InputBatch::new(&batch?, &path)?;
        for input in batch.rows() {
            let fate = match input.kind {
                InputKind::Offer => input.pdu.map(|pdu| fates.words(pdu)),
                InputKind::Discarded => Some(format!("filtered: {}", input.cause.unwrap_or("?"))),
                InputKind::Lost => Some(format!("not recorded: {}", input.command.unwrap_or("?"))),
                InputKind::Command | InputKind::Read => None,
            };
            let Some(fate) = fate else { continue };
            // Every packet is looked at, shown or not, for the sequence numbers.
            let bytes = contents.of(&input);
            let text = match (input.kind, bytes) {
                (InputKind::Lost, _) => "records were lost here".into(),
                (_, Some(bytes)) => describe(bytes, input.length.unwrap_or(0), &mut sequences),
                (_, None) => format!("PDU {}, length {}", input.pdu.unwrap_or(0), input.length.unwrap_or(0)),
            };
            if !shown(filter, &fates, &input, bytes) {
                continue;
            }
            writeln!(out, "{} {text} [{fate}]", seconds(input.time_ns))?;
            rendered.lines += 1;
        }
    }
    out.flush()?;
    Ok(rendered)
}

fn shown(filter: &Filter, fates: &Fates, input: &InputRow<'_>, bytes: Option<&[u8]>) -> bool {
    let sender = filter.direction.map(Direction::sender);
    filter.user(input.user)
        && filter.time(input.time_ns)
        && filter.packet(input, bytes)
        && (filter.pdu.is_none() || filter.pdu == input.pdu)
        && (sender.is_none() || input.port.is_none() || sender == input.port.map(|port| PortId(port).end()))
        && input.pdu.map_or(!filter.asks_for_events(), |pdu| fates.wants(pdu))
}
