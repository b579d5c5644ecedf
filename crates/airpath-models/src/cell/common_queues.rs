// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limits that the users of a shared medium have in common.

use airpath_core::Direction;

use super::medium::SharedMedium;
use super::{Attachment, Cell};
use crate::common_queue::CommonQueue;
use crate::stage::QueueLength;

impl Cell {
    /// Tells the hops of a user, before a packet comes to one of them, what else waits for their media.
    pub(super) fn tell_common_queues(&mut self, user: usize) {
        if !self.has_common_queues {
            return;
        }
        for bearer in 0..self.on[user].len() {
            for direction in Direction::ALL {
                let Some(attachment) = self.on[user][bearer][direction as usize] else { continue };
                let Some(limit) = self.media[usize::from(attachment.0)].model.common_limit(direction) else { continue };
                let others = self.waiting_beside(attachment, direction);
                self.users[user].hop_mut(bearer).medium_mut().set_common(direction, CommonQueue { limit, others });
            }
        }
    }

    /// Packets that wait in `direction` for a medium, those of one bearer aside.
    fn waiting_beside(&self, (medium, bearer): (u16, u16), direction: Direction) -> QueueLength {
        let mut waiting = QueueLength::default();
        for (number, (user, index)) in self.media[usize::from(medium)].bearers.iter().enumerate() {
            let (user, index) = (usize::from(*user), usize::from(*index));
            let on: Attachment = self.on[user][index];
            if number != usize::from(bearer) && on[direction as usize] == Some((medium, number as u16)) {
                waiting = waiting + self.users[user].hops()[index].waiting(direction);
            }
        }
        waiting
    }
}
