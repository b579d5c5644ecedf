//! Media: when, whose turn it is, and how many bits.

pub mod continuous;
pub mod rate;

use airpath_core::{Bits, Direction, Span, Time};

use crate::config::LinkConfig;
use crate::entity::Frame;

pub use continuous::Continuous;
pub use rate::{RateConfig, VaryingConfig};

/// Permission to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Index of the resource among those that the medium hands out side by side (a bin, a slot, a code).
    pub resource: u16,
    /// Index of the user of the medium.
    pub user: u16,
    /// Direction of the frame.
    pub direction: Direction,
    /// Maximum number of bits; none where the frame decides.
    pub bits: Option<Bits>,
    /// Start of transmission: the instant of the step that hands the grant out.
    pub start: Time,
}

/// Requests of a medium to the hops on it.
pub trait Air {
    /// The frame that the user of `grant` sends in it, or none: the grant passes unused.
    fn next_frame(&mut self, grant: &Grant) -> Option<Frame>;

    /// The frame's transmission has ended at `at`.
    fn sent(&mut self, at: Time, grant: &Grant, frame: Frame);
}

/// A medium, of one user or many, in both directions. Frames on the air stay inside until sent.
pub trait Medium: Send {
    /// `user` may have something to send in `direction`, at `at` or later. The request stands until
    /// the medium next asks the user for a frame. A user that had none for want of bits does not
    /// request again of itself: as long as others are served the medium asks it at every grant.
    fn request(&mut self, at: Time, user: u16, direction: Direction);

    /// Next internal timer of the medium; `Time::NEVER` if nothing is under way.
    fn next_deadline(&self) -> Time;

    /// Does what is due at `at`, which is not before [`Medium::next_deadline`].
    fn step<A: Air>(&mut self, at: Time, air: &mut A);

    /// Minimum time of `bits` of one packet that come at `at` in `direction`; later packets never get there
    /// earlier.
    fn least_time(&self, _at: Time, _direction: Direction, _bits: Bits) -> Span {
        Span::ZERO
    }

    /// Changes the parameters of the uplink and the downlink at `at`. Requests that have not been met
    /// are made again.
    fn configure(&mut self, at: Time, links: [&LinkConfig; 2]);
}
