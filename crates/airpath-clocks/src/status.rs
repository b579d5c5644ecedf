// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! State of the host's clock as the host knows it: synchronisation, its source, and its quality.
#![allow(unsafe_code)]

use std::io;
use std::path::Path;

use serde::Serialize;

use super::identity::{host_name, identity, written};
use super::ptp::{HardwareClock, clocks};

/// The state of the clock.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClockStatus {
    /// The host's name.
    pub host: String,
    /// Identity of the clock until the host boots again.
    pub identity: String,
    /// Source of the kernel's clock, such as "tsc".
    pub clock_source: Option<String>,
    /// State of the kernel's clock; none if the kernel does not report it.
    pub kernel: Option<KernelClock>,
    /// Reason for which the kernel does not report it.
    pub kernel_unavailable: Option<String>,
    /// The programs that leave traces of adjusting the clock.
    pub daemons: Vec<Daemon>,
    /// The hardware clocks of network cards.
    pub hardware_clocks: Vec<HardwareClock>,
}

/// State of the clock reported by `adjtimex` (Mills 1994, RFC 1589).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelClock {
    /// True if the program that adjusts the clock reports that it is right.
    pub synchronised: bool,
    /// Offset that is still to be slewed, in ns.
    pub offset_ns: i64,
    /// The frequency by which the clock is corrected, in parts per million.
    pub frequency_ppm: f64,
    /// The estimated error, in µs.
    pub estimated_error_us: i64,
    /// The maximum error, in µs; grows by 500 ppm while no program adjusts the clock.
    pub maximum_error_us: i64,
    /// TAI less UTC, in s; 0 if no program has set it.
    pub tai_offset_s: i32,
    /// The status flags that are set.
    pub flags: Vec<&'static str>,
}

/// A program that adjusts clocks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Daemon {
    /// Its name.
    pub name: &'static str,
    /// File that it left.
    pub evidence: &'static str,
}

const DAEMONS: [(&str, &str); 12] = [
    ("chrony", "/run/chrony/chronyd.pid"),
    ("chrony", "/run/chrony/chronyd.sock"),
    ("chrony", "/run/chronyd.pid"),
    ("ntpd", "/run/ntpd.pid"),
    ("ntpd", "/var/run/ntpd.pid"),
    ("openntpd", "/run/ntpd.sock"),
    ("systemd-timesyncd", "/run/systemd/timesync/synchronized"),
    ("systemd-timesyncd", "/run/systemd/timesync"),
    ("ptp4l", "/run/ptp4l"),
    ("ptp4l", "/var/run/ptp4l"),
    ("phc2sys", "/run/phc2sys.pid"),
    ("timemaster", "/run/timemaster"),
];

const FLAGS: [(i32, &str); 16] = [
    (libc::STA_PLL, "PLL"),
    (libc::STA_PPSFREQ, "PPSFREQ"),
    (libc::STA_PPSTIME, "PPSTIME"),
    (libc::STA_FLL, "FLL"),
    (libc::STA_INS, "INS"),
    (libc::STA_DEL, "DEL"),
    (libc::STA_UNSYNC, "UNSYNC"),
    (libc::STA_FREQHOLD, "FREQHOLD"),
    (libc::STA_PPSSIGNAL, "PPSSIGNAL"),
    (libc::STA_PPSJITTER, "PPSJITTER"),
    (libc::STA_PPSWANDER, "PPSWANDER"),
    (libc::STA_PPSERROR, "PPSERROR"),
    (libc::STA_CLOCKERR, "CLOCKERR"),
    (libc::STA_NANO, "NANO"),
    (libc::STA_MODE, "MODE"),
    (libc::STA_CLK, "CLK"),
];

/// The state of this host's clock, now. Nothing is changed.
pub fn status() -> ClockStatus {
    let (kernel, kernel_unavailable) = match kernel_clock() {
        Ok(clock) => (Some(clock), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    ClockStatus {
        host: host_name(),
        identity: written(identity()),
        clock_source: source.ok().map(|source| source.trim().to_owned()),
        kernel,
        kernel_unavailable,
        daemons: daemons(|path| Path::new(path).exists()),
        hardware_clocks: clocks(),
    }
}

/// One entry for each program of which there `exists` a trace.
fn daemons(exists: impl Fn(&str) -> bool) -> Vec<Daemon> {
    let mut found: Vec<Daemon> = Vec::new();
    for (name, evidence) in DAEMONS {
        if exists(evidence) && found.iter().all(|daemon| daemon.name != name) {
            found.push(Daemon { name, evidence });
        }
    }
    found
}

fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: the structure is plain numbers, for which zeros are valid; with `modes` zero the call only reads.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives over the call.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(KernelClock::of(&clock, state))
}

impl KernelClock {
    fn of(clock: &libc::timex, state: i32) -> KernelClock {
        let unit_ns = if clock.status & libc::STA_NANO != 0 { 1 } else { 1_000 };
        KernelClock {
            synchronised: state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0,
            offset_ns: clock.offset * unit_ns,
            // In units of 2^-16 ppm.
            frequency_ppm: clock.freq as f64 / 65_536.0,
            estimated_error_us: clock.esterror,
            maximum_error_us: clock.maxerror,
            tai_offset_s: clock.tai,
            flags: FLAGS.into_iter().filter(|(bit, _)| clock.status & bit != 0).map(|(_, name)| name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_adjtimex_have_their_units() {
        // SAFETY: plain numbers, for which zeros are valid.
        let mut clock: libc::timex = unsafe { std::mem::zeroed() };
        clock.freq = -65_536 * 3 / 2;
        clock.offset = 7;
        clock.status = libc::STA_PLL;
        let read = KernelClock::of(&clock, libc::TIME_OK);
        assert_eq!((read.synchronised, read.offset_ns, read.frequency_ppm), (true, 7_000, -1.5));
        assert_eq!(read.flags, ["PLL"]);
        clock.status = libc::STA_NANO | libc::STA_UNSYNC;
        let read = KernelClock::of(&clock, libc::TIME_OK);
        assert_eq!((read.synchronised, read.offset_ns), (false, 7));
        assert!(!KernelClock::of(&clock, libc::TIME_ERROR).synchronised);
    }

    #[test]
    fn a_program_is_named_once() {
        let found = daemons(|path| path.starts_with("/run/systemd"));
        assert_eq!(found, [Daemon { name: "systemd-timesyncd", evidence: "/run/systemd/timesync/synchronized" }]);
    }

    #[test]
    fn this_host_tells_something() {
        let status = status();
        assert!(status.kernel.is_some() != status.kernel_unavailable.is_some());
        assert!(!status.host.is_empty());
    }
}
