// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames in a stream: a greeting of [`GREETING`], then each frame behind its length, 32 bits with the most
//! significant byte first.

/// The first bytes of a stream, in either direction. The digit is the number of this format.
pub const GREETING: &[u8; 8] = b"APFRAME1";

/// Bytes of the shortest frame: an Ethernet header.
const LEAST_FRAME_BYTES: usize = 14;
/// Bytes of the longest frame: the longest packet, and a header with many tags.
pub const MOST_FRAME_BYTES: usize = 65_535 + 255;
const LENGTH_BYTES: usize = 4;

/// Appends a frame to a stream. A frame of a length that no stream has is left out.
pub fn append(stream: &mut Vec<u8>, frame: &[u8]) {
    if (LEAST_FRAME_BYTES..=MOST_FRAME_BYTES).contains(&frame.len()) {
        stream.extend_from_slice(&(frame.len() as u32).to_be_bytes());
        stream.extend_from_slice(frame);
    }
}

/// The receiving end of a stream.
#[derive(Debug, Default)]
pub struct Unframer {
    waiting: Vec<u8>,
    /// Bytes at the beginning of `waiting` that were handed out.
    done: usize,
    greeted: bool,
}

/// A stream that is no stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign;

impl Unframer {
    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.drain(..self.done);
        self.done = 0;
        self.waiting.extend_from_slice(bytes);
    }

    /// The next whole frame; none until more has come. Callers take all frames before they add bytes, so that no
    /// more than one frame waits.
    ///
    /// # Errors
    /// [`Foreign`] if the bytes are no greeting and frames: nothing can be read after that.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Foreign> {
        if !self.greeted {
            let told = &self.waiting[..self.waiting.len().min(GREETING.len())];
            if !GREETING.starts_with(told) {
                return Err(Foreign);
            }
            if told.len() < GREETING.len() {
                return Ok(None);
            }
            self.greeted = true;
            self.done = GREETING.len();
        }
        let rest = &self.waiting[self.done..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(LEAST_FRAME_BYTES..=MOST_FRAME_BYTES).contains(&length) {
            return Err(Foreign);
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        self.done += LENGTH_BYTES + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Foreign> {
        let (mut unframer, mut found) = (Unframer::default(), Vec::new());
        for piece in pieces {
            unframer.push(piece);
            while let Some(frame) = unframer.next_frame()? {
                found.push(frame.to_vec());
            }
        }
        assert!(unframer.waiting.len() - unframer.done < LENGTH_BYTES + MOST_FRAME_BYTES);
        Ok(found)
    }

    #[test]
    fn frames_are_the_same_however_the_stream_is_cut() {
        let sent = [vec![1; 14], vec![2; 1514], vec![3; MOST_FRAME_BYTES]];
        let mut stream = GREETING.to_vec();
        sent.iter().for_each(|frame| append(&mut stream, frame));
        append(&mut stream, &[4; 13]);
        append(&mut stream, &vec![5; MOST_FRAME_BYTES + 1]);
        for cut in [1, 3, 8, 12, 1000, stream.len()] {
            assert_eq!(frames(&stream.chunks(cut).collect::<Vec<_>>()).unwrap(), sent, "{cut}");
        }
    }

    #[test]
    fn other_streams_are_refused_at_once() {
        assert_eq!(frames(&[b"GET / HTTP/1.1"]), Err(Foreign));
        assert_eq!(frames(&[b"APFRAME1", &[0, 0, 0, 13]]), Err(Foreign));
        assert_eq!(frames(&[b"APFRAME1", &[1, 0, 0, 0]]), Err(Foreign));
        assert_eq!(frames(&[b"APFR"]), Ok(Vec::new()));
    }
}
