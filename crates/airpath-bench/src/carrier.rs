// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The floor of a link's processor time: a thread that carries datagrams from one end to the other through the ports
//! of a link. It has no model, no record and no due times: it sleeps for an interval, and writes what came meanwhile.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_core::BufferPool;
use airpath_live::clock;
use airpath_live::ports::{LONGEST_PACKET_BYTES, OffloadHeader, Outgoing, PortKind, Received, Segmentation};
use airpath_live::ports::{Port, WriteOutcome};
use airpath_live::session::Session;
use airpath_load::clock::sleep_until;
use airpath_log::Level;
use airpath_packet::checksum;

use crate::testbed::{Failure, NetworkEnd, Setting};
use crate::traffic::{self, Pace, UDP_HEADERS_BYTES};

const SLAB_BYTES: usize = 1 << 20;
/// As many as a link reads before it looks at the other port.
const READ_LIMIT: usize = 64;
const IPV4_BYTES: usize = 20;
const UDP: u8 = 17;

/// Writing of what was read after one sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Each datagram as it was read.
    Singly,
    /// All as one super-packet. They have to be equal datagrams of one flow.
    AsOne,
}

/// Result of carrying datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Processor time of the thread for a datagram, in ns.
    pub processor_ns: f64,
    /// Datagrams that did not arrive.
    pub lost: u64,
}

/// Carries traffic at `pace` between packet sockets, with a wake-up every `interval_ns`.
///
/// # Errors
/// When namespaces or threads cannot be had, or a port is gone.
pub fn carry(pace: Pace, interval_ns: u64, writing: Writing) -> Result<Carried, Failure> {
    let setting = Setting::new(PortKind::Packet, Level::Counters);
    let tuning = setting.tuning();
    let Session { client, server, mut client_port, mut server_port, .. } = setting.session()?;
    tuning.prepare_process();
    let (_, _wake_latency) = tuning.hold();
    let is_done = AtomicBool::new(false);
    let datagrams = (pace.packets_per_second * pace.seconds) as usize;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tuning.prepare_thread();
            let mut pool = BufferPool::new(SLAB_BYTES);
            let (mut received, mut carried) = (Vec::new(), 0);
            let (mut before_ns, mut due_ns) = (0, clock::monotonic_ns());
            // Wake-ups before the first datagram and after the last are none of theirs.
            while carried < datagrams && !is_done.load(Ordering::Relaxed) {
                due_ns = (due_ns + interval_ns).max(clock::monotonic_ns());
                sleep_until(due_ns)?;
                if carried == 0 {
                    before_ns = clock::thread_processor_ns();
                }
                client_port.read_batch(pool.slab(LONGEST_PACKET_BYTES), READ_LIMIT, &mut received)?;
                write(&mut server_port, &received, writing)?;
                carried += received.iter().filter(|packet| is_udp(&packet.bytes)).count();
                received.clear();
            }
            Ok::<_, io::Error>(clock::thread_processor_ns() - before_ns)
        });
        let arrived =
            traffic::run(&NetworkEnd::of(&client), &NetworkEnd::of(&server), pace, Duration::from_millis(200));
        is_done.store(true, Ordering::Relaxed);
        let processor_ns = thread.join().map_err(|_| "the carrier panicked")??;
        let arrived = arrived?;
        Ok(Carried { processor_ns: processor_ns as f64 / arrived.sent as f64, lost: arrived.lost() })
    })
}

fn write(port: &mut Port, received: &[Received], writing: Writing) -> io::Result<WriteOutcome> {
    let one = match writing {
        Writing::Singly => None,
        Writing::AsOne => super_packet_header(received),
    };
    if let Some((header, offload)) = one {
        let bodies = received.iter().map(|datagram| &datagram.bytes[header.len()..]);
        let parts: Vec<IoSlice<'_>> = std::iter::once(&header[..]).chain(bodies).map(IoSlice::new).collect();
        return port.write_batch(&[Outgoing { link_header: &[], parts: &parts, offload, journey: None }]);
    }
    let parts: Vec<[IoSlice<'_>; 1]> = received.iter().map(|datagram| [IoSlice::new(&datagram.bytes)]).collect();
    let outgoing: Vec<Outgoing<'_>> = received
        .iter()
        .zip(&parts)
        .map(|(datagram, parts)| Outgoing { link_header: &[], parts, offload: datagram.offload, journey: None })
        .collect();
    port.write_batch(&outgoing)
}

/// True for UDP over IPv4 without options.
fn is_udp(packet: &[u8]) -> bool {
    packet.len() > UDP_HEADERS_BYTES && packet[0] == 0x45 && packet[9] == UDP
}

/// Headers of the super-packet that holds all of `received`; none of fewer than two datagrams over IPv4, or of some
/// that differ in length.
fn super_packet_header(received: &[Received]) -> Option<([u8; UDP_HEADERS_BYTES], OffloadHeader)> {
    let first = &received.first()?.bytes;
    let are_equal = received.iter().all(|datagram| datagram.bytes.len() == first.len());
    if received.len() < 2 || !are_equal || !is_udp(first) {
        return None;
    }
    let payload_bytes = first.len() - UDP_HEADERS_BYTES;
    let udp_bytes = UDP_HEADERS_BYTES - IPV4_BYTES + payload_bytes * received.len();
    let mut header = [0; UDP_HEADERS_BYTES];
    header.copy_from_slice(&first[..UDP_HEADERS_BYTES]);
    header[2..4].copy_from_slice(&u16::try_from(IPV4_BYTES + udp_bytes).ok()?.to_be_bytes());
    header[10..12].fill(0);
    let value = checksum::checksum(&header[..IPV4_BYTES]);
    header[10..12].copy_from_slice(&value.to_be_bytes());
    header[24..26].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
    let unfinished = checksum::fold(checksum::pseudo_header_sum(&first[12..20], udp_bytes, UDP));
    header[26..28].copy_from_slice(&unfinished.to_be_bytes());
    let offload = OffloadHeader {
        needs_checksum: true,
        segmentation: Segmentation::Udp,
        ecn: false,
        header_bytes: UDP_HEADERS_BYTES as u16,
        segment_bytes: payload_bytes as u16,
        checksum_start: IPV4_BYTES as u16,
        checksum_offset: 6,
    };
    Some((header, offload))
}
