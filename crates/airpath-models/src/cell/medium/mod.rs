// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media that several users share.

pub mod continuous;
pub mod ofdm;
pub mod poll;
pub mod wifi;

use airpath_core::{Bits, Direction, DrawKey, QueueLimit, Span, Time};

use crate::air::Air;
use crate::config::HopConfig;
use crate::fading::FadingConfig;
use crate::registry::registry;

registry! {
    /// A medium that several users share: `{ type = "continuous", downlink = "10 Mbit/s" }`.
    config SharedMediumConfig,
    /// A shared medium of any registered kind.
    model SharedMediumModel,
    dispatch dispatch_shared, dispatch_shared_config,
    built from SharedBeginning<'_>,
    reconfigured no,
    /// One frame after the other in each direction, at the rate of the medium.
    Continuous = continuous::{SharedContinuousConfig, SharedContinuous},
    /// Slots of time and resources of frequency, with modes that follow the quality of each station's channel.
    /// Source: Alfredsson et al. 2006, section II-B.
    Ofdm = ofdm::{OfdmConfig, Ofdm},
    /// A wireless LAN after IEEE 802.11: stations and an access point contend for one channel.
    /// Source: IEEE 802.11-2016, clause 10.
    Wifi = wifi::{WifiConfig, Wifi},
    /// Poll and response: one exchange of a bearer after the other, each frame acknowledged at once.
    /// Source: Eckhardt and Steenkiste 2002, section 1.3; IEEE 802.11-1997, clause 9.3.
    Poll = poll::{PollConfig, Poll},
}

/// Surroundings of a shared medium at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct SharedBeginning<'a> {
    /// The stations, by number.
    pub stations: &'a [StationBeginning<'a>],
    /// The bearers, by number: those of a station one after the other, in the order of the stations.
    pub bearers: &'a [BearerBeginning],
    /// Key of the medium's own draws.
    pub key: DrawKey,
}

/// A user's hop on a shared medium at its beginning: it has one radio channel.
#[derive(Clone, Copy, Debug)]
pub struct StationBeginning<'a> {
    /// Parameters of the hop.
    pub hop: &'a HopConfig,
    /// Key of the draws that concern the station.
    pub key: DrawKey,
}

/// A bearer of a station at its beginning: what has a queue of its own, and is served in turn with others.
#[derive(Clone, Debug)]
pub struct BearerBeginning {
    /// Its name: that of the user, with that of the hop where the user has several on the medium, and with its own
    /// where the hop has bearers: `alice`, `alice.radio`, `alice.voice`.
    pub name: String,
    /// Number of its station.
    pub station: u16,
}

/// Time of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Time from which the bearer may have something to send.
    pub at: Time,
    /// True if the bearer has it at that very instant before the medium's turn, so that a slot that begins then may
    /// carry it: an answer that is heard, or a delay that ends. False for a packet that is offered, which comes after
    /// all service of its instant.
    pub is_early: bool,
}

/// A medium of several stations, each with one bearer or more. Frames on the air stay inside until sent.
pub trait SharedMedium: Send {
    /// `bearer` may have something to send in `direction` from `request.at` on. The request stands until the bearer,
    /// asked for a frame, has none.
    fn request(&mut self, request: Request, bearer: u16, direction: Direction);

    /// Next internal timer; `Time::NEVER` if nothing is under way.
    fn next_deadline(&self) -> Time;

    /// Does what is due at `at`, which is not before [`SharedMedium::next_deadline`].
    fn step<A: Air>(&mut self, at: Time, air: &mut A);

    /// True if it may have endless work with packets that never leave.
    fn never_idle(&self) -> bool {
        false
    }

    /// Minimum time of `bits` of one packet that come at `at` in `direction`; later packets never get there earlier.
    fn least_time(&self, _at: Time, _direction: Direction, _bits: Bits) -> Span {
        Span::ZERO
    }

    /// The limit of the packets of all stations that wait in `direction`, if there is one.
    fn common_limit(&self, _direction: Direction) -> Option<QueueLimit> {
        None
    }

    /// Puts other parameters of the radio channel of `station` in force at `at`, by direction.
    fn configure(&mut self, _at: Time, _station: u16, _fading: &[Option<FadingConfig>; 2]) {}
}

impl SharedMediumConfig {
    /// True if it carries frames in `direction`.
    pub fn carries(&self, direction: Direction) -> bool {
        dispatch_shared_config!(self, config => config.carries(direction))
    }

    /// True if it has resources, each of which carries a frame of its own in each slot.
    pub fn has_resources(&self) -> bool {
        dispatch_shared_config!(self, config => config.has_resources())
    }

    /// True if frames in `direction` take no time.
    pub fn is_unlimited(&self, direction: Direction) -> bool {
        dispatch_shared_config!(self, config => config.is_unlimited(direction))
    }

    /// True if the packets of all users that wait for it have a limit in common.
    pub fn has_common_queue(&self) -> bool {
        dispatch_shared_config!(self, config => config.has_common_queue())
    }

    /// Errors in the parameters of a hop on the medium, if any.
    pub fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<crate::Problem> {
        dispatch_shared_config!(self, config => config.hop_problems(hop, direction))
    }

    /// Errors in the parameters that name bearers, where the bearers of these names are on the medium, if any.
    pub fn bearer_problems(&self, bearers: &[&str]) -> Vec<crate::Problem> {
        dispatch_shared_config!(self, config => config.bearer_problems(bearers))
    }
}

/// Demands of a kind of shared medium on the hops on it.
pub(crate) trait Shares {
    /// True if the medium carries frames in `direction`.
    fn carries(&self, direction: Direction) -> bool;

    /// True if it has resources, each of which carries a frame of its own in each slot.
    fn has_resources(&self) -> bool {
        false
    }

    /// True if frames in `direction` take no time.
    fn is_unlimited(&self, _direction: Direction) -> bool {
        false
    }

    /// True if the packets of all users that wait for it have a limit in common.
    fn has_common_queue(&self) -> bool {
        false
    }

    /// Errors in the parameters of a hop whose `direction` is on the medium, if any.
    fn hop_problems(&self, _hop: &HopConfig, _direction: Direction) -> Vec<crate::Problem> {
        Vec::new()
    }

    /// Errors in the parameters that name bearers, where these are on the medium, if any.
    fn bearer_problems(&self, _bearers: &[&str]) -> Vec<crate::Problem> {
        Vec::new()
    }
}

impl SharedMedium for SharedMediumModel {
    fn request(&mut self, request: Request, bearer: u16, direction: Direction) {
        dispatch_shared!(self, medium => medium.request(request, bearer, direction));
    }
    #[inline]
    fn next_deadline(&self) -> Time {
        dispatch_shared!(self, medium => medium.next_deadline())
    }
    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        dispatch_shared!(self, medium => medium.step(at, air));
    }
    fn never_idle(&self) -> bool {
        dispatch_shared!(self, medium => medium.never_idle())
    }
    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        dispatch_shared!(self, medium => medium.least_time(at, direction, bits))
    }
    fn common_limit(&self, direction: Direction) -> Option<QueueLimit> {
        dispatch_shared!(self, medium => medium.common_limit(direction))
    }
    fn configure(&mut self, at: Time, station: u16, fading: &[Option<FadingConfig>; 2]) {
        dispatch_shared!(self, medium => medium.configure(at, station, fading));
    }
}
