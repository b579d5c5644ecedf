// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of a gateway's tunnel over TCP: the same however the stream is cut, and little waits.

use airpath_live::attachments::tcp::wire::{GREETING, MOST_FRAME_BYTES, Unframer, append};

/// Bytes of a length before a frame.
const LENGTH_BYTES: usize = 4;

/// The seeds: a stream of three frames.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut stream = vec![7];
    stream.extend_from_slice(GREETING);
    for bytes in [14, 60, 300] {
        append(&mut stream, &vec![bytes as u8; bytes]);
    }
    vec![("frames".into(), stream)]
}

/// The first byte says how long the pieces are.
pub fn run(input: &[u8]) {
    let Some((&cut, stream)) = input.split_first() else { return };
    let (whole, pieces) = (read(stream, stream.len().max(1)), read(stream, usize::from(cut).max(1)));
    assert_eq!(whole, pieces);
    let (frames, _) = whole;
    let mut again = GREETING.to_vec();
    frames.iter().for_each(|frame| append(&mut again, frame));
    if !frames.is_empty() {
        assert!(stream.starts_with(&again), "frames are not those of the stream");
    }
}

/// Frames of a stream that comes in pieces, and whether it was one of frames.
fn read(stream: &[u8], piece_bytes: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut unframer, mut frames) = (Unframer::default(), Vec::new());
    for piece in stream.chunks(piece_bytes) {
        unframer.push(piece);
        loop {
            match unframer.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.len() <= MOST_FRAME_BYTES + LENGTH_BYTES);
                    frames.push(frame.to_vec());
                }
                Ok(None) => break,
                Err(_) => return (frames, false),
            }
        }
    }
    (frames, true)
}
