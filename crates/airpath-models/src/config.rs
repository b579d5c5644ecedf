//! The parameters of a path as typed values, after units have been read and shorthands expanded.

use airpath_core::limits::LONGEST_PACKET_BYTES;
use airpath_core::{Bits, BufferLimit, Ratio, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blackout::BlackoutConfig;
use crate::channel::ErrorsConfig;
use crate::disorder::{DuplicateConfig, ReorderConfig};
use crate::file::{VisitFile, under};
use crate::load::BackgroundConfig;
use crate::medium::{RateConfig, VaryingConfig};
use crate::queueing::QueueConfig;
use crate::random::Random;
use crate::states::Stay;

/// Something wrong with a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key within the table, such as `errors.delay`.
    pub key: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl Problem {
    /// A problem at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into() }
    }

    /// The same problem seen from the table above.
    pub fn under(self, table: &str) -> Problem {
        let key = if self.key.is_empty() { table.to_string() } else { format!("{table}.{}", self.key) };
        Problem { key, ..self }
    }
}

/// One direction of a hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkConfig {
    /// The rate at which bits are transmitted. A change takes effect with the next frame; of a frame
    /// that began at a rate that varies, what is left is sent at the new rate.
    pub rate: RateConfig,
    /// The delay that each frame suffers after its transmission; drawn once for each packet. Order is
    /// kept when it shrinks. A change takes effect for frames whose transmission ends after it.
    pub propagation: Random<Span>,
    /// The input queue.
    pub queue: QueueConfig,
    /// Link-layer bits added to every packet, before fragmentation and not compressed.
    pub overhead: Bits,
    /// The factor by which the link compresses packets; below 1 shrinks them.
    pub compression: Ratio,
    /// Division of packets into frames; without it a packet is one frame.
    pub fragmentation: Option<Fragmentation>,
    /// What the sending end holds, the packet under transmission included.
    pub send_buffer: BufferLimit,
    /// What the receiving end holds while it reassembles or keeps order.
    pub receive_buffer: BufferLimit,
    /// The delay before transmission when a packet meets an empty link; drawn for each such packet.
    pub allocation_delay: Random<Span>,
    /// Transmission errors.
    pub errors: ErrorsConfig,
    /// Packets that are held back while others pass them; without it order is kept. A change takes effect
    /// for packets that leave the link after it.
    pub reorder: Option<ReorderConfig>,
    /// Packets that leave the link more than once. A change takes effect for packets that leave the link
    /// after it.
    pub duplicate: Option<DuplicateConfig>,
    /// Whether nothing is transmitted for the time being, and what becomes of packets then. A change
    /// takes effect at once.
    pub blackout: BlackoutConfig,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            rate: RateConfig::default(),
            propagation: Span::ZERO.into(),
            queue: QueueConfig::default(),
            overhead: Bits::ZERO,
            compression: Ratio::ONE,
            fragmentation: None,
            send_buffer: BufferLimit::Packets(1),
            receive_buffer: BufferLimit::Unlimited,
            allocation_delay: Span::ZERO.into(),
            errors: ErrorsConfig::default(),
            reorder: None,
            duplicate: None,
            blackout: BlackoutConfig::default(),
        }
    }
}

/// Division of packets into frames. Frames are not shared between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fragmentation {
    /// Packet bits that a frame carries.
    pub frame_payload: Bits,
    /// Bits added to every frame.
    #[serde(default)]
    pub frame_header: Bits,
    /// How long a packet's last frame is.
    #[serde(default)]
    pub last_frame: LastFrame,
}

/// The length of a packet's last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LastFrame {
    /// As short as what is left of the packet.
    #[default]
    Short,
    /// Padded to the full frame, as on radio links with fixed blocks.
    Padded,
}

/// The most bits that a header or the payload of a frame may have: far above any packet, and far
/// below what would overflow a sum.
const LENGTH_LIMIT: Bits = Bits::from_bytes(1_000_000);

/// The most frames that a packet may be cut into: more would keep an engine busy with one packet.
const FRAMES_LIMIT: u64 = 100_000;

impl LinkConfig {
    /// Visits the files that the parameters name, each with its key.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.rate.files(&mut under("rate", visit));
        self.propagation.files(&mut under("propagation", visit));
        self.allocation_delay.files(&mut under("allocation_delay", visit));
        self.errors.files(&mut under("errors", visit));
        if let Some(reorder) = &mut self.reorder {
            reorder.files(&mut under("reorder", visit));
        }
        if let Some(duplicate) = &mut self.duplicate {
            duplicate.files(&mut under("duplicate", visit));
        }
    }

    /// What is wrong with the parameters, if anything.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.fragmentation.is_some_and(|fragmentation| fragmentation.frame_payload == Bits::ZERO) {
            problems.push(Problem::new(
                "fragmentation.frame_payload",
                "is 0 bit, so that no frame would carry anything; write for example \"432 bit\"",
            ));
        }
        let fragmentation = self.fragmentation.iter();
        let lengths = fragmentation.flat_map(|fragmentation| {
            [
                ("fragmentation.frame_payload", fragmentation.frame_payload),
                ("fragmentation.frame_header", fragmentation.frame_header),
            ]
        });
        for (key, length) in lengths.chain([("overhead", self.overhead)]) {
            if length > LENGTH_LIMIT {
                problems.push(Problem::new(key, format!("is {length}; it may be {LENGTH_LIMIT} at most")));
            }
        }
        // Absurd lengths have been told already.
        if problems.is_empty()
            && let Some(fragmentation) = self.fragmentation
        {
            let longest = self.compression.of(Bits::from_bytes(LONGEST_PACKET_BYTES.into())) + self.overhead;
            if longest.get().div_ceil(fragmentation.frame_payload.get()) > FRAMES_LIMIT {
                problems.push(Problem::new(
                    "fragmentation.frame_payload",
                    format!(
                        "is {}, so that the longest packet would be more than {FRAMES_LIMIT} frames",
                        fragmentation.frame_payload
                    ),
                ));
            }
        }
        if matches!(self.rate, RateConfig::Varying(VaryingConfig::Cellreplay(_)))
            && self.send_buffer != BufferLimit::Unlimited
        {
            let message = "a rate of type cellreplay takes packets as they come; write send_buffer = \"unlimited\"";
            problems.push(Problem::new("send_buffer", message));
        }
        problems.extend(self.rate.problems().into_iter().map(|problem| problem.under("rate")));
        problems.extend(self.propagation.problems().into_iter().map(|problem| problem.under("propagation")));
        let allocation = self.allocation_delay.problems().into_iter();
        problems.extend(allocation.map(|problem| problem.under("allocation_delay")));
        problems.extend(self.queue.problems().into_iter().map(|problem| problem.under("queue")));
        problems.extend(self.errors.problems().into_iter().map(|problem| problem.under("errors")));
        let reorder = self.reorder.iter().flat_map(ReorderConfig::problems);
        problems.extend(reorder.map(|problem| problem.under("reorder")));
        let duplicate = self.duplicate.iter().flat_map(DuplicateConfig::problems);
        problems.extend(duplicate.map(|problem| problem.under("duplicate")));
        problems
    }
}

/// One hop with both its directions.
#[derive(Clone, Debug, PartialEq)]
pub struct HopConfig {
    /// Its name: part of the key of its random draws, so it is the name and not the place in the
    /// list that decides them.
    pub name: String,
    /// From the client to the server.
    pub uplink: LinkConfig,
    /// From the server to the client.
    pub downlink: LinkConfig,
}

/// A set of parameters of the whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct StateConfig {
    /// Its name.
    pub name: String,
    /// When it comes into force; none if only a command or another state brings it.
    pub at: Option<Time>,
    /// The parameters of every hop while it is in force.
    pub hops: Vec<HopConfig>,
    /// How long it stays in force, and what follows.
    pub stay: Stay,
}

/// A path: hops from the client to the server, the states that change their parameters, and what other
/// users send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathConfig {
    /// The hops, the client's end first, with the parameters of the beginning.
    pub hops: Vec<HopConfig>,
    /// Further states.
    pub states: Vec<StateConfig>,
    /// How long the state of the beginning stays in force, and what follows.
    pub initial: Stay,
    /// Background loads; where packets of several come at one instant, the first one's come first.
    pub background: Vec<BackgroundConfig>,
}

/// Parameters that are set from outside while a path is in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The parameters of the beginning, whenever its state is next entered.
    pub beginning: Vec<HopConfig>,
    /// Those of the other states, whenever they are next entered.
    pub states: Vec<Vec<HopConfig>>,
    /// What is in force from now on, by the number of the state in force; or why it cannot be.
    pub in_force: Vec<Result<Vec<HopConfig>, String>>,
    /// The same if the state in force is still the one that was entered as the path's so-manieth.
    pub since: Option<(u64, Vec<HopConfig>)>,
}

impl PathConfig {
    /// Visits the files that the parameters of all hops name, in every state, and those of the states
    /// and of background loads.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        let stays = self.states.iter_mut().map(|state| &mut state.stay).chain([&mut self.initial]);
        for duration in stays.filter_map(|stay| stay.duration.as_mut()) {
            duration.files(&mut under("duration", visit));
        }
        for load in &mut self.background {
            load.files(visit);
        }
        let later = self.states.iter_mut().flat_map(|state| &mut state.hops);
        for hop in self.hops.iter_mut().chain(later) {
            hop.uplink.files(visit);
            hop.downlink.files(visit);
        }
    }
}
