// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The tracepoint `tcp_probe`, read through perf events: one ring of records
//! for each processor, which goes with its descriptor however the process ends.

use std::io;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::format::{ProbeFormat, ProbeRecord};
use super::tracefs;
use crate::error::{LiveError, Result};

/// File in which the kernel tells the layout of a record.
const FORMAT: &str = "events/tcp/tcp_probe/format";

/// List of the online processors.
const PROCESSORS: &str = "/sys/devices/system/cpu/online";

/// The size of a ring. At 10 ms from one reading to the next it takes half a
/// million packets a second on each processor.
const RING_BYTES: usize = 1 << 20;

/// Kinds of records in a ring (linux/perf_event.h).
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// The tracepoint, switched on.
pub(super) struct Probe {
    format: ProbeFormat,
    rings: Vec<Sampler>,
}

impl Probe {
    /// Switches it on, for the whole machine: the kernel offers nothing less.
    ///
    /// # Errors
    /// When it is not there or not allowed, with the reason and what to do.
    pub fn open() -> Result<Self> {
        let root = tracefs::open().map_err(refused)?;
        let text = tracefs::read(&root, FORMAT).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LiveError::Missing(format!(
                "--tcp-state probe: this kernel has no tracepoint tcp/tcp_probe, which Linux has since 4.16 where it \
                 is built with CONFIG_FTRACE; {INSTEAD}"
            )),
            _ => refused(error),
        })?;
        let format = ProbeFormat::parse(&text)
            .map_err(|error| LiveError::Missing(format!("--tcp-state probe: {error}; {INSTEAD}")))?;
        let rings = processors()?.into_iter().map(|processor| ring(&format, processor).map_err(refused));
        Ok(Self { rings: rings.collect::<Result<_>>()?, format })
    }

    /// Hands over the records made since the last call, of each processor in
    /// order, with times from `start_ns` (CLOCK_MONOTONIC) on; returns how many
    /// the kernel dropped for lack of room.
    pub fn read(&mut self, start_ns: u64, mut take: impl FnMut(ProbeRecord)) -> u64 {
        let mut lost = 0;
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let bytes = record.to_contiguous();
                match record.ty() {
                    RECORD_SAMPLE => {
                        if let Some((at_ns, raw)) = sample(&bytes)
                            && let Some(time_ns) = at_ns.checked_sub(start_ns)
                            && let Some(record) = self.format.record(time_ns, raw)
                        {
                            take(record);
                        }
                    }
                    RECORD_LOST => lost += number(&bytes, 8).unwrap_or(0),
                    _ => {}
                }
            }
        }
        lost
    }
}

/// Alternative without the tracepoint.
const INSTEAD: &str = "--tcp-state '1 ms' samples every millisecond instead, and needs neither root nor tracepoints";

fn refused(error: io::Error) -> LiveError {
    let reason = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "kernel tracepoints cover the whole machine, and only its root may read them".to_owned()
        }
        Some(libc::ENODEV | libc::ENOSYS) => format!("this kernel has no tracefs or is older than Linux 5.2 ({error})"),
        _ => format!("cannot read the kernel's tracepoints: {error}"),
    };
    LiveError::Forbidden(format!("--tcp-state probe: {reason}; {INSTEAD}"))
}

fn ring(format: &ProbeFormat, processor: usize) -> io::Result<Sampler> {
    let mut counter = Builder::new(Tracepoint::with_id(format.id()))
        .any_pid()
        .one_cpu(processor)
        .include_kernel()
        .include_hv()
        .sample_period(1)
        .sample(SampleFlag::TIME | SampleFlag::RAW)
        .clockid(Clock::MONOTONIC)
        .build()?;
    counter.enable()?;
    counter.sampled(RING_BYTES)
}

/// The time of a sample, and the bytes of the record.
fn sample(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    Some((number(bytes, 0)?, bytes.get(12..12 + length as usize)?))
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn processors() -> Result<Vec<usize>> {
    let text =
        std::fs::read_to_string(PROCESSORS).map_err(|error| LiveError::system(format!("read {PROCESSORS}"), error))?;
    Ok(processor_list(&text))
}

/// The numbers in a list such as `0-3,6`.
fn processor_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(processor_list("0-2,5,7-7\n"), [0, 1, 2, 5, 7]);
        assert_eq!(processor_list("0\n"), [0]);
    }

    #[test]
    fn a_sample_is_its_time_and_its_bytes() {
        let mut bytes = 5_u64.to_ne_bytes().to_vec();
        bytes.extend(4_u32.to_ne_bytes());
        bytes.extend([1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(sample(&bytes), Some((5, &[1, 2, 3, 4][..])));
        assert_eq!(sample(&bytes[..14]), None);
    }

    #[test]
    fn a_refusal_says_what_else_can_be_had() {
        for code in [libc::EPERM, libc::ENODEV, libc::EIO] {
            let error = refused(io::Error::from_raw_os_error(code)).to_string();
            assert!(error.starts_with("--tcp-state probe:") && error.contains("--tcp-state '1 ms'"), "{error}");
        }
    }
}
