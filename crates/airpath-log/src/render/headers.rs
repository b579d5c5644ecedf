// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One packet with its headers field by field, as the captures of both ends have it.

use std::io::Write;
use std::path::Path;

use airpath_core::PduId;
use airpath_packet::protocols::{Layer, layers};
use serde::Serialize;

use super::{RenderError, Rendered, tolerate};
use crate::files::capture_name;
use crate::pcapng::Interface;
use crate::places::Places;
use crate::read::capture::{CaptureLog, CapturedPacket};

/// A packet as one end saw it.
#[derive(Serialize)]
struct Seen<'a> {
    end: &'a str,
    /// "in" where it came into the link, "out" where it left it.
    way: &'static str,
    length: u32,
    /// The bytes kept of it, from its IP header on, as hexadecimal digits.
    hex: String,
    layers: Vec<Header>,
}

#[derive(Serialize)]
struct Header {
    layer: String,
    fields: Vec<Field>,
}

#[derive(Serialize)]
struct Field {
    name: &'static str,
    at: usize,
    size: usize,
    text: String,
}

impl From<Layer> for Header {
    fn from(layer: Layer) -> Header {
        let fields = layer.fields.into_iter();
        let told = |field: airpath_packet::protocols::Field| Field {
            name: field.name,
            at: field.offset,
            size: field.bytes,
            text: field.text,
        };
        Header { layer: layer.name, fields: fields.map(told).collect() }
    }
}

/// Writes the headers of the packet `pdu` of the run in `folder`, which has `places`, once for each time that an end
/// saw it: as text, or as one JSON object a line.
///
/// # Errors
/// A capture that cannot be read, once what the other ends saw is written, or text that cannot be written; a closed
/// pipe is no error.
pub fn headers(
    folder: &Path,
    places: &Places,
    pdu: PduId,
    json: bool,
    out: &mut dyn Write,
) -> Result<Rendered, RenderError> {
    tolerate(write_headers(folder, places, pdu, json, out))
}

fn write_headers(
    folder: &Path,
    places: &Places,
    pdu: PduId,
    json: bool,
    out: &mut dyn Write,
) -> Result<Rendered, RenderError> {
    let mut rendered = Rendered::default();
    let mut failure = None;
    for end in places.ports() {
        let path = folder.join(capture_name(&end));
        if !path.exists() {
            continue;
        }
        let capture = match CaptureLog::open(&path) {
            Ok(capture) => capture,
            Err(error) => {
                failure.get_or_insert(error);
                continue;
            }
        };
        for packet in capture {
            let packet = match packet {
                Ok(packet) if packet.pdu == Some(pdu) => packet,
                Ok(_) => continue,
                Err(error) => {
                    failure.get_or_insert(error);
                    break;
                }
            };
            let Some(seen) = seen(&end, &packet) else { continue };
            match json {
                true => {
                    serde_json::to_writer(&mut *out, &seen).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                }
                false => write_text(pdu, &seen, out)?,
            }
            rendered.lines += 1;
        }
    }
    failure.map_or(Ok(rendered), |error| Err(error.into()))
}

/// The packet with its headers; none of a note of its drop, which has the bytes of its arrival.
fn seen<'a>(end: &'a str, packet: &CapturedPacket) -> Option<Seen<'a>> {
    let way = match packet.interface {
        Interface::Rx => "in",
        Interface::Tx => "out",
        Interface::Drop => return None,
    };
    let length = packet.length.saturating_sub(packet.link_bytes as u32);
    let bytes = packet.packet();
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Seen { end, way, length, hex, layers: layers(bytes, length).into_iter().map(Header::from).collect() })
}

fn write_text(pdu: PduId, seen: &Seen<'_>, out: &mut dyn Write) -> Result<(), RenderError> {
    let way = if seen.way == "in" { "entered the link" } else { "left the link" };
    writeln!(out, "packet {pdu} as it {way} at the {}, {} bytes", seen.end, seen.length)?;
    for layer in &seen.layers {
        writeln!(out, "{}", layer.layer)?;
        for field in &layer.fields {
            writeln!(out, "  {:>5}  {:<24}  {}", field.at, field.name, field.text)?;
        }
    }
    Ok(())
}
