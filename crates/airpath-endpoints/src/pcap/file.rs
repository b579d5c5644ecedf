// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The IP packets of captures of either format; a packet that is cut short at the end of the file, as
//! when the capturing program was killed, is left out.

use airpath_packet::capture::{
    Block, BlockReader, CaptureError, CaptureProblem, Format, MOST_BYTES, PcapReader, Record, Resolution, pcapng,
};

use crate::pcap::packet::{Captured, LinkType};

/// The IP packets of a capture, in the order of the file.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    let magic = bytes.first_chunk().ok_or("it is not a capture: it is too short")?;
    match Format::of(*magic) {
        Some(Format::Pcap) => pcap(bytes),
        Some(Format::Pcapng) => pcapng(bytes),
        None => Err("it is no capture: it begins neither as pcap nor as pcapng does".into()),
    }
}

/// False at the end of a capture, also in the middle of a packet.
fn more(read: Result<bool, CaptureError>) -> Result<bool, String> {
    match read {
        Err(error) if error.is_torn() => Ok(false),
        read => read.map_err(text),
    }
}

fn text(error: CaptureError) -> String {
    error.to_string()
}

fn pcap(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    let mut reader = PcapReader::new(bytes).map_err(text)?;
    let link_type = LinkType::new(reader.link_type())?;
    let (mut packets, mut record) = (Vec::new(), Record::default());
    while more(reader.read(&mut record))? {
        let unix_ns = reader.unix_ns(&record).map_err(text)?;
        packets.extend(Captured::read(unix_ns, link_type, record.bytes()));
    }
    Ok(packets)
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    let mut reader = BlockReader::new(bytes, MOST_BYTES);
    let mut block = Block::default();
    let mut packets = Vec::new();
    let mut interfaces: Vec<(LinkType, Resolution)> = Vec::new();
    while more(reader.read(&mut block))? {
        if block.is_section() {
            interfaces.clear();
        }
        if block.kind() == pcapng::SIMPLE_PACKET {
            return Err("it has packets without times (simple packet blocks)".into());
        }
        if let Some(interface) = block.interface().map_err(text)? {
            interfaces.push((LinkType::new(interface.link_type.into())?, interface.resolution));
        }
        if let Some(packet) = block.packet().map_err(text)? {
            let problem = |problem| text(block.error(problem));
            let interface = interfaces.get(packet.interface as usize);
            let (link_type, resolution) =
                *interface.ok_or_else(|| problem(CaptureProblem::Interface(packet.interface)))?;
            let unix_ns = resolution.unix_ns(packet.ticks).ok_or_else(|| problem(CaptureProblem::Time))?;
            packets.extend(Captured::read(unix_ns, link_type, packet.bytes));
        }
    }
    Ok(packets)
}
