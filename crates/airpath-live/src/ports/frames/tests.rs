// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use super::*;

#[test]
fn frames_are_what_stands_between_flags_untouched() {
    let mut splitter = Splitter::default();
    for part in [&b"\x7e\x7e~\xff\x7d\x23\xc0"[..], b"\x21~~\xff\x03\x11~NO CARRIER\r\n", b"~"] {
        splitter.take(part);
    }
    let frames: Vec<Vec<u8>> = splitter.frames.drain(..).collect();
    assert_eq!(frames, [b"\xff\x7d\x23\xc0\x21".to_vec(), b"\xff\x03\x11".to_vec(), b"NO CARRIER\r\n".to_vec()]);
    assert!(splitter.open.is_empty());
}

#[test]
fn memory_is_bounded_and_the_next_frame_is_found() {
    let mut splitter = Splitter::default();
    for _ in 0..40 {
        splitter.take(&[9; 50_000]);
    }
    assert!(splitter.open.len() <= LONGEST_FRAME_BYTES);
    splitter.take(b"~good~");
    assert_eq!((splitter.giants, splitter.frames.pop_front()), (1, Some(b"good".to_vec())));
    for _ in 0..3000 {
        splitter.take(b"x~");
    }
    assert_eq!((splitter.frames.len(), splitter.unread), (WAITING_FRAMES, 3000 - WAITING_FRAMES as u64));
}
