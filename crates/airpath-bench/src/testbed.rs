// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Testbed of the traffic: a bare veth pair, or links in one or more loops.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use airpath_core::{Machine, Seed, Span};
use airpath_live::engine_loop::{EngineLoop, FinishedLink, Handle, LiveLink, LoopReport, SpinPolicy};
use airpath_live::namespaces::NetNamespace;
use airpath_live::netlink::{LinkOptions, Route, RouteSocket};
use airpath_live::ports::PortKind;
use airpath_live::session::{Session, SessionEnd, SessionOptions};
use airpath_live::tuning::{Affinity, Policy, REAL_TIME_PRIORITY, Tuning};
use airpath_live::wake_latency::WakeLatency;
use airpath_live::{clock, open_files, scheduling, side_by_side};
use airpath_log::verdict::{Measurements, Reads, Verdict, judge};
use airpath_log::{Economy, LatenessBound, Level, Writer, WriterOptions};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use tempfile::TempDir;

use crate::pass::Pass;

/// An error from anywhere, for people.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One end of what is measured.
#[derive(Clone, Copy)]
pub struct NetworkEnd<'a> {
    network: &'a NetNamespace,
    /// Its address.
    pub address: IpAddr,
}

impl<'a> NetworkEnd<'a> {
    /// An end of a session.
    pub fn of(end: &'a SessionEnd) -> NetworkEnd<'a> {
        NetworkEnd { network: end.network(), address: end.addresses()[0] }
    }

    /// Runs `work` inside the end's namespace; the sockets that it makes stay of that namespace.
    ///
    /// # Errors
    /// Those of `work`, or the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.network.run(work).map_err(io::Error::other)?
    }
}

/// Two namespaces joined by a veth pair and nothing else: the floor of every latency.
pub struct BareVeth {
    networks: [NetNamespace; 2],
}

impl BareVeth {
    /// Makes it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn create() -> Result<BareVeth, Failure> {
        let networks = [NetNamespace::create()?, NetNamespace::create()?];
        let mut first = networks[0].run(RouteSocket::open)??;
        first.add_veth("bare0", "bare1", networks[1].as_fd(), 1500)?;
        for (index, network) in networks.iter().enumerate() {
            let mut socket = network.run(RouteSocket::open)??;
            let link_index = socket.link_index(&format!("bare{index}"))?;
            let options = LinkOptions { without_link_local: true, up: true, ..LinkOptions::default() };
            socket.configure_link(link_index, &options)?;
            let address = BareVeth::address(index);
            socket.add_address(link_index, address, 30)?;
            socket.add_route(&Route {
                destination: IpAddr::V4(Ipv4Addr::new(10, 78, 0, 0)),
                prefix_length: 30,
                link_index,
                gateway: None,
                source: Some(address),
                congestion_control: None,
            })?;
        }
        Ok(BareVeth { networks })
    }

    fn address(index: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 78, 0, index as u8 + 1))
    }

    /// Both ends.
    pub fn ends(&self) -> [NetworkEnd<'_>; 2] {
        [0, 1].map(|index| NetworkEnd { network: &self.networks[index], address: BareVeth::address(index) })
    }
}

/// Link between the ends.
#[derive(Clone, Debug)]
pub enum Link {
    /// Nothing: the loop passes packets on.
    Pass,
    /// One hop with the same parameters in both directions.
    Hop(Box<LinkConfig>),
}

impl Link {
    /// A hop.
    pub fn hop(config: LinkConfig) -> Link {
        Link::Hop(Box::new(config))
    }

    fn machine(&self) -> Box<dyn Machine> {
        match self {
            Link::Pass => Box::new(Pass::default()),
            Link::Hop(config) => {
                let hop = HopConfig { name: "radio".into(), uplink: (**config).clone(), downlink: (**config).clone() };
                Box::new(Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(1)))
            }
        }
    }
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Kind of the loop's ports.
    pub port: PortKind,
    /// Level of recording.
    pub level: Level,
    /// Policy of meeting deadlines.
    pub spin: SpinPolicy,
    /// Scheduling of the loops' threads.
    pub policy: Policy,
    /// Processors of the loops.
    pub affinity: Affinity,
    /// TCP congestion control of both ends; none: the kernel's default.
    pub congestion_control: Option<&'static str>,
    /// True if memory is kept resident.
    pub lock_memory: bool,
    /// True if processors are kept out of deep idle states.
    pub wake_latency: bool,
    /// Departures that share a wake-up.
    pub departures: Departures,
}

/// Departures that share a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// None: each packet leaves at its own instant.
    Single,
    /// Those within the quantum of this policy.
    Within(Economy),
}

impl Setting {
    /// A setting with the spin that a user gets.
    pub fn new(port: PortKind, level: Level) -> Setting {
        Setting {
            port,
            level,
            spin: SpinPolicy::USUAL,
            congestion_control: None,
            policy: Policy::Fifo(REAL_TIME_PRIORITY),
            affinity: Affinity::Any,
            lock_memory: true,
            wake_latency: true,
            departures: Departures::Within(Economy::Off),
        }
    }

    /// Ends with their ports.
    ///
    /// # Errors
    /// When namespaces or ports cannot be had.
    pub fn session(&self) -> Result<Session, Failure> {
        Ok(Session::create(&SessionOptions {
            port_kind: self.port,
            super_packets: true,
            congestion_control: self.congestion_control.map(str::to_owned),
            ..SessionOptions::from_environment()?
        })?)
    }

    /// Kernel settings of the loop.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            policy: self.policy,
            affinity: self.affinity,
            lock_memory: self.lock_memory,
            timer_slack_ns: 1,
            wake_latency: self.wake_latency,
            spin: self.spin,
            economy: Economy::Off,
        }
    }

    /// Port and log level, in words.
    pub fn label(&self) -> String {
        format!("{}, {}", port_name(self.port), self.level)
    }
}

/// The port's name in tables.
pub fn port_name(port: PortKind) -> &'static str {
    match port {
        PortKind::Automatic => "auto",
        PortKind::Tun => "tun",
        PortKind::Packet => "packet",
    }
}

type LoopThread = JoinHandle<io::Result<(Vec<FinishedLink>, LoopReport)>>;

/// Links between pairs of namespaces, running.
pub struct Emulation {
    endpoints: Vec<[SessionEnd; 2]>,
    loops: Vec<(Handle, LoopThread)>,
    writers: Vec<(Writer, Option<TempDir>)>,
    started_ns: u64,
    _wake_latency: Option<WakeLatency>,
}

/// Measurements after it has stopped.
pub struct LinkOutcome {
    /// The loops' reports.
    pub reports: Vec<LoopReport>,
    /// Packets lost beside the model.
    pub lost_outside: u64,
    /// Packets that the model dropped.
    pub dropped: u64,
    /// Run time of the loops.
    pub elapsed_ns: u64,
    /// Lateness of the first link.
    pub lateness: airpath_log::Distribution,
    /// Packets of the first link that left later than their bounds.
    pub late_packets: u64,
    /// Lateness of each link.
    pub latenesses: Vec<airpath_log::Distribution>,
    /// Verdict of each link, of its lateness, reads and losses.
    pub verdicts: Vec<Verdict>,
    /// True if the log is complete.
    pub log_complete: bool,
}

impl LinkOutcome {
    /// Processor time of all loops, in ns.
    pub fn processor_ns(&self) -> u64 {
        self.reports.iter().map(|report| report.processor_ns).sum()
    }

    /// The share of one core that the loops used, in percent.
    pub fn core_percent(&self) -> f64 {
        self.processor_ns() as f64 / self.elapsed_ns as f64 * 100.0
    }

    /// The share of one core spent watching the clock, in percent.
    pub fn spin_percent(&self) -> f64 {
        self.reports.iter().map(|report| report.spun_ns).sum::<u64>() as f64 / self.elapsed_ns as f64 * 100.0
    }

    /// Number of wake-ups of the loops.
    pub fn wake_ups(&self) -> u64 {
        self.reports.iter().map(|report| report.wake_ups).sum()
    }
}

impl Emulation {
    /// Starts one link.
    ///
    /// # Errors
    /// When namespaces, ports or threads cannot be had.
    pub fn start(link: &Link, setting: Setting) -> Result<Emulation, Failure> {
        Emulation::start_many(std::slice::from_ref(link), 1, setting)
    }

    /// Starts several links, dealt out to `loops` loops.
    ///
    /// # Errors
    /// When namespaces, ports or threads cannot be had.
    pub fn start_many(links: &[Link], loops: usize, setting: Setting) -> Result<Emulation, Failure> {
        let mut endpoints = Vec::new();
        let mut writers = Vec::new();
        let mut dealt: Vec<Vec<LiveLink>> = (0..loops).map(|_| Vec::new()).collect();
        if links.len() > 1 {
            open_files::allow_most();
        }
        let sessions = side_by_side::map(links.iter().collect(), |_, _| setting.session());
        for (index, (link, session)) in links.iter().zip(sessions).enumerate() {
            let session = session?;
            let folder = if setting.level >= Level::Events { Some(TempDir::new()?) } else { None };
            let place = folder.as_ref().map_or(std::path::Path::new(""), TempDir::path);
            let names = (vec!["radio".to_owned()], vec!["initial".to_owned()]);
            let (recorder, writer) = Writer::start(&WriterOptions::of_path(place, setting.level, names.0, names.1))?;
            writer.set_start(clock::realtime_ns());
            writers.push((writer, folder));
            let Session { client, server, client_port, server_port, .. } = session;
            endpoints.push([client, server]);
            dealt[index % loops].push(LiveLink::new(
                link.machine(),
                vec![client_port, server_port],
                recorder,
                LatenessBound::USUAL,
            ));
        }
        let tuning = setting.tuning();
        if !setting.lock_memory {
            scheduling::unlock_memory();
        }
        tuning.prepare_process();
        let (_, wake_latency) = tuning.hold();
        let mut running = Vec::new();
        let started_ns = clock::monotonic_ns();
        for links in dealt {
            let (engine, handle) = EngineLoop::new(links, setting.spin)?;
            let engine = match setting.departures {
                Departures::Single => engine.with_single_departures(),
                Departures::Within(economy) => engine.with_economy(economy),
            };
            let tuning = tuning.clone();
            let thread = std::thread::Builder::new().name("airpath-loop".into()).spawn(move || {
                tuning.prepare_thread();
                engine.run()
            })?;
            handle.begin(started_ns);
            running.push((handle, thread));
        }
        Ok(Emulation { endpoints, loops: running, writers, started_ns, _wake_latency: wake_latency })
    }

    /// The client's and the server's end of link `index`.
    pub fn ends(&self, index: usize) -> [NetworkEnd<'_>; 2] {
        let ends = &self.endpoints[index];
        [0, 1].map(|end| NetworkEnd::of(&ends[end]))
    }

    /// Stops the loops.
    ///
    /// # Errors
    /// When a loop failed.
    pub fn stop(self) -> Result<LinkOutcome, Failure> {
        let mut reports = Vec::new();
        let mut finished = Vec::new();
        for (handle, thread) in self.loops {
            handle.stop();
            let (links, report) = thread.join().map_err(|_| "a loop panicked")??;
            reports.push(report);
            finished.extend(links);
        }
        let elapsed_ns = clock::monotonic_ns() - self.started_ns;
        let latenesses = finished.iter().map(|link| link.measurements.timings.lateness()).collect();
        let lateness = finished[0].measurements.timings.lateness();
        let late_packets = finished[0].measurements.timings.late_emissions().packets;
        let (mut lost_outside, mut dropped, mut log_complete) = (0, 0, true);
        let mut verdicts = Vec::with_capacity(finished.len());
        for link in finished {
            let FinishedLink { counters, measurements, recorder, ports, .. } = link;
            let is_stamped = ports.iter().all(|port| port.has_kernel_stamps());
            let mut outside_drops = measurements.not_taken;
            for mut port in ports {
                outside_drops += port.drops_outside_model()?.total();
            }
            lost_outside += outside_drops;
            let timings = &measurements.timings;
            let late = timings.late_reads();
            verdicts.push(judge(&Measurements {
                outside_drops,
                offered: timings.lateness().count,
                reads: match is_stamped {
                    true => Reads::Stamped { late, delay: timings.read_delay() },
                    false => Reads::Gaps { late },
                },
                ..Measurements::of(timings, Span::from_nanos(elapsed_ns))
            }));
            for direction in airpath_core::Direction::ALL {
                dropped += counters.drops(direction).iter().map(|(_, tally)| tally.count).sum::<u64>();
            }
            log_complete &= recorder.finish(reports[0].ended).is_none();
        }
        for (writer, _folder) in self.writers {
            log_complete &= writer.finish().incomplete.is_empty();
        }
        Ok(LinkOutcome {
            reports,
            lost_outside,
            dropped,
            elapsed_ns,
            lateness,
            late_packets,
            latenesses,
            verdicts,
            log_complete,
        })
    }
}
