// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of a link's interfaces during a run, also those undone before its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::netlink::{LinkMonitor, LinkNews};
use crate::session::SessionEnd;
use crate::side_by_side;

/// More than so many addresses or queues of an end are not remembered.
const MOST_TOLD: usize = 16;
/// Maximum time between the news that an interface is down and those that it is gone.
const MOST_AFTER_DOWN: Duration = Duration::from_millis(200);

/// Changes of the interface of an end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Number of times that it was taken down.
    pub downs: u64,
    /// True if it was moved to another network namespace.
    pub moved: bool,
    /// True if it was deleted.
    pub deleted: bool,
    /// Addresses that were taken from it.
    pub addresses_removed: Vec<String>,
    /// Queue disciplines that were put before it, by name.
    pub queues_set: Vec<String>,
}

/// Changes so far, and the current state of the interface.
#[derive(Debug, Default)]
struct Course {
    changes: LinkChanges,
    is_down: bool,
}

impl Course {
    fn add(&mut self, news: LinkNews) {
        let changes = &mut self.changes;
        let remember = |list: &mut Vec<String>, text: String| {
            if list.len() < MOST_TOLD && !list.contains(&text) {
                list.push(text);
            }
        };
        match news {
            LinkNews::Up(is_up) => {
                changes.downs += u64::from(!is_up && !self.is_down);
                self.is_down = !is_up;
            }
            LinkNews::Gone { moved } => {
                // The kernel takes an interface down before it goes.
                changes.downs -= u64::from(self.is_down);
                self.is_down = false;
                if moved { changes.moved = true } else { changes.deleted = true }
            }
            LinkNews::AddressRemoved(address) => remember(&mut changes.addresses_removed, address),
            LinkNews::QueueSet(kind) => remember(&mut changes.queues_set, kind),
        }
    }
}

/// A thread that sleeps until something is done to an interface of the link. Dropping it ends it.
#[derive(Debug)]
pub struct LinkWatch {
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<Vec<io::Result<Course>>>>,
    /// Number of ends.
    ends: usize,
}

impl LinkWatch {
    /// Watches from now on; what the set-up of the session did is over.
    ///
    /// # Errors
    /// When the kernel does not tell, or has no thread left.
    pub fn start(ends: &[&SessionEnd]) -> io::Result<LinkWatch> {
        let monitors = side_by_side::map(ends.to_vec(), |_, end| open(end));
        let mut monitors = monitors.into_iter().collect::<io::Result<Vec<_>>>()?;
        let ends = monitors.len();
        let (stopped, stop) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let work = move || {
            let mut courses: Vec<_> = monitors.iter().map(|_| Ok(Course::default())).collect();
            loop {
                let watched = std::iter::once(stopped.as_fd()).chain(monitors.iter().map(AsFd::as_fd));
                let mut watched: Vec<_> = watched.map(|end| PollFd::new(end, PollFlags::POLLIN)).collect();
                let _ = poll(&mut watched, PollTimeout::NONE);
                let is_last = watched[0].any().unwrap_or(true);
                for (monitor, course) in monitors.iter_mut().zip(&mut courses) {
                    take(monitor, course);
                }
                if is_last {
                    hear_out(&mut monitors, &mut courses);
                    return courses;
                }
            }
        };
        let thread = std::thread::Builder::new().name("link-watch".into()).spawn(work)?;
        Ok(LinkWatch { stop: Some(stop), thread: Some(thread), ends })
    }

    /// Changes of the interfaces, in the order of the ends; an error where news were lost.
    pub fn finish(mut self) -> Vec<io::Result<LinkChanges>> {
        self.stop = None;
        let Some(courses) = self.thread.take().and_then(|thread| thread.join().ok()) else {
            let failed = |_| Err(io::Error::other("the thread that watches the interfaces has failed"));
            return (0..self.ends).map(failed).collect();
        };
        courses.into_iter().map(|course| Ok(course?.changes)).collect()
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn open(end: &SessionEnd) -> io::Result<LinkMonitor> {
    let name = end.interface_name();
    let monitor = end.network().run(|| LinkMonitor::open(nix::net::if_::if_nametoindex(name.as_str())?));
    monitor.map_err(io::Error::other)?
}

/// Waits for what follows where an interface is down: the kernel tells of its end, if that was the cause, only after
/// the engine's socket has failed.
fn hear_out(monitors: &mut [LinkMonitor], courses: &mut [io::Result<Course>]) {
    let end = Instant::now() + MOST_AFTER_DOWN;
    while courses.iter().any(|course| course.as_ref().is_ok_and(|course| course.is_down)) {
        let left_ms = end.saturating_duration_since(Instant::now()).as_millis() as u16;
        if left_ms == 0 {
            return;
        }
        let mut watched: Vec<_> = monitors.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        let _ = poll(&mut watched, PollTimeout::from(left_ms));
        for (monitor, course) in monitors.iter_mut().zip(&mut *courses) {
            take(monitor, course);
        }
    }
}

/// After an error the rest is read all the same, so that the thread sleeps again; the error stays.
fn take(monitor: &mut LinkMonitor, course: &mut io::Result<Course>) {
    match (monitor.news(), course.as_mut()) {
        (Ok(news), Ok(course)) => news.into_iter().for_each(|news| course.add(news)),
        (Err(error), Ok(_)) => {
            *course = Err(error);
            let _ = monitor.news();
        }
        (_, Err(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(news: impl IntoIterator<Item = LinkNews>) -> LinkChanges {
        let mut course = Course::default();
        news.into_iter().for_each(|news| course.add(news));
        course.changes
    }

    #[test]
    fn what_is_told_again_is_counted_once() {
        assert_eq!(after([LinkNews::Up(true), LinkNews::Up(true)]), LinkChanges::default());
        assert_eq!(after([false, false, true, true, false, true].map(LinkNews::Up)).downs, 2);
        let address = || LinkNews::AddressRemoved("10.0.0.2".into());
        assert_eq!(after([address(), address()]).addresses_removed, ["10.0.0.2"]);
    }

    #[test]
    fn an_interface_that_goes_was_not_taken_down() {
        let changes = after([LinkNews::Up(false), LinkNews::Gone { moved: true }]);
        assert!(changes.downs == 0 && changes.moved && !changes.deleted, "{changes:?}");
        assert!(after([LinkNews::Up(false), LinkNews::Gone { moved: false }]).deleted);
    }
}
