// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Error patterns of the software tools of ITU-T G.191 (the error insertion device), in the softbits of G.192.
//!
//! An element is a 16-bit word, in either byte order, or only its lower byte: 0x6B21 is a good frame, 0x6B20 a bad
//! one; 0x007F is a good bit, 0x0081 a bit in error. A pattern has frames or bits, not both. The compact form has
//! one bit for each, the lowest bit of a byte being the first; a bit that is set is an error. Nothing in a compact
//! file says what it is, so that only whoever knows can have it read.
//!
//! Source: ITU-T G.191, software tool library, module EID; ITU-T G.192 for the words.

/// Layout of the elements of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    LittleEndian,
    BigEndian,
    Bytes,
}

/// Good and bad element of a kind.
struct Kind {
    good: u16,
    bad: u16,
    what: &'static str,
}

const FRAMES: Kind = Kind { good: 0x6B21, bad: 0x6B20, what: "frame" };
const BITS: Kind = Kind { good: 0x007F, bad: 0x0081, what: "bit" };

const fn low(word: u16) -> u8 {
    (word & 0xff) as u8
}

/// The layout of `bytes`, if they are an error pattern; no text begins as one does.
pub(super) fn layout(bytes: &[u8]) -> Option<Layout> {
    let is_word = |word: u16| [FRAMES, BITS].iter().any(|kind| word == kind.good || word == kind.bad);
    if let [first, second, ..] = *bytes {
        if is_word(u16::from_le_bytes([first, second])) {
            return Some(Layout::LittleEndian);
        }
        if is_word(u16::from_be_bytes([first, second])) {
            return Some(Layout::BigEndian);
        }
    }
    let first = *bytes.first()?;
    let (good, bad) = (low(FRAMES.good), low(FRAMES.bad));
    // A bad frame is a blank in text: one good frame tells them apart.
    let are_frames = || bytes.iter().find(|byte| **byte != bad) == Some(&good);
    (first == low(BITS.good) || first == low(BITS.bad) || are_frames()).then_some(Layout::Bytes)
}

/// Reads a pattern; `push` gets true for each element in error.
pub(super) fn read(
    bytes: &[u8],
    layout: Layout,
    push: &mut dyn FnMut(bool) -> Result<(), String>,
) -> Result<(), String> {
    let width = if layout == Layout::Bytes { 1 } else { 2 };
    let word = |chunk: &[u8]| match layout {
        Layout::LittleEndian => u16::from_le_bytes([chunk[0], chunk[1]]),
        Layout::BigEndian => u16::from_be_bytes([chunk[0], chunk[1]]),
        Layout::Bytes => u16::from(chunk[0]),
    };
    let whole = bytes.chunks_exact(width);
    let rest = whole.remainder().len();
    let mask = if layout == Layout::Bytes { 0xff } else { u16::MAX };
    let kinds = [FRAMES, BITS];
    let of = |word: u16| kinds.iter().find(|kind| word == kind.good & mask || word == kind.bad & mask);
    let Some(kind) = bytes.get(..width).and_then(|first| of(word(first))) else {
        return Err("this is no error pattern of ITU-T G.191".into());
    };
    for (index, chunk) in whole.enumerate() {
        let found = word(chunk);
        if found != kind.good & mask && found != kind.bad & mask {
            return Err(wrong(index, found, kind, layout));
        }
        push(found == kind.bad & mask)?;
    }
    if rest > 0 {
        let message = format!("the file ends within word {}: a word has two bytes", bytes.len() / width);
        return Err(format!("{message}; the file was cut, or it is not an error pattern of ITU-T G.191"));
    }
    Ok(())
}

fn wrong(index: usize, found: u16, kind: &Kind, layout: Layout) -> String {
    let (unit, digits, mask) = if layout == Layout::Bytes { ("byte", 2, 0xff) } else { ("word", 4, u16::MAX) };
    let (good, bad, what) = (kind.good & mask, kind.bad & mask, kind.what);
    let hint = if index == 1 && what == FRAMES.what && layout != Layout::Bytes {
        "; a bitstream of G.192 has the length of a frame there, and is not an error pattern"
    } else {
        ""
    };
    format!(
        "{unit} {index} of this error pattern of ITU-T G.191 is 0x{found:0digits$X}; each is 0x{good:0digits$X} (good \
         {what}) or 0x{bad:0digits$X} (bad {what}){hint}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8]) -> Option<Result<String, String>> {
        let mut text = String::new();
        let layout = layout(bytes)?;
        let mut push = |bad| {
            text.push(if bad { '1' } else { '0' });
            Ok(())
        };
        Some(read(bytes, layout, &mut push).map(|()| text))
    }

    fn words(words: &[u16], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        words.iter().flat_map(|word| bytes(*word)).collect()
    }

    #[test]
    fn frames_and_bits_are_read_in_every_layout() {
        for (pattern, expected) in
            [([0x6B21, 0x6B20, 0x6B20, 0x6B21], "0110"), ([0x0081, 0x007F, 0x007F, 0x0081], "1001")]
        {
            let all = [words(&pattern, u16::to_le_bytes), words(&pattern, u16::to_be_bytes)];
            let lower: Vec<u8> = pattern.iter().map(|word| low(*word)).collect();
            for bytes in all.iter().chain([&lower]) {
                assert_eq!(told(bytes), Some(Ok(expected.into())), "{bytes:x?}");
            }
        }
        // Bad frames first, as bytes: blanks and exclamation marks.
        assert_eq!(told(b"  !"), Some(Ok("110".into())));
    }

    #[test]
    fn texts_and_binary_traces_are_no_patterns() {
        for bytes in [&b""[..], b"  ", b" ok 3\n", b"0110", b"# !\n", b"ok", &[0, 1, 0], &[1], &[0]] {
            assert_eq!(layout(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_word() {
        let frames = |more: &[u8]| [&words(&[0x6B21, 0x6B20], u16::to_le_bytes)[..], more].concat();
        let error = |bytes: &[u8]| told(bytes).unwrap().unwrap_err();
        assert!(error(&frames(&[0x21])).starts_with("the file ends within word 2: a word has two bytes"));
        assert_eq!(
            error(&frames(&[0x81, 0])),
            "word 2 of this error pattern of ITU-T G.191 is 0x0081; each is 0x6B21 (good frame) or 0x6B20 (bad frame)"
        );
        let stream = words(&[0x6B21, 0x00A0, 0x007F], u16::to_le_bytes);
        assert!(error(&stream).ends_with("has the length of a frame there, and is not an error pattern"));
        let bytes = error(&[0x7F, 0x81, 0x20]);
        assert!(
            bytes.starts_with("byte 2 of this error pattern of ITU-T G.191 is 0x20; each is 0x7F (good"),
            "{bytes}"
        );
    }
}
