// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limit to which a machine may be driven while a port has more packets than one turn reads: the last stamp
//! that was read, or unread packets would come too late for their own.

use airpath_core::Time;

/// The instant up to which every port has been read, where one has more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread {
    up_to: Option<Time>,
}

impl Unread {
    /// A port has more, and the last packet read from it came at `last`.
    pub fn note(&mut self, last: Time) {
        self.up_to = Some(self.up_to.map_or(last, |other| other.min(last)));
    }

    /// Time to which the machine is driven at `now`, having been driven to `driven_to`, and true if more is to
    /// be read at once. The next turn notes what then is unread.
    pub fn take(&mut self, now: Time, driven_to: Time) -> (Time, bool) {
        let up_to = self.up_to.take();
        (up_to.map_or(now, |up_to| up_to.min(now)).max(driven_to), up_to.is_some())
    }

    /// Forgets what was noted.
    pub fn clear(&mut self) {
        self.up_to = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn with_everything_read_the_machine_is_driven_to_the_present() {
        assert_eq!(Unread::default().take(at(50), at(10)), (at(50), false));
    }

    #[test]
    fn the_port_that_is_behind_holds_both_back_for_one_turn() {
        let mut unread = Unread::default();
        unread.note(at(40));
        unread.note(at(30));
        unread.note(at(45));
        assert_eq!(unread.take(at(50), at(10)), (at(30), true));
        assert_eq!(unread.take(at(50), at(30)), (at(50), false));
    }

    #[test]
    fn time_never_runs_back_and_never_ahead() {
        let mut unread = Unread::default();
        unread.note(at(20));
        assert_eq!(unread.take(at(50), at(30)), (at(30), true));
        // A stamp may lie ahead of the loop's own clock by the error between the two.
        unread.note(at(60));
        assert_eq!(unread.take(at(50), at(30)), (at(50), true));
        unread.note(at(20));
        unread.clear();
        assert_eq!(unread.take(at(50), at(30)), (at(50), false));
    }
}
