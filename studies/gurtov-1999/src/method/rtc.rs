// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counting interrupts of the real-time clock's chip (Gurtov 1999, 3.6.1). The clock runs freely: a
//! sleep of n interrupts lasts between n − 1 and n of its periods, so that one more than fits is
//! right on average.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use super::{Method, Sleep, Unavailable, Waiting};

const DEVICES: [&str; 2] = ["/dev/rtc", "/dev/rtc0"];
/// Rates to try, in Hz: what root may have, and what anybody may have (dev.rtc.max-user-freq).
const RATES: [u32; 6] = [8192, 4096, 2048, 1024, 128, 64];

mod ioctl {
    nix::ioctl_none!(interrupts_on, b'p', 0x05);
    nix::ioctl_none!(interrupts_off, b'p', 0x06);
    nix::ioctl_write_int!(set_rate, b'p', 0x0c);
}

struct Rtc {
    device: File,
    rate: u32,
}

impl Rtc {
    /// Waits for interrupts; returns how many there were since it was last asked.
    fn interrupts(&mut self) -> io::Result<u64> {
        // An unsigned long of C, which on Linux is as wide as an address.
        let mut word = [0; size_of::<usize>()];
        self.device.read_exact(&mut word)?;
        // The lowest byte says which kinds there were.
        Ok((usize::from_ne_bytes(word) >> 8) as u64)
    }
}

fn interrupts_to_wait_for(span_ns: u64, rate: u32) -> u64 {
    (u128::from(span_ns) * u128::from(rate) / 1_000_000_000) as u64 + 1
}

impl Sleep for Rtc {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let mut left = interrupts_to_wait_for(span_ns, self.rate);
        // Those that came since the last sleep are none of this one.
        let mut fresh = false;
        while left > 0 {
            let count = match self.interrupts() {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            left = left.saturating_sub(if fresh { count } else { count.min(1) });
            fresh = true;
        }
        Ok(())
    }
}

impl Drop for Rtc {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open; the request has no argument.
        let _ = unsafe { ioctl::interrupts_off(self.device.as_raw_fd()) };
    }
}

fn open() -> Result<Box<dyn Sleep>, Unavailable> {
    let mut reasons = Vec::new();
    for path in DEVICES {
        match File::open(path) {
            Ok(device) => return prepare(device, path),
            Err(error) => reasons.push(format!("{path}: {error}")),
        }
    }
    Err(format!("no real-time clock can be opened ({}); most virtual machines have none", reasons.join("; ")))
}

fn prepare(device: File, path: &str) -> Result<Box<dyn Sleep>, Unavailable> {
    let descriptor = device.as_raw_fd();
    // SAFETY: the descriptor is open; the argument is an integer.
    let fits = |rate: &&u32| unsafe { ioctl::set_rate(descriptor, **rate as libc::c_ulong) }.is_ok();
    let Some(rate) = RATES.iter().find(fits).copied() else {
        return Err(format!("{path} takes no rate of interrupts; dev.rtc.max-user-freq is the limit of users"));
    };
    // SAFETY: the descriptor is open; the request has no argument.
    match unsafe { ioctl::interrupts_on(descriptor) } {
        Ok(_) => Ok(Box::new(Rtc { device, rate })),
        Err(errno) => Err(format!("{path} gives no periodic interrupts: {errno}")),
    }
}

pub const METHOD: Method = Method {
    name: "rtc",
    what: "counting the interrupts of /dev/rtc, at up to 8192 Hz",
    needs: "a real-time clock; root, or dev.rtc.max-user-freq for more than 64 Hz",
    at_least: false,
    waiting: Waiting::Asleep,
    open: |_| open(),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interrupt_more_than_fits() {
        // 1024 Hz: a period of 976.5625 µs.
        let count = |span_ns| interrupts_to_wait_for(span_ns, 1024);
        assert_eq!([count(0), count(976_562), count(976_563), count(100_000_000)], [1, 1, 2, 103]);
    }
}
