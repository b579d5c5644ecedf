// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Flow control between network elements: a window for the packets on their way into a hop.
//!
//! Source: Kojo et al. 2001, section 4.2 (the receiving network element controls the rate at which packets come to
//! it, by "a sliding window based algorithm").
//!
//! The window of a hop counts the packets that the hop before has taken out of its input queue and that have not left
//! the input queue of this one: in the send buffer, on the air, in propagation, held back, and queued here. The hop
//! before takes another packet out of its queue while they are within the window. A packet that is lost on the way
//! counts no more from that instant: the count is that of the packets there are, and no credit that could get lost
//! with them. The first hop has no hop before; its window stops the endpoint while the input queue holds as much.

use airpath_core::{Bits, Credit, Pdu};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::stage::QueueLength;

/// Flow control of the packets that enter a hop: `{ type = "window", packets = 4 }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FlowControlConfig {
    /// Packets come as fast as the hop before sends them.
    None(NoFlowControlConfig),
    /// The hop before, or the endpoint, stops while a window is full.
    Window(WindowConfig),
}

/// The absence of flow control has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoFlowControlConfig {}

/// A window of packets, of bytes, or of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowConfig {
    /// Number of packets, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Total length of IP packets, in whole bytes. A packet that is longer passes alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bits>,
}

impl Default for FlowControlConfig {
    fn default() -> FlowControlConfig {
        FlowControlConfig::None(NoFlowControlConfig {})
    }
}

impl FlowControlConfig {
    /// The window, if there is one.
    pub(crate) fn window(&self) -> Option<Window> {
        match self {
            FlowControlConfig::None(_) => None,
            FlowControlConfig::Window(WindowConfig { packets, bytes }) => Some(Window {
                packets: packets.unwrap_or(u32::MAX),
                bytes: bytes.map_or(u64::MAX, |bytes| bytes.get() / 8),
            }),
        }
    }

    /// The credit of a hop with this flow control for a hop before it that another machine has, at the beginning.
    pub fn first_credit(&self) -> Credit {
        Window::credit(self.window(), 0, 0)
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let FlowControlConfig::Window(WindowConfig { packets, bytes }) = self else { return Vec::new() };
        let mut problems = Vec::new();
        if packets.is_none() && bytes.is_none() {
            let message =
                "is a window of neither packets nor bytes; write for example { type = \"window\", packets = 4 }";
            problems.push(Problem::new("", message));
        }
        if *packets == Some(0) {
            let message = "is 0, so that no packet would ever pass; write at least 1, or type = \"none\" for no flow \
                           control";
            problems.push(Problem::new("packets", message));
        }
        if let Some(bytes) = bytes
            && (bytes.get() == 0 || bytes.get() % 8 != 0)
        {
            let message = format!("is {bytes}; it must be one byte or more, and whole bytes, such as \"6 kB\"");
            problems.push(Problem::new("bytes", message));
        }
        problems
    }

    /// Parameters worth testing.
    pub fn examples() -> Vec<FlowControlConfig> {
        let window = |packets, bytes: Option<u64>| {
            FlowControlConfig::Window(WindowConfig { packets, bytes: bytes.map(Bits::from_bytes) })
        };
        vec![
            FlowControlConfig::default(),
            window(Some(1), None),
            window(Some(4), None),
            window(None, Some(3_000)),
            window(Some(3), Some(2_000)),
            // Shorter than most packets.
            window(None, Some(1)),
        ]
    }
}

/// A window at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    packets: u32,
    bytes: u64,
}

impl Window {
    /// The credit of `window`, from whose queue so much has gone.
    pub(crate) fn credit(window: Option<Window>, taken_packets: u64, taken_bytes: u64) -> Credit {
        let Window { packets, bytes } = window.unwrap_or(Window { packets: u32::MAX, bytes: u64::MAX });
        Credit { taken_packets, taken_bytes, window_packets: packets, window_bytes: bytes }
    }

    /// The window that `credit` tells of, if there is one.
    pub(crate) fn of_credit(credit: &Credit) -> Option<Window> {
        let window = Window { packets: credit.window_packets, bytes: credit.window_bytes };
        (window.packets < u32::MAX || window.bytes < u64::MAX).then_some(window)
    }

    /// True if a packet of `bytes` may join those on the way. One passes where there is none, whatever its length.
    pub(crate) fn admits(self, on_the_way: QueueLength, bytes: u32) -> bool {
        on_the_way.packets == 0
            || on_the_way.packets < self.packets && on_the_way.bytes + u64::from(bytes) <= self.bytes
    }

    /// True if no packet of any length may join those on the way.
    pub(crate) fn is_full(self, on_the_way: QueueLength) -> bool {
        on_the_way.packets >= self.packets || on_the_way.packets > 0 && on_the_way.bytes >= self.bytes
    }
}

/// The window of the next hop, at the input queue whose packets go there.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) window: Window,
    /// Packets that have left the hop and not the input queue of the next one. Between two events it may be more than
    /// there are, and never less.
    pub(crate) beyond: QueueLength,
    /// True if the window has stopped the queue, and not the send buffer.
    pub(crate) is_shut: bool,
}

impl Gate {
    /// The gate of `window`, behind which nothing is.
    pub(crate) fn new(window: Window) -> Gate {
        Gate { window, beyond: QueueLength::default(), is_shut: false }
    }
}

/// Number and total length of packets.
pub(crate) fn length_of<'a>(packets: impl Iterator<Item = &'a Pdu>) -> QueueLength {
    packets.fold(QueueLength::default(), |sum, pdu| sum + QueueLength { packets: 1, bytes: pdu.len.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(packets: Option<u32>, bytes: Option<u64>) -> Window {
        FlowControlConfig::Window(WindowConfig { packets, bytes: bytes.map(Bits::from_bytes) }).window().unwrap()
    }

    #[test]
    fn a_window_ends_at_its_last_packet_and_its_last_byte() {
        let on = |packets, bytes| QueueLength { packets, bytes };
        let packets = window(Some(2), None);
        assert!(packets.admits(on(1, 9_000), 9_000) && !packets.is_full(on(1, 9_000)));
        assert!(!packets.admits(on(2, 2), 1) && packets.is_full(on(2, 2)));
        let bytes = window(None, Some(1_000));
        assert!(bytes.admits(on(3, 900), 100) && !bytes.admits(on(3, 900), 101));
        assert!(!bytes.is_full(on(3, 999)) && bytes.is_full(on(3, 1_000)));
        // Where nothing is on the way, one packet passes.
        assert!(bytes.admits(on(0, 0), 1_500) && !bytes.is_full(on(0, 0)));
        let both = window(Some(2), Some(1_000));
        assert!(!both.admits(on(2, 100), 100) && !both.admits(on(1, 950), 100) && both.admits(on(1, 900), 100));
    }

    #[test]
    fn windows_through_which_nothing_passes_are_refused() {
        let problems = |packets, bytes| {
            let config = FlowControlConfig::Window(WindowConfig { packets, bytes });
            config.problems().into_iter().map(|problem| problem.key).collect::<Vec<_>>()
        };
        assert_eq!(problems(None, None), [""]);
        assert_eq!(problems(Some(0), Some(Bits::ZERO)), ["packets", "bytes"]);
        assert_eq!(problems(None, Some(Bits::new(12))), ["bytes"]);
        assert_eq!(problems(Some(1), Some(Bits::from_bytes(1))), [""; 0]);
        assert!(FlowControlConfig::examples().iter().all(|config| config.problems().is_empty()));
    }
}
