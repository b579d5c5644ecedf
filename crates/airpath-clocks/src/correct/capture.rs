// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Captures copied byte for byte but for their stamps.

use std::io::{self, Read, Write};

use airpath_packet::capture::{
    Block, BlockReader, CaptureProblem, Format, MAGIC_BYTES, MOST_BYTES, PcapReader, Record, Resolution,
};

/// Function that replaces a stamp, in ns since 1970.
pub type Change<'a> = dyn FnMut(u64) -> io::Result<u64> + 'a;

/// Copies a capture from `input` to `output`, each stamp as `change` makes it. Stamps keep the
/// resolution that they have; what is finer is rounded.
///
/// # Errors
/// Those of reading, writing and `change`; and when the input is no capture, or a torn one.
pub fn copy(input: &mut dyn Read, output: &mut dyn Write, change: &mut Change<'_>) -> io::Result<()> {
    let mut magic = [0; MAGIC_BYTES];
    input.read_exact(&mut magic).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it is too short to be a capture"),
        _ => error,
    })?;
    let whole = magic.as_slice().chain(input);
    match Format::of(magic) {
        Some(Format::Pcapng) => pcapng(whole, output, change),
        Some(Format::Pcap) => pcap(whole, output, change),
        None => Err(damaged("it is neither a pcapng nor a pcap file")),
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn pcapng(input: impl Read, output: &mut dyn Write, change: &mut Change<'_>) -> io::Result<()> {
    let mut reader = BlockReader::new(input, MOST_BYTES);
    let mut block = Block::default();
    let mut interfaces: Vec<Resolution> = Vec::new();
    while reader.read(&mut block)? {
        if block.is_section() {
            interfaces.clear();
        }
        if let Some(interface) = block.interface()? {
            interfaces.push(interface.resolution);
        }
        if let Some((number, places)) = block.stamps()? {
            let interface = interfaces.get(number as usize);
            let resolution = *interface.ok_or_else(|| block.error(CaptureProblem::Interface(number)))?;
            for place in places {
                let ticks = block.stamp(place).ok_or_else(|| block.error(CaptureProblem::Short))?;
                let unix_ns = resolution.unix_ns(ticks).ok_or_else(|| block.error(CaptureProblem::Time))?;
                let by_ns = i128::from(change(unix_ns)?) - i128::from(unix_ns);
                let moved = resolution.moved(ticks, by_ns).ok_or_else(|| block.error(CaptureProblem::Time))?;
                block.set_stamp(place, moved);
            }
        }
        output.write_all(block.bytes())?;
    }
    Ok(())
}

fn pcap(input: impl Read, output: &mut dyn Write, change: &mut Change<'_>) -> io::Result<()> {
    let mut reader = PcapReader::new(input)?;
    output.write_all(reader.head())?;
    let mut record = Record::default();
    while reader.read(&mut record)? {
        let unix_ns = change(reader.unix_ns(&record)?)?;
        reader.set_unix_ns(&mut record, unix_ns)?;
        output.write_all(record.head())?;
        output.write_all(record.bytes())?;
    }
    Ok(())
}
