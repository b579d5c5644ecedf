// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Blocks of pcapng written: little-endian, into memory.

use super::block::{BYTE_ORDER, SECTION};
use super::pcapng::{OPTION_END, PACKET};

fn padding(length: usize) -> &'static [u8] {
    &[0; 3][..length.next_multiple_of(4) - length]
}

/// Writes an option.
pub fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(padding(value.len()));
}

/// Writes the end of a list of options.
pub fn end_of_options(out: &mut Vec<u8>) {
    option(out, OPTION_END, &[]);
}

/// Writes a block around what `body` writes.
pub fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
}

/// Writes the header of a section of unknown length, with the options that `options` writes.
pub fn section(out: &mut Vec<u8>, options: impl FnOnce(&mut Vec<u8>)) {
    block(out, SECTION, |out| {
        out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&u64::MAX.to_le_bytes());
        options(out);
        end_of_options(out);
    });
}

/// Writes an interface of packets of `link_type`, of which at most `snaplen` bytes are kept (0 for
/// all), with the options that `options` writes.
pub fn interface(out: &mut Vec<u8>, link_type: u16, snaplen: u32, options: impl FnOnce(&mut Vec<u8>)) {
    block(out, super::pcapng::INTERFACE, |out| {
        out.extend_from_slice(&link_type.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&snaplen.to_le_bytes());
        options(out);
        end_of_options(out);
    });
}

/// Writes a packet of `length` bytes, of which `bytes` were kept, captured on interface number
/// `interface` at `ticks` of its resolution, with the options that `options` writes.
pub fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    ticks: u64,
    length: u32,
    bytes: &[u8],
    options: impl FnOnce(&mut Vec<u8>),
) {
    block(out, PACKET, |out| {
        out.extend_from_slice(&interface.to_le_bytes());
        out.extend_from_slice(&((ticks >> 32) as u32).to_le_bytes());
        out.extend_from_slice(&(ticks as u32).to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&length.max(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
        out.extend_from_slice(padding(bytes.len()));
        options(out);
        end_of_options(out);
    });
}
