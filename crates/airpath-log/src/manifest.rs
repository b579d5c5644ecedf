// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `run.json`: what was run, on what, and what came out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;

use airpath_core::event::Cause;
use airpath_core::pdu::Origin;
use airpath_core::{Counters, Direction, EventKind, EventKinds, Tally};
use serde::{Deserialize, Serialize};

use crate::batch::Lost;
use crate::clock::Clock;
use crate::error::LogError;
use crate::exactness::Exactness;
use crate::files::MANIFEST;
use crate::histogram::{Distribution, Excess, Timings};
use crate::level::{Level, Snaplen};
use crate::place;
use crate::places::{Place, Places, UserNames};
use crate::show;
use crate::tables::events::WHOLE_PATH;
use crate::verdict::ends::EndResults;
use crate::verdict::{MachineFacts, Verdict, WallClock};
use crate::writer::WriterReport;

/// The version of the format of a run's folder.
pub const FORMAT_VERSION: u32 = 1;
/// The first manifest is padded to this size, so that the last one finds room on a full disk.
const RESERVED_BYTES: usize = 32 << 10;

/// Status of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It goes on, or its engine died without a word.
    Running,
    /// It ended as it should.
    Finished,
    /// It ended with an error.
    Failed,
}

/// The machine it ran on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The kernel's release.
    pub kernel: String,
    /// Number of processors that this process may use.
    pub cpus: usize,
    /// State of the host's clock at the start of a live run: whether it is synchronised, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<serde_json::Value>,
    /// State of the host that affects timing; nothing for a run that needs no clock.
    #[serde(flatten)]
    pub state: serde_json::Map<String, serde_json::Value>,
}

impl Host {
    /// This machine, as it was when first asked for.
    pub fn detect() -> Host {
        // Replications of a few milliseconds would otherwise read it out of a dozen files, each anew.
        static DETECTED: LazyLock<Host> = LazyLock::new(|| {
            let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            Host {
                kernel: kernel.trim().to_owned(),
                cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
                clock: None,
                state: serde_json::Map::new(),
            }
        });
        DETECTED.clone()
    }
}

/// Something that was tried for better timing or more rights, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Privilege {
    /// Name of the privilege, such as "sched_fifo".
    pub name: String,
    /// "yes", or why not.
    pub outcome: String,
}

/// A command of the workload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandRun {
    /// End at which it runs, such as "client".
    pub end: String,
    /// User whose end it is, where there are several; none for a command of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Its exit status; none while it runs, or if a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Workload between the ends of the link, run in the process itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkloadRun {
    /// The workload as it is written on the command line, with every default filled in.
    pub workload: String,
    /// Report at the end; none while it runs.
    pub report: Option<serde_json::Value>,
}

/// A count and the bits that belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Count {
    /// Number of packets.
    pub count: u64,
    /// Their bits.
    pub bits: u64,
}

impl From<Tally> for Count {
    fn from(tally: Tally) -> Count {
        Count { count: tally.count, bits: tally.bits }
    }
}

/// The counters of one hop, or of one of its bearers, or of the whole path in one direction; only what occurred.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SiteCount {
    /// The hop's name; "path" for the whole path.
    pub hop: String,
    /// The user; empty for a path alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The bearer of the hop; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bearer: String,
    /// The direction.
    pub direction: Direction,
    /// "user" for packets of endpoints, "background" for virtual ones, "control" for the frames of
    /// link entities.
    pub origin: String,
    /// By kind of event.
    pub kinds: BTreeMap<String, Count>,
    /// Drops and discards by cause.
    pub causes: BTreeMap<String, Count>,
}

/// The counters of a machine with these places.
pub fn counters(counters: &Counters, places: &Places) -> Vec<SiteCount> {
    let mut counts = Vec::new();
    for Place { number, user, hop, bearer } in places.all() {
        let name = hop.unwrap_or(WHOLE_PATH);
        for direction in Direction::ALL {
            for origin in Origin::ALL {
                let site = counters.site(number, direction, origin);
                let occurred = |(name, tally): (&str, Tally)| (tally.count > 0).then(|| (name.into(), tally.into()));
                let kinds: BTreeMap<_, _> =
                    EventKind::ALL.iter().map(|kind| (kind.name(), site.kind(*kind))).filter_map(occurred).collect();
                let causes: BTreeMap<_, _> =
                    Cause::ALL.iter().map(|cause| (cause.name(), site.cause(*cause))).filter_map(occurred).collect();
                if !kinds.is_empty() {
                    let origin = origin.name().into();
                    let (hop, user, bearer) = (name.into(), user.into(), bearer.into());
                    counts.push(SiteCount { hop, user, bearer, direction, origin, kinds, causes });
                }
            }
        }
    }
    counts
}

/// The times of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TimingResults {
    /// One-way delay, client to server, from arrival to due time.
    pub uplink_delay: Distribution,
    /// One-way delay, server to client.
    pub downlink_delay: Distribution,
    /// Real departures after due times.
    pub lateness: Distribution,
    /// From the kernel's receive stamp to the reading.
    pub read_delay: Distribution,
    /// Lateness of packets at the entry of the link: by their stamps, or an upper bound, where there are none.
    #[serde(default)]
    pub entries: Distribution,
    /// Threshold from which lateness may count, in ns.
    pub bound_ns: u64,
    /// But it is not before it is later than this share of the packet's least transit, in millionths.
    #[serde(default)]
    pub bound_share_ppm: u64,
    /// Number of packets that left late.
    pub late_emissions: u64,
    /// The one that was later than its bound by most.
    #[serde(default)]
    pub worst_emission: Excess,
    /// Number of packets that entered late, or may have.
    pub late_reads: u64,
    /// The one that was later than its bound by most.
    #[serde(default)]
    pub worst_read: Excess,
    /// Resulting error bounds.
    #[serde(default)]
    pub exactness: Exactness,
}

impl From<&Timings> for TimingResults {
    fn from(timings: &Timings) -> TimingResults {
        TimingResults {
            uplink_delay: timings.delay(Direction::Uplink),
            downlink_delay: timings.delay(Direction::Downlink),
            lateness: timings.lateness(),
            read_delay: timings.read_delay(),
            entries: timings.entries(),
            bound_ns: timings.bound().floor().nanos(),
            bound_share_ppm: timings.bound().share_ppm(),
            late_emissions: timings.late_emissions().packets,
            worst_emission: timings.late_emissions().worst,
            late_reads: timings.late_reads().packets,
            worst_read: timings.late_reads().worst,
            exactness: Exactness::of(timings),
        }
    }
}

/// Completeness of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LogResults {
    /// True for a complete log; a run with an incomplete log cannot be replayed.
    pub complete: bool,
    /// Records that the writer could not take in time.
    pub lost: Lost,
    /// State of the files.
    #[serde(flatten)]
    pub files: WriterReport,
}

impl LogResults {
    /// Losses of the recorder and report of the writer combined.
    pub fn new(lost: Lost, mut files: WriterReport) -> LogResults {
        if !lost.is_none() {
            files.incomplete.insert(
                0,
                format!(
                    "{} and {} were lost because {}",
                    show::counted(lost.events, "event"),
                    show::counted(lost.inputs, "input record"),
                    files.kept_by.reason()
                ),
            );
        }
        LogResults { complete: files.incomplete.is_empty(), lost, files }
    }
}

/// Self-measurement of the loop of a live run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LoopResults {
    /// Processor time of its thread.
    pub processor_ns: u64,
    /// Of that, time spent watching the clock.
    pub spun_ns: u64,
    /// Number of wake-ups.
    pub wake_ups: u64,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Number of voluntary context switches.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches.
    pub involuntary_switches: u64,
    /// Time of the run at which the loop lost its real-time priority because it had not slept for too long.
    pub demoted_ns: Option<u64>,
    /// Number of signals from programs that imitate the kernel's demotion signal; they were ignored.
    #[serde(default)]
    pub false_alarms: u64,
    /// Maximum time for which packets that bear no stamps may have waited to be read.
    #[serde(default)]
    pub longest_unread_ns: u64,
    /// Lag of the link behind its clock at the end of the run, which ends where the link stood.
    #[serde(default)]
    pub unfinished_ns: u64,
    /// Packets that had been read by then and never entered the link.
    #[serde(default)]
    pub unoffered: u64,
    /// Time for which packets bore no stamps while the kernel did not tell how long the loop waited.
    #[serde(default)]
    pub unwatched_reads_ns: u64,
}

/// Results of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Duration of the run.
    pub duration_ns: u64,
    /// The counters.
    pub counters: Vec<SiteCount>,
    /// The times.
    pub timings: TimingResults,
    /// The state of the log.
    pub log: LogResults,
    /// Activity of the machine during the run; none where there is no clock to keep up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFacts>,
    /// The loop; none where there is no clock to keep up with.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub live_loop: Option<LoopResults>,
    /// Steps of the wall clock; none where it was not stepped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock: Option<WallClock>,
    /// Disturbances at the ends, apart from the link; none of a run that had no real programs at its ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<EndResults>,
    /// The judgement.
    pub verdict: Verdict,
}

/// Records of the TCP state at both ends, in `tcp.arrow`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TcpStateRun {
    /// Interval between samples.
    pub interval_ns: u64,
    /// True if every packet from the peer was recorded as well (tracepoint `tcp_probe`).
    pub probe: bool,
    /// Rows of `tcp.arrow`.
    pub rows: u64,
    /// Number of sockets seen.
    pub sockets: u64,
    /// Number of samples.
    pub samples: u64,
    /// The longest time from one sample to the next.
    pub longest_gap_ns: u64,
    /// Number of tracepoint records and close notifications that the kernel discarded because they were not
    /// read in time.
    pub lost: u64,
    /// Processor time of the sampler.
    pub processor_ns: u64,
    /// Features that the kernel refused, and their effect.
    pub refused: Vec<String>,
    /// Reasons for an incomplete file; empty if it is complete.
    pub incomplete: Vec<String>,
}

/// The manifest of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format of the run's folder.
    pub format_version: u32,
    /// The version of Airpath that recorded it.
    pub airpath_version: String,
    /// Status of the run.
    pub status: Status,
    /// Start of the run (its time 0), in nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// Clock of the run; live where the manifest does not say.
    #[serde(default)]
    pub clock: Clock,
    /// The seed of all draws.
    pub seed: u64,
    /// The scenario with every default filled in.
    pub scenario: serde_json::Value,
    /// The scenario as TOML.
    pub scenario_toml: String,
    /// The hops' names, from the client to the server.
    pub hops: Vec<String>,
    /// The states' names, the initial one first.
    pub states: Vec<String>,
    /// The users of a cell, by their number; none for one without a name whose hops have no bearers. Hops and states
    /// above are then those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserNames>,
    /// The hosts of a path on several, that of the client first: what each measured, and how far its clock was off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<serde_json::Value>,
    /// The kind of port, such as "tun" or "packet".
    pub port: String,
    /// Level of recording.
    pub log_level: Level,
    /// True if single frames were recorded; they are counted in any case.
    #[serde(default = "yes")]
    pub frames: bool,
    /// Number of bytes that the captures keep of each packet.
    pub snaplen: Snaplen,
    /// The machine it ran on.
    pub host: Host,
    /// Attempts at better timing or more rights.
    pub privileges: Vec<Privilege>,
    /// Anything else that was set, such as the MTU and the congestion control.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The commands of the workload.
    pub commands: Vec<CommandRun>,
    /// The workloads of a run without commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadRun>,
    /// Records of the TCP state; none where it was not recorded. Its numbers are those of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_state: Option<TcpStateRun>,
    /// Results; none while the run is active.
    pub results: Option<Results>,
}

/// Runs recorded frames wherever they recorded events before `frames` was there.
fn yes() -> bool {
    true
}

impl Manifest {
    /// Kinds of events that are counted and not recorded.
    pub fn leaves_out(&self) -> EventKinds {
        if self.frames { EventKinds::NONE } else { EventKinds::FRAMES }
    }

    /// The manifest of a run that is about to begin; what is not known yet is empty.
    pub fn new(level: Level, snaplen: Snaplen) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            airpath_version: env!("CARGO_PKG_VERSION").into(),
            status: Status::Running,
            start_unix_ns: 0,
            clock: Clock::default(),
            seed: 0,
            scenario: serde_json::Value::Null,
            scenario_toml: String::new(),
            hops: Vec::new(),
            states: Vec::new(),
            users: Vec::new(),
            hosts: Vec::new(),
            port: String::new(),
            log_level: level,
            frames: true,
            snaplen,
            host: Host::detect(),
            privileges: Vec::new(),
            settings: serde_json::Map::new(),
            commands: Vec::new(),
            workloads: Vec::new(),
            tcp_state: None,
            results: None,
        }
    }

    /// The places of the run's events.
    pub fn places(&self) -> Places {
        match self.users.as_slice() {
            [] => Places::of_path(self.hops.clone(), self.states.clone()),
            users => Places::of_users(users.to_vec()),
        }
    }

    /// Takes the names of users, hops and states from `places`.
    pub fn name_places(&mut self, places: &Places) {
        self.hops = places.hops().to_vec();
        self.states = places.states().to_vec();
        let users = if places.has_bearers() { places.users() } else { places.named_users() };
        self.users = users.to_vec();
    }

    /// Writes `run.json` into `folder` in one step: a reader sees the old manifest or the new one.
    /// Only where the disk is full is the old one written over, in the room it reserved.
    ///
    /// # Errors
    /// When it cannot be written; the old manifest is left then.
    pub fn write(&self, folder: &Path) -> Result<(), LogError> {
        let path = folder.join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| LogError::content(&path, error.to_string(), "please report this as a bug"))?;
        text.push(b'\n');
        if self.status == Status::Running {
            pad(&mut text, RESERVED_BYTES);
        }
        match place::replace(&path, |file| file.write_all(&text)) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                overwrite(&path, text).map_err(|_| LogError::io("write", &path, error))
            }
            other => other.map_err(|error| LogError::io("write", &path, error)),
        }
    }

    /// Reads the manifest in `folder`.
    ///
    /// # Errors
    /// When there is none, or one of another format.
    pub fn read(folder: &Path) -> Result<Manifest, LogError> {
        let path = folder.join(MANIFEST);
        let text = place::read(&path).map_err(|error| LogError::io(LogError::READ, &path, error))?;
        #[derive(Deserialize)]
        struct Head {
            format_version: u64,
        }
        let hint = "name the folder of a run, as given to --out";
        let head: Head =
            serde_json::from_slice(&text).map_err(|error| LogError::content(&path, error.to_string(), hint))?;
        if head.format_version != u64::from(FORMAT_VERSION) {
            return Err(LogError::Format { path, found: head.format_version, known: FORMAT_VERSION });
        }
        serde_json::from_slice(&text).map_err(|error| LogError::content(&path, error.to_string(), hint))
    }
}

fn pad(text: &mut Vec<u8>, length: usize) {
    if text.len() < length {
        text.resize(length - 1, b' ');
        text.push(b'\n');
    }
}

/// Writes `text` over the file at `path`, which must have room for it.
fn overwrite(path: &Path, mut text: Vec<u8>) -> io::Result<()> {
    let mut file = place::open_to_overwrite(path)?;
    let room = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if text.len() > room {
        return Err(io::ErrorKind::StorageFull.into());
    }
    pad(&mut text, room);
    file.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Event, Pdu, Time};

    #[test]
    fn a_manifest_reads_back_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::new(Level::Packets, Snaplen::Full);
        manifest.seed = u64::MAX;
        manifest.write(folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        let mut machine = Counters::default();
        let pdu = Pdu { len: 100, ..Pdu::default() };
        let drop = Event::of_path(Time::ZERO, Direction::Downlink, EventKind::Dropped, Cause::ChannelError, &pdu, 0);
        machine.count(&Event { hop: 0, ..drop });
        let files = WriterReport { incomplete: vec!["disk".into()], ..WriterReport::default() };
        manifest.status = Status::Finished;
        manifest.results = Some(Results {
            duration_ns: 5,
            counters: counters(&machine, &Places::of_path(vec!["radio".into()], Vec::new())),
            timings: TimingResults::default(),
            log: LogResults::new(Lost { events: 1, inputs: 0 }, files),
            machine: None,
            live_loop: Some(LoopResults { major_faults: 1, ..LoopResults::default() }),
            wall_clock: None,
            ends: Some(EndResults { not_ip_frames: 3, ..EndResults::default() }),
            verdict: Verdict::default(),
        });
        manifest.write(folder.path()).unwrap();
        let read = Manifest::read(folder.path()).unwrap();
        assert_eq!(read, manifest);
        let results = read.results.unwrap();
        assert_eq!(results.counters[0].causes["channel_error"], Count { count: 1, bits: 800 });
        assert!(!results.log.complete);
        let lost = &results.log.files.incomplete[0];
        assert!(lost.starts_with("1 event and 0 input records were lost because the disk could not"), "{lost}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_manifest_of_old_is_of_a_live_run_with_frames() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest { clock: Clock::Virtual, ..Manifest::new(Level::Events, Snaplen::default()) };
        let mut json = serde_json::to_value(&manifest).unwrap();
        assert_eq!(json["clock"], "virtual");
        json.as_object_mut().unwrap().remove("clock");
        json.as_object_mut().unwrap().remove("frames");
        fs::write(folder.path().join(MANIFEST), json.to_string()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), Manifest { clock: Clock::Live, ..manifest });
    }

    #[test]
    fn the_first_manifest_leaves_room_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANIFEST);
        Manifest::new(Level::Events, Snaplen::default()).write(folder.path()).unwrap();
        overwrite(&path, b"{\"a\": 1}\n".to_vec()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), RESERVED_BYTES);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["a"], 1);
        overwrite(&path, vec![b' '; RESERVED_BYTES + 1]).unwrap_err();
    }

    #[test]
    fn other_formats_are_refused_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MANIFEST), r#"{"format_version": 99}"#).unwrap();
        let error = Manifest::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("format 99") && error.contains("run.json"), "{error}");
    }
}
