// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets listed in a file: a line for each, with its time in seconds since the load began and its IP
//! length in bytes.
//!
//! ```text
//! # time_s bytes
//! 0.000000 1500
//! 0.012500 40
//! ```
//!
//! Times ascend; what follows `#` and empty lines say nothing; a comma may stand instead of the space.
//! With `repeat` the list begins anew after each such time.

use airpath_core::{DrawKey, Span, quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::size::LONGEST_BYTES;
use super::{Generator, Packet};
use crate::file::{FileFormat, FileRef, VisitFile};
use crate::problem::Problem;
use crate::registry::Configured;

/// The packets of a file, in order of their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadTrace {
    /// Times since the load began, and bytes.
    pub packets: Vec<(Span, u32)>,
}

impl FileFormat for LoadTrace {
    const WHAT: &'static str = "list of packets";

    fn parse(bytes: &[u8]) -> Result<LoadTrace, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let mut packets: Vec<(Span, u32)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or("");
            let mut words = content.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let Some(time) = words.next() else { continue };
            let wrong = |problem: String| format!("line {}: {problem}", index + 1);
            let (Some(size), None) = (words.next(), words.next()) else {
                return Err(wrong(format!("`{}` is not a time and a size, as in `0.25 1500`", content.trim())));
            };
            let nanos = quantity::scale(time, 1_000_000_000)
                .map_err(|problem| wrong(format!("`{time}` is not a time in seconds: {problem}")))?;
            let bytes = size.parse().ok().filter(|bytes| (1..=LONGEST_BYTES).contains(bytes)).ok_or_else(|| {
                wrong(format!("`{size}` is not the length of a packet in bytes, from 1 to {LONGEST_BYTES}"))
            })?;
            let after = Span::from_nanos(nanos);
            if packets.last().is_some_and(|(last, _)| *last > after) {
                return Err(wrong(format!("{time} s comes before the line above; times ascend")));
            }
            packets.push((after, bytes as u32));
        }
        if packets.is_empty() { Err("it lists no packet".into()) } else { Ok(LoadTrace { packets }) }
    }
}

/// Parameters of the load from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceConfig {
    /// The file: on each line the time of a packet in seconds since the load began, and its IP length
    /// in bytes.
    pub file: FileRef<LoadTrace>,
    /// The list begins anew after this time; without it, it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Span>,
}

impl Configured for TraceConfig {
    type Model = Trace;

    fn problems(&self) -> Vec<Problem> {
        let last = self.file.loaded().and_then(|trace| trace.packets.last());
        match (self.repeat, last) {
            (Some(Span::ZERO), _) => vec![Problem::new("repeat", "is zero; write for example \"10 s\"")],
            (Some(repeat), Some((last, _))) if repeat < *last => {
                let message = format!("is {repeat}, before the last packet of the file, which is at {last}");
                vec![Problem::new("repeat", message)]
            }
            _ => Vec::new(),
        }
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn build(&self, _key: DrawKey) -> Trace {
        Trace::new(self)
    }

    fn examples() -> Vec<TraceConfig> {
        let packets = [(0, 125), (5, 125), (5, 1500), (20, 40), (35, 600)];
        let packets = packets.map(|(millis, bytes)| (Span::from_millis(millis), bytes)).to_vec();
        let file = FileRef::with_data("example", LoadTrace { packets });
        let repeat = Some(Span::from_millis(50));
        vec![TraceConfig { file: file.clone(), repeat: None }, TraceConfig { file, repeat }]
    }
}

/// The load from a file.
#[derive(Clone, Debug)]
pub struct Trace {
    trace: Arc<LoadTrace>,
    repeat: Option<Span>,
    /// Beginning of the present round of the list.
    round: Span,
    place: usize,
    sent: u64,
}

impl Trace {
    pub(super) fn new(config: &TraceConfig) -> Trace {
        let trace = config.file.data().clone();
        Trace { trace, repeat: config.repeat, round: Span::ZERO, place: 0, sent: 0 }
    }
}

impl Generator for Trace {
    fn next_packet(&mut self) -> Option<Packet> {
        if self.place == self.trace.packets.len() {
            self.round = self.round + self.repeat?;
            self.place = 0;
        }
        let (after, bytes) = self.trace.packets[self.place];
        let packet = Packet { after: self.round + after, bytes, sender: self.sent };
        self.place += 1;
        self.sent += 1;
        Some(packet)
    }
}
