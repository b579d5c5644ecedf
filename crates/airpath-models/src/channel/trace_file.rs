// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Error traces: what became of each packet, frame or bit, one after the other.
//!
//! A text of records, one a line, in the order of transmission; `#` begins a comment, and a blank line
//! says nothing:
//!
//! ```text
//! ok 400                    # so many arrive; without a number one
//! lost 3                    # so many are lost
//! hit                       # the scenario's effect is done to it
//! truncated 512             # so many bytes are left
//! flipped 80 85-87          # bits that are flipped, the first bit being 0
//! truncated 512 flipped 80  # both
//! at 1000 lost              # packet (frame, bit) number 1000; all before it that are not told of are ok
//! 0010110                   # one digit for each: 0 is ok, 1 is hit
//! ```
//!
//! A binary file, whose first byte is 0 or 1, has one byte of the value 0 or 1 for each. An error pattern of ITU-T
//! G.191 has a word or a byte for each (`g191.rs`).
//!
//! Source: the traces of Eckhardt and Steenkiste 2002, section 4 (lost, truncated and corrupted packets,
//! with the positions of bit errors), and of Singh 2000, section 5.1 (a one for each corrupted radio
//! block, a zero for each correct one).

use airpath_core::limits::LONGEST_PACKET_BYTES;

use super::g191;
use super::position_list::PositionList;
use crate::file::FileFormat;

/// Record of one packet, frame or bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Nothing happens to it.
    Ok,
    /// The effect of the scenario is done to it.
    Hit,
    /// It is lost.
    Lost,
    /// It arrives damaged.
    Damaged {
        /// Number of bytes left of it; none if all are.
        kept_bytes: Option<u32>,
        /// The positions of flipped bits, ascending.
        flips: &'a [u32],
    },
}

/// An error trace, in runs of equal records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorTrace {
    runs: Vec<RunLength>,
    flips: Vec<u32>,
}

/// Records that are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunLength {
    /// Number of records up to its end.
    end: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Ok,
    Hit,
    Lost,
    /// Flipped bits from one place to another in those of the trace.
    Damaged {
        kept_bytes: Option<u32>,
        from: u32,
        to: u32,
    },
}

/// More would take more than a gigabyte of memory.
const RUNS_LIMIT: usize = 30_000_000;
const FLIPS_LIMIT: usize = 100_000_000;
/// The bits of the longest packet.
const LAST_BIT: u64 = LONGEST_PACKET_BYTES as u64 * 8 - 1;

impl ErrorTrace {
    /// Number of packets, frames or bits in it.
    pub fn units(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// True if it has kinds of damage or losses, rather than hits alone.
    pub fn has_outcomes(&self) -> bool {
        self.runs.iter().any(|run| !matches!(run.what, What::Ok | What::Hit))
    }

    /// The end of run number `index`; none beyond the last.
    pub fn end(&self, index: usize) -> Option<u64> {
        self.runs.get(index).map(|run| run.end)
    }

    /// The number of the run in which record number `position` lies.
    pub fn run_at(&self, position: u64) -> usize {
        self.runs.partition_point(|run| run.end <= position)
    }

    /// The record of every unit of run number `index`.
    pub fn record(&self, index: usize) -> Record<'_> {
        match self.runs.get(index).map(|run| run.what) {
            None | Some(What::Ok) => Record::Ok,
            Some(What::Hit) => Record::Hit,
            Some(What::Lost) => Record::Lost,
            Some(What::Damaged { kept_bytes, from, to }) => {
                Record::Damaged { kept_bytes, flips: &self.flips[from as usize..to as usize] }
            }
        }
    }

    /// Lengths of the runs of records that are all `ok`, and of those that are all something else: first and third
    /// and so on the former; the first length is 0 if the trace begins with an error.
    pub fn run_lengths(&self) -> Vec<u64> {
        let mut lengths = vec![0];
        let mut begin = 0;
        for run in &self.runs {
            let is_bad = run.what != What::Ok;
            if is_bad == lengths.len().is_multiple_of(2) {
                *lengths.last_mut().expect("there is one from the beginning") += run.end - begin;
            } else {
                lengths.push(run.end - begin);
            }
            begin = run.end;
        }
        lengths
    }

    /// True if `bytes` begin as an error pattern of ITU-T G.191 does.
    pub fn is_pattern(bytes: &[u8]) -> bool {
        g191::layout(bytes).is_some()
    }

    /// The trace that a compact error pattern of ITU-T G.191 is: a bit for each, the lowest of a byte first.
    ///
    /// # Errors
    /// When there is nothing in it, or too much.
    pub fn of_compact_pattern(bytes: &[u8]) -> Result<ErrorTrace, String> {
        let mut trace = ErrorTrace::default();
        for byte in bytes {
            for bit in 0..8 {
                trace.push(1, if byte >> bit & 1 == 1 { What::Hit } else { What::Ok })?;
            }
        }
        if bytes.is_empty() { Err("it is empty".into()) } else { Ok(trace) }
    }

    /// The trace of `units` in which those at `positions` are hit.
    ///
    /// # Errors
    /// When a position is not below `units`.
    pub fn of_positions(positions: &PositionList, units: u64) -> Result<ErrorTrace, String> {
        let mut trace = ErrorTrace::default();
        if let Some(last) = positions.last().filter(|last| *last >= units) {
            return Err(format!("position {last} is not among {units} units, the first being 0"));
        }
        for (first, last) in positions.runs() {
            trace.push(first - trace.units(), What::Ok)?;
            trace.push(last - first + 1, What::Hit)?;
        }
        trace.push(units - trace.units(), What::Ok)?;
        Ok(trace)
    }

    fn push(&mut self, count: u64, what: What) -> Result<(), String> {
        let end = self.units().checked_add(count).filter(|end| *end <= i64::MAX as u64);
        let end = end.ok_or("the trace is too long")?;
        if let Some(last) = self.runs.last_mut()
            && last.what == what
            && !matches!(what, What::Damaged { .. })
        {
            last.end = end;
        } else if self.runs.len() == RUNS_LIMIT {
            return Err(format!("there are more than {RUNS_LIMIT} changes"));
        } else if count > 0 {
            self.runs.push(RunLength { end, what });
        }
        Ok(())
    }

    /// Reads a line without its comment.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if !line.is_empty() && line.bytes().all(|byte| matches!(byte, b'0' | b'1' | b' ' | b'\t')) {
            for digit in line.bytes().filter(u8::is_ascii_digit) {
                self.push(1, if digit == b'1' { What::Hit } else { What::Ok })?;
            }
            return Ok(());
        }
        let mut words = line.split_ascii_whitespace();
        let Some(mut word) = words.next() else { return Ok(()) };
        if word == "at" {
            let position = whole(words.next(), "at", "the number of a packet, frame or bit", i64::MAX as u64)?;
            let told = self.units();
            let missing = position.checked_sub(told);
            let missing = missing.ok_or_else(|| format!("{position} has been told of: {told} comes next"))?;
            self.push(missing, What::Ok)?;
            word = words
                .next()
                .ok_or_else(|| format!("what becomes of {position} is missing, as in: at {position} lost"))?;
        }
        let what = match word {
            "ok" => What::Ok,
            "hit" => What::Hit,
            "lost" => What::Lost,
            "truncated" => {
                let kept = whole(words.next(), "truncated", "the number of bytes that are left", u64::from(u16::MAX))?;
                let from = self.flips.len() as u32;
                match words.next() {
                    None => {}
                    Some("flipped") => self.flipped(&mut words)?,
                    Some(other) => {
                        return Err(format!("`{other}` does not belong behind `truncated {kept}`; `flipped` may"));
                    }
                }
                What::Damaged { kept_bytes: Some(kept as u32), from, to: self.flips.len() as u32 }
            }
            "flipped" => {
                let from = self.flips.len() as u32;
                self.flipped(&mut words)?;
                What::Damaged { kept_bytes: None, from, to: self.flips.len() as u32 }
            }
            other => {
                return Err(format!(
                    "`{other}` is no record; a line is `ok`, `hit`, `lost`, `truncated BYTES` or `flipped BITS`, or \
                     of the digits 0 and 1"
                ));
            }
        };
        let count = match (what, words.next()) {
            (_, None) => 1,
            (What::Ok | What::Hit | What::Lost, Some(count)) => {
                whole(Some(count), word, "how many there are", i64::MAX as u64)?
            }
            (What::Damaged { .. }, Some(more)) => {
                return Err(format!("`{more}` does not belong at the end of this line"));
            }
        };
        if let Some(more) = words.next() {
            return Err(format!("`{more}` does not belong at the end of this line"));
        }
        if count == 0 {
            return Err(format!("`{word} 0` tells of nothing; write at least 1"));
        }
        self.push(count, what)
    }

    /// Reads the positions of flipped bits.
    fn flipped<'a>(&mut self, words: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
        let text: Vec<&str> = words.collect();
        let list: PositionList = text.join(" ").parse().map_err(|problem| format!("flipped bits: {problem}"))?;
        if let Some(last) = list.last().filter(|last| *last > LAST_BIT) {
            return Err(format!("flipped bits: {last} is beyond the last bit of any packet, {LAST_BIT}"));
        }
        for (first, last) in list.runs() {
            if self.flips.len() + (last - first) as usize >= FLIPS_LIMIT {
                return Err(format!("there are more than {FLIPS_LIMIT} flipped bits"));
            }
            self.flips.extend((*first..=*last).map(|position| position as u32));
        }
        Ok(())
    }
}

/// A whole number up to `most`, after the word `after`.
fn whole(word: Option<&str>, after: &str, what: &str, most: u64) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("behind `{after}` stands {what}"))?;
    let number = word.parse::<u64>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("behind `{after}` stands {what}: a whole number up to {most}, not `{word}`"))
}

impl FileFormat for ErrorTrace {
    const WHAT: &'static str = "error trace";

    fn parse(bytes: &[u8]) -> Result<ErrorTrace, String> {
        let mut trace = ErrorTrace::default();
        if let Some(layout) = g191::layout(bytes) {
            let mut push = |bad| trace.push(1, if bad { What::Hit } else { What::Ok });
            g191::read(bytes, layout, &mut push)?;
            return Ok(trace);
        }
        if matches!(bytes.first(), Some(0 | 1)) {
            for (index, byte) in bytes.iter().enumerate() {
                match byte {
                    0 => trace.push(1, What::Ok),
                    1 => trace.push(1, What::Hit),
                    other => Err(format!("byte {index} of this binary trace is {other}; each is 0 or 1")),
                }?;
            }
            return Ok(trace);
        }
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = std::str::from_utf8(line).map_err(|_| format!("line {number}: this is no text"))?;
            let content = line.split('#').next().unwrap_or_default();
            trace.line(content).map_err(|problem| format!("line {number}: {problem}"))?;
        }
        match trace.units() {
            0 => Err("there is no record in it".into()),
            _ => Ok(trace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<Record<'static>> {
        let trace: &'static ErrorTrace = Box::leak(Box::new(ErrorTrace::parse(text.as_bytes()).unwrap()));
        (0..trace.units()).map(|position| trace.record(trace.run_at(position))).collect()
    }

    #[test]
    fn every_kind_of_record_is_read() {
        use Record::{Damaged, Hit, Lost, Ok};
        let text = "# a walk\nok 2\nlost 2 # behind the door\n\nhit\r\ntruncated 40\nflipped 3 10-12\n\
                    truncated 5 flipped 7\n at 10 lost\n01 1\nok";
        let expected = [
            Ok,
            Ok,
            Lost,
            Lost,
            Hit,
            Damaged { kept_bytes: Some(40), flips: &[] },
            Damaged { kept_bytes: None, flips: &[3, 10, 11, 12] },
            Damaged { kept_bytes: Some(5), flips: &[7] },
            Ok,
            Ok,
            Lost,
            Ok,
            Hit,
            Hit,
            Ok,
        ];
        assert_eq!(told(text), expected);
    }

    #[test]
    fn digits_and_bytes_say_the_same() {
        let text = ErrorTrace::parse(b"0011\n10\n").unwrap();
        assert_eq!(ErrorTrace::parse(&[0, 0, 1, 1, 1, 0]).unwrap(), text);
        assert_eq!(text.units(), 6);
        assert_eq!(text.runs.len(), 3);
        assert!(!text.has_outcomes());
        assert!(ErrorTrace::parse(b"lost").unwrap().has_outcomes());
    }

    #[test]
    fn runs_alternate() {
        let lengths = |text: &str| ErrorTrace::parse(text.as_bytes()).unwrap().run_lengths();
        assert_eq!(lengths("ok 3\nlost\nhit 2\ntruncated 4\nok\nlost 5"), [3, 4, 1, 5]);
        assert_eq!(lengths("1100"), [0, 2, 2]);
        assert_eq!(lengths("ok 9"), [9]);
    }

    #[test]
    fn patterns_and_positions_are_traces() {
        assert_eq!(ErrorTrace::parse(&[0x20, 0x6B, 0x21, 0x6B]).unwrap().run_lengths(), [0, 1, 1]);
        assert_eq!(ErrorTrace::of_compact_pattern(&[0b0000_0110, 1]).unwrap().run_lengths(), [1, 2, 5, 1, 7]);
        assert!(ErrorTrace::of_compact_pattern(&[]).is_err());
        let list: PositionList = "2, 5-7, 8".parse().unwrap();
        assert_eq!(ErrorTrace::of_positions(&list, 9).unwrap().run_lengths(), [2, 1, 2, 4]);
        assert_eq!(ErrorTrace::of_positions(&list, 12).unwrap().run_lengths(), [2, 1, 2, 4, 3]);
        assert!(ErrorTrace::of_positions(&list, 8).unwrap_err().starts_with("position 8 is not among 8 units"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, expected) in [
            ("", "there is no record in it"),
            ("# nothing\n\n", "there is no record in it"),
            ("ok\nfine", "line 2: `fine` is no record; a line is `ok`, `hit`, `lost`"),
            ("0102", "line 1: `0102` is no record"),
            ("ok many", "line 1: behind `ok` stands how many there are: a whole number"),
            ("ok 0", "line 1: `ok 0` tells of nothing; write at least 1"),
            ("lost -1", "line 1: behind `lost` stands how many there are"),
            ("lost 3 4", "line 1: `4` does not belong at the end of this line"),
            ("truncated", "line 1: behind `truncated` stands the number of bytes that are left"),
            (
                "truncated 70000",
                "line 1: behind `truncated` stands the number of bytes that are left: a whole number up to 65535",
            ),
            ("truncated 7 8", "line 1: `8` does not belong behind `truncated 7`; `flipped` may"),
            ("flipped", "line 1: flipped bits: there is no position; write for example"),
            ("flipped 5 4", "line 1: flipped bits: 4 comes after 5"),
            ("flipped 3 x", "line 1: flipped bits: `x` is neither"),
            ("flipped 524280", "line 1: flipped bits: 524280 is beyond the last bit of any packet, 524279"),
            ("at", "line 1: behind `at` stands the number of a packet, frame or bit"),
            ("at 7", "line 1: what becomes of 7 is missing, as in: at 7 lost"),
            ("ok 9\nat 8 lost", "line 2: 8 has been told of: 9 comes next"),
            ("ok 9223372036854775807\nok", "line 2: the trace is too long"),
        ] {
            let error = ErrorTrace::parse(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        assert!(ErrorTrace::parse(b"ok\n\xfe").unwrap_err().starts_with("line 2: this is no text"));
        assert_eq!(ErrorTrace::parse(&[0, 1, 7]).unwrap_err(), "byte 2 of this binary trace is 7; each is 0 or 1");
    }
}
