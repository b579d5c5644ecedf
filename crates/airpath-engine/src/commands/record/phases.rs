// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The phases of a recording, one after the other.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Duration;

use airpath_load::LoadError;
use airpath_record::client::{Outcome, Progress, Recorder};
use airpath_record::estimate::capacity::Capacity;
use airpath_record::estimate::{Material, direction, trains};
use airpath_record::folder::Folder;
use airpath_record::plan::{LEAST_LENGTH_BYTES, Load, MOST_LENGTH_BYTES, Phase, transmission};
use airpath_record::recording::{Kind, Part, Recording, Way};
use airpath_record::records::Packets;

use super::{Interruption, duration};
use crate::cli::record::{Mode, RecordArgs};
use crate::error::{Failure, Result};
use crate::load::failure;
use crate::terminal::say;

/// Longest packet of the saturating load unless another is asked for: an opportunity of mm-link.
const LONGEST_BYTES: u32 = 1_500;
/// Length of the packets of a light load without trains, in bytes.
const SHORT_BYTES: u32 = 100;
/// Interval of the light load on a path of unknown capacity. No multiple of 1 ms, so that packets meet slots and
/// opportunities of a link in all phases (RFC 2330, section 11.1, on synchronisation).
const UNKNOWN_INTERVAL: Duration = Duration::from_micros(20_070);
/// Least interval of the light load; no multiple of 1 ms either.
const LEAST_INTERVAL: Duration = Duration::from_micros(10_070);
/// Times of transmission of a packet of the light load in an interval.
const SPARE: u32 = 10;
/// Longest interval of the light load without trains, on the slowest paths.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

/// Phases as they were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    mode: Mode,
    ways: [bool; 2],
    duration: Duration,
    most_bytes: u64,
    most_rate_bits_per_second: u64,
    length_bytes: Option<u32>,
    light_bytes: Option<u32>,
    train: u32,
    interval: Option<Duration>,
    deepest: Duration,
}

/// A length of packets.
fn length(option: &str, bytes: u64) -> Result<u32> {
    let length = u32::try_from(bytes).ok().filter(|bytes| (LEAST_LENGTH_BYTES..=MOST_LENGTH_BYTES).contains(bytes));
    length.ok_or_else(|| {
        Failure::usage(format!("{option} {bytes}: packets have {LEAST_LENGTH_BYTES} to {MOST_LENGTH_BYTES} bytes"))
    })
}

impl Phases {
    /// The phases that `args` ask for.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn of(args: &RecordArgs) -> Result<Phases> {
        let interval = args.light_interval.map(duration);
        let phases = Phases {
            mode: args.mode,
            ways: [!args.downlink_only, !args.uplink_only],
            duration: duration(args.duration),
            most_bytes: args.max_bytes,
            most_rate_bits_per_second: args.rate_limit.bits_per_second(),
            length_bytes: args.length.map(|bytes| length("--length", bytes)).transpose()?,
            light_bytes: args.light_length.map(|bytes| length("--light-length", bytes)).transpose()?,
            train: args.train,
            interval,
            deepest: duration(args.queue_delay),
        };
        if phases.duration < Duration::from_secs(1) {
            return Err(Failure::usage(format!("--duration {}: a phase lasts at least 1 s", args.duration)));
        }
        if phases.most_bytes < 10_000 {
            return Err(Failure::usage("--max-bytes: at least 10 kB are needed for any estimate"));
        }
        let long_bytes = phases.length_bytes.unwrap_or(LONGEST_BYTES);
        let light = phases.light(UNKNOWN_INTERVAL, long_bytes, phases.most_bytes);
        for phase in [phases.saturating(Way::Uplink, long_bytes, 1), light] {
            if let Some(problem) = phase.problem() {
                return Err(Failure::usage(format!("the options ask for more than is possible: {problem}")));
            }
        }
        Ok(phases)
    }

    fn wanted(&self, way: Way) -> bool {
        self.ways[usize::from(way == Way::Downlink)]
    }

    /// Number of directions.
    fn directions(&self) -> u64 {
        Way::ALL.into_iter().filter(|way| self.wanted(*way)).count() as u64
    }

    fn count(&self) -> (u64, u64) {
        match self.mode {
            Mode::Both => (self.directions(), 1),
            Mode::Saturate => (self.directions(), 0),
            Mode::Light => (0, 1),
        }
    }

    /// Duration of everything in seconds, about.
    pub fn seconds(&self) -> u64 {
        let (saturating, light) = self.count();
        (saturating + light) * self.duration.as_secs().max(1) + 4
    }

    fn saturating(&self, way: Way, length_bytes: u32, parts: u64) -> Phase {
        Phase {
            load: Load::Saturating,
            uplink: way == Way::Uplink,
            downlink: way == Way::Downlink,
            duration: self.duration,
            length_bytes,
            most_bytes: self.most_bytes / parts.max(1),
            most_rate_bits_per_second: self.most_rate_bits_per_second,
            deepest: self.deepest,
        }
    }

    /// Interval of the light load with packets of `short_bytes` on a path whose slower direction has `rate`, in bit/s.
    /// The queue that a train has made is gone before the next one.
    fn interval(&self, short_bytes: u32, rate: Option<f64>) -> Duration {
        match rate.map(|rate| transmission(SPARE * self.train, short_bytes, rate)) {
            Some(interval) if self.train > 1 => interval.max(LEAST_INTERVAL),
            Some(interval) => interval.clamp(LEAST_INTERVAL, LONGEST_INTERVAL),
            // That of one packet, for each of a train.
            None => UNKNOWN_INTERVAL * self.train,
        }
    }

    /// Length of the packets of the light load; those of trains are as long as the saturating ones, `long_bytes`.
    fn light_bytes(&self, long_bytes: u32) -> u32 {
        self.light_bytes.unwrap_or(if self.train > 1 { long_bytes } else { SHORT_BYTES })
    }

    /// The light phase, with `most_bytes` in a direction. Its interval is the one asked for, or `interval`, which the
    /// limit of the rate makes longer.
    fn light(&self, interval: Duration, long_bytes: u32, most_bytes: u64) -> Phase {
        let phase = Phase {
            load: Load::Light { interval, train: self.train },
            uplink: self.wanted(Way::Uplink),
            downlink: self.wanted(Way::Downlink),
            duration: self.duration,
            length_bytes: self.light_bytes(long_bytes),
            most_bytes,
            most_rate_bits_per_second: self.most_rate_bits_per_second,
            deepest: Duration::ZERO,
        };
        let interval = self.interval.unwrap_or_else(|| interval.max(phase.least_interval(self.train)));
        Phase { load: Load::Light { interval, train: self.train }, ..phase }
    }

    /// Carries all of them out, and writes each when it has come to its end. Returns the packets of the parts of
    /// `recording`, and whether everything was recorded.
    pub fn run(
        &self,
        recorder: &mut Recorder,
        recording: &mut Recording,
        folder: &Folder,
        interruption: &Interruption,
    ) -> (Vec<Packets>, Result<()>) {
        let mut packets = Vec::new();
        let mut slowest = None;
        let (saturating, light) = self.count();
        // The light load takes its part of the bytes from what is left.
        let mtu = recorder.path_mtu_bytes();
        let carried = if mtu == 0 { LONGEST_BYTES } else { mtu.clamp(LEAST_LENGTH_BYTES, LONGEST_BYTES) };
        let length_bytes = self.length_bytes.unwrap_or(carried);
        let short_bytes = self.light_bytes(length_bytes);
        let trains_bytes = u64::from(short_bytes) * u64::from(self.train) * 100 * self.duration.as_secs().max(1);
        let light_bytes = light * self.directions() * trains_bytes;
        let left = self.most_bytes.saturating_sub(light_bytes).max(self.most_bytes / 2);
        for way in Way::ALL.into_iter().filter(|way| saturating > 0 && self.wanted(*way)) {
            let phase = Phase { most_bytes: left / saturating, ..self.saturating(way, length_bytes, 1) };
            if interruption.signal().is_some() {
                break;
            }
            let outcome = one(&phase, recorder, recording, folder, interruption, &mut packets);
            if let Err(failure) = outcome {
                return (packets, Err(failure));
            }
            let last = packets.last().filter(|_| recording.parts.last().is_some_and(|part| part.direction == way));
            let material = Material { saturating: last, ..Material::default() };
            match direction(material, |_| 0).capacity {
                Some(Capacity { rate_bits_per_second, .. }) => {
                    slowest = Some(slowest.unwrap_or(f64::INFINITY).min(rate_bits_per_second));
                }
                None => recording.warnings.push(format!(
                    "the {} was not saturated: too few packets waited for each other; raise --duration, --max-bytes or \
                     --rate-limit",
                    way.name()
                )),
            }
        }
        if light > 0 && interruption.signal().is_none() {
            let used: u64 = packets.iter().map(|these| these.all.len() as u64 * u64::from(these.length_bytes)).sum();
            let most_bytes = self.most_bytes.saturating_sub(used) / self.directions();
            let phase = self.light(self.interval(short_bytes, slowest), length_bytes, most_bytes);
            let too_short = few_trains(&phase);
            let before = packets.len();
            recording.warnings.extend(too_short.clone());
            let outcome = one(&phase, recorder, recording, folder, interruption, &mut packets);
            if too_short.is_none() {
                recording.warnings.extend(lost_trains(&recording.parts[before..], &packets[before..]));
            }
            if let Err(failure) = outcome {
                return (packets, Err(failure));
            }
        }
        (packets, Ok(()))
    }
}

/// Warning that fewer than two trains fit into `phase`, which make no trace.
fn few_trains(phase: &Phase) -> Option<String> {
    let Load::Light { interval, train } = phase.load else { return None };
    (train > 1 && phase.most_trains() < 2).then(|| {
        format!(
            "fewer than two trains of {train} packets, {:.3} s apart, fit into --duration and --max-bytes: the scenario \
             has a plain rate; raise them, or lower --train",
            interval.as_secs_f64()
        )
    })
}

/// Warnings of directions from which too few trains came.
fn lost_trains(parts: &[Part], packets: &[Packets]) -> Vec<String> {
    let none = |(part, these): &(&Part, &Packets)| {
        part.train_packets > 1 && trains::trains(these, part.train_packets, |_| 0).is_none()
    };
    let words = |(part, _): (&Part, &Packets)| {
        format!("fewer than two trains of the {} came through: it has a plain rate", part.direction.name())
    };
    parts.iter().zip(packets).filter(none).map(words).collect()
}

/// One phase, written.
fn one(
    phase: &Phase,
    recorder: &mut Recorder,
    recording: &mut Recording,
    folder: &Folder,
    interruption: &Interruption,
    packets: &mut Vec<Packets>,
) -> Result<()> {
    let watch = Watch::new(phase);
    let outcome = recorder.run(phase, &interruption.stop, &|progress| watch.tell(progress));
    watch.end();
    let Outcome { uplink, downlink, overflowed, clock_set, failure: broken } =
        outcome.map_err(|error| failure(&error))?;
    let (load, interval_ns, train_packets) = match phase.load {
        Load::Saturating => (Kind::Saturating, None, 1),
        Load::Light { interval, train } => (Kind::Light, Some(interval.as_nanos() as u64), train),
    };
    let complete = broken.is_none() && interruption.signal().is_none();
    for (way, these, overflowed) in [(Way::Uplink, uplink, overflowed[0]), (Way::Downlink, downlink, overflowed[1])] {
        let Some(these) = these.filter(|these| !these.all.is_empty()) else { continue };
        let file = format!("{}-{}.csv", way.name(), load.name());
        let packet_bytes = phase.length_bytes;
        let part = Part { load, direction: way, packet_bytes, interval_ns, train_packets, file, overflowed, complete };
        if overflowed > 0 {
            recording.warnings.push(format!(
                "the receiver of the {} had no room for {overflowed} packets, which count as lost: its host was too \
                 busy, or net.core.rmem_max too small",
                way.name()
            ));
        }
        folder.packets(&part, &these).map_err(Failure::unwritable)?;
        recording.parts.push(part);
        packets.push(these);
    }
    for (host, set) in ["the other host", "this host"].into_iter().zip(clock_set) {
        if set {
            recording.warnings.push(format!("the clock of {host} was set during a phase; its delays are wrong"));
        }
    }
    folder.recording(recording).map_err(Failure::unwritable)?;
    broken.map_or(Ok(()), |error: LoadError| Err(failure(&error)))
}

/// Tells how far a phase is: on a terminal in one line that is written over, elsewhere once.
struct Watch {
    terminal: bool,
    words: String,
    duration: Duration,
    packet_bits: f64,
    told: Mutex<(Duration, Progress)>,
}

impl Watch {
    fn new(phase: &Phase) -> Watch {
        let load = if phase.load == Load::Saturating { "saturating" } else { "light" };
        let directions = match (phase.uplink, phase.downlink) {
            (true, true) => "both directions",
            (true, false) => "uplink",
            _ => "downlink",
        };
        let words = format!("{load} load, {directions}");
        let terminal = std::io::stderr().is_terminal();
        if !terminal {
            say!("airpath: {words}, {} s", phase.duration.as_secs_f64());
        }
        let told = Mutex::new((Duration::ZERO, Progress::default()));
        Watch { terminal, words, duration: phase.duration, packet_bits: phase.bits() as f64, told }
    }

    fn tell(&self, progress: Progress) {
        let Ok(mut told) = self.told.lock() else { return };
        let since = progress.elapsed.saturating_sub(told.0);
        if !self.terminal || since < Duration::from_millis(500) {
            return;
        }
        let packets = (progress.sent - told.1.sent).max(progress.arrived - told.1.arrived);
        let rate = f64::from(packets) * self.packet_bits / since.as_secs_f64() / 1e6;
        *told = (progress.elapsed, progress);
        let mut out = std::io::stderr().lock();
        let (now, all) = (progress.elapsed.as_secs(), self.duration.as_secs_f64());
        let _ = write!(out, "\r{}: {now} of {all} s, {rate:.3} Mbit/s\x1b[K", self.words);
        let _ = out.flush();
    }

    fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
