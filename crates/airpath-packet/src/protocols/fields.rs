// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Headers of a packet field by field, each field with its place among the bytes.

mod ip;
mod transport;

use super::{Packet, Sequences, Told, by_contents};

/// A field of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Offset of its first byte from the beginning of the packet.
    pub offset: usize,
    /// Its length in bytes; a field that shares a byte with others has that byte.
    pub bytes: usize,
    /// Its value.
    pub text: String,
}

/// A header, or what follows the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Name of the protocol.
    pub name: String,
    /// Its fields, as far as they are at hand, in the order of the bytes.
    pub fields: Vec<Field>,
}

/// The layers of the packet of `length` bytes that begins with `bytes`, of which any part may be missing.
pub fn layers(bytes: &[u8], length: u32) -> Vec<Layer> {
    let packet = Packet::new(bytes, length);
    let mut found = Layers { bytes, layers: Vec::new() };
    match packet.headers {
        Some(headers) if headers.version == 4 => ip::version_4(&mut found, &headers),
        Some(headers) => ip::version_6(&mut found, &headers),
        None => {
            found.begin("not an IP packet, or cut off within its header");
            found.rest(0);
            return found.layers;
        }
    }
    let mut at = packet.headers.map_or(0, |headers| headers.ip_bytes);
    if let Some(headers) = packet.headers.filter(|headers| !headers.is_later_fragment()) {
        at = transport::header(&mut found, headers.protocol, at);
    }
    if at < bytes.len() {
        found.begin(contents_name(&packet));
        found.contents(at, &packet);
    }
    found.layers
}

/// Name of the protocol of the contents, if one recognises them.
fn contents_name(packet: &Packet<'_>) -> &'static str {
    by_contents().find(|protocol| (protocol.recognises)(packet)).map_or("payload", |protocol| protocol.name)
}

/// The layers so far.
struct Layers<'a> {
    bytes: &'a [u8],
    layers: Vec<Layer>,
}

impl<'a> Layers<'a> {
    fn begin(&mut self, name: impl Into<String>) {
        self.layers.push(Layer { name: name.into(), fields: Vec::new() });
    }

    /// Adds a field of the last layer, with the text that `tell` makes of its bytes. A field that is cut off is left
    /// out.
    fn field(&mut self, name: &'static str, offset: usize, bytes: usize, tell: impl FnOnce(&'a [u8]) -> String) {
        let content = offset.checked_add(bytes).and_then(|end| self.bytes.get(offset..end));
        if let (Some(content), Some(layer)) = (content, self.layers.last_mut()) {
            layer.fields.push(Field { name, offset, bytes, text: tell(content) });
        }
    }

    /// Adds a field that is a number.
    fn number(&mut self, name: &'static str, offset: usize, bytes: usize) {
        self.field(name, offset, bytes, |content| number(content).to_string());
    }

    /// Adds a field as hexadecimal digits.
    fn hexadecimal(&mut self, name: &'static str, offset: usize, bytes: usize) {
        self.field(name, offset, bytes, hexadecimal);
    }

    /// Adds all bytes from `offset` on.
    fn rest(&mut self, offset: usize) {
        let bytes = self.bytes.len().saturating_sub(offset);
        if bytes > 0 {
            self.field("bytes", offset, bytes, |content| format!("{} bytes captured", content.len()));
        }
    }

    /// Adds the contents, and what their protocol says about them.
    fn contents(&mut self, offset: usize, packet: &Packet<'_>) {
        // A single packet has no sequence numbers before it.
        let told = by_contents().find_map(|protocol| (protocol.prints)(packet, &mut Sequences::default()));
        let bytes = self.bytes.len().saturating_sub(offset);
        if let Some(Told::Instead(text) | Told::Behind(text)) = told {
            let text = text.trim_start_matches([' ', ':', ',']).to_owned();
            self.field("contents", offset, bytes, |_| text);
        }
        self.rest(offset);
    }
}

/// The number in network order in at most 8 bytes.
fn number(content: &[u8]) -> u64 {
    content.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn hexadecimal(content: &[u8]) -> String {
    content.iter().map(|byte| format!("{byte:02x}")).collect()
}
