// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Trying a setting: the live loop itself carries packets over a link of its own, and says how late they were.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_live::clock;
use airpath_live::engine_loop::{EngineLoop, FinishedLink, LiveLink, LoopReport, SpinPolicy};
use airpath_live::ports::Port;
use airpath_live::session::{Session, SessionEnd, SessionOptions};
use airpath_live::tuning::{Affinity, Policy, Tuning};
use airpath_live::{LiveError, Result};
use airpath_log::{Distribution, LatenessBound, Level, Writer, WriterOptions};
use bytes::Bytes;

use super::ticker::{Ticker, datagram};

/// Time between the start of the loop and that of the run, in ns, in which the thread gets its memory: no
/// packet waits for that.
const LEAD_NS: u64 = 20_000_000;
/// Interval at which the receiver checks whether it is to end.
const RECEIVER_PATIENCE: Duration = Duration::from_millis(50);

/// Scheduling and spin policy of the loop's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Scheduling policy.
    pub policy: Policy,
    /// Processors on which it runs.
    pub affinity: Affinity,
    /// Spin policy.
    pub spin: SpinPolicy,
    /// True if processors are kept from idle states that take long to leave, where that is allowed.
    pub wake_latency: bool,
}

/// Result of a measurement with one setting.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// Distribution of the lateness of packets.
    pub lateness: Distribution,
    /// Processor time of the loop for each packet, in ns.
    pub processor_ns: f64,
    /// Part of it spent watching the clock, in ns for each packet.
    pub watching_ns: f64,
}

/// A link to try settings with: two namespaces and the ports between them.
pub struct Prober {
    /// Both ends: with them would go the link.
    _ends: [SessionEnd; 2],
    ports: Option<Vec<Port>>,
    receiver: UdpSocket,
    packet: Bytes,
}

impl Prober {
    /// Makes the link. [`airpath_live::privilege::acquire`] comes before.
    ///
    /// # Errors
    /// When the system forbids namespaces, with what to change.
    pub fn create() -> Result<Prober> {
        let session = Session::create(&SessionOptions { super_packets: true, ..SessionOptions::from_environment()? })?;
        let Session { client, server, client_port, server_port, .. } = session;
        let receiver = receiver(&client)?;
        let to = receiver.local_addr().map_err(|error| LiveError::system("find the receiver's port", error))?;
        let (SocketAddr::V4(to), IpAddr::V4(from)) = (to, server.addresses()[0]) else {
            return Err(LiveError::Request("a link has no IPv4 address".into()));
        };
        let packet = datagram(SocketAddrV4::new(from, to.port()), to);
        Ok(Prober { _ends: [client, server], ports: Some(vec![client_port, server_port]), receiver, packet })
    }

    /// Runs the loop in `setting` for `duration`.
    ///
    /// # Errors
    /// When the loop cannot be started or its port goes away.
    pub fn measure(&mut self, setting: Setting, duration: Duration) -> Result<Probed> {
        let failed = |error| LiveError::system("run the loop over the link for measuring", error);
        let Some(ports) = self.ports.take() else {
            return Err(LiveError::Request("the link for measuring was lost in an earlier measurement".into()));
        };
        let over = AtomicBool::new(false);
        let (link, report) = std::thread::scope(|scope| {
            // A socket receives, as in a run: waking the receiver is part of what it costs to write a packet.
            scope.spawn(|| {
                let mut bytes = [0; 256];
                while !over.load(Ordering::Acquire) {
                    let _ = self.receiver.recv(&mut bytes);
                }
            });
            let outcome = run(ports, self.packet.clone(), setting, duration);
            over.store(true, Ordering::Release);
            outcome
        })
        .map_err(failed)?;
        let lateness = link.measurements.timings.lateness();
        let packets = lateness.count.max(1) as f64;
        self.ports = Some(link.ports);
        Ok(Probed {
            lateness,
            processor_ns: report.processor_ns as f64 / packets,
            watching_ns: report.spun_ns as f64 / packets,
        })
    }
}

/// A socket at the client's end.
fn receiver(client: &SessionEnd) -> Result<UdpSocket> {
    let address = client.addresses()[0];
    let bound = client.network().run(move || {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_read_timeout(Some(RECEIVER_PATIENCE))?;
        io::Result::Ok(socket)
    })?;
    bound.map_err(|error| LiveError::system(format!("listen at {address}"), error))
}

/// The loop, as a run has it, on a thread of its own.
fn run(
    ports: Vec<Port>,
    packet: Bytes,
    setting: Setting,
    duration: Duration,
) -> io::Result<(FinishedLink, LoopReport)> {
    let names = (vec!["calibration".to_owned()], vec!["initial".to_owned()]);
    let options = WriterOptions::of_path(std::path::Path::new(""), Level::Counters, names.0, names.1);
    let (recorder, writer) = Writer::start(&options).map_err(io::Error::other)?;
    let link = LiveLink::new(Box::new(Ticker::new(packet)), ports, recorder, LatenessBound::USUAL);
    let (engine, handle) = EngineLoop::new(vec![link], setting.spin)?;
    let Setting { policy, affinity, spin, wake_latency } = setting;
    let tuning = Tuning { policy, affinity, wake_latency, ..Tuning::usual(spin) };
    let (_, _held) = tuning.hold();
    let thread = std::thread::Builder::new().name("airpath-loop".into()).spawn(move || {
        tuning.prepare_thread();
        engine.run()
    })?;
    handle.begin(clock::monotonic_ns() + LEAD_NS);
    std::thread::sleep(Duration::from_nanos(LEAD_NS) + duration);
    handle.stop();
    let (mut links, report) = thread.join().map_err(|_| io::Error::other("the loop's thread failed"))??;
    writer.finish();
    links.pop().map(|link| (link, report)).ok_or_else(|| io::Error::other("the loop lost its link"))
}
