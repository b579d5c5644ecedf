// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The packets of a capture, at the times at which they were captured.
//!
//! Times count from the first packet of the capture that is replayed. Lengths are those on the wire;
//! of packets that were captured in part, the rest is zero where bytes are wanted. Nothing answers to
//! what arrives, and nothing checks it: a damaged packet counts as received and damaged, a truncated
//! one as rejected. Packets other than IP are left out, and so are those that the client neither
//! sends nor gets.

mod file;
mod packet;
mod replay;

use std::net::IpAddr;

use airpath_core::{End, Span, bounded};
use airpath_workload::kinds::Pcap;

use crate::error::EndpointError;
use crate::{Context, Ends};
use packet::Captured;
use replay::{Arrival, Replay};

/// Returns the number of IP packets in the capture `bytes`.
///
/// # Errors
/// The defect of the capture.
pub fn packets_in(bytes: &[u8]) -> Result<usize, String> {
    file::read(bytes).map(|packets| packets.len())
}

pub(crate) fn replay(pcap: &Pcap, context: &Context) -> Result<Ends, EndpointError> {
    let failure = |problem: String| EndpointError::Capture { file: pcap.file.clone(), problem };
    let bytes = bounded::read(&pcap.file, bounded::DATA_BYTES).map_err(|error| failure(error.to_string()))?;
    let mut packets: Vec<Captured> = file::read(&bytes).map_err(failure)?;
    if packets.is_empty() {
        return Err(failure("there is no IP packet in it".into()));
    }
    // Captures of several interfaces may be a little out of order.
    packets.sort_by_key(|packet| packet.unix_ns);
    let client = pcap.client.unwrap_or(packets[0].source);
    let sender = |packet: &Captured| match pcap.from {
        Some(end) => Some(end),
        None => sender(packet, client),
    };
    let most = pcap.packets.map_or(usize::MAX, |packets| usize::try_from(packets.0).unwrap_or(usize::MAX));
    let chosen = packets.iter().enumerate().filter_map(|(index, packet)| Some((index + 1, packet, sender(packet)?)));
    let mut lists = [Vec::new(), Vec::new()];
    let mut first = None;
    for (number, packet, end) in chosen.take(most) {
        let offset = Span::from_nanos(packet.unix_ns - *first.get_or_insert(packet.unix_ns));
        if pcap.duration.is_some_and(|duration| offset >= duration) {
            break;
        }
        if packet.len > context.options.mtu_bytes {
            return Err(failure(format!(
                "packet {number} (in order of time) has {} bytes, above the MTU of {}; capture with segmentation \
                 offloads off, or make the MTU larger",
                packet.len, context.options.mtu_bytes
            )));
        }
        lists[end as usize].push(Arrival::new(offset, packet, context));
    }
    if lists.iter().all(Vec::is_empty) {
        return Err(failure(format!("none of its {} IP packets is sent by {client} or to it", packets.len())));
    }
    let [uplink, downlink] = lists;
    let ends_last = match uplink.last().map(Arrival::offset) >= downlink.last().map(Arrival::offset) {
        true => End::Client,
        false => End::Server,
    };
    let end = |end, list| Box::new(Replay::new(end, list, end == ends_last, context));
    Ok((end(End::Client, uplink), end(End::Server, downlink)))
}

fn sender(packet: &Captured, client: IpAddr) -> Option<End> {
    match (packet.source == client, packet.destination == client) {
        (true, _) => Some(End::Client),
        (false, true) => Some(End::Server),
        (false, false) => None,
    }
}
