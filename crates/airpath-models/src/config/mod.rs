// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The parameters of a path as typed values, after units have been read and shorthands expanded.

mod bearers;

use std::mem::discriminant;
use std::sync::LazyLock;

use airpath_core::limits::LONGEST_PACKET_BYTES;
use airpath_core::{Bits, BufferLimit, Direction, Framing, LinkRate, Probability, Ratio, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blackout::BlackoutConfig;
use crate::channel::{Effect, ErrorProcessConfig, ErrorsConfig, Headers, Per};
use crate::entity::{EntityConfig, EntityParameters, Fragmentation};
use crate::fading::FadingConfig;
use crate::file::{VisitFile, under};
use crate::filter::VisitFilter;
use crate::flow_control::FlowControlConfig;
use crate::impairment::{DuplicateConfig, ReorderConfig};
use crate::load::BackgroundConfig;
use crate::medium::{MediumChoice, MediumConfig, MediumParameters, RateConfig, VaryingConfig};
use crate::problem::Problem;
use crate::queueing::QueueConfig;
use crate::random::Random;
use crate::states::Stay;

pub use bearers::BearerConfig;

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
    /// Flow control of the packets that enter the hop in this direction: what stops the hop before, or the endpoint,
    /// instead of filling the queue. A change takes effect at once.
    pub flow_control: FlowControlConfig,
    /// Link-layer bits added to every packet, before fragmentation and not compressed.
    pub overhead: Bits,
    /// The factor by which the link compresses packets; below 1 shrinks them.
    pub compression: Ratio,
    /// Division of packets into frames; without it a packet is one frame.
    pub fragmentation: Option<Fragmentation>,
    /// Capacity of the sending end, the packet under transmission included.
    pub send_buffer: BufferLimit,
    /// Capacity of the receiving end for reassembly and reordering.
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
    /// Blackout of the link, and its treatment of packets. A change takes effect at once.
    pub blackout: BlackoutConfig,
    /// The kind of link entity at both ends. Both directions of a hop have the same kind, and no state
    /// changes it.
    pub entity: EntityConfig,
    /// The medium: of the hop's own, where both directions have the same kind, or the name of a shared one. No state
    /// changes it.
    pub medium: MediumChoice,
    /// The radio channel of the station, on a shared medium of type `ofdm` or `wifi`.
    pub fading: Option<Box<FadingConfig>>,
    /// Bearers of the hop on shared media, each with a queue and a pair of link entities of its own. The first whose
    /// `match` fits a packet takes it; the last one has no `match`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bearers: Vec<BearerConfig>,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            rate: RateConfig::default(),
            propagation: Span::ZERO.into(),
            queue: QueueConfig::default(),
            flow_control: FlowControlConfig::default(),
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
            entity: EntityConfig::default(),
            medium: MediumChoice::default(),
            fading: None,
            bearers: Vec::new(),
        }
    }
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
        self.entity.files(&mut under("entity", visit));
        self.medium.files(&mut under("medium", visit));
        if let Some(fading) = &mut self.fading {
            fading.files(&mut under("fading", visit));
        }
        for bearer in &mut self.bearers {
            let key = format!("bearers.{}", bearer.name);
            bearer.files(&mut under(&key, visit));
        }
    }

    /// Visits the filters of packets in the parameters.
    pub fn filters(&mut self, visit: &mut VisitFilter<'_>) {
        self.queue.filters(visit);
        self.errors.filters(visit);
        for bearer in &mut self.bearers {
            bearer.filters(visit);
        }
    }

    /// The parameters that concern the ends of the link.
    pub fn of_entity(&self) -> EntityParameters<'_> {
        EntityParameters {
            kind: &self.entity,
            overhead: self.overhead,
            compression: self.compression,
            fragmentation: self.fragmentation,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            timeslots: self.timeslots(),
            allocation_delay: &self.allocation_delay,
        }
    }

    fn timeslots(&self) -> u16 {
        match &self.rate {
            RateConfig::Varying(VaryingConfig::Slotted(slots)) => {
                let timeslots = self.entity.timeslots(slots.slot, slots.bits.get());
                timeslots.and_then(|timeslots| timeslots.try_into().ok()).unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// The parameters that concern the medium.
    pub fn of_medium(&self) -> MediumParameters<'_> {
        MediumParameters { kind: self.medium.own(), rate: &self.rate, fading: self.fading.as_deref() }
    }

    /// Errors in the parameters of a link whose entity makes frames of its own, if any.
    fn own_frames_problems(&self) -> Vec<Problem> {
        let mut problems = match &self.rate {
            RateConfig::Varying(VaryingConfig::Slotted(slots)) => {
                self.entity.slot_problems(slots.slot, slots.bits.get())
            }
            rate if self.medium.own().is_some() && rate.constant() == Some(LinkRate::Unlimited) => {
                let message = format!(
                    "is unlimited; frames of this entity take time: write a rate, or slots such as {}",
                    self.entity.slot_example()
                );
                vec![Problem::new("rate", message)]
            }
            _ => Vec::new(),
        };
        let mut problem = |key: &str, message: &str| problems.push(Problem::new(key, message));
        if self.fragmentation.is_some() {
            problem("fragmentation", "has no meaning with this entity, which makes frames of its own");
        }
        if self.allocation_delay != Random::from(Span::ZERO) && !self.entity.allocates() {
            problem("allocation_delay", "has no meaning with this entity");
        }
        if self.receive_buffer != BufferLimit::Unlimited {
            problem("receive_buffer", "has no meaning with this entity; it holds a window of frames");
        }
        if self.entity.framing().is_some() && self.compression != Ratio::ONE {
            problem(
                "entity.ppp.stuffing",
                "is \"counted\", but `compression` changes the octets whose escapes are counted; write a share of \
                 octets, such as stuffing = 0.0078",
            );
        }
        if self.errors.only.is_some() {
            problem("errors.only", "has no meaning with this entity, whose frames carry parts of several packets");
        }
        let is_error_free = match &self.errors.process {
            ErrorProcessConfig::None(_) => true,
            // What an option such as `--loss 0` means.
            ErrorProcessConfig::Bernoulli(config) => config.probability == Probability::ZERO,
            _ => false,
        };
        if is_error_free {
            return problems;
        }
        if self.errors.per == Per::Packet {
            let message = match self.entity.has_own_lengths() {
                true => "is \"packet\"; errors hit frames of this entity: write \"frame\", \"bit\" or \"block\"",
                false => {
                    "is \"packet\"; this entity puts several packets into a frame: write \"frame\", \"bit\" or \"block\""
                }
            };
            problem("errors.per", message);
        }
        match self.errors.effect.effect {
            Effect::Delay => {
                problem("errors.effect", "is \"delay\", which stands for a link that repeats; write \"drop\"");
            }
            Effect::Truncate if !self.entity.uses_beginnings() => {
                problem("errors.effect", "is \"truncate\", which concerns packets; write \"drop\"");
            }
            Effect::Drop | Effect::Corrupt | Effect::Truncate => {}
        }
        if self.errors.effect.headers == Headers::Spared {
            problem("errors.headers", "is \"spared\"; errors of this entity hit bits of frames, whatever they carry");
        }
        problems
    }

    /// Errors in the parameters beside the choice of a medium, if any.
    fn radio_problems(&self) -> Vec<Problem> {
        let fading = self.fading.iter().flat_map(|fading| fading.problems());
        let mut problems: Vec<Problem> = fading.map(|problem| problem.under("fading")).collect();
        if self.medium.own().is_some() && self.fading.is_some() {
            let message = "has no meaning with a medium of the hop's own; write medium = \"NAME\" of one of the [[media]] \
                           with resources";
            problems.push(Problem::new("fading", message));
        }
        if self.medium.name().is_some() && self.rate != RateConfig::default() {
            problems.push(Problem::new("rate", "has no meaning on a shared medium, which has the rate"));
        }
        problems
    }

    /// Errors in the parameters, if any.
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
        if self.entity.has_own_frames() {
            problems.extend(self.own_frames_problems());
        }
        problems.extend(self.rate.problems().into_iter().map(|problem| problem.under("rate")));
        problems.extend(self.propagation.problems().into_iter().map(|problem| problem.under("propagation")));
        let allocation = self.allocation_delay.problems().into_iter();
        problems.extend(allocation.map(|problem| problem.under("allocation_delay")));
        problems.extend(self.queue.problems().into_iter().map(|problem| problem.under("queue")));
        problems.extend(self.flow_control.problems().into_iter().map(|problem| problem.under("flow_control")));
        problems.extend(self.errors.problems().into_iter().map(|problem| problem.under("errors")));
        let reorder = self.reorder.iter().flat_map(ReorderConfig::problems);
        problems.extend(reorder.map(|problem| problem.under("reorder")));
        let duplicate = self.duplicate.iter().flat_map(DuplicateConfig::problems);
        problems.extend(duplicate.map(|problem| problem.under("duplicate")));
        problems.extend(self.entity.problems().into_iter().map(|problem| problem.under("entity")));
        problems.extend(self.medium.problems().into_iter().map(|problem| problem.under("medium")));
        problems.extend(self.radio_problems());
        let of_bearers = self.bearer_problems(&problems);
        problems.extend(of_bearers);
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

impl HopConfig {
    /// A hop with these parameters.
    pub fn new(name: impl Into<String>, uplink: LinkConfig, downlink: LinkConfig) -> HopConfig {
        HopConfig { name: name.into(), uplink, downlink }
    }

    /// The kind of the hop's own medium; the default where both directions are on shared ones.
    pub fn own_medium(&self) -> &MediumConfig {
        static NONE: LazyLock<MediumConfig> = LazyLock::new(MediumConfig::default);
        self.uplink.medium.own().or(self.downlink.medium.own()).unwrap_or(&NONE)
    }

    /// The parameters of one direction.
    pub fn link(&self, direction: Direction) -> &LinkConfig {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }

    /// Errors in the kinds of link entity and medium, if any: both directions have the same, and so has
    /// `beginning`, the hop at the beginning of the run.
    pub fn kind_problems(&self, beginning: &HopConfig) -> Vec<Problem> {
        let mut problems = Vec::new();
        let links = [&self.downlink, &beginning.uplink];
        let why = [
            "is not the same for both directions; write it under `link`",
            "is another than at the beginning; no state can change it",
        ];
        for (other, why) in links.into_iter().zip(why) {
            if discriminant(&self.uplink.entity) != discriminant(&other.entity) {
                problems.push(Problem::new("entity", why));
            }
            if let (Some(own), Some(other)) = (self.uplink.medium.own(), other.medium.own())
                && discriminant(own) != discriminant(other)
            {
                problems.push(Problem::new("medium", why));
            }
        }
        for direction in Direction::ALL {
            if beginning.link(direction).medium.name() != self.link(direction).medium.name() {
                let message = "is another than at the beginning; no state can change it";
                problems.push(Problem::new("medium", message));
                break;
            }
        }
        let pair = self.uplink.entity.pair_problems(&self.downlink.entity);
        problems.extend(pair.into_iter().map(|problem| problem.under("entity")));
        for direction in Direction::ALL {
            let (before, now) = (beginning.link(direction), self.link(direction));
            if !now.entity.has_own_frames() {
                continue;
            }
            let others =
                [("overhead", before.overhead != now.overhead), ("compression", before.compression != now.compression)];
            let mut changed: Vec<String> =
                others.into_iter().filter(|(_, is)| *is).map(|(key, _)| key.into()).collect();
            let may = now.entity.changes();
            // Another kind has been told.
            if discriminant(&now.entity) == discriminant(&before.entity) {
                let keys = now.entity.differences(&before.entity).into_iter();
                changed.extend(keys.filter(|key| !may.contains(&key.as_str())).map(|key| format!("entity.{key}")));
            }
            let may = may.iter().map(|key| format!("`entity.{key}`")).collect::<Vec<_>>().join(" and ");
            let may = if may.is_empty() { may } else { format!(", only {may}") };
            for key in changed {
                let message = format!("is another than at the beginning; with this entity no state can change it{may}");
                let problem = Problem::new(key, message);
                // Both directions mostly have it.
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        let of_bearers = self.bearer_kind_problems(beginning, &problems);
        problems.extend(of_bearers);
        problems
    }
}

/// A set of parameters of the whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct StateConfig {
    /// Its name.
    pub name: String,
    /// Start time; none if only a command or another state brings it.
    pub at: Option<Time>,
    /// The parameters of every hop while it is in force.
    pub hops: Vec<HopConfig>,
    /// Duration and successor.
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
    /// Duration and successor of the initial state.
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
    /// Parameters in force from now on, by the number of the state in force; or the reason that they cannot be.
    pub in_force: Vec<Result<Vec<HopConfig>, String>>,
    /// The same if the state in force is still the n-th entry of a state on this path.
    pub since: Option<(u64, Vec<HopConfig>)>,
}

impl PathConfig {
    /// True if a hop has link entities with a protocol or frames of their own, which keep a log.
    pub fn keeps_links(&self) -> bool {
        self.hops.iter().flat_map(HopConfig::of_bearers).any(|hop| hop.uplink.entity.has_own_frames())
    }

    /// The framing for which escapes of packets in `direction` are to be counted: that of the first hop that wants
    /// it.
    pub fn framing(&self, direction: Direction) -> Option<Framing> {
        self.hops.iter().flat_map(HopConfig::of_bearers).find_map(|hop| hop.link(direction).entity.framing())
    }

    /// True if the length of a packet in `direction` on the line of a hop depends on its headers.
    pub fn reads_headers(&self, direction: Direction) -> bool {
        self.hops.iter().any(|hop| hop.link(direction).entity.reads_headers())
    }

    /// Hops that want escapes of packets in a direction counted for another framing than a hop before them: a packet
    /// carries one count.
    pub fn other_framings(hops: &[HopConfig]) -> Vec<usize> {
        let differs = |place: usize, direction| {
            let of_hop = |hop: &HopConfig| {
                let bearers = hop.of_bearers().into_iter();
                bearers.filter_map(|bearer| bearer.link(direction).entity.framing()).collect::<Vec<_>>()
            };
            let own = of_hop(&hops[place]);
            let first = hops[..=place].iter().flat_map(of_hop).next();
            own.into_iter().any(|framing| Some(framing) != first)
        };
        (0..hops.len()).filter(|place| Direction::ALL.into_iter().any(|direction| differs(*place, direction))).collect()
    }

    /// Hops with flow control of packets that come from a hop with bearers, and the direction: several queues would
    /// have one window.
    pub fn windows_behind_bearers(hops: &[HopConfig]) -> Vec<(usize, Direction)> {
        let is_behind = |(place, direction): &(usize, Direction)| {
            let before = match direction {
                Direction::Uplink => place.checked_sub(1),
                Direction::Downlink => Some(place + 1),
            };
            let before = before.and_then(|before| hops.get(before));
            hops[*place].link(*direction).flow_control.window().is_some()
                && before.is_some_and(|before| before.bearer_count() > 1)
        };
        let all = (0..hops.len()).flat_map(|place| Direction::ALL.map(|direction| (place, direction)));
        all.filter(is_behind).collect()
    }

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
