// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP over frames of fixed size, as in Alfredsson et al. 2006, Table II: 1500 frames a second of
//! 108 x k bits, k = 1 (BPSK) to 8 (256-QAM), a packet's last frame not shared with the next.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpath_core::{Bits, BufferLimit, LinkRate, QueueLimit, Rate};
use airpath_log::Level;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::{Fragmentation, LastFrame, LinkConfig};

use super::{Options, ports};
use crate::report::{Table, Target};
use crate::sockets;
use crate::testbed::{Emulation, Failure, Link, NetworkEnd, Setting, port_name};

const PACKET_BITS: u64 = 12_000;
const SEGMENT_BYTES: u64 = 1460;
const FRAMES_PER_SECOND: u64 = 1_500;
/// Segments before the measurement begins: the initial window and the slow start after it.
const SKIP_SEGMENTS: u64 = 30;
/// Send buffer: so large that the link never rests, and so small that nothing is dropped.
const BUFFER_BYTES: i32 = 128 << 10;

/// Reno keeps the link busy; a host's default may pace (BBR) and leave it idle now and then.
const CONGESTION_CONTROL: &str = "reno";

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title =
        "TCP in 1500-byte packets over frames of 108·k bits at 1500 frames/s (Alfredsson et al. 2006, Table II)";
    let columns = ["bits a symbol", "port", "log", "frames a packet", "bound bit/s", "goodput bit/s", "error %"];
    let mut table = Table::new("frames", title, &columns);
    for port in ports() {
        for bits_per_symbol in 1..=8 {
            let frame_bits = 108 * bits_per_symbol;
            let frames = PACKET_BITS.div_ceil(frame_bits);
            let bound = (SEGMENT_BYTES * 8 * FRAMES_PER_SECOND) as f64 / frames as f64;
            let link = Link::hop(link(frame_bits)?);
            let setting =
                Setting { congestion_control: Some(CONGESTION_CONTROL), ..Setting::new(port, Level::Counters) };
            let emulation = Emulation::start(&link, setting)?;
            let [client, server] = emulation.ends(0);
            let goodput = transfer(&server, &client, options.seconds(6.0))?;
            emulation.stop()?;
            let error = (goodput / bound - 1.0) * 100.0;
            let name = [bits_per_symbol.to_string(), port_name(port).to_owned(), "counters".to_owned()];
            let cells = [frames.to_string(), format!("{bound:.0}"), format!("{goodput:.0}"), format!("{error:+.4}")];
            table.row(name.into_iter().chain(cells));
            let where_ = format!("k = {bits_per_symbol}, {}, counters", port_name(port));
            table.figure("TCP goodput error", where_, error.abs(), "%", Some(Target::AtMost(0.1)));
        }
    }
    table.notes.push(format!(
        "the downlink carries the data; {CONGESTION_CONTROL}, TCP timestamps and metrics cache off; from the kernel's receive stamps after \
         {} segments, handshake excluded",
        SKIP_SEGMENTS
    ));
    Ok(table)
}

fn link(frame_bits: u64) -> Result<LinkConfig, Failure> {
    let fragmentation =
        Fragmentation { frame_payload: Bits::new(frame_bits), frame_header: Bits::ZERO, last_frame: LastFrame::Padded };
    Ok(LinkConfig {
        rate: Rate::new(frame_bits * FRAMES_PER_SECOND).map_or(LinkRate::Unlimited, LinkRate::Fixed).into(),
        fragmentation: Some(fragmentation),
        queue: QueueConfig::TailDrop(TailDropConfig { limit: QueueLimit::default() }),
        send_buffer: BufferLimit::Packets(1),
        ..LinkConfig::default()
    })
}

/// Sends for `seconds` and returns the goodput in bit/s.
fn transfer(from: &NetworkEnd<'_>, to: &NetworkEnd<'_>, seconds: f64) -> Result<f64, Failure> {
    for end in [from, to] {
        end.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0"))?;
        end.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"))?;
    }
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let listener = from.run(move || TcpListener::bind(any))?;
    let target = SocketAddr::new(from.address, listener.local_addr()?.port());
    let receiving = to.run(move || TcpStream::connect(target))?;
    let (mut sending, _) = listener.accept()?;
    sockets::with_buffers(&sending, BUFFER_BYTES)?;
    sockets::with_stamps(&receiving)?;
    receiving.set_read_timeout(Some(Duration::from_millis(2_000)))?;
    sending.set_write_timeout(Some(Duration::from_millis(500)))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let chunk = vec![0x5a; 16 * SEGMENT_BYTES as usize];
            while !done.load(Ordering::Relaxed) {
                let _ = sending.write(&chunk);
            }
        });
        let mut buffer = vec![0; 64 << 10];
        let mut bytes = 0;
        let mut from: Option<(u64, u64)> = None;
        let rate = loop {
            let (count, stamp) = sockets::read_stream(&receiving, &mut buffer)?;
            let Some(stamp_ns) = stamp.filter(|_| count > 0) else {
                done.store(true, Ordering::Relaxed);
                return Err("the transfer stalled, or the kernel gave no stamps".into());
            };
            bytes += count as u64;
            match from {
                None if bytes >= SKIP_SEGMENTS * SEGMENT_BYTES => from = Some((stamp_ns, bytes)),
                Some((from_ns, before)) if (stamp_ns - from_ns) as f64 > seconds * 1e9 => {
                    break (bytes - before) as f64 * 8e9 / (stamp_ns - from_ns) as f64;
                }
                _ => {}
            }
        };
        done.store(true, Ordering::Relaxed);
        let _ = receiving.shutdown(std::net::Shutdown::Both);
        let _ = sender.join();
        Ok(rate)
    })
}
