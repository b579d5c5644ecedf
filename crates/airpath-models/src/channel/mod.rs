// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Transmission errors: which packets, frames or bits they hit, and what happens to those.

#[cfg(test)]
mod as_units;
pub mod bernoulli;
mod by_time;
pub mod effect;
pub mod environment;
pub mod error_free;
pub mod four_state;
mod g191;
pub mod gilbert_elliott;
pub mod mta;
pub mod pattern;
mod position_list;
pub mod positions;
pub mod run_lengths;
pub mod runs;
pub mod trace;
pub mod trace_file;
mod truncate;

use airpath_core::{Bits, DrawKey, Pdu, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use effect::{Effect, EffectConfig, Headers};
pub use position_list::PositionList;

use crate::file::{VisitFile, under};
use crate::filter::{Filter, VisitFilter};
use crate::problem::Problem;
use crate::random::{Random, Sampler};
use crate::registry::registry;
use by_time::Clock;
use trace_file::Record;
use truncate::Cut;

/// Unit of an error draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One draw for every packet, when its last frame has been transmitted.
    #[default]
    Packet,
    /// One draw for every frame.
    Frame,
    /// One draw for every bit.
    Bit,
    /// One draw for every millisecond; it is for all frames whose transmission ends in it.
    Millisecond,
    /// One draw for every block of the length `block`; it is for all frames whose transmission begins in it.
    Block,
}

/// Something transmitted, as the channel sees it.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Bits on the air, all headers and padding included.
    pub bits: u64,
    /// The first bit of the packet that it carries.
    pub first_bit: u32,
    /// Number of the packet's bits in the frame.
    pub packet_bits: u32,
    /// The bits of the packet's own network and transport headers.
    pub header_bits: u32,
}

/// Outcome of a transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelOutcome {
    /// It arrives as it was sent.
    Ok,
    /// The receiver notices the error and discards it.
    Lost,
    /// A blackout took it away.
    BlackedOut,
    /// It arrives with bits of the packet flipped; positions count from the packet's first bit.
    Flipped(Vec<u32>),
    /// Only the packet's beginning arrives, perhaps with bits flipped.
    Truncated {
        /// The bytes of the packet before the cut, at least one.
        bytes: u32,
        /// As [`ChannelOutcome::Flipped`]; all before the cut.
        flips: Vec<u32>,
    },
    /// It arrives, but later.
    Delayed {
        /// Length of the delay.
        by: Span,
        /// True if later frames wait behind it.
        keep_order: bool,
    },
}

/// Process that decides which transmissions are hit, in its own steps (packets, frames or bits).
pub trait ErrorProcess {
    /// True if transmission number `step` as a whole is hit.
    fn hits(&mut self, step: u64) -> bool;

    /// Outcome of transmission number `step`, where the process knows more than hit or not.
    fn record(&mut self, step: u64) -> Record<'_> {
        if self.hits(step) { Record::Hit } else { Record::Ok }
    }

    /// Outcome of frame number `frame` of those that belong to the step taken last, where steps are intervals of time
    /// and the process knows more than hit or not; none where it does not.
    fn frame_record(&mut self, _frame: u64) -> Option<Record<'_>> {
        None
    }

    /// Appends the hit ones of the next `bits` bits to `positions` in ascending order; stops at the first if
    /// `only_first`. Every bit takes one step of the process either way.
    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>);
}

registry! {
    /// The process that decides what is hit.
    config ErrorProcessConfig,
    /// An error process of any registered kind.
    model ErrorProcessModel,
    dispatch dispatch_process, dispatch_process_config,
    built from airpath_core::DrawKey,
    reconfigured yes,
    /// No errors.
    None = error_free::{ErrorFreeConfig, ErrorFree},
    /// Independent errors of one probability.
    /// Source: Kojo et al. 2001, section 4.3.
    Bernoulli = bernoulli::{BernoulliConfig, Bernoulli},
    /// Errors in bursts: two states with an error probability each.
    /// Source: Gilbert 1960; Elliott 1963.
    GilbertElliott = gilbert_elliott::{GilbertElliottConfig, GilbertElliott},
    /// Runs without errors and runs of errors, with a distribution of lengths each.
    /// Source: Ji et al. 2004; Karner et al. 2007.
    Runs = runs::{RunsConfig, Runs},
    /// Error-free and lossy states, and a Markov chain of a higher order in the lossy ones.
    /// Source: Konrad et al. 2003.
    Mta = mta::{MtaConfig, Mta},
    /// Losses in bursts and alone: the four states of netem.
    /// Source: Salsano et al. 2009, section 4.1.
    FourState = four_state::{FourStateConfig, FourState},
    /// Regular bursts: `burst` out of every `every`.
    /// Source: Eckhardt and Steenkiste 2002, section 3.
    Pattern = pattern::{PatternConfig, Pattern},
    /// A wireless LAN in an environment: packets are lost, truncated, or arrive with flipped bits.
    /// Source: Eckhardt and Steenkiste 2002, table 1.
    Environment = environment::{EnvironmentConfig, Environments},
    /// Errors at given positions.
    /// Source: KauNet (Garcia et al. 2007).
    Positions = positions::{PositionsConfig, Positions},
    /// Errors replayed from a trace.
    /// Source: Eckhardt and Steenkiste 2002, section 4; Singh 2000, section 5.1.
    Trace = trace::{TraceConfig, Trace},
}

/// Transmission errors of a direction:
/// `{ type = "bernoulli", per = "packet", probability = 0.01, effect = "drop" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorsConfig {
    /// Process that decides which units are hit.
    #[serde(flatten)]
    pub process: ErrorProcessConfig,
    /// Unit that is hit or spared as a whole.
    #[serde(default)]
    pub per: Per,
    /// Effect of a hit.
    #[serde(flatten)]
    pub effect: EffectConfig,
    /// With `effect = "truncate"` per packet, frame or millisecond: remaining length in whole bytes; shorter units
    /// are not cut. Without it every shorter length is equally likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Random<Bits>>,
    /// Packets that errors hit; without it all packets. Packets and frames of others are not counted by the process, and
    /// time passes for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<OnlyConfig>,
    /// With `per = "block"`: length of a block, such as `"20 ms"`. Block n begins n lengths after the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Span>,
}

/// Packets that errors hit: `{ filter = "udp and port 5004" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnlyConfig {
    /// Filter expression that their bytes match as they enter the link, as of `airpath log --filter`.
    pub filter: Filter,
}

/// The least length of a block.
const LEAST_BLOCK: Span = Span::from_micros(100);

impl Default for ErrorsConfig {
    fn default() -> ErrorsConfig {
        ErrorsConfig {
            process: ErrorProcessConfig::None(error_free::ErrorFreeConfig {}),
            per: Per::default(),
            effect: EffectConfig::default(),
            kept: None,
            only: None,
            block: None,
        }
    }
}

impl ErrorsConfig {
    /// Length of the intervals by which time is divided, for units of time.
    fn interval(&self) -> Option<Span> {
        match self.per {
            Per::Packet | Per::Frame | Per::Bit => None,
            Per::Millisecond => Some(Span::from_millis(1)),
            Per::Block => self.block,
        }
    }

    /// True if errors follow from the time, whatever is sent.
    pub fn is_timed(&self) -> bool {
        matches!(self.per, Per::Millisecond | Per::Block)
    }

    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.process.files(visit);
        if let Some(delay) = &mut self.effect.delay {
            delay.files(&mut under("delay", visit));
        }
        if let Some(kept) = &mut self.kept {
            kept.files(&mut under("kept", visit));
        }
    }

    /// Visits the filters of packets in the parameters.
    pub fn filters(&mut self, visit: &mut VisitFilter<'_>) {
        if let Some(only) = &mut self.only {
            visit(&mut only.filter);
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.process.problems();
        if self.per == Per::Bit {
            problems.extend(self.process.problem_per_bit());
        }
        problems.extend(self.effect.problems(self.per));
        match (self.per, self.block) {
            (Per::Block, None) => {
                problems
                    .push(Problem::new("block", "is missing: per = \"block\" needs it, for example block = \"20 ms\""));
            }
            (Per::Block, Some(block)) if block < LEAST_BLOCK => {
                problems.push(Problem::new("block", format!("is {block}; it must be {LEAST_BLOCK} at least")));
            }
            (Per::Block, Some(_)) | (_, None) => {}
            (_, Some(_)) => problems.push(Problem::new("block", "has no meaning without per = \"block\"")),
        }
        if let Some(kept) = &self.kept {
            if self.effect.effect != Effect::Truncate {
                problems.push(Problem::new("kept", "has no meaning without effect = \"truncate\""));
            } else if self.per == Per::Bit {
                let message = "has no meaning per bit: what is hit is cut before the first bit that is";
                problems.push(Problem::new("kept", message));
            }
            problems.extend(kept.problems().into_iter().map(|problem| problem.under("kept")));
        }
        problems
    }

    /// Every process with every unit and effect; the laws are tested with each of them.
    pub fn examples() -> Vec<ErrorsConfig> {
        let mut all = Vec::new();
        for process in ErrorProcessConfig::examples() {
            for per in [Per::Packet, Per::Frame, Per::Bit, Per::Millisecond, Per::Block] {
                if per == Per::Bit && process.has_outcomes() {
                    continue;
                }
                let block = (per == Per::Block).then(|| Span::from_millis(20));
                for effect in EffectConfig::examples(per) {
                    all.push(ErrorsConfig { process: process.clone(), per, effect, kept: None, only: None, block });
                }
            }
        }
        let process = ErrorProcessConfig::examples().pop().unwrap_or(ErrorsConfig::default().process);
        let effect = EffectConfig { effect: Effect::Truncate, ..EffectConfig::default() };
        for kept in Random::examples(Bits::from_bytes(40)) {
            let per = if all.len() % 2 == 0 { Per::Packet } else { Per::Frame };
            all.push(ErrorsConfig {
                process: process.clone(),
                per,
                effect: effect.clone(),
                kept: Some(kept),
                only: None,
                block: None,
            });
        }
        let filter = "udp and port 5004".parse().expect("an example is valid");
        let only = Some(OnlyConfig { filter });
        let process = ErrorProcessConfig::Bernoulli(bernoulli::BernoulliConfig {
            probability: "0.4".parse().expect("an example is valid"),
        });
        for per in [Per::Packet, Per::Frame, Per::Millisecond] {
            all.push(ErrorsConfig { process: process.clone(), per, only: only.clone(), ..ErrorsConfig::default() });
        }
        let process = ErrorProcessConfig::Trace(trace::example_with_outcomes());
        for per in [Per::Packet, Per::Frame, Per::Millisecond, Per::Block] {
            all.extend(EffectConfig::examples(per).into_iter().map(|effect| ErrorsConfig {
                process: process.clone(),
                per,
                effect,
                kept: None,
                only: None,
                block: (per == Per::Block).then(|| Span::from_millis(20)),
            }));
        }
        all
    }
}

impl ErrorProcessConfig {
    /// True if the process loses, truncates or flips by itself, rather than leaving it to the effect.
    pub fn has_outcomes(&self) -> bool {
        match self {
            ErrorProcessConfig::Trace(config) => config.file.loaded().is_some_and(|trace| trace.has_outcomes()),
            ErrorProcessConfig::Environment(_) => true,
            _ => false,
        }
    }

    /// The problem of such a process per bit.
    fn problem_per_bit(&self) -> Option<Problem> {
        let key = if matches!(self, ErrorProcessConfig::Trace(_)) { "file" } else { "environment" };
        let message = "loses, truncates or flips, which is not done to single bits; write per = \"packet\", \"frame\", \
                       \"millisecond\" or \"block\"";
        self.has_outcomes().then(|| Problem::new(key, message))
    }
}

impl ErrorProcess for ErrorProcessModel {
    fn hits(&mut self, step: u64) -> bool {
        dispatch_process!(self, process => process.hits(step))
    }
    fn record(&mut self, step: u64) -> Record<'_> {
        dispatch_process!(self, process => process.record(step))
    }
    fn frame_record(&mut self, frame: u64) -> Option<Record<'_>> {
        dispatch_process!(self, process => process.frame_record(frame))
    }
    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        dispatch_process!(self, process => process.hit_bits(step, bits, only_first, positions));
    }
}

/// Outcome of a unit of which `kept_bytes` are left, if not all, with flipped bits where it has such bits.
fn damaged(kept_bytes: Option<u32>, flips: &[u32], headers: Headers, unit: &Transmission) -> ChannelOutcome {
    let there = flips.iter().filter(|position| **position < unit.packet_bits);
    let mut flips: Vec<u32> = there.map(|position| position + unit.first_bit).collect();
    if headers == Headers::Spared {
        flips.retain(|position| *position >= unit.header_bits);
    }
    truncate::kept(kept_bytes.map_or(u64::MAX, |bytes| u64::from(bytes) * 8), flips, unit)
}

fn only_of(config: &ErrorsConfig) -> Option<Filter> {
    config.only.as_ref().map(|only| only.filter.clone())
}

fn delay_of(effect: &EffectConfig) -> Random<Span> {
    effect.delay.clone().unwrap_or_default()
}

/// Bits in which a link entity is told of the errors of its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorPositions {
    /// Bits of the packet in the frame. Frames without a packet are lost or spared as a whole.
    #[default]
    OfPacket,
    /// Bits of the frame on the air, headers and padding included. The entity, which built the frame, knows what
    /// they are.
    OfFrame,
}

/// The channel of one direction: the error process and its effect.
#[derive(Clone, Debug)]
pub struct Channel {
    per: Per,
    effect: EffectConfig,
    cut: Cut,
    process: ErrorProcessModel,
    /// True if the process loses, truncates or flips by itself.
    process_has_outcomes: bool,
    /// Key of the process, kept for a change of its kind.
    process_key: DrawKey,
    /// Number of changes of the kind of the process: a process that comes back begins anew, and must not repeat
    /// the draws of its first beginning.
    generation: u64,
    /// Key of the positions of flipped bits.
    flip_key: DrawKey,
    /// The filter of the packets that are hit; none where all are.
    only: Option<Filter>,
    /// Delay of a hit unit.
    delay: Sampler<Span>,
    /// The index of the next packet, frame or interval.
    step: u64,
    /// Position of the process, where time is divided.
    clock: Option<Clock>,
    /// Number of frames hit: since the beginning per millisecond, in the present block per block.
    hit_by_time: u64,
    /// Number of the block to which `hit_by_time` belongs.
    hit_block: u64,
    /// Number of intervals at the last frame, and of frames in the last of them so far.
    in_interval: (u64, u64),
    scratch: Vec<u32>,
}

impl Channel {
    /// A channel at its beginning; the keys are those of its process and of the flipped bits.
    pub fn new(config: &ErrorsConfig, process_key: DrawKey, flip_key: DrawKey) -> Channel {
        Channel {
            per: config.per,
            effect: config.effect.clone(),
            cut: Cut::new(config.kept.as_ref(), flip_key.child("kept", 0)),
            process: ErrorProcessModel::new(&config.process, process_key),
            process_has_outcomes: config.process.has_outcomes(),
            process_key,
            generation: 0,
            flip_key,
            only: only_of(config),
            delay: Sampler::new(&delay_of(&config.effect), flip_key.child("delay", 0)),
            step: 0,
            clock: config.interval().map(|interval| Clock::starting(Time::ZERO, interval)),
            hit_by_time: 0,
            hit_block: 0,
            in_interval: (0, 0),
            scratch: Vec::new(),
        }
    }

    /// Changes the parameters at `at`; steps are counted on. Takes effect for transmissions that end
    /// after it.
    pub fn configure(&mut self, config: &ErrorsConfig, at: Time) {
        if let Some(clock) = &mut self.clock {
            clock.catch_up(at, &mut self.step, &mut self.process, &mut self.scratch);
        }
        let interval = config.interval();
        if self.per != config.per || self.clock.as_ref().map(Clock::interval) != interval {
            self.clock = interval.map(|interval| Clock::starting(at, interval));
        }
        self.per = config.per;
        self.effect = config.effect.clone();
        self.only = only_of(config);
        self.delay.configure(&delay_of(&config.effect));
        self.cut.configure(config.kept.as_ref());
        self.process_has_outcomes = config.process.has_outcomes();
        if !self.process.reconfigure(&config.process, at) {
            self.generation += 1;
            let key = self.process_key.child("generation", self.generation);
            self.process = ErrorProcessModel::new(&config.process, key);
            self.clock = interval.map(|interval| Clock::starting(at, interval));
        }
    }

    /// The time by which a frame is judged whose transmission lasts from `start` to `end`.
    #[inline]
    pub fn judged_at(&self, start: Time, end: Time) -> Time {
        if self.per == Per::Block { start } else { end }
    }

    /// True if there are no errors.
    #[inline]
    pub fn is_error_free(&self) -> bool {
        matches!(self.process, ErrorProcessModel::None(_))
    }

    /// True if each frame arrives as it was sent or is lost, whatever packet it carries.
    pub fn only_loses(&self) -> bool {
        self.is_error_free()
            || (self.effect.effect == Effect::Drop && self.only.is_none() && !self.process_has_outcomes)
    }

    /// True if errors spare what carries the packet that `pdu` tells, if it carries one.
    #[inline]
    pub fn spares<'a>(&self, pdu: impl FnOnce() -> Option<&'a Pdu>) -> bool {
        self.only.as_ref().is_some_and(|filter| !pdu().is_some_and(|pdu| filter.takes(pdu)))
    }

    /// Outcome of a frame that is judged by the time `at`; `packet` is the whole packet if this is its last
    /// frame.
    #[inline]
    pub fn outcome(&mut self, at: Time, frame: &Transmission, packet: Option<&Transmission>) -> ChannelOutcome {
        if self.is_error_free() {
            return ChannelOutcome::Ok;
        }
        self.drawn_outcome(at, frame, packet)
    }

    fn drawn_outcome(&mut self, at: Time, frame: &Transmission, packet: Option<&Transmission>) -> ChannelOutcome {
        let unit = match self.per {
            Per::Packet => match packet {
                Some(packet) => packet,
                None => return ChannelOutcome::Ok,
            },
            Per::Frame | Per::Bit => frame,
            Per::Millisecond | Per::Block => return self.outcome_of_time(at, frame),
        };
        let step = self.step;
        self.step += 1;
        self.scratch.clear();
        if self.per == Per::Bit {
            return self.outcome_of_bits(step, unit);
        }
        match self.process.record(step) {
            Record::Ok => ChannelOutcome::Ok,
            Record::Hit => self.outcome_of_hit(self.flip_key, step, unit),
            Record::Lost => ChannelOutcome::Lost,
            Record::Damaged { kept_bytes, flips } => damaged(kept_bytes, flips, self.effect.headers, unit),
        }
    }

    /// Outcome of a unit that is hit as a whole, by the effect.
    fn outcome_of_hit(&mut self, flip_key: DrawKey, step: u64, unit: &Transmission) -> ChannelOutcome {
        match self.effect.effect {
            Effect::Corrupt => self.effect.choose_flips(flip_key, step, unit, &mut self.scratch),
            Effect::Truncate => return self.cut.outcome(step, unit),
            Effect::Drop | Effect::Delay => {}
        }
        self.effect.outcome(&self.scratch, || self.delay.draw(step))
    }

    fn outcome_of_time(&mut self, at: Time, frame: &Transmission) -> ChannelOutcome {
        self.scratch.clear();
        let Some(clock) = &mut self.clock else { return ChannelOutcome::Ok };
        let hit = clock.is_hit(at, &mut self.step, &mut self.process, &mut self.scratch);
        let (interval, frames) = self.in_interval;
        let number = if interval == self.step { frames } else { 0 };
        self.in_interval = (self.step, number + 1);
        match self.process.frame_record(number) {
            Some(Record::Ok) => return ChannelOutcome::Ok,
            Some(Record::Lost) => return ChannelOutcome::Lost,
            Some(Record::Damaged { kept_bytes, flips }) => {
                return damaged(kept_bytes, flips, self.effect.headers, frame);
            }
            Some(Record::Hit) => {}
            None if hit => {}
            None => return ChannelOutcome::Ok,
        }
        if self.per == Per::Block {
            // Draws by block: those of one do not depend on what was sent in others.
            let block = self.step;
            if self.hit_block != block {
                (self.hit_block, self.hit_by_time) = (block, 0);
            }
            let step = self.hit_by_time;
            self.hit_by_time += 1;
            return self.outcome_of_hit(self.flip_key.child("block", block), step, frame);
        }
        // Several frames may be hit in one millisecond.
        let step = self.hit_by_time;
        self.hit_by_time += 1;
        self.outcome_of_hit(self.flip_key.child("millisecond", 0), step, frame)
    }

    fn outcome_of_bits(&mut self, step: u64, unit: &Transmission) -> ChannelOutcome {
        if let Effect::Drop | Effect::Delay = self.effect.effect {
            self.process.hit_bits(step, unit.bits, true, &mut self.scratch);
            if self.scratch.is_empty() {
                return ChannelOutcome::Ok;
            }
            return self.effect.outcome(&[], || self.delay.draw(step));
        }
        // Only the packet's own bits can be seen to be flipped or missing: link headers and padding are
        // the link's, and a compressed bit stands for its place in the packet.
        let cuts = self.effect.effect == Effect::Truncate;
        self.process.hit_bits(step, u64::from(unit.packet_bits), cuts, &mut self.scratch);
        if cuts {
            let first = self.scratch.first();
            return first.map_or(ChannelOutcome::Ok, |first| truncate::kept(u64::from(*first), Vec::new(), unit));
        }
        for position in &mut self.scratch {
            *position += unit.first_bit;
        }
        if self.effect.headers == Headers::Spared {
            self.scratch.retain(|position| *position >= unit.header_bits);
        }
        self.effect.outcome(&self.scratch, || self.delay.draw(step))
    }
}
