// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Blocks of pcapng written: little-endian, into memory.

use super::block::{BYTE_ORDER, SECTION};
use super::pcapng::{OPTION_COMMENT, OPTION_END, PACKET};

fn padding(length: usize) -> &'static [u8] {
    &[0; 3][..length.next_multiple_of(4) - length]
}

/// Writes an option.
pub fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let [code, length] = [code, value.len() as u16].map(u16::to_le_bytes);
    out.extend_from_slice(&[code[0], code[1], length[0], length[1]]);
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
        let captured = bytes.len() as u32;
        let head = [interface, (ticks >> 32) as u32, ticks as u32, captured, length.max(captured)];
        out.extend_from_slice(head.map(u32::to_le_bytes).as_flattened());
        out.extend_from_slice(bytes);
        out.extend_from_slice(padding(bytes.len()));
        options(out);
        end_of_options(out);
    });
}

/// Writes the `block` of a [`packet`] again, with a comment before its options.
///
/// # Panics
/// A `block` of another kind.
pub fn packet_with_comment(out: &mut Vec<u8>, block: &[u8], comment: &str) {
    const CAPTURED_AT: usize = 20;
    const BYTES_AT: usize = 28;
    let captured = u32::from_le_bytes(block[CAPTURED_AT..CAPTURED_AT + 4].try_into().expect("four bytes"));
    let (packet, options) = block.split_at(BYTES_AT + (captured as usize).next_multiple_of(4));
    let start = out.len();
    out.extend_from_slice(packet);
    option(out, OPTION_COMMENT, comment.as_bytes());
    out.extend_from_slice(options);
    let length = ((out.len() - start) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    let end = out.len() - length.len();
    out[end..].copy_from_slice(&length);
}

#[cfg(test)]
mod tests {
    use super::super::pcapng::PACKET_ID;
    use super::*;

    #[test]
    fn a_comment_comes_where_it_would_have_been_written() {
        for length in 0..6 {
            let bytes = &b"packet"[..length];
            let write = |out: &mut Vec<u8>, comment: Option<&str>| {
                packet(out, 0, 7, 1_500, bytes, |out| {
                    if let Some(comment) = comment {
                        option(out, OPTION_COMMENT, comment.as_bytes());
                    }
                    option(out, PACKET_ID, &[9; 8]);
                });
            };
            let (mut plain, mut expected, mut commented) = (Vec::new(), vec![1], vec![1]);
            write(&mut plain, None);
            write(&mut expected, Some("dropped"));
            packet_with_comment(&mut commented, &plain, "dropped");
            assert_eq!(commented, expected);
        }
    }
}
