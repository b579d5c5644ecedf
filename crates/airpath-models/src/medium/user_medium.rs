// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The medium of a hop in a cell: one of the hop's own, a shared one, or one of each, by direction.

use airpath_core::{Bits, Direction, Span, Time};

use super::{Medium, MediumModel, MediumParameters};
use crate::air::Air;
use crate::common_queue::CommonQueue;
use crate::fading::FadingConfig;

/// The medium of a hop in a cell. Requests to a shared medium wait until the cell takes them.
#[derive(Clone, Debug)]
pub struct UserMedium {
    own: MediumModel,
    /// True for the directions on a shared medium.
    shared: [bool; 2],
    /// Times of pending requests to shared media; `Time::NEVER` without one.
    requests: [Time; 2],
    /// Radio channels that have changed, by direction, until the cell takes them.
    changed: Option<Box<[Option<FadingConfig>; 2]>>,
    /// Limits that the hop has in common with others, by direction, as of the packet that comes.
    common: [Option<CommonQueue>; 2],
}

impl UserMedium {
    /// A medium whose directions are on shared media where `shared` says so, and on `own` otherwise.
    pub fn new(own: MediumModel, shared: [bool; 2]) -> UserMedium {
        UserMedium { own, shared, requests: [Time::NEVER; 2], changed: None, common: [None; 2] }
    }

    /// Takes the pending request of a direction to its shared medium.
    #[inline]
    pub(crate) fn take_request(&mut self, direction: Direction) -> Option<Time> {
        std::mem::replace(&mut self.requests[direction as usize], Time::NEVER).finite()
    }

    /// Notes the limit that the hop has in common with others in `direction`.
    pub(crate) fn set_common(&mut self, direction: Direction, common: CommonQueue) {
        self.common[direction as usize] = Some(common);
    }

    /// Takes the parameters of radio channels that have changed, by direction.
    pub(crate) fn take_changed(&mut self) -> Option<Box<[Option<FadingConfig>; 2]>> {
        self.changed.take()
    }
}

impl Medium for UserMedium {
    #[inline]
    fn request(&mut self, at: Time, bearer: u16, direction: Direction) {
        let index = direction as usize;
        if self.shared[index] {
            self.requests[index] = self.requests[index].min(at);
        } else {
            self.own.request(at, bearer, direction);
        }
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        self.own.next_deadline()
    }

    #[inline]
    fn step<A: Air>(&mut self, at: Time, air: &mut A) {
        self.own.step(at, air);
    }

    fn least_time(&self, at: Time, direction: Direction, bits: Bits) -> Span {
        if self.shared[direction as usize] { Span::ZERO } else { self.own.least_time(at, direction, bits) }
    }

    fn common_queue(&self, direction: Direction) -> Option<CommonQueue> {
        self.common[direction as usize]
    }

    fn configure(&mut self, at: Time, links: [MediumParameters<'_>; 2]) {
        if links.iter().any(|link| link.fading.is_some()) {
            self.changed = Some(Box::new(links.map(|link| link.fading.cloned())));
        }
        self.own.configure(at, links);
    }
}
