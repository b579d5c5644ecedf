//! Transmission errors: which packets, frames or bits they hit, and what happens to those.

pub mod bernoulli;
pub mod effect;
pub mod error_free;
pub mod gilbert_elliott;

use airpath_core::{DrawKey, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use effect::{Effect, EffectConfig, Headers};

use crate::config::Problem;
use crate::registry::registry;

/// What an error is drawn for.
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
}

/// Something transmitted, as the channel sees it.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Bits on the air, all headers and padding included.
    pub bits: u64,
    /// The first bit of the packet that it carries.
    pub first_bit: u32,
    /// How many bits of the packet it carries.
    pub packet_bits: u32,
    /// The bits of the packet's own network and transport headers.
    pub header_bits: u32,
}

/// What became of a transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrives as it was sent.
    Ok,
    /// The receiver notices the error and discards it.
    Lost,
    /// A blackout took it away.
    BlackedOut,
    /// It arrives with bits of the packet flipped; positions count from the packet's first bit.
    Flipped(Vec<u32>),
    /// It arrives, but later.
    Delayed {
        /// By how much.
        by: Span,
        /// Whether what follows waits behind it.
        keep_order: bool,
    },
}

/// Which transmissions are hit: a process in its own steps (packets, frames or bits).
pub trait ErrorProcess {
    /// Whether transmission number `step` as a whole is hit.
    fn hits(&mut self, step: u64) -> bool;

    /// Which of the next `bits` bits are hit, appended to `positions` in ascending order; stops at
    /// the first if `only_first`. Every bit takes one step of the process either way.
    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>);
}

registry! {
    /// The process that decides what is hit.
    config ErrorProcessConfig,
    /// An error process of any registered kind.
    model ErrorProcessModel,
    dispatch dispatch_process,
    /// No errors.
    None = error_free::{ErrorFreeConfig, ErrorFree},
    /// Independent errors of one probability.
    Bernoulli = bernoulli::{BernoulliConfig, Bernoulli},
    /// Errors in bursts: two states with an error probability each.
    GilbertElliott = gilbert_elliott::{GilbertElliottConfig, GilbertElliott},
}

/// Transmission errors of a direction:
/// `{ type = "bernoulli", per = "packet", probability = 0.01, effect = "drop" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorsConfig {
    /// What decides which are hit.
    #[serde(flatten)]
    pub process: ErrorProcessConfig,
    /// What is hit or spared as a whole.
    #[serde(default)]
    pub per: Per,
    /// What happens to it.
    #[serde(flatten)]
    pub effect: EffectConfig,
}

impl Default for ErrorsConfig {
    fn default() -> ErrorsConfig {
        ErrorsConfig {
            process: ErrorProcessConfig::None(error_free::ErrorFreeConfig {}),
            per: Per::default(),
            effect: EffectConfig::default(),
        }
    }
}

impl ErrorsConfig {
    /// What is wrong with the parameters, if anything.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.process.problems();
        problems.extend(self.effect.problems(self.per));
        problems
    }

    /// Every process with every unit and effect; the laws are tested with each of them.
    pub fn examples() -> Vec<ErrorsConfig> {
        let mut all = Vec::new();
        for process in ErrorProcessConfig::examples() {
            for per in [Per::Packet, Per::Frame, Per::Bit] {
                for effect in EffectConfig::examples(per) {
                    all.push(ErrorsConfig { process: process.clone(), per, effect });
                }
            }
        }
        all
    }
}

impl ErrorProcessModel {
    fn new(config: &ErrorProcessConfig, key: DrawKey) -> ErrorProcessModel {
        match config {
            ErrorProcessConfig::None(config) => ErrorProcessModel::None(error_free::ErrorFree::new(config)),
            ErrorProcessConfig::Bernoulli(config) => {
                ErrorProcessModel::Bernoulli(bernoulli::Bernoulli::new(config, key))
            }
            ErrorProcessConfig::GilbertElliott(config) => {
                ErrorProcessModel::GilbertElliott(gilbert_elliott::GilbertElliott::new(config, key))
            }
        }
    }

    /// Changes the parameters; false if the configuration is of another kind.
    fn configure(&mut self, config: &ErrorProcessConfig) -> bool {
        match (&mut *self, config) {
            (ErrorProcessModel::Bernoulli(process), ErrorProcessConfig::Bernoulli(config)) => process.configure(config),
            (ErrorProcessModel::GilbertElliott(process), ErrorProcessConfig::GilbertElliott(config)) => {
                process.configure(config);
            }
            (ErrorProcessModel::None(_), ErrorProcessConfig::None(_)) => {}
            _ => return false,
        }
        true
    }
}

impl ErrorProcess for ErrorProcessModel {
    fn hits(&mut self, step: u64) -> bool {
        dispatch_process!(self, process => process.hits(step))
    }
    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        dispatch_process!(self, process => process.hit_bits(step, bits, only_first, positions));
    }
}

/// The channel of one direction: the error process and its effect.
#[derive(Clone, Debug)]
pub struct Channel {
    per: Per,
    effect: EffectConfig,
    process: ErrorProcessModel,
    /// Key of the process, kept for a change of its kind.
    process_key: DrawKey,
    /// How often the kind of the process has changed: a process that comes back begins anew, and
    /// must not repeat the draws of its first beginning.
    generation: u64,
    /// Key of the positions of flipped bits.
    flip_key: DrawKey,
    /// The index of the next packet or frame.
    step: u64,
    scratch: Vec<u32>,
}

impl Channel {
    /// A channel at its beginning; the keys are those of its process and of the flipped bits.
    pub fn new(config: &ErrorsConfig, process_key: DrawKey, flip_key: DrawKey) -> Channel {
        Channel {
            per: config.per,
            effect: config.effect,
            process: ErrorProcessModel::new(&config.process, process_key),
            process_key,
            generation: 0,
            flip_key,
            step: 0,
            scratch: Vec::new(),
        }
    }

    /// Changes the parameters; steps are counted on. Takes effect for transmissions that end after it.
    pub fn configure(&mut self, config: &ErrorsConfig) {
        self.per = config.per;
        self.effect = config.effect;
        if !self.process.configure(&config.process) {
            self.generation += 1;
            let key = self.process_key.child("generation", self.generation);
            self.process = ErrorProcessModel::new(&config.process, key);
        }
    }

    /// What becomes of a frame; `packet` is the whole packet if this is its last frame.
    #[inline]
    pub fn outcome(&mut self, frame: &Transmission, packet: Option<&Transmission>) -> Outcome {
        if matches!(self.process, ErrorProcessModel::None(_)) {
            return Outcome::Ok;
        }
        let unit = match self.per {
            Per::Packet => match packet {
                Some(packet) => packet,
                None => return Outcome::Ok,
            },
            Per::Frame | Per::Bit => frame,
        };
        let step = self.step;
        self.step += 1;
        self.scratch.clear();
        if self.per == Per::Bit {
            return self.outcome_of_bits(step, unit);
        }
        if !self.process.hits(step) {
            return Outcome::Ok;
        }
        if self.effect.effect == Effect::Corrupt {
            self.effect.choose_flips(self.flip_key, step, unit, &mut self.scratch);
        }
        self.effect.outcome(&self.scratch)
    }

    fn outcome_of_bits(&mut self, step: u64, unit: &Transmission) -> Outcome {
        if self.effect.effect != Effect::Corrupt {
            self.process.hit_bits(step, unit.bits, true, &mut self.scratch);
            return if self.scratch.is_empty() { Outcome::Ok } else { self.effect.outcome(&[]) };
        }
        // Only the packet's own bits can be seen to be flipped: link headers and padding are the
        // link's, and a compressed bit stands for its place in the packet.
        self.process.hit_bits(step, u64::from(unit.packet_bits), false, &mut self.scratch);
        for position in &mut self.scratch {
            *position += unit.first_bit;
        }
        if self.effect.headers == Headers::Spared {
            self.scratch.retain(|position| *position >= unit.header_bits);
        }
        self.effect.outcome(&self.scratch)
    }
}
