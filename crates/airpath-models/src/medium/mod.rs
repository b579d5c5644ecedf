// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media: when, whose turn it is, and how many bits.

mod choice;
pub mod continuous;
pub mod rate;
mod user_medium;

use airpath_core::{Bits, Direction, DrawKey, Span, Time};

use crate::air::{Air, Frame, Grant};
use crate::common_queue::CommonQueue;
use crate::fading::FadingConfig;
use crate::registry::registry;

pub use choice::MediumChoice;
pub use continuous::{Continuous, Steady};
pub use rate::{RateConfig, VaryingConfig};
pub use user_medium::UserMedium;

registry! {
    /// The medium of a hop, which both directions share: `{ type = "continuous" }`.
    config MediumConfig,
    /// A medium of any registered kind.
    model MediumModel,
    dispatch dispatch_medium, dispatch_medium_config,
    built from MediumBeginning<'_>,
    reconfigured yes,
    /// Always there: each direction transmits one frame after the other.
    /// Source: Kojo et al. 2001, section 4.3.
    Continuous = continuous::{ContinuousConfig, Continuous},
}

/// Parameters of one direction of a hop that its medium needs.
#[derive(Clone, Copy, Debug)]
pub struct MediumParameters<'a> {
    /// The kind of medium, with its own parameters; none on a shared medium.
    pub kind: Option<&'a MediumConfig>,
    /// The rate.
    pub rate: &'a RateConfig,
    /// The radio channel, for shared media that know of one.
    pub fading: Option<&'a FadingConfig>,
}

/// Surroundings of a medium at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct MediumBeginning<'a> {
    /// The uplink and the downlink.
    pub links: [MediumParameters<'a>; 2],
    /// The keys of the draws of rates that vary at random, by direction.
    pub rates: [DrawKey; 2],
    /// The key of the medium's other draws.
    pub key: DrawKey,
}

impl Default for MediumConfig {
    fn default() -> MediumConfig {
        MediumConfig::Continuous(continuous::ContinuousConfig {})
    }
}

/// A medium, of one bearer or many, in both directions. Frames on the air stay inside until sent.
pub trait Medium: Send {
    /// `bearer` may have something to send in `direction`, at `at` or later. The request stands until
    /// the medium next asks the bearer for a frame. A bearer whose grant was too small does not
    /// request again by itself: as long as others are served the medium asks it at every grant.
    fn request(&mut self, at: Time, bearer: u16, direction: Direction);

    /// Next internal timer of the medium; `Time::NEVER` if nothing is under way.
    fn next_deadline(&self) -> Time;

    /// Does what is due at `at`, which is not before [`Medium::next_deadline`].
    fn step<A: Air>(&mut self, at: Time, air: &mut A);

    /// Minimum time of `bits` of one packet that come at `at` in `direction`; later packets never get there
    /// earlier.
    fn least_time(&self, _at: Time, _direction: Direction, _bits: Bits) -> Span {
        Span::ZERO
    }

    /// The limit that the hop has in common with others in `direction`, if there is one.
    fn common_queue(&self, _direction: Direction) -> Option<CommonQueue> {
        None
    }

    /// The transmitter of `direction`, where it is idle and has a constant rate: a hop may then do without the medium
    /// until it calls [`Medium::go_on`].
    fn steady(&self, _direction: Direction) -> Option<Steady> {
        None
    }

    /// Goes on in `direction` with what has become of its transmitter: the frame on the air, if there is one, and the
    /// time at which that ends or the next one may begin.
    fn go_on(&mut self, _direction: Direction, _steady: Steady, _on_air: Option<(Grant, Frame)>, _due: Time) {}

    /// Changes the parameters of the uplink and the downlink at `at`. Requests that have not been met
    /// are made again.
    fn configure(&mut self, at: Time, links: [MediumParameters<'_>; 2]);
}

impl Medium for MediumModel {
    #[inline(always)]
    fn request(&mut self, at: Time, bearer: u16, direction: Direction) {
        dispatch_medium!(self, medium => medium.request(at, bearer, direction));
    }
    #[inline(always)]
    fn next_deadline(&self) -> Time {
        dispatch_medium!(self, medium => medium.next_deadline())
    }
    #[inline(always)]
    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        dispatch_medium!(self, medium => medium.step(at, air));
    }
    #[inline(always)]
    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        dispatch_medium!(self, medium => medium.least_time(at, direction, bits))
    }
    fn steady(&self, direction: Direction) -> Option<Steady> {
        dispatch_medium!(self, medium => medium.steady(direction))
    }
    fn go_on(&mut self, direction: Direction, steady: Steady, on_air: Option<(Grant, Frame)>, due: Time) {
        dispatch_medium!(self, medium => medium.go_on(direction, steady, on_air, due));
    }
    fn configure(&mut self, at: Time, links: [MediumParameters<'_>; 2]) {
        if let Some(kind) = links[0].kind.or(links[1].kind) {
            self.reconfigure(kind, at);
        }
        dispatch_medium!(self, medium => medium.configure(at, links));
    }
}
