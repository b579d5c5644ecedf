// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sleep methods, one file each. A method is enrolled by its name in the list below.

use std::io;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;

/// Something that sleeps by one method.
pub trait Sleep {
    /// Sleeps for `span_ns` as this method does it, which may be longer or, for some methods, shorter.
    ///
    /// # Errors
    /// The kernel's. An interruption by a signal is an end of the sleep and no error.
    fn sleep(&mut self, span_ns: u64) -> io::Result<()>;
}

/// Use of the processor by a sleep method that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It leaves the processor to others.
    Asleep,
    /// It watches the clock, so that no timer of the kernel matters.
    Awake,
    /// It sleeps first and watches the clock for the rest.
    AsleepThenAwake,
}

/// Options of a sleep method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodOptions {
    /// Time before the end at which to wake and watch the clock, in ns; none to learn it.
    pub margin_ns: Option<u64>,
}

/// Reason for which a sleep method is not available here.
pub type Unavailable = String;

/// A sleep method.
#[derive(Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Its description, in one line.
    pub what: &'static str,
    /// Its requirements of kernel and rights.
    pub needs: &'static str,
    /// True if it is specified never to end early.
    pub at_least: bool,
    /// Use of the processor during the sleep.
    pub waiting: Waiting,
    /// Prepares it for the calling thread, which alone may use it.
    pub open: fn(&MethodOptions) -> Result<Box<dyn Sleep>, Unavailable>,
}

macro_rules! methods {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*
        /// All sleep methods, in the order of the list.
        pub static METHODS: &[Method] = &[$($name::METHOD),*];
    };
}

methods! {
    select,
    poll,
    epoll_wait,
    epoll_pwait2,
    nanosleep,
    clock_nanosleep,
    clock_nanosleep_absolute,
    timerfd,
    timerfd_absolute,
    io_uring,
    posix_timer,
    rtc,
    busy,
    busy_yield,
    early_spin,
}

/// Those that are measured if nothing is said: one of each kind.
pub const USUAL: &[&str] =
    &["select", "epoll_wait", "clock_nanosleep_absolute", "timerfd_absolute", "rtc", "busy", "early_spin"];

/// The method called `name`.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

pub(crate) fn time_spec(span_ns: u64) -> TimeSpec {
    TimeSpec::new((span_ns / 1_000_000_000) as i64, (span_ns % 1_000_000_000) as i64)
}

/// Whole milliseconds that last at least `span_ns`, as a caller rounds who must not be early.
fn milliseconds(span_ns: u64) -> i32 {
    i32::try_from(span_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// Returns the result of a sleep to its caller: an interrupted one is over.
fn over<T>(result: nix::Result<T>) -> io::Result<()> {
    match result {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// `what` could not be had.
fn refused(what: &str, error: impl std::fmt::Display) -> Unavailable {
    format!("{what}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_live::clock::monotonic_ns;

    #[test]
    fn names_are_unique_and_the_usual_ones_exist() {
        let names: std::collections::HashSet<_> = METHODS.iter().map(|method| method.name).collect();
        assert_eq!(names.len(), METHODS.len());
        assert!(USUAL.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn who_promises_it_never_ends_early() {
        for method in METHODS.iter().filter(|method| method.at_least) {
            let mut sleeper = match (method.open)(&MethodOptions::default()) {
                Ok(sleeper) => sleeper,
                Err(reason) => {
                    println!("{} is not available here: {reason}", method.name);
                    continue;
                }
            };
            for span_ns in [0, 1, 999, 50_000, 1_234_567, 3_000_001] {
                let before_ns = monotonic_ns();
                sleeper.sleep(span_ns).unwrap();
                let slept_ns = monotonic_ns() - before_ns;
                assert!(slept_ns >= span_ns, "{}: {slept_ns} of {span_ns}", method.name);
            }
        }
    }

    #[test]
    fn what_every_kernel_has_is_available() {
        for name in ["select", "poll", "epoll_wait", "nanosleep", "clock_nanosleep", "timerfd", "posix_timer", "busy"] {
            assert!((find(name).unwrap().open)(&MethodOptions::default()).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unavailable_way_says_why() {
        for method in METHODS {
            if let Err(reason) = (method.open)(&MethodOptions::default()) {
                assert!(reason.len() > 10, "{}: {reason}", method.name);
            }
        }
    }

    #[test]
    fn milliseconds_are_rounded_up() {
        assert_eq!([0, 1, 999_999, 1_000_000, 1_000_001].map(milliseconds), [0, 1, 1, 1, 2]);
    }
}
