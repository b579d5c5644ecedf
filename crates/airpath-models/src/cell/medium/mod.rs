// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media that several users share.

pub mod continuous;
pub mod ofdm;
pub mod wifi;

use airpath_core::{Bits, Direction, DrawKey, Span, Time};

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
    Ofdm = ofdm::{OfdmConfig, Ofdm},
    /// A wireless LAN after IEEE 802.11: stations and an access point contend for one channel.
    Wifi = wifi::{WifiConfig, Wifi},
}

/// Surroundings of a shared medium at its beginning.
#[derive(Clone, Copy, Debug)]
pub struct SharedBeginning<'a> {
    /// The stations, by number.
    pub stations: &'a [StationBeginning<'a>],
    /// Key of the medium's own draws.
    pub key: DrawKey,
}

/// A hop on a shared medium at its beginning.
#[derive(Clone, Debug)]
pub struct StationBeginning<'a> {
    /// Name of the user; with that of the hop, as in `alice.radio`, where the user has several on the medium.
    pub name: String,
    /// Parameters of the hop.
    pub hop: &'a HopConfig,
    /// Key of the draws that concern the station.
    pub key: DrawKey,
}

/// Time of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Time from which the station may have something to send.
    pub at: Time,
    /// True if the station has it at that very instant before the medium's turn, so that a slot that begins then may
    /// carry it: an answer that is heard, or a delay that ends. False for a packet that is offered, which comes after
    /// all service of its instant.
    pub is_early: bool,
}

/// A medium of several stations. Frames on the air stay inside until sent.
pub trait SharedMedium: Send {
    /// `station` may have something to send in `direction` from `request.at` on. The request stands until the station,
    /// asked for a frame, has none.
    fn request(&mut self, request: Request, station: u16, direction: Direction);

    /// Next internal timer; `Time::NEVER` if nothing is under way.
    fn next_deadline(&self) -> Time;

    /// Does what is due at `at`, which is not before [`SharedMedium::next_deadline`]. The user of a grant is the
    /// number of a station.
    fn step<A: Air>(&mut self, at: Time, air: &mut A);

    /// True if it may have endless work with packets that never leave.
    fn never_idle(&self) -> bool {
        false
    }

    /// Minimum time of `bits` of one packet that come at `at` in `direction`; later packets never get there earlier.
    fn least_time(&self, _at: Time, _direction: Direction, _bits: Bits) -> Span {
        Span::ZERO
    }

    /// Puts other parameters of the radio channel of `station` in force at `at`, by direction.
    fn configure(&mut self, _at: Time, _station: u16, _fading: &[Option<FadingConfig>; 2]) {}
}

impl SharedMediumConfig {
    /// True if it carries frames in `direction`.
    pub fn carries(&self, direction: Direction) -> bool {
        dispatch_shared_config!(self, config => config.carries(direction))
    }

    /// True if frames in `direction` take no time.
    pub fn is_unlimited(&self, direction: Direction) -> bool {
        dispatch_shared_config!(self, config => config.is_unlimited(direction))
    }

    /// Errors in the parameters of a hop on the medium, if any.
    pub fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<crate::Problem> {
        dispatch_shared_config!(self, config => config.hop_problems(hop, direction))
    }

    /// Errors in the parameters where these users are on the medium, by the names of the users, if any.
    pub fn station_problems(&self, users: &[&str]) -> Vec<crate::Problem> {
        dispatch_shared_config!(self, config => config.station_problems(users))
    }
}

/// Demands of a kind of shared medium on the hops on it.
pub(crate) trait Shares {
    /// True if the medium carries frames in `direction`.
    fn carries(&self, direction: Direction) -> bool;

    /// True if frames in `direction` take no time.
    fn is_unlimited(&self, _direction: Direction) -> bool {
        false
    }

    /// Errors in the parameters of a hop whose `direction` is on the medium, if any.
    fn hop_problems(&self, _hop: &HopConfig, _direction: Direction) -> Vec<crate::Problem> {
        Vec::new()
    }

    /// Errors in the parameters that name users, where these are on the medium, if any.
    fn station_problems(&self, _users: &[&str]) -> Vec<crate::Problem> {
        Vec::new()
    }
}

impl SharedMedium for SharedMediumModel {
    fn request(&mut self, request: Request, station: u16, direction: Direction) {
        dispatch_shared!(self, medium => medium.request(request, station, direction));
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
    fn configure(&mut self, at: Time, station: u16, fading: &[Option<FadingConfig>; 2]) {
        dispatch_shared!(self, medium => medium.configure(at, station, fading));
    }
}
