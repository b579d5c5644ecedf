// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hardware clocks of network cards (PTP), read and never set.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use serde::Serialize;

/// Readings of one clock; the one between the closest two of the system's clock counts.
const SAMPLES: usize = 5;

/// A hardware clock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HardwareClock {
    /// Its device, such as "/dev/ptp0".
    pub device: String,
    /// The driver's name for it.
    pub name: String,
    /// It less CLOCK_REALTIME, in ns; PTP clocks often show TAI, which is 37 s ahead.
    pub offset_ns: Option<i64>,
    /// Half of the time that the reading took.
    pub bound_ns: Option<u64>,
    /// Reason for which it could not be read.
    pub unavailable: Option<String>,
}

/// Every hardware clock of this host.
pub fn clocks() -> Vec<HardwareClock> {
    let mut names: Vec<String> = std::fs::read_dir("/sys/class/ptp")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.iter().map(|name| clock(name)).collect()
}

fn clock(name: &str) -> HardwareClock {
    let device = format!("/dev/{name}");
    let called = std::fs::read_to_string(format!("/sys/class/ptp/{name}/clock_name")).unwrap_or_default();
    let read = File::open(&device).and_then(|file| offset(&file));
    let (offset, unavailable) = match read {
        Ok(offset) => (Some(offset), None),
        Err(error) => (None, Some(error.to_string())),
    };
    HardwareClock {
        device,
        name: called.trim().to_owned(),
        offset_ns: offset.map(|(offset_ns, _)| offset_ns),
        bound_ns: offset.map(|(_, bound_ns)| bound_ns),
        unavailable,
    }
}

/// PTP_SYS_OFFSET: the device less CLOCK_REALTIME, and how far off that may be.
fn offset(device: &File) -> io::Result<(i64, u64)> {
    let none = libc::ptp_clock_time { sec: 0, nsec: 0, reserved: 0 };
    let mut readings = libc::ptp_sys_offset { n_samples: SAMPLES as libc::c_uint, rsv: [0; 3], ts: [none; 51] };
    // SAFETY: the request is given the structure that it is declared for, which lives over the call,
    // and asks for fewer samples than the structure has room for.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::PTP_SYS_OFFSET, &raw mut readings) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let times: Vec<i64> =
        readings.ts[..=2 * SAMPLES].iter().map(|time| time.sec * 1_000_000_000 + i64::from(time.nsec)).collect();
    closest(&times).ok_or_else(|| io::Error::other("the clock gave no readings"))
}

/// Of alternating readings of the system's clock and the device, beginning and ending with the
/// system's: the offset of that between the closest two, and half of the time between these.
fn closest(times: &[i64]) -> Option<(i64, u64)> {
    let samples = times.windows(3).step_by(2).filter(|window| window[2] >= window[0]);
    let best = samples.min_by_key(|window| window[2] - window[0])?;
    let width = best[2] - best[0];
    Some((best[1] - (best[0] + width / 2), width.unsigned_abs().div_ceil(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_reading_counts() {
        // 37 s ahead; the second reading took 100 ns, the first 5 000.
        let ahead = 37_000_000_000;
        let times = [1_000, ahead + 4_500, 6_000, ahead + 6_050, 6_100];
        assert_eq!(closest(&times), Some((ahead, 50)));
        assert_eq!(closest(&times[..1]), None);
    }
}
